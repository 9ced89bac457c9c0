"""Columns of any type, nested at will, keep their values and become what Spark expects."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from workbench.workload import as_spark
from workbench.workload.columns import spark_type

TEXTS, BYTES = st.text("ab", max_size=2), st.binary(max_size=2)
NUMBERS = st.integers(0, 100)
LEAVES = [
    *((kind(), TEXTS) for kind in (pa.string, pa.large_string, pa.string_view)),
    *((kind(), BYTES) for kind in (pa.binary, pa.large_binary, pa.binary_view)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
    (pa.float16(), st.sampled_from([0.5, -2.0])),
    *((kind(), NUMBERS) for kind in (pa.int8, pa.uint8, pa.uint64, pa.float64)),
    (pa.null(), st.none()),
]


def nested(inner):
    """Lists of all kinds, structs and maps of `inner`: a type with the values that it takes."""

    @st.composite
    def made(draw):
        kind, values = draw(inner)
        optional = st.none() | values
        shape = draw(st.sampled_from(["list", "large", "view", "large view", "fixed", "struct", "map"]))
        if shape == "struct":
            other, others = draw(inner)
            fields = st.fixed_dictionaries({"a": optional, "b": st.none() | others})
            return pa.struct([("a", kind), ("b", other)]), fields
        if shape == "map":
            return pa.map_(pa.large_string(), kind), st.lists(st.tuples(TEXTS, optional), max_size=3)
        if shape == "fixed":
            return pa.list_(kind, 2), st.lists(optional, min_size=2, max_size=2)
        lists = {"list": pa.list_, "large": pa.large_list, "view": pa.list_view, "large view": pa.large_list_view}
        return lists[shape](kind), st.lists(optional, max_size=3)

    return made()


@st.composite
def arrays(draw):
    kind, values = draw(st.recursive(st.sampled_from(LEAVES), nested, max_leaves=4))
    made = pa.array(draw(st.lists(st.none() | values, max_size=6)), kind)
    return made.slice(draw(st.integers(0, len(made))), draw(st.integers(0, len(made))))


@given(arrays())
def test_values_stay_and_types_are_sparks(array):
    stored = spark_type(array.type)
    assert to_arrow_type(from_arrow_type(stored), timezone="UTC") == stored
    got = as_spark(pa.chunked_array([array]), "x")
    got.validate(full=True)
    assert got.type == stored
    assert got.to_pylist() == array.to_pylist()
