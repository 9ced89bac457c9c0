"""The command that writes reports."""

from commands import own_folder, prints, refuses, run  # noqa: F401
