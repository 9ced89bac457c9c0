"""The bounds of what is read are the same in the reference and in the help as in the code."""

from pathlib import Path

import pytest

from workbench import bounds
from workbench.cli import main

REFERENCE = Path(__file__).parents[3] / "docs" / "reference.md"


def test_the_reference_gives_every_bound():
    text = REFERENCE.read_text(encoding="utf-8")
    table = text[text.index("### Bounds") : text.index("## Public names")]
    counts = (bounds.TASKS, bounds.KEYED_CORES, bounds.TARGETS, bounds.RUNS)
    sizes = (bounds.TABLE_BYTES, bounds.DOCUMENT_BYTES)
    for shown in (
        *(f"{count:,}" for count in counts),
        *(f"{size // bounds.MEBIBYTE} MiB" for size in sizes),
        f"{bounds.RATE:g} records/s",
        f"{bounds.MEMORY_MB:,} MB, {bounds.CPUS:,} cores",
        f"{bounds.SECONDS:,} s",
        f"{bounds.GRID:,} each",
        f"{bounds.TEXT:,} characters",
        f"{bounds.NUMBER:g}",
        f"below {bounds.LEAST_NUMBER:g}",
        f"{bounds.YAML_BYTES / bounds.MEBIBYTE:g} MiB; {bounds.NESTING}",
    ):
        assert f"| {shown} |" in table
    assert bounds.INTERVALS == bounds.GRID


@pytest.mark.parametrize("command", ["plan", "replay"])
def test_the_help_gives_the_most_slots(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"at most {bounds.TASKS:,}" in " ".join(capsys.readouterr().out.split())
