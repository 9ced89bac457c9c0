"""What a deployment in the fluid engine sustains without noise: the truth that plans are judged by."""

from workbench.simulation import Deployment, steady_state


def true_capacity(model, memory_mb, layout, cpus=1.0):
    """Rate in records/s of a query with `layout`, tasks by operator without sources, on slots of a profile."""
    return steady_state(Deployment(model, layout, memory_mb, cpus)).rate
