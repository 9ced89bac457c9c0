"""The one kind of error a user can mend.

``WorkbenchError`` is raised for input or an environment that the user can change: its text names the
thing, the value got, what is allowed and the next step. The command line prints it and exits with 2,
notebooks show it without a traceback, widgets and reports as a card. Every other exception is a defect of
the workbench.
"""

import re

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


class WorkbenchError(Exception):
    """Something the user can mend; the message says how."""

    def _render_traceback_(self) -> list[str]:
        """Say in a notebook what the command line says: IPython shows these lines in place of a traceback."""
        return [f"✖ {self}"]


def in_keys(message: str) -> str:
    """Name the keys of a study file where `message` names options of a command: ``--slot-cpus`` is ``slot_cpus``."""
    return _OPTION.sub(lambda found: {"interval": "interval_s"}.get(found[1], found[1].replace("-", "_")), message)
