"""The one kind of error that you can fix.

The workbench raises ``WorkbenchError`` for input or an environment that you can change: its text names the thing, the
value, what is allowed and the next step. The command line prints it and exits with 2, or with 1 where what was measured
allows no plan. Notebooks show it without a traceback, widgets and reports as a card. Every other exception is a defect
of the workbench.
"""

import re
from collections.abc import Callable, Sequence

from workbench.redaction import redacted

_LONG_WORD = re.compile(r"(\S{120})\S{180,}")


def shortened(message: str) -> str:
    """Cut words of hundreds of characters, such as a number without end, or a name that is not a name."""
    return _LONG_WORD.sub(r"\1...", message)


class WorkbenchError(Exception):
    """Something you can fix; the message says how.

    The `message` names no option of a command and no key of a file. Secrets in it are redacted, and words of hundreds
    of characters are cut. The `settings` are those to change, by their names in Python and in study files.
    """

    def __init__(self, message: str, *, settings: Sequence[str] = ()) -> None:
        self.message = shortened(redacted(message))
        super().__init__(self.message)
        self.settings = tuple(settings)

    def __str__(self) -> str:
        """Return the message with its settings as Python and study files name them."""
        return self.spelled(str)

    def spelled(self, name: Callable[[str], str]) -> str:
        """Return the message with its settings as `name` spells them."""
        if not self.settings:
            return self.message
        return f"{self.message.removesuffix('.')} ({', '.join(map(name, self.settings))})."

    def _render_traceback_(self) -> list[str]:
        """Show in a notebook what the command line shows: IPython prints these lines instead of a traceback."""
        return [f"✖ {self}"]


class TooFewBatchesError(WorkbenchError):
    """Too few batches were complete in the time allowed: they take too long, and nothing else is wrong."""


class NoCapacityError(WorkbenchError):
    """The runs were made, and too few of them gave a capacity to plan with: the answer is that there is no plan."""


class QueryError(WorkbenchError):
    """The query, its data or its sink is at fault: another budget, or a deployment of its own, fails alike."""
