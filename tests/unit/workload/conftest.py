"""Tests of commands among those of the workload."""

from commands import own_folder, prints, refuses, run  # noqa: F401
