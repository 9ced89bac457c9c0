"""What a cluster is given as: what is refused, and what follows without asking it."""

import math
from dataclasses import replace

import pytest
from cluster_examples import FOUR, KUBERNETES, MASTER, SHARED, STANDALONE, YARN

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import Executor
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster

STANDALONES = ("mesos://m", "spark://", "spark://m", "spark:/m:7077", "spark://m:7077,n:65536", "yarn-client", "locl")
PODS = ("k8s://", "k8s://api:6443", "k8s://ftp://api", "k8s://https://", "k8s://https://api:99999")
LIMITS = r"allocation_s is .*; it must be at least 0\.001 and at most 604800"


@pytest.mark.parametrize(
    ("given", "message", "setting"),
    [
        *(((master, SHARED), r"must be local, spark://HOST:PORT, k8s://.* or yarn", "master")
          for master in (*STANDALONES, *PODS)),
        ((MASTER,), r"'spark://m:7077' is a cluster, so checkpoints need a folder.*hdfs://", "checkpoint"),
        ((MASTER, "/tmp/here"), r"checkpoint is '/tmp/here'; it must be the URI of a folder", "checkpoint"),
        ((MASTER, "hdfs://key:hidden@[x/y"), r"checkpoint is '\[x/y', which is not a URI\. Correct it", "checkpoint"),
    ],
)  # fmt: skip
def test_a_master_or_a_checkpoint_that_is_none_is_refused_without_credentials(given, message, setting):
    with pytest.raises(WorkbenchError, match=message) as error:
        Cluster(*given)
    assert error.value.settings == (setting,)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(({"allocation_s": seconds}, LIMITS) for seconds in (math.nan, math.inf, -1.0, 0.0, 1e6)),
        ({"event_log": "s3a://key:secret@bucket/logs"}, "event_log has a password in its address"),
    ],
)
def test_a_wait_that_is_none_or_does_not_end_and_a_password_are_refused(given, message):
    with pytest.raises(WorkbenchError, match=message) as error:
        Cluster(MASTER, SHARED, **given)
    assert "secret" not in str(error.value)


def test_a_budget_becomes_executors_of_one_size():
    assert STANDALONE.executors(FOUR) == (4, Executor(1, FOUR.profile))
    assert YARN.executors(FOUR) == (1, Executor(4, FOUR.profile))
    with pytest.raises(WorkbenchError, match=r"3 slots cannot fill executors of 2 slots\. Use a multiple of 2"):
        KUBERNETES.executors(Budget(3, FOUR.profile))
    with pytest.raises(WorkbenchError, match=r"A slot has 0\.4 cores; on a cluster it must have whole cores"):
        STANDALONE.executors(Budget(4, SlotProfile(0.4, 1024)))


def test_addresses_are_those_of_every_master():
    assert Cluster("spark://a:7077,b:7078", SHARED).addresses == (("a", 7077), ("b", 7078))
    assert KUBERNETES.addresses == (("api", 6443),)
    assert replace(KUBERNETES, master="k8s://https://api").addresses == (("api", 443),)
    assert replace(KUBERNETES, master="k8s://http://[::1]/clusters/c1").addresses == (("::1", 80),)
    assert YARN.addresses == ()


def test_a_budget_is_checked_without_the_cluster():
    testbed = SparkTestbed(cluster=STANDALONE)
    testbed.check(Budget(100, SlotProfile(1, 1024)))
    with pytest.raises(WorkbenchError, match="The heap of 1 slot of 512 MB is 308 MB"):
        testbed.check(Budget(100, SlotProfile(1, 512)))
    with pytest.raises(WorkbenchError, match="on a cluster it must have whole cores"):
        testbed.check(Budget(1, SlotProfile(0.5, 2048)))


def test_a_measurement_belongs_to_its_cluster_and_names_no_host():
    identity = SparkTestbed(cluster=STANDALONE).identity
    others = [
        Cluster("spark://n:7077", SHARED),
        Cluster(MASTER, SHARED, executor_slots=2),
        Cluster(MASTER, "s3a://b/c"),
    ]
    assert len({identity, *(SparkTestbed(cluster=one).identity for one in others)}) == 4
    assert "master standalone cluster" in identity
    assert "//m" not in identity
