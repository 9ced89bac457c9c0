"""The Nexmark benchmark: an auction house's events and the queries on them."""

from workbench.workload.nexmark.events import BASE_TIME_US, BATCH_ROWS, DEFAULT_CLOCK, SCHEMA, NexmarkGenerator, events
from workbench.workload.nexmark.queries import query
from workbench.workload.nexmark.settings import NexmarkSettings
