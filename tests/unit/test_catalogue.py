import sys

import pytest

from workbench.errors import WorkbenchError
from workbench.study.catalogue import find_query
from workbench.workload.query import Dataset


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "myjobs.py").write_text("def orders(rows):\n    return rows\n\n\nlimit = 3\n")
    (tmp_path / "orders.csv").write_text("time,n\n2024-01-01T00:00:00Z,1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("myjobs", None)


def test_a_benchmark_query_is_found_by_name():
    assert find_query("nexmark:q5").name == "nexmark:q5"


def test_an_unknown_benchmark_query_lists_the_known_ones():
    with pytest.raises(WorkbenchError, match="q11:tumbling"):
        find_query("nexmark:q99")


@pytest.mark.usefixtures("here")
def test_a_function_of_the_current_folder_is_a_query():
    query = find_query("myjobs:orders", "orders.csv", "time", "update")
    assert query.dataset == Dataset("orders.csv", "csv", "time")
    assert (query.event_time, query.output_mode) == ("time", "update")


@pytest.mark.usefixtures("here")
def test_a_function_without_data_is_refused():
    with pytest.raises(WorkbenchError, match="needs data to read: give --dataset PATH"):
        find_query("myjobs:orders")


@pytest.mark.usefixtures("here")
def test_a_misspelt_function_is_answered_with_the_nearest():
    with pytest.raises(
        WorkbenchError, match=r"no function 'order'. Did you mean myjobs:orders\? Its functions are orders"
    ):
        find_query("myjobs:order", "orders.csv")


def test_a_module_that_is_not_there_is_told_with_the_next_step():
    with pytest.raises(WorkbenchError, match=r"'nomodule' .* cannot be imported: .* Run the command in the folder"):
        find_query("nomodule:orders")


def test_a_name_without_a_colon_shows_the_form():
    with pytest.raises(WorkbenchError, match="'q5' is not of the form nexmark:QUERY or module:function"):
        find_query("q5")


@pytest.mark.usefixtures("here")
def test_a_missing_event_time_column_is_told_before_anything_starts():
    with pytest.raises(WorkbenchError, match="no column 'when'"):
        find_query("myjobs:orders", "orders.csv", "when")


def test_an_edited_module_is_read_anew(here):
    assert find_query("myjobs:orders", "orders.csv").build("rows") == "rows"
    (here / "myjobs.py").write_text("def orders(rows):\n    return [rows]\n\n\ndef shops(rows):\n    return 0\n")
    assert find_query("myjobs:orders", "orders.csv").build("rows") == ["rows"]
    assert find_query("myjobs:shops", "orders.csv").build("rows") == 0


@pytest.mark.usefixtures("here")
def test_modules_of_others_are_not_imported_twice():
    import json

    with pytest.raises(WorkbenchError, match="needs data to read"):
        find_query("json:loads")
    assert sys.modules["json"] is json
