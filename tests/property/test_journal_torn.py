"""A crash at any byte loses at most the line being written."""

import json
import tempfile
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.journal import Entry, Journal

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.lists(st.tuples(st.text(), st.text(), VALUES), min_size=1, max_size=4)


@pytest.mark.fault("a journal is torn anywhere", times=300, sees="nothing: the unfinished line is measured again")
@examples(300)
@given(entries=ENTRIES, data=st.data(), garbage=st.none() | st.binary(min_size=1, max_size=40))
def test_torn_anywhere_or_with_garbage_at_its_end_every_finished_line_survives(entries, data, garbage):
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "deep" / "journal.jsonl")
        for entry in entries:
            journal.append(*entry)
        content = journal.path.read_bytes()
        assert content.count(b"\n") == len(entries)
        cut = data.draw(st.integers(0, len(content))) if garbage is None else len(content)
        torn = b"" if garbage is None else b"{" + garbage.replace(b"\n", b"") + b"\x00"
        journal.path.write_bytes(content[:cut] + torn)

        ends = [i for i, byte in enumerate(content) if byte == ord("\n")]
        whole = sum(end <= cut for end in ends)  # a line that lacks only its newline is whole
        expected = tuple(Entry(*entry) for entry in entries[:whole])
        assert journal.entries() == expected
        journal.append("after", "the crash", {"x": 1})
        assert journal.entries() == (*expected, Entry("after", "the crash", {"x": 1}))
        lines = journal.path.read_bytes().split(b"\n")
        assert lines.pop() == b""
        assert [json.loads(line)["v"] for line in lines] == [1] * (whole + 1)
