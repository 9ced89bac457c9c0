"""Spark's event log, and what is read from it: batches, operators, paces of executors."""
