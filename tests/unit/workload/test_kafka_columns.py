"""Names of a sample's columns."""

from workbench.workload.kafka import field_of, named


def test_fields_with_a_name_that_is_ours_get_another():
    found = named(["order", "_key", "_key_", "value"])
    assert found == {"order": "order", "_key_": "_key", "_key__": "_key_", "value_": "value"}
    assert [field_of(column) for column in ("order", "_key_", "value_", "_offset")] == [
        "order",
        "_key",
        "value",
        "_offset",
    ]
