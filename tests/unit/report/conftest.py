"""The command that writes reports."""

import pytest

from workbench import cli


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        code = cli.main(("report", *arguments))
        return code, capsys.readouterr()

    return command
