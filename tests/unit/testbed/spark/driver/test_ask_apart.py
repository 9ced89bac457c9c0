"""A process that answers one question, and what is left of it."""

from pathlib import Path

from workbench.testbed.spark.driver.process import ask_apart

ASKED = """
import json
import sys
import tempfile

from workbench.testbed.spark.driver.process import answering

asked = json.load(sys.stdin)
with answering() as result:
    print("x" * 200_000 + asked["last"])
    result.write(tempfile.mkdtemp())
"""


def test_it_answers_its_last_words_are_kept_and_its_files_are_removed(tmp_path, monkeypatch):
    (tmp_path / "asked_apart.py").write_text(ASKED)
    monkeypatch.syspath_prepend(tmp_path)
    answer, said = ask_apart("asked_apart", {"last": "word"})
    assert Path(answer).is_absolute()
    assert not Path(answer).exists()
    assert said.endswith("xword\n")
    assert len(said) < 100_000
