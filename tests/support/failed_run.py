"""A run that failed, in place of one that was measured."""

from workbench.records import FailedRun


def failed_run(run, why):
    return FailedRun(run.query, run.budget, run.testbed, run.started_at, why, run.tasks, run.predicted_rate)
