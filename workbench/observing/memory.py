"""The memory of a slot, from the settings of an application."""

from collections.abc import Mapping
from contextlib import suppress

_UNITS = {"b": 2**-20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20}
_MOST_MB = 2**24
_OVERHEAD, _OVERHEAD_PYTHON, _LEAST_OVERHEAD = 0.1, 0.4, "384m"  # Spark's memory outside an executor's heap


def slot_memory_mb(properties: Mapping[str, str], slots: int, *, local: bool) -> int:
    """MiB of a slot: an executor's heap and the rest of its container, over its slots.

    `properties` are Spark's; `local` says that the driver is the executor.
    """
    if local:
        return max(1, round(_megabytes(properties.get("spark.driver.memory", "1g")) / max(1, slots)))
    heap = _megabytes(properties.get("spark.executor.memory", "1g"))
    whole = heap + _overhead_mb(properties, heap)
    if "spark.executor.pyspark.memory" in properties:
        whole += _megabytes(properties["spark.executor.pyspark.memory"])
    if properties.get("spark.memory.offHeap.enabled", "").lower() == "true":
        whole += _megabytes(properties.get("spark.memory.offHeap.size", "0"), "b")
    return max(1, round(whole / max(1, slots)))


def _overhead_mb(properties: Mapping[str, str], heap_mb: float) -> float:
    if "spark.executor.memoryOverhead" in properties:
        return _megabytes(properties["spark.executor.memoryOverhead"])
    factor = _OVERHEAD_PYTHON if properties.get("spark.kubernetes.resource.type") == "python" else _OVERHEAD
    told = properties.get("spark.kubernetes.memoryOverheadFactor", "")
    told = properties.get("spark.executor.memoryOverheadFactor", told)
    with suppress(ValueError):
        factor = float(told) if 0 <= float(told) < _MOST_MB else factor
    least = properties.get("spark.executor.minMemoryOverhead", _LEAST_OVERHEAD)  # of Spark 4
    return max(_megabytes(least), factor * heap_mb)


def _megabytes(text: str, unit: str = "m") -> float:
    """Read a size as Spark writes it, MiB; `unit` is that of a bare number. Other texts are 1 GiB, Spark's default."""
    text = text.strip().lower()
    if text[:-1].strip() and text[-1:] == "b" and text[-2:-1] in _UNITS:
        text = text[:-1]
    unit = text[-1:] if text[-1:] in _UNITS else unit
    try:
        size = float(text.rstrip("".join(_UNITS))) * _UNITS[unit]
    except ValueError:
        return _UNITS["g"]
    return size if 0 <= size <= _MOST_MB else _UNITS["g"]
