import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import WorkbenchError
from workbench.study import catalogue, find_query, read_query
from workbench.study.catalogue import GivenRows
from workbench.workload import Dataset


@pytest.fixture
def here(tmp_path):
    (tmp_path / "myjobs.py").write_text("def orders(rows):\n    return rows\n\n\nlimit = 3\n")
    (tmp_path / "orders.csv").write_text("time,n\n2024-01-01T00:00:00Z,1\n")
    yield tmp_path
    sys.modules.pop("myjobs", None)


def test_the_module_of_the_current_folder_is_read_again_after_an_edit_or_one_of_that_name_elsewhere(here, monkeypatch):
    query = find_query("myjobs:orders", "orders.csv", "time", "update")
    assert (query.dataset, query.event_time) == (Dataset("orders.csv", "csv", "time"), "time")
    assert (query.output_mode, query.build("rows")) == ("update", "rows")
    (here / "myjobs.py").write_text("def orders(rows):\n    return [rows]\n")
    assert find_query("myjobs:orders", "orders.csv").build("rows") == ["rows"]
    other = here / "other"
    other.mkdir()
    (other / "myjobs.py").write_text("def payments(rows):\n    return rows\n")
    (other / "orders.csv").write_text((here / "orders.csv").read_text())
    monkeypatch.chdir(other)
    assert find_query("myjobs:payments", "orders.csv")
    monkeypatch.chdir(here)
    assert find_query("myjobs:orders", "orders.csv")


OWN = """
from workbench.workload.query import Dataset, Query


def build(rows):
    return rows


orders = Query("own", build, Dataset({path!r}, "csv", {event_time!r}))
"""


GONE, ODD = (OWN.format(path=path, event_time=time) for path, time in (("gone.csv", None), ("orders.csv", "tine")))
FAILS = "cannot be imported: {}.*Fix it; .* if __name__ == '__main__'"


@pytest.mark.parametrize(
    ("text", "query", "said"),
    [
        (None, ("nexmark:q99",), "q11:tumbling"),
        (None, ("myjobs:orders",), r"needs data to read. Give the path .*\(dataset, event_time\)\.$"),
        (None, ("json:loads",), "needs data to read"),
        (None, ("myjobs:order", "orders.csv"), r"no function 'order'. Did you mean myjobs:orders\? Its functions are"),
        (None, ("nomodule:orders",), r"'nomodule' .* cannot be imported: .* Run the command in the folder"),
        (None, ("q5",), "'q5' is not of the form nexmark:QUERY or module:function"),
        (None, ("myjobs:orders", "orders.csv", "when"), "no column 'when'"),
        (GONE, ("myjobs:orders",), r"'gone\.csv' does not exist; check the path"),
        (ODD, ("myjobs:orders",), r"no column 'tine' .* Did you mean 'time'"),
        ("import sys\nsys.exit()\n", ("myjobs:orders", "orders.csv"), FAILS.format("SystemExit: ")),
        ("raise ValueError(3)\n", ("myjobs:orders", "orders.csv"), FAILS.format("ValueError: 3")),
    ],
)
def test_what_cannot_be_found_is_told_with_the_next_step(here, text, query, said):
    if text is not None:
        (here / "myjobs.py").write_text(text)
    with pytest.raises(WorkbenchError, match=said):
        find_query(*query)
    assert sys.modules["json"] is json  # a module of others is not imported twice


def test_a_query_with_data_of_its_own_is_fed_from_it_or_from_what_is_given(here):
    (here / "myjobs.py").write_text(OWN.format(path="orders.csv", event_time="time"))
    (here / "other.csv").write_text("time,n\n2024-01-01T00:00:00Z,1\n")
    assert find_query("myjobs:orders").dataset == Dataset("orders.csv", "csv", "time")
    assert find_query("myjobs:orders", "other.csv").dataset == Dataset("other.csv", "csv", "time")


@pytest.mark.parametrize("name", ["nexmark:q1", "myjobs:orders"])
def test_an_event_time_without_data_is_not_passed_over(here, name):
    (here / "myjobs.py").write_text(OWN.format(path="orders.csv", event_time="time"))
    with pytest.raises(WorkbenchError, match=r"The event time 'n' is a column of a data set, and none is given"):
        find_query(name, event_time="n")


URL = "kafka://localhost:1/orders"


@pytest.fixture
def captured(here, monkeypatch):
    """What is captured: the file, the most rows, and the name of the schema."""
    asked = []
    (here / "topics_jobs.py").write_text("def orders(rows):\n    return rows\n")

    def capture(topic, target, limits, settings, *, schema, progress):  # noqa: ARG001
        asked.append((target, limits.rows, schema and schema.definition["name"]))
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"shop": [1]}), target)

    monkeypatch.setattr(catalogue, "capture", capture)
    return asked


@pytest.mark.parametrize(("source", "rows"), [("replay", 1_000_000), ("kafka", 10_000)])
def test_a_sample_is_captured_with_progress_and_small_where_it_gives_the_columns_only(captured, source, rows):
    said = []
    with pytest.raises(WorkbenchError, match="No sample of kafka://localhost:1/orders"):
        GivenRows(URL, source=source).require_captured()
    found = find_query("topics_jobs:orders", URL, source=source, progress=said.append)
    assert captured == [(Path(found.dataset.path), rows, None)]
    assert said == [f"capturing a sample of at most {rows:,} records of {URL}"]
    for find in (find_query, read_query):  # and it is not captured again
        assert find("topics_jobs:orders", URL, source=source).dataset == found.dataset
    assert len(captured) == 1
    GivenRows(URL, source=source).require_captured()
    if source == "kafka":  # too small to be replayed
        with pytest.raises(WorkbenchError, match="No sample of"):
            GivenRows(URL).require_captured()


def test_a_sample_is_of_one_schema(here, captured):
    for name in ("Order", "Bid"):
        field = {"name": "shop", "type": "int"}
        (here / "values.avsc").write_text(json.dumps({"type": "record", "name": name, "fields": [field]}))
        with pytest.raises(WorkbenchError, match="No sample of kafka://localhost:1/orders"):
            read_query("topics_jobs:orders", URL, schema="values.avsc")
        for find in (find_query, find_query, read_query):
            assert find("topics_jobs:orders", URL, schema="values.avsc").dataset.path == str(captured[-1][0])
        GivenRows(URL, schema="values.avsc").require_captured()
    assert [name for *_, name in captured] == ["Order", "Bid"]
    assert captured[0][0] != captured[1][0]
    with pytest.raises(WorkbenchError, match=r"The schema none.avsc cannot be read: No such file"):
        find_query("topics_jobs:orders", URL, schema="none.avsc")
