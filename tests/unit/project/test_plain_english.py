"""The linter of words finds what it must, and nothing in what is committed."""

import plain_english
import pytest

GUIDE = "| `anew` | again |\n| `at the most`, `luck` | less |\n"


def found(tmp_path, monkeypatch, name, text):
    monkeypatch.setattr(plain_english, "ROOT", tmp_path)
    (tmp_path / name).write_text(text)
    return plain_english.findings([tmp_path / name], GUIDE)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "Two lines.\nBegin anew.\n"),
        ("a.py", "x = 1\n# begin anew\n"),
        ("a.py", "x = 1\nprint(f'{x} begins Anew')\n"),
        ("a.yaml", "a: 1\nb: anew\n"),
    ],
)
def test_a_word_of_the_list_is_found_with_its_line_and_a_phrase_may_be_broken_over_lines(
    tmp_path, monkeypatch, name, text
):
    (line,) = found(tmp_path, monkeypatch, name, text)
    assert line.startswith(f"{name}:2: '")
    assert line.casefold().endswith("anew'; write: again")
    (line,) = found(tmp_path, monkeypatch, "a.md", "ten at\nthe most\n")
    assert line.endswith("write: less")


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.py", "luck = 1\n"), ("a.py", "x = 'renewed'\n"), ("a.md", "Call `luck` or\n```\nluck\n```\n")],
)
def test_names_code_and_other_words_pass(tmp_path, monkeypatch, name, text):
    assert found(tmp_path, monkeypatch, name, text) == []
