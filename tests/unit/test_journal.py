import io
import json
import multiprocessing
import tracemalloc

import pytest

from workbench.errors import WorkbenchError
from workbench.journal import Entry, Journal, JournalError, _last_lines
from workbench.reading import parse_json


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "a" / "b" / "journal.jsonl")


def filled(journal, count, key="q"):
    """Append probes of one key that are numbered from 0 on."""
    for number in range(count):
        journal.append("probe", key, number)


def run_together(*jobs):
    """Run functions with their arguments in processes of their own."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=job, args=arguments) for job, *arguments in jobs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_entries_come_back_in_order_by_kind_and_key(journal):
    first, second, third = (("probe", "q1", {"n": 1}), ("estimate", "q1", [2.5]), ("probe", "q2", None))
    for one in (first, second, third):
        journal.append(*one)
    assert journal.entries() == (Entry(*first), Entry(*second), Entry(*third))
    assert journal.entries("probe") == (Entry(*first), Entry(*third))
    assert journal.entries("probe", "q2") == (Entry(*third),)
    assert journal.entries(key="q1")[1].kind == "estimate"


def test_no_file_is_an_empty_journal_and_the_format_of_a_line_is_fixed(journal):
    assert journal.entries() == ()
    assert not journal.path.parent.exists()
    journal.append("probe", "q1", "two\nlines")
    assert journal.path.read_text() == '{"v": 1, "kind": "probe", "key": "q1", "data": "two\\nlines"}\n'


@pytest.mark.parametrize("key", [None, "a"])
def test_corrupt_line_in_the_middle_is_named_also_where_another_key_is_asked_for(journal, key):
    for one in ("a", "b", "a"):
        journal.append("probe", one, 1)
    lines = journal.path.read_text().splitlines()
    journal.path.write_text("\n".join([lines[0], lines[1][:-4], lines[2]]) + "\n")
    with pytest.raises(WorkbenchError, match=r"^Line 2 of the journal .*\.jsonl is corrupt .* delete that line\.$"):
        journal.entries(key=key)


def test_last_line_that_is_garbage_with_a_newline_is_cut_off(journal):
    journal.append("probe", "q", 1)
    with journal.path.open("a") as file:
        file.write('{"v": 1, "ki\n')
    assert journal.entries() == (Entry("probe", "q", 1),)
    journal.append("probe", "q", 2)
    assert [entry.data for entry in journal.entries()] == [1, 2]


def test_other_versions_are_refused(journal):
    journal.append("probe", "q", 1)
    with journal.path.open("a") as file:
        file.write(json.dumps({"v": 2, "kind": "probe", "key": "q", "data": 1}) + "\n")
    with pytest.raises(WorkbenchError, match=r"Line 2 .* has version 2; this workbench reads version 1\. Read it with"):
        journal.entries()
    with pytest.raises(WorkbenchError, match=r"Line 2 .* has version 2"):
        journal.append("probe", "q", 2)
    assert journal.path.read_text().count("\n") == 2


@pytest.mark.parametrize("line", ["[1]", "3", '{"v": 1}', '{"v": 1, "kind": "a", "key": "b", "data": 1, "more": 2}'])
def test_other_json_is_not_an_entry(journal, line):
    journal.path.parent.mkdir(parents=True)
    journal.path.write_text(line + "\n")
    with pytest.raises(WorkbenchError, match=r"Line 1 .* is not an entry: .* v, kind, key and data"):
        journal.entries()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_values_that_are_not_json_are_refused(journal, value):
    with pytest.raises(WorkbenchError, match=r"kind 'probe' cannot be written .* finite numbers.* convert the rest"):
        journal.append("probe", "q", {"x": value})
    assert not journal.path.exists()


def write_many(path, key):
    filled(Journal(path), 30, key)


@pytest.mark.fault("two processes append to one journal", times=60, sees="nothing: both lines are kept")
def test_concurrent_writers_lose_nothing(journal):
    run_together((write_many, str(journal.path), "a"), (write_many, str(journal.path), "b"))
    for key in ("a", "b"):
        assert [entry.data for entry in journal.entries(key=key)] == list(range(30))


@pytest.mark.fault("a journal is torn at every byte", times=220, sees="nothing: the unfinished line is measured again")
def test_torn_at_every_byte_only_the_unfinished_line_is_lost(journal):
    for n in range(3):
        journal.append("probe", "q", {"n": n, "text": "ü\u2028"})
    content = journal.path.read_bytes()
    for cut in range(len(content) + 1):
        journal.path.write_bytes(content[:cut])
        # A line that lacks nothing but its newline is whole.
        whole = sum(end <= cut for end, byte in enumerate(content) if byte == ord("\n"))
        one = Journal(journal.path)
        for entries in (one.entries(), one.entries(key="q")):
            assert [entry.data["n"] for entry in entries] == list(range(whole))
        journal.path.write_bytes(content)
        assert [entry.data["n"] for entry in one.entries(key="q")] == [0, 1, 2]  # as where it was not written yet
        journal.path.write_bytes(content[:cut])
        journal.append("after", "q", {"n": 9})
        assert [entry.data["n"] for entry in journal.entries()] == [*range(whole), 9]


@pytest.mark.fault(
    "the journal's file cannot be written",
    times=3,
    sees="The journal cannot be read or written: No space left on device. What is in it stays. Make room, ...",
)
@pytest.mark.parametrize("fault", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")])
def test_a_file_that_cannot_be_written_is_told_and_not_a_defect(journal, monkeypatch, fault):
    journal.append("probe", "a", 1)

    def refuse(*_):
        raise fault

    monkeypatch.setattr("workbench.journal.fcntl.flock", refuse)
    for use in (journal.check, journal.entries, lambda: journal.append("probe", "a", 2)):
        with pytest.raises(WorkbenchError, match=rf"jsonl cannot be read or written: {fault.strerror}.*(journal)"):
            use()


def test_an_append_reads_the_end_of_the_file_alone():
    class Counted(io.BytesIO):
        taken = 0

        def read(self, size=-1):
            found = super().read(size)
            self.taken += len(found)
            return found

    line = json.dumps({"v": 1, "kind": "probe", "key": "q", "data": "x" * 1000}).encode() + b"\n"
    taken = []
    for count in (1_000, 4_000):
        file = Counted(count * line)
        start, found = _last_lines(file)
        assert (count * line)[start:] == found
        taken.append(file.taken)
    assert taken[0] == taken[1] < 200_000


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n\n"])
@pytest.mark.parametrize("length", [3, 100_000])
@pytest.mark.parametrize("count", range(5))
def test_the_last_two_lines_are_whole(count, length, end):
    content = b"\n".join([b"x" * length] * count) + end
    start, found = _last_lines(io.BytesIO(content))
    assert found == content[start:]
    assert start == 0 or content[start - 1 : start] == b"\n"
    assert found.strip(b"\n").count(b"\n") >= min(count, 2) - 1


def test_every_line_is_parsed_once_however_many_keys_are_asked_for_and_whoever_appends(journal, monkeypatch):
    for number in range(40):
        journal.append("probe", f"q{number % 20}", number)
    calls = []
    monkeypatch.setattr("workbench.journal.parse_json", lambda text: calls.append(1) or parse_json(text))
    for key in range(20):
        assert [entry.data for entry in journal.entries(key=f"q{key}")] == [key, key + 20]
    assert len(calls) == 40 + 40  # each once to know its key, and once to be given
    Journal(journal.path).append("probe", "b", 30)
    calls.clear()
    assert journal.entries(key="b") == (Entry("probe", "b", 30),)
    assert len(calls) == 2


def test_a_file_that_was_replaced_or_cut_is_read_again(journal, tmp_path):
    filled(journal, 3, "a")
    assert len(journal.entries(key="a")) == 3
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(b"".join(lines[:1]))
    assert [entry.data for entry in journal.entries(key="a")] == [0]
    (tmp_path / "other").write_bytes(lines[2] + lines[1])
    (tmp_path / "other").rename(journal.path)
    assert [entry.data for entry in journal.entries(key="a")] == [2, 1]


def test_a_name_that_no_file_can_have_and_a_folder_that_cannot_be_made_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkbenchError, match=r"folder of the journal .* cannot be made: .*(journal)"):
        Journal(tmp_path / "file" / "sub" / "j.jsonl").append("probe", "a", 1)
    endless = Journal("x" * 300)
    for use in (endless.entries, endless.check, lambda: endless.append("probe", "q", {})):
        with pytest.raises(JournalError, match=r"cannot be read or written: File name too long. Choose another file"):
            use()


def test_a_corrupt_line_is_refused_without_reading_what_follows(journal):
    """A file of 600 MB ended in a MemoryError where 1 GB may be used."""
    journal.path.parent.mkdir(parents=True)
    journal.path.write_bytes(b"torn\n" + (b"x" * 999 + b"\n") * 20_000)
    tracemalloc.start()
    with pytest.raises(WorkbenchError, match="Line 1 of the journal"):
        journal.entries(key="a")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


def drop_first(lines):
    return {0} if lines else ()


def test_pruning_removes_lines_and_their_bytes(journal):
    filled(journal, 3)
    size = journal.path.stat().st_size
    with journal.path.open("a") as file:
        file.write('{"torn')
    (removed,) = journal.prune(drop_first)
    assert removed == Entry("probe", "q", 0)
    assert journal.path.stat().st_size == size - removed.size
    assert [entry.data for entry in journal.entries()] == [1, 2]
    assert journal.prune(lambda _: ()) == ()


def test_pruning_keeps_permissions_and_links(journal, tmp_path):
    journal.append("probe", "q", 1)
    journal.path.chmod(0o640)
    link = Journal(tmp_path / "link.jsonl")
    link.path.symlink_to(journal.path)
    link.prune(drop_first)
    assert link.path.is_symlink()
    assert journal.path.stat().st_mode & 0o777 == 0o640
    assert journal.entries() == ()


def test_pruning_that_fails_leaves_the_journal(journal, monkeypatch):
    journal.append("probe", "q", 1)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workbench.journal.os.fsync", full)
    with pytest.raises(WorkbenchError, match="No space left on device"):
        journal.prune(drop_first)
    assert journal.entries() == (Entry("probe", "q", 1),)
    assert [path.name for path in journal.path.parent.iterdir()] == [journal.path.name]


def prune_many(path):
    for _ in range(40):
        Journal(path).prune(lambda lines: [place for place, line in enumerate(lines) if line.key == "a"])


@pytest.mark.fault("a journal is pruned while others append", times=40, sees="nothing: what is appended is kept")
def test_what_is_appended_while_another_process_prunes_is_kept(journal):
    journal.append("probe", "a", 0)
    path = str(journal.path)
    run_together((write_many, path, "a"), (write_many, path, "b"), (prune_many, path))
    assert [entry.data for entry in journal.entries(key="b")] == list(range(30))
