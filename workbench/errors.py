"""The one kind of error a user can mend.

``WorkbenchError`` is raised for input or an environment that the user can change: its text names the
thing, the value got, what is allowed and the next step. The command line prints it and exits with 2,
notebooks and reports show it as a card. Every other exception is a defect of the workbench.
"""


class WorkbenchError(Exception):
    """Something the user can mend; the message says how."""
