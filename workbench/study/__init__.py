"""Studies: what the user asks for, run from beginning to end with progress, cancelling and resuming."""

from workbench.study.measure import measure, verify

__all__ = ["measure", "verify"]
