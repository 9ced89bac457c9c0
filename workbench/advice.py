"""What readers are advised to do: words, and the command they end with, which is shown so that it can be copied."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """What to do."""

    words: str  # in words; those that lead to a command end without a colon
    command: str = ""  # to be run in a shell; empty where the words are all
    otherwise: "Advice | None" = None  # what would help as well

    def __str__(self) -> str:
        """Give it as plain text, what would help as well on a line of its own."""
        said = ": ".join(filter(None, (self.words, self.command)))
        return said if self.otherwise is None else f"{said}\n{self.otherwise}"
