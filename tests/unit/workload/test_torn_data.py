"""A data file that is torn, or goes away while it is read."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import WorkbenchError
from workbench.workload import Dataset, prepare
from workbench.workload import dataset as module


@pytest.fixture
def orders(tmp_path):
    path = tmp_path / "orders.parquet"
    times = pa.array([datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(500)])
    pq.write_table(pa.table({"time": times, "shop": pa.array([f"s{n % 7}" for n in range(500)])}), path)
    return path


@pytest.mark.fault("a data file is torn at any byte")
def test_a_torn_file(orders, tmp_path, injected):
    whole, run = orders.read_bytes(), tmp_path / "run"
    run.mkdir()
    for cut in injected.moments(len(whole) - 1, 25):
        orders.write_bytes(whole[:cut])
        with pytest.raises(WorkbenchError, match=r"The dataset .*orders.parquet' cannot be read as parquet: ") as seen:
            prepare(Dataset(str(orders), "parquet", "time"), "time", run)
        injected.seen(str(seen.value).replace(f"{tmp_path}/", "").split(":")[0])
        assert "convert it to Parquet" in str(seen.value)
        orders.write_bytes(whole)
        assert prepare(Dataset(str(orders), "parquet", "time"), "time", run).rows == 500


@pytest.mark.fault("a data file goes away while it is read")
def test_a_file_that_goes_away(tmp_path, monkeypatch, injected):
    folder, run = tmp_path / "orders", tmp_path / "run"
    folder.mkdir()
    run.mkdir()
    typed = module._typed
    for gone in injected.moments(9):
        for number in range(10):
            pq.write_table(pa.table({"shop": pa.array([f"s{n}" for n in range(50)])}), folder / f"{number}.parquet")

        def remove(*arguments, gone=gone):
            (folder / f"{gone}.parquet").unlink(missing_ok=True)
            return typed(*arguments)

        monkeypatch.setattr(module, "_typed", remove)
        try:
            rows = prepare(Dataset(str(folder), "parquet", None), None, run).rows
        except WorkbenchError as error:
            assert "cannot be read as parquet" in str(error)  # noqa: PT017 - it may have been read before
            injected.seen("The dataset 'orders' cannot be read as parquet")
        else:
            assert rows == 500  # it was read, or open, before it went away
            injected.seen("nothing: the data had been copied")
