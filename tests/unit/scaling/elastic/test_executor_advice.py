import pytest

from workbench.errors import WorkbenchError
from workbench.scaling import advise_executors


def test_default_workload_of_the_paper():
    advice = advise_executors(32, 8)
    assert (advice.executors, advice.shards, len(advice.reasons)) == (32, 256, 2)


@pytest.mark.parametrize(
    ("nodes", "cores", "workload", "executors"),
    [
        (32, 8, {"data_intensity": 8192 * 1000.0}, 64),  # two per node where remote cores hurt
        (32, 8, {"shuffles_per_minute": 16}, 64),
        (32, 1, {}, 16),  # with at least two cores each
        (32, 8, {"operator_cores": 10}, 5),
        (1, 1, {}, 1),
    ],
)
def test_executors(nodes, cores, workload, executors):
    assert advise_executors(nodes, cores, **workload).executors == executors


def test_large_executors_get_more_shards():
    assert advise_executors(2, 32).shards == 512
    assert advise_executors(1, 512).shards == 1024


def test_keys_bound_shards_and_cores():
    advice = advise_executors(4, 8, key_counts=[50] + [1] * 50)
    assert advice.shards == 12
    assert "with 2 cores the most frequent key" in advice.reasons[-1]
    with pytest.raises(WorkbenchError, match=r"^key_counts has no key with a count above 0\. Count the keys, or leave"):
        advise_executors(4, 8, key_counts=[0, 0])
