"""Workloads: a query, the data it runs on, and the source that replays the data at a commanded rate."""

from workbench.workload.query import Dataset, EventClock, Generator, Query

__all__ = ["Dataset", "EventClock", "Generator", "Query"]
