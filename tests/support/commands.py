"""Fixtures for tests of commands: a folder of their own, and what a command prints."""

import pytest

from workbench import cli
from workbench.cli.console import BAD_INPUT, DONE


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys, request):
    """Carry out a command, or that of the module's ``COMMAND``; return its exit code and what it prints."""
    named = getattr(request.module, "COMMAND", ())

    def call(*arguments):
        try:
            code = cli.main([*named, *map(str, arguments)])
        except SystemExit as end:  # of argparse
            code = end.code
        return code, capsys.readouterr()

    return call


@pytest.fixture
def prints(run):
    """Carry out a command; return what it prints on standard output."""

    def call(*arguments, code=DONE):
        found, said = run(*arguments)
        assert found == code, said.err
        return said.out

    return call


@pytest.fixture
def refuses(run):
    """Carry out a command whose input is bad; return what it says, within a few lines or `lines`, as one."""

    def call(*arguments, lines=None):
        code, said = run(*arguments)
        assert (code, said.out, len(said.err) < 3_000) == (BAD_INPUT, "", True)
        assert said.err.startswith(("workbench: ", "usage: workbench "))  # argparse shows how a command is used
        assert lines in {None, said.err.count("\n")}
        return " ".join(said.err.split())

    return call
