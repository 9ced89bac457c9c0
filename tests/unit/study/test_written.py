"""What the text of a query says before Spark starts: what cannot be planned, and the keys of its state."""

import functools
import sys

import pytest

from workbench.errors import WorkbenchError
from workbench.measuring.fingerprint import code_of
from workbench.records import Sink
from workbench.study import draft, find_query, study_from
from workbench.study.catalogue import read_query
from workbench.study.own import check_function, check_loaded, mistyped_keys, state_keys
from workbench.study.prepared import query_of
from workbench.workload import Unread

JOBS = {
    "none": ("def none():\n    return 1\n", r"takes no argument; it must take one: the streaming DataFrame"),
    "two": ("def two(orders, payments):\n    return orders\n", r"takes 2 arguments \(orders, payments\)"),
    "named": ("def named(*, rows):\n    return rows\n", "takes no argument that it can be given"),
    "typed": ("def typed(rows) -> 'StreamingQuery':\n    return start(rows)\n", "returns a StreamingQuery.*Drop the"),
    "sink": ("def sink(rows):\n    return rows.writeStream.format('delta').start()\n", "calls writeStream.*Drop the"),
    "helped": ("def _run(r):\n    r.writeStream.start()\n\ndef helped(r):\n    return _run(r)\n", "calls writeStream"),
    "waits": ("def waits(rows):\n    started(rows).awaitTermination()\n", "calls awaitTermination"),
    "endless": ("def endless(rows):\n    while True:\n        print(rows)\n", r"never returns: the loop in line 2"),
    "script": ("q = rows.writeStream\n\n\ndef script(rows):\n    ...\n", r"runs writeStream in line 1 of \w+\.py as"),
    "nothing": ("def nothing(rows):\n    rows.groupBy('shop').count()\n", "returns nothing"),
}
FINE = """
import functools


def kept(function):
    @functools.wraps(function)
    def wrapped(rows):
        return function(rows, 3)
    return wrapped


def plain(rows, limit=10):
    def each(batch, number):
        return batch.count()
    while True:
        if limit:
            break
    return rows


@kept
def decorated(rows, times):
    return rows


def unwritten(rows):
    raise NotImplementedError


short = functools.partial(plain, limit=3)

if __name__ == "__main__":
    plain(None).writeStream.start().awaitTermination()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "orders.csv").write_text("time,shop\n2026-01-01T00:00:00,a\n")


@pytest.mark.parametrize("find", [find_query, read_query])
@pytest.mark.parametrize("function", JOBS)
def test_what_cannot_be_planned_is_said_by_init_and_a_dry_run(tmp_path, find, function):
    text, said = JOBS[function]
    name = f"jobs_{function}_{find is find_query}"
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(WorkbenchError, match=f"(?s){said}"):
        find(f"{name}:{function}", "orders.csv", "time")
    assert (name in sys.modules) == (find is find_query and function != "script")  # which is not imported


@pytest.mark.parametrize("find", [find_query, read_query])
@pytest.mark.parametrize("function", ["plain", "decorated", "unwritten", "short"])
def test_what_can_be_planned_passes(tmp_path, find, function):
    (tmp_path / "fine_job.py").write_text(FINE)
    assert find(f"fine_job:{function}", "orders.csv", "time").name == f"fine_job:{function}"
    (tmp_path / "torn.py").write_text("def orders(")  # importing it says better what is wrong
    check_function("torn:orders", tmp_path / "torn.py", "orders")


def test_a_loaded_callable_is_judged_by_its_signature():
    check_loaded("of C", functools.partial(lambda rows, limit: rows[:limit], limit=3))
    with pytest.raises(WorkbenchError, match=r"takes 2 arguments \(rows, limit\)"):
        check_loaded("x:y", lambda rows, limit: rows[:limit])
    check_loaded("x:y", lambda orders, payments, limit=3: (orders, payments, limit), ("orders", "payments"))
    check_loaded("x:y", lambda *streams: streams, ("orders", "payments"))
    with pytest.raises(WorkbenchError, match=r"takes \(orders\), and its inputs are orders, paym"):
        check_loaded("x:y", lambda orders: orders, ("orders", "payments"))
    with pytest.raises(WorkbenchError, match=r"called payments, orders, and the arguments of its function orders"):
        check_loaded("x:y", lambda orders, payments: (orders, payments), ("payments", "orders"))


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("rows.groupBy(f.window('time', '1 hour'), 'shop').count()", {"state": {"shop"}}),
        (
            "rows.groupBy(f.col('shop').alias('shop'), rows['city'], rows.country).count()",
            {"state": {"shop", "city", "country"}},
        ),
        ("rows.dropDuplicatesWithinWatermark(['order_id'])", {"state": {"order_id"}}),
        ("rows.join(other, on=KEYS).join(more, rows.a == more['b'])", {"join": {"one", "two", "a", "b"}}),
        ("rows.join(other, f.expr('left_id = right_id'))", {"join": {"left_id", "right_id"}}),
        ("rows.join(other, 'id').groupBy('shop').count()", {"join": {"id"}, "state": {"shop"}}),
        ("rows.groupBy(f.lower(f.col('shop')).substr(1, 3)).count()", {"state": {"shop"}}),
        ("_by(rows)", {"state": {"zone"}}),
        ("rows.groupBy(rows.columns[0]).count()", None),
        ("rows.groupBy(*chosen()).count()", None),
        ("rows.dropDuplicates()", None),
        ("elsewhere.step(rows)", None),
        ("step(rows)", None),
        ("TABLE['step'](rows)", None),
        ("TABLE.step(rows)", None),
        ("rows.transform(_by)", None),
        ("rows.filter(f.lower('shop') == 'a')", {}),
        ("rows.groupBy(f.window('time', '1 hour')).count()", {}),
        ("', '.join(rows)", {}),
    ],
)
def test_the_keys_of_state_and_joins_are_read_from_the_text(tmp_path, body, keys):
    text = "from pyspark.sql import functions as f\nimport elsewhere\nTABLE = elsewhere.TABLE\n"
    text += "KEYS = ['one', 'two']\n\n\ndef _by(rows):\n    return rows.groupBy('zone').count()\n\n\n"
    (tmp_path / "job.py").write_text(f"{text}def job(rows):\n    return {body}\n")
    assert state_keys(tmp_path / "job.py", "job") == keys


def test_init_warns_about_the_key_of_the_state_alone(tmp_path, prints):
    (tmp_path / "dedup_job.py").write_text("def seen(rows):\n    return rows.dropDuplicates(['order_id'])\n")
    lines = [f"2026-01-01T00:00:{n % 60:02},{'c0' if n % 3 else f'c{n}'},{n}" for n in range(300)]
    (tmp_path / "sales.csv").write_text("time,customer_id,order_id\n" + "\n".join(lines) + "\n")
    made = draft("dedup_job:seen", ["sales.csv"])
    assert (made.found[0].keys, made.found[0].hot) == (("order_id",), {})
    assert "customer_id" not in made.text
    (tmp_path / "dedup_job.py").write_text("def seen(rows):\n    return rows.groupBy('Customer_ID').count()\n")
    made = draft("dedup_job:seen", ["sales.csv"])
    assert made.found[0].hot == {"customer_id": pytest.approx(2 / 3, abs=0.01)}
    assert "The query's state goes by it: count it:" in made.text
    assert "state: by 'customer_id'" in prints("init", "dedup_job.py:seen", "sales.csv")


@pytest.mark.parametrize("shown", [True, False])
def test_init_speaks_of_state_and_joins_only_where_the_query_may_have_them(tmp_path, prints, shown):
    body = "rows.select('customer_id')" if shown else "helper(rows)"
    (tmp_path / "plain_job.py").write_text(f"from steps import helper\n\ndef paid(rows):\n    return {body}\n")
    (tmp_path / "steps.py").write_text("def helper(rows):\n    return rows\n")
    lines = [f"2026-01-01T00:00:{n % 60:02},{'c0' if n % 3 else f'c{n}'}" for n in range(300)]
    (tmp_path / "sales.csv").write_text("time,customer_id\n" + "\n".join(lines) + "\n")
    said = prints("init", "plain_job.py:paid", "sales.csv") + (tmp_path / "study.yaml").read_text()
    assert ("If a join or state goes by it, count it" in said) == (not shown)
    assert ("'customer_id' has 67 %" in said) == (not shown)


def test_the_price_list_that_a_draft_names_is_there(tmp_path):
    (tmp_path / "plain_job.py").write_text("def orders(rows):\n    return rows\n")
    assert ".csv" not in draft("plain_job:orders", ["orders.csv"]).text.replace("dataset: orders.csv", "")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "instances.csv").write_text("name\n")
    assert "# prices: data/instances.csv" in draft("plain_job:orders", ["orders.csv"]).text


SINKS = """
def write(batch, number, place="/mine"):
    batch.write.parquet(place)


def short(batch):
    pass


def plain(batch, number):
    pass


def query(rows):
    return rows
"""


@pytest.fixture
def sinks(tmp_path):
    (tmp_path / "sinks_of_job.py").write_text(SINKS)


@pytest.mark.parametrize("find", [find_query, read_query])
@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("sinks_of_job:short", r"takes \(batch\); foreachBatch calls it with two arguments"),
        ("sinks_of_job:plain /tmp/x", r"takes \(batch, number\).*the argument 'place'"),
        ("sinks_of_job:none", "has no function 'none'"),
    ],
)
@pytest.mark.usefixtures("sinks")
def test_what_foreach_batch_cannot_call_is_said_before_spark(find, sink, message):
    with pytest.raises(WorkbenchError, match=f"(?s){message}"):
        find("sinks_of_job:query", "orders.csv", None, sink=Sink.parse(sink))


@pytest.mark.usefixtures("sinks")
def test_a_dry_run_reads_a_sink_and_plan_loads_it():
    for sink in map(Sink.parse, ("sinks_of_job:plain", "sinks_of_job:write", "sinks_of_job.py:write /tmp/x")):
        read, loaded = (find("sinks_of_job:query", "orders.csv", None, sink=sink) for find in (read_query, find_query))
        assert isinstance(read.sink, Unread)
        assert callable(loaded.sink)
        assert code_of(read) == code_of(loaded)
    plain = find_query("sinks_of_job:query", "orders.csv", None)
    assert plain.sink is None
    assert code_of(plain) != code_of(loaded)


@pytest.mark.usefixtures("sinks")
def test_a_mode_that_the_sink_does_not_take_is_refused_before_spark(tmp_path):
    asked = {"query": "sinks_of_job:query", "dataset": "orders.csv", "output_mode": "update"}
    study = study_from(asked | {"targets": [1e3], "slots": [1, 2], "memory_mb": [512], "sink": f"parquet {tmp_path}"})
    with pytest.raises(WorkbenchError, match=r"takes the output mode append, and .* has 'update'"):
        query_of(study, read_query)


def test_a_mistyped_key_may_have_any_characters(tmp_path):
    (tmp_path / "job.py").write_text("def job(rows):\n    return rows.groupBy('amount (USD', 'shop').count()\n")
    found = mistyped_keys(tmp_path / "job.py", ["amount (USD", "shop"], ["amount (USD)", "shop"])
    assert found == {"amount (USD": "amount (USD)"}
