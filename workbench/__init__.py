"""The Streaming Capacity Workbench: measure small, model, plan large.

Importing this package starts no JVM and imports no PySpark.
"""

__version__ = "0.1.0"
