"""What a session of one slot is deployed with, for scripts that start one without a testbed."""

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark.driver.session import DeploymentSpec


def one_slot(folder, **more):
    """The specification of a deployment in `folder`, with `more` fields."""
    return DeploymentSpec(
        name="count",
        build=None,
        generator=None,
        output_mode="update",
        budget=Budget(1, SlotProfile(1.0, 1200), 1.0),
        folder=folder,
        disk=folder,
        source_partitions=1,
        state_partitions=2,
        **more,
    )
