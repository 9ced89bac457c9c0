"""Tests of commands."""

from commands import own_folder, prints, refuses, run  # noqa: F401
