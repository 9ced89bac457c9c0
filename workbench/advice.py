"""Advice for readers: a sentence, and the command that it may end with, shown so that it can be copied."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """What to do."""

    words: str  # a sentence; without a colon where a command follows
    command: str = ""  # for a shell; empty where the sentence is enough
    otherwise: "Advice | None" = None  # what would also help

    def __str__(self) -> str:
        """Return the advice as plain text, with what would also help on a line of its own."""
        said = ": ".join(filter(None, (self.words, self.command)))
        return said if self.otherwise is None else f"{said}\n{self.otherwise}"
