import pytest

from workbench.errors import WorkbenchError
from workbench.scaling import advise_executors


def test_default_workload_of_the_paper():
    advice = advise_executors(32, 8)
    assert (advice.executors, advice.shards, len(advice.reasons)) == (32, 256, 2)


@pytest.mark.parametrize("workload", [{"data_intensity": 8192 * 1000.0}, {"shuffles_per_minute": 16}])
def test_two_executors_per_node_where_remote_cores_hurt(workload):
    assert advise_executors(32, 8, **workload).executors == 64


def test_executors_keep_at_least_two_cores_each():
    assert advise_executors(32, 1).executors == 16
    assert advise_executors(32, 8, operator_cores=10).executors == 5
    assert advise_executors(1, 1).executors == 1


def test_large_executors_get_more_shards():
    assert advise_executors(2, 32).shards == 512
    assert advise_executors(1, 512).shards == 1024


def test_keys_bound_shards_and_cores():
    advice = advise_executors(4, 8, key_counts=[50] + [1] * 50)
    assert advice.shards == 12
    assert "with 2 cores the most frequent key" in advice.reasons[-1]
    with pytest.raises(
        WorkbenchError, match=r"^key_counts has no key with a count above 0\. Count the keys, or leave it out\.$"
    ):
        advise_executors(4, 8, key_counts=[0, 0])
