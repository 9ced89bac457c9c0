"""The Nexmark benchmark: an auction house's events and the queries on them."""

from workbench.workload.nexmark.events import NexmarkGenerator, average_row_bytes, events
from workbench.workload.nexmark.queries import query
from workbench.workload.nexmark.settings import NexmarkSettings

__all__ = ["NexmarkGenerator", "NexmarkSettings", "average_row_bytes", "events", "query"]
