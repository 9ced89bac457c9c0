import pytest

from workbench.errors import WorkbenchError
from workbench.scaling import advise_executors


def test_default_workload_of_the_paper():
    advice = advise_executors(32, 8)
    assert (advice.executors, advice.shards) == (32, 256)
    assert advice.reasons == (
        "one executor per node: each can grow on its own node",
        "256 shards each: 8 per task, within 256 to 1024",
    )


@pytest.mark.parametrize(
    ("workload", "cause"),
    [
        ({"data_intensity": 8192 * 1000.0}, "many bytes per core"),
        ({"shuffles_per_minute": 16}, "frequent shuffles of the keys"),
    ],
)
def test_two_executors_per_node_where_remote_cores_hurt(workload, cause):
    advice = advise_executors(32, 8, **workload)
    assert advice.executors == 64
    assert advice.reasons[0] == f"two executors per node: {cause} make remote cores expensive"


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
    assert advice.reasons == (
        "one executor per node: each can grow on its own node",
        "12 shards each are enough: there are only 51 keys",
        "with 2 cores the most frequent key alone fills a core; more cores do not help",
    )
    with pytest.raises(
        WorkbenchError, match=r"^key_counts has no key with a count above 0\. Count the keys, or leave it out\.$"
    ):
        advise_executors(4, 8, key_counts=[0, 0])


def test_one_key_is_in_the_singular():
    assert advise_executors(1, 8, key_counts=[7]).reasons[1:] == (
        "1 shard each is enough: there is only 1 key",
        "with 1 core the most frequent key alone fills a core; more cores do not help",
    )
