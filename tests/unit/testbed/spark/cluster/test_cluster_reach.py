"""Which machines of a cluster are reached, and what its master has to give."""

import socket
from dataclasses import replace
from unittest.mock import MagicMock

import pytest
from cluster_examples import FOUR, SHARED, STANDALONE, YARN
from py4j.protocol import Py4JError

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.testbed.spark import Cluster
from workbench.testbed.spark.cluster.executors import Offer, Worker, offer_of, refuse, waiting


@pytest.mark.parametrize(
    "servers", ["localhost:9092", "127.0.0.1:9092,[::1]:9093", "localhost.:1", "[::ffff:7f00:1]:1"]
)
def test_a_broker_that_each_executor_would_look_for_on_itself_is_refused(servers):
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        standalone = Cluster(f"spark://{here}", SHARED)
        assert standalone.reach() == "127.0.0.1"  # the driver's address is that on the way to the master
        standalone.check_servers(servers)  # its workers are on this machine
        # A pod has a loopback of its own, and so has what is behind a tunnel.
        elsewhere = Cluster(f"k8s://https://{here}", SHARED), replace(standalone, driver_host="10.1.2.3")
        for cluster in (YARN, *elsewhere):
            with pytest.raises(WorkbenchError, match=r"broker is at .*, which each executor takes for itself\. Give"):
                cluster.check_servers(servers)
            cluster.check_servers(f"{servers},broker-1:9092")


def workers(count, applications=()):
    return Offer((Worker(2, 2048),) * count, applications)


def test_what_the_cluster_could_never_hold_is_refused_at_once():
    refuse(STANDALONE, FOUR, workers(2, ("other", "this")))  # it is only busy
    for budget, offer, message in (
        (FOUR, workers(1), r"4 executors of 1 core and 615 MB of heap\. .* 1 live worker \(2 cores .* use 2 or fewer"),
        (FOUR, Offer(()), "The master has no live worker: start workers"),
        (Budget(4, SlotProfile(1, 8192)), workers(1), r"MB\): use smaller ones, or add workers"),
    ):
        with pytest.raises(WorkbenchError, match=message):
            refuse(STANDALONE, budget, offer)


def test_of_several_masters_one_may_be_down():
    both, jvm, standby = Cluster("spark://a:7077,b:7077", SHARED), MagicMock(), MagicMock()
    network = getattr(getattr(jvm.org.apache.spark.rpc, "RpcEnv$"), "MODULE$").create.return_value
    network.setupEndpointRef.side_effect = [Py4JError("a is down"), standby]
    standby.askSync.return_value.workers.return_value = [MagicMock(**{"cores.return_value": 8})]
    assert [worker.cores for worker in offer_of(jvm, both, "").workers] == [8]
    network.setupEndpointRef.side_effect = Py4JError("both are down")
    with pytest.raises(Py4JError, match="both are down"):
        offer_of(jvm, both, "")
    assert network.shutdown.call_count == 2


def test_a_cluster_that_is_busy_is_told_from_one_whose_executors_do_not_come():
    busy = waiting(STANDALONE, FOUR, workers(2, ("other", "third", "this")), 1)
    assert "gave 1 of 4 executors of 1 core and 615 MB of heap within 120 s; nothing was measured" in str(busy)
    assert "2 other applications run or wait. Wait until other applications end" in str(busy)
    lost = waiting(STANDALONE, FOUR, workers(2, ("this",)), 0)
    assert "did not register: look into the workers' logs" in str(lost)
    assert busy.settings == lost.settings == ("slots", "allocation_s")
