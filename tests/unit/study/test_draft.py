"""A first study from a query and a file: what it finds, and that it can be read."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refusals

from workbench import defaults
from workbench.reading import parse_yaml
from workbench.study import draft, read_study
from workbench.study.draft import LOOKED_AT, written

JOBS = "def orders(stream):\n    return stream.transform(print)\n"  # which shows no keys
ROWS = 400


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "shops.json").write_bytes(b'{"sh\xffop": 1}\n')  # a column whose name is not text
    shops = [0] * (ROWS // 4) + [1 + n % 60 for n in range(ROWS - ROWS // 4)]
    lines = [f"2026-01-31T12:{n // 60:02}:{n % 60:02}Z,{shop},{n}" for n, shop in enumerate(shops)]
    (tmp_path / "orders.csv").write_text("placed_at,shop,number\n" + "\n".join(lines) + "\n")


def test_a_csv_file_becomes_a_study_that_can_be_read(prints, tmp_path):
    said = prints("init", "jobs.py:orders", "orders.csv")
    assert "event time: column 'placed_at'" in said
    assert "column 'shop' has 25 % of its rows with one value" in said
    study = read_study(tmp_path / "study.yaml")
    assert (study.query, study.dataset, study.event_time) == ("jobs:orders", "orders.csv", "placed_at")
    assert list(study.slots) == sorted(set(study.slots))
    text = (tmp_path / "study.yaml").read_text()
    assert "keys orders.csv shop" in text
    assert "# records/s: put your rates here" in text
    assert f"\ninterval_s: {defaults.INTERVAL_S:g} " in text


@pytest.mark.parametrize(("hot", "others", "found"), [(95, 39, {"shop": 0.2375}), (10, 39, {}), (200, 1, {})])
def test_a_key_is_hot_with_several_times_its_fair_share(tmp_path, hot, others, found):
    shops = [0] * hot + [1 + n % others for n in range(ROWS - hot)]
    pq.write_table(pa.table({"shop": pa.array(shops, pa.int64())}), tmp_path / "shops.parquet")
    assert draft("jobs:orders", ["shops.parquet"]).found[0].hot == found


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.large_string())])
def test_texts_are_keys_and_event_times_however_they_are_stored(tmp_path, kind):
    shops = pa.array(["a"] * 95 + [f"s{n % 39}" for n in range(ROWS - 95)], pa.string()).cast(kind)
    times = pa.array([f"2026-01-31T12:00:00.{n:03}Z" for n in range(ROWS)], pa.string()).cast(kind)
    clock = pa.array([n // 60 for n in range(ROWS)], pa.time32("s"))
    pq.write_table(pa.table({"time": clock, "shop": shops, "placed_at": times}), tmp_path / "shops.parquet")
    (made,) = draft("jobs:orders", ["shops.parquet"]).found
    assert (made.event_time, made.hot) == ("placed_at", {"shop": 0.2375})


@pytest.mark.parametrize(
    "command", [["init", "jobs.py:orders", "x.parquet"], ["plan", "s.yaml", "--dry-run"], ["plan", "s.yaml"]]
)
@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([Decimal(1)], pa.decimal256(50, 2)), "has type decimal256(50, 2), and Spark cannot hold decimal"),
        (pa.array([2**63], pa.uint64()), "has type uint64, and Spark holds it as int64"),
    ],
)
def test_what_spark_cannot_hold_is_refused_before_anything_starts(  # noqa: PLR0917 - fixtures
    refuses, tmp_path, monkeypatch, command, column, said
):
    def start(*_):
        raise AssertionError

    monkeypatch.setattr("workbench.testbed.spark.testbed.DriverProcess", start)
    pq.write_table(pa.table({"price": column}), tmp_path / "x.parquet")
    (tmp_path / "s.yaml").write_text(
        "query: jobs:orders\ndataset: x.parquet\ntargets: [100]\nslots: [1, 2]\nmemory_mb: [1024]\n"
    )
    told = refuses(*command)
    assert "The column 'price'" in told
    assert said in told


def test_a_study_is_never_overwritten_and_the_next_command_can_be_copied(prints, refuses, tmp_path):
    call = ["init", "jobs.py:orders", "orders.csv", "--output", "my folder/s 4.yaml"]
    assert "workbench plan 'my folder/s 4.yaml' --dry-run" in prints(*call)
    assert "Next: workbench plan 'my folder/s 4.yaml' --dry-run says" in (tmp_path / call[-1]).read_text()
    (tmp_path / call[-1]).write_text("mine")
    assert "s 4.yaml exists already" in refuses(*call)
    assert (tmp_path / call[-1]).read_text() == "mine"


def test_timestamps_go_before_names_and_texts_of_yaml_stay_texts(tmp_path):
    columns = {"created": pa.array([1, 2], pa.timestamp("us")), "time": ["a", "b"], "yes: no": [1, 2]}
    pq.write_table(pa.table(columns), tmp_path / "no: yes.parquet")
    made = draft("jobs:orders", ["no: yes.parquet"])
    assert made.found[0].event_time == "created"
    (tmp_path / "s.yaml").write_text(made.text)
    assert read_study(tmp_path / "s.yaml").dataset == "no: yes.parquet"


@pytest.mark.parametrize(
    ("rows", "ordered", "targets"),
    [
        (1800, True, "[200, 500, 2000]        # records/s: put your rates here (the sample's own rate is 90)"),
        (1800, False, "[200, 500, 2000]"),
        (5, True, "[10000, 100000]        # records/s: put your rates here\n"),  # less than one a second
        (LOOKED_AT + 1, True, "[20000, 50000, 200000]"),
        (LOOKED_AT + 1, False, "[10000, 100000]"),  # its first rows do not show how long all of them take
    ],
)
def test_targets_are_around_the_pace_of_the_sample_where_that_is_known(tmp_path, rows, ordered, targets):
    at = [1_767_225_600_000_000 + n * 20_000_000 // rows for n in range(rows)]
    if not ordered:
        at = [*at[::2], *at[1::2][::-1]] if rows < LOOKED_AT else [*at[::4], *at[1::4], *at[2::4], *at[3::4]]
    pq.write_table(pa.table({"placed_at": pa.array(at, pa.timestamp("us", "UTC"))}), tmp_path / "x.parquet")
    made = draft("jobs:orders", ["x.parquet"])
    assert f"\ntargets: {targets}" in made.text
    (tmp_path / "s.yaml").write_text(made.text)
    assert read_study(tmp_path / "s.yaml").targets


def test_a_sink_that_writes_where_it_always_does_is_warned_of(prints, tmp_path):
    (tmp_path / "jobs.py").write_text(f"{JOBS}\n\ndef write(batch, number, place='sold'):\n    batch.save(place)\n")
    call = ["init", "jobs.py:orders", "orders.csv", "--sink"]
    warned = "every batch goes to jobs.py:write for real, which writes where it always does: name a place after it"
    assert warned in " ".join(prints(*call, "jobs.py:write").split())
    above, sink = (tmp_path / "study.yaml").read_text().partition("\nsink: jobs.py:write\n")[:2]
    assert above.splitlines()[-1].startswith(f"# {warned}")
    assert sink
    assert "for real" not in prints(*call, "jobs.py:write sold", "--output", "placed.yaml")
    assert "for real" not in (tmp_path / "placed.yaml").read_text()


@given(st.lists(st.text()))
@example(["local[3]", "{a}", "b, c", "d: e", "f # g", "-", "", "null", "1", "\x85\n\x07", "'\""])
def test_texts_and_lists_of_them_are_yaml_of_one_line(texts):
    text = f"all: {written(texts)}    # comment\nfirst: {written(' '.join(texts))}\n"
    assert parse_yaml(text) == {"all": texts, "first": " ".join(texts)}
    assert len(text.splitlines()) == 2


test_data_that_cannot_be_read_and_queries_that_are_not_there_are_named = refusals(
    lambda query, data: draft(query, [data]),
    ("jobs:orders", "missing.csv", r"missing\.csv"),
    ("jobs:orders", "empty.csv", r"^The dataset .empty\.csv. cannot be read as csv: CSV parse error: Empty"),
    ("jobs:orders", "shops.json", "The dataset 'shops.json' cannot be read as json: "),
    ("jobs", "orders.csv", r"^The query 'jobs' is not of the form"),
    ("jobs:ordrs", "orders.csv", "ordrs"),
)
