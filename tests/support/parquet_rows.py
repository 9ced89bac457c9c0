"""Rows as a data set in a file."""

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.workload import Dataset


def stored(folder, columns, event_time=None, name="rows"):
    """Write columns, or a table, to `folder`, and give the data set."""
    path = folder / f"{name}.parquet"
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path)
    return Dataset.at(str(path), event_time)
