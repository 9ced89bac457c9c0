"""The machine that the workbench runs on: its cores, quotas and speed, and what Spark needs on it."""
