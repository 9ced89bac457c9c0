"""Captured values as columns."""

import json
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka_records import Record

from workbench.workload import ENCODED
from workbench.workload.kafka._sample import joined, records_of, traffic_s


class Holding(Record):
    def __init__(self, offset, value, at=None, headers=None):
        super().__init__(0, offset)
        self._value, self._at, self._headers = value, at, headers

    def value(self):
        return self._value if isinstance(self._value, bytes | None) else json.dumps(self._value).encode()

    def timestamp(self):
        return (1, self._at) if self._at is not None else super().timestamp()

    def headers(self):
        return self._headers


def table_of(folder, *parts):
    offsets = count()
    found = joined([records_of([Holding(next(offsets), value) for value in values]) for values in parts])
    pq.write_table(found.table, folder / "whole.parquet")
    return pq.read_table(folder / "whole.parquet"), found.wrong


@pytest.mark.parametrize(
    ("values", "kind", "found"),
    [
        ([1, 2], pa.int64(), [1, 2]),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([1, "two"], pa.string(), ["1", "two"]),
        ([{}, {}], pa.string(), ["{}", "{}"]),
        ([{"b": {}}, {"b": {}}], pa.string(), ['{"b": {}}', '{"b": {}}']),
        (
            ["2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z"],
            pa.string(),
            ["2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z"],
        ),
        ([2**63, 1], pa.string(), [str(2**63), "1"]),
        ([None, 3], pa.int64(), [None, 3]),
        ([[1], [{"x": 1}]], pa.string(), ["[1]", '[{"x": 1}]']),
        (["x" * 3_000_000, "y"], pa.string(), ["x" * 3_000_000, "y"]),
    ],
)
def test_columns_hold_what_was_sent(tmp_path, values, kind, found):
    rows = [{"a": value} for value in values]
    for parts in ([rows], [[row] for row in rows]):  # in one part, and each in a part of its own
        table, not_json = table_of(tmp_path, *parts)
        assert (table["a"].type, not_json) == (kind, 0)
        assert table["a"].to_pylist() == found


def test_a_record_without_a_value_has_empty_columns_and_hides_no_others(tmp_path):
    table, not_json = table_of(tmp_path, [{"a": 1}, None, None], [None, {"a": 2}])
    assert not_json == 0
    assert table["a"].to_pylist() == [1, None, None, None, 2]


def test_names_that_are_taken_get_another(tmp_path):
    table, _ = table_of(tmp_path, [{"_key": 1, "_key_": 2, "_offset": 3}])
    assert (table["_key_"].to_pylist(), table["_key__"].to_pylist(), table["_offset_"].to_pylist()) == ([1], [2], [3])


def test_a_record_without_a_time_has_none():
    table = joined([records_of([Holding(0, {"a": 1}, at=-1), Holding(1, {"a": 2}, at=10**15)])]).table
    assert table["_timestamp"].null_count == 1
    assert traffic_s(table) == 0.0  # and a time in the year 33658 is no trouble


def test_headers_that_repeat_are_kept():
    table = joined([records_of([Holding(0, {"a": 1}, headers=[("t", b"1"), ("t", b"\xff")])])]).table
    assert json.loads(table["_headers"][0].as_py()) == [["t", "1"], ["t", "/w=="]]


def test_json_behind_a_registry_s_wire_format_becomes_columns(tmp_path):
    framed = b"\0\0\0\1\2" + b'{"a": 1}'
    table, not_json = table_of(tmp_path, [framed, {"a": 2}, None])
    assert not_json == 0
    assert table["a"].to_pylist() == [1, 2, None]
    assert table.schema.metadata[ENCODED] == b"framed"
    plain = joined([records_of([Holding(0, {"a": 2})])])
    assert ENCODED not in (plain.table.schema.metadata or {})
    assert plain.numbers == {}


def test_the_ids_and_the_first_wrong_value_are_noted():
    values = [b"\0\0\0\0\7{}", b"\0\0\0\0\7 {}", b"\0\0\0\0\x09{}", b"\0not json", b"{", None]
    found = joined([records_of([Holding(place, value) for place, value in enumerate(values, 100)])])
    assert (found.values, found.wrong, found.first_wrong, found.numbers) == (5, 2, (0, 103), {7: 2, 9: 1})
    assert found.table.column_names[0] == "value"  # too many are no JSON
