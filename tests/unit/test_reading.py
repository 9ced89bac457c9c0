"""Files as they are read: bounded, strict, and with an error that names the place."""

import json

import pytest
from refusals import refusals

from workbench import bounds
from workbench.errors import WorkbenchError
from workbench.reading import finite_cell, parse_json, parse_yaml, read_rows, read_text


def test_a_document_may_be_as_deep_as_the_bound_and_no_deeper():
    fits = "[" * bounds.NESTING + "]" * bounds.NESTING
    assert parse_json(fits) == json.loads(fits)
    for deeper in (f"[{fits}]", "[" * 100_000 + "]" * 100_000, '{"a":' * 1_500 + "1" + "}" * 1_500):
        with pytest.raises(ValueError, match=r"^it is nested more than 64 deep$"):
            parse_json(deeper)
    assert parse_json(json.dumps(["[" * 100])) == ["[" * 100]  # brackets of a text are none
    document = {"names": ["["] * 70, "values": [0] * 1_000_001}
    assert parse_json(json.dumps(document)) == document


def test_a_key_that_is_there_twice_is_refused_but_a_merge_key_may_override_what_it_merges():
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(ValueError, match=r"^key 'a' appears twice; only the last would be kept$"):
        parse_json('{"b": {"a": 1, "a": 2}}', by_hand=True)
    with pytest.raises(ValueError, match=r"^key 'a' appears twice"):
        parse_yaml("b: {a: 1, a: 2}")
    text = "defs:\n  a: &a {x: 1}\n  b: &b\n    <<: *a\n    x: 2\nc:\n  <<: *b\n  y: 3\n"
    assert parse_yaml(text)["c"] == {"x": 2, "y": 3}
    assert parse_yaml("[0, 0.5, 0e3, 0x1F, '024', 1_024, -0]") == [0, 0.5, 0, 31, "024", 1024, 0]


test_what_yaml_cannot_construct_is_a_value_error = refusals(
    parse_yaml,
    ("9" * 5_000, "4300 digits"),
    ("x: !!float x", "could not convert"),
    ("!!timestamp x", "a value does not fit its tag"),
    ("!!binary é", "ascii"),
    ("? [a]\n: 1", "unhashable"),
    ("\0", "special characters"),
    ("*nowhere", "undefined alias"),
    ("[1,024]", "024 begins with a zero; write numbers without commas: 1024, not 1,024"),
    ("[1,089]", "089 begins with a zero"),
    ("[1,024.5]", "024.5 begins with a zero"),
    ("a: 010", "010 begins with a zero"),
    error=ValueError,
)


def test_a_file_is_read_up_to_its_bound(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfabc")
    assert read_text(path, "The file", 6) == "abc"
    with pytest.raises(WorkbenchError, match=r"^The file is larger than 4.76837e-06 MiB. Check the path, or cut"):
        read_text(path, "The file", 5)
    with pytest.raises(WorkbenchError, match=r"^The device is larger than 1 MiB"):
        read_text("/dev/zero", "The device", bounds.MEBIBYTE)


@pytest.mark.parametrize(("name", "reason"), [("no", "No such file"), ("a\0b", "null"), ("a" * 5_000, "too long")])
def test_a_path_that_cannot_be_read_is_refused(tmp_path, name, reason):
    with pytest.raises(WorkbenchError, match=rf"^The file cannot be read: .*{reason}.*\. Check the path\.$"):
        read_text(f"{tmp_path}/{name}", "The file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", r"^The table has no column 'c'; its first line names a, b\. Name it\.$"),
        ("", r"^The table has no column 'c'; its first line names no columns\."),
        ("c,c\n1,2\n", r"^The table has more than one column 'c'"),
        (f"{'9' * 400}\n1\n", r"^The table has no column 'c'; its first line names 9{120}\.\.\.\. Name it"),
        (f"c\n{'x' * 200_000}\n", r"^The table cannot be read as CSV: field larger than field limit .* in line 1"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        list(read_rows(tmp_path / "t.csv", "The table", ["c"], "Name it."))


@pytest.mark.parametrize("text", ["", None, "x", "nan", "inf", "1e400", "1_0x"])
def test_a_cell_that_is_no_finite_number_is_refused(text):
    with pytest.raises(WorkbenchError, match=r"^Line 3 of t\.csv has .* in column 'rate'; it must be a finite number"):
        finite_cell(text, "Line 3 of t.csv", "rate")
