"""The Streaming Capacity Workbench: measure small, model, plan large. Importing it starts no JVM and no PySpark."""

__version__ = "0.1.0"
