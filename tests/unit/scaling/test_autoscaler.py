import math

import pytest
from refusals import refusals

from workbench.scaling.autoscaler import (
    FLINK,
    JUSTIN,
    AutoscalerSettings,
    evenly_spread,
    is_due,
    limit_parallelism,
    needs_scaling,
    planned_rates,
)

CAPSYS = AutoscalerSettings()  # as that paper has it


@pytest.mark.parametrize(("wanted", "given"), [(1, 1), (5, 6), (7, 8), (9, 12), (12, 12), (13, 13), (24, 24), (40, 24)])
def test_tasks_divide_the_key_groups_up_to_half_of_them(wanted, given):
    assert evenly_spread(AutoscalerSettings(key_groups=24), wanted) == given
    assert evenly_spread(CAPSYS, wanted) == wanted


def test_justins_settings_are_those_of_its_paper_and_the_rest_flinks():
    same = {name for name in FLINK.__dataclass_fields__ if getattr(FLINK, name) == getattr(JUSTIN, name)}
    assert FLINK.__dataclass_fields__.keys() - same == {
        "activation_s", "policy_interval_s", "metrics_window_s", "utilization_target", "utilization_min",
        "utilization_max", "max_parallelism", "lag_threshold_s",
    }  # fmt: skip
    middle = (JUSTIN.utilization_min + JUSTIN.utilization_max) / 2
    assert middle == JUSTIN.utilization_target


def test_decisions_wait_for_activation_and_interval():
    assert not is_due(CAPSYS, now_s=189, deployed_s=100)
    assert is_due(CAPSYS, now_s=190, deployed_s=100)
    assert not is_due(CAPSYS, now_s=194, deployed_s=100, decided_s=190)
    assert is_due(CAPSYS, now_s=195, deployed_s=100, decided_s=190)
    assert is_due(CAPSYS, now_s=0.1 + 0.2, deployed_s=0.3 - 90)


def test_only_busyness_out_of_bounds_changes_something_and_a_restart_counts_where_tasks_are_given_back_alone():
    assert not needs_scaling(JUSTIN, {"o": 0.8, "p": 0.2})
    assert needs_scaling(JUSTIN, {"o": 0.81, "p": 0.5})
    assert needs_scaling(JUSTIN, {"o": 0.5, "p": 0.19})
    assert needs_scaling(AutoscalerSettings(utilization_max=0.9), {"o": 0.95})
    assert not needs_scaling(AutoscalerSettings(utilization_max=0.9), {"o": 0.0})
    for busy, needed in ((0.9, False), (1.01, True), (0.36, False), (0.33, True)):
        assert needs_scaling(FLINK, {"o": busy}, {"o": busy * 7 / 6}) == needed


def test_plans_leave_room_for_utilization_backlog_and_restart():
    assert planned_rates(CAPSYS, {"s": 700}, {"s": 1e6}) == {"s": 700}
    # 700 / 0.7 + (90,000 + 700 x 300) / 1800
    assert planned_rates(FLINK, {"s": 700}, {"s": 90_000}) == pytest.approx({"s": 1000 + 50 + 700 / 6})


def test_bounds_and_factors():
    settings = AutoscalerSettings(
        min_parallelism=2, max_parallelism=12, scale_up_max_factor=1.0, scale_down_max_factor=0.6
    )
    tasks, _ = limit_parallelism(settings, {"a": 4, "b": 4, "c": 10, "d": 3}, {"a": 20, "b": 5, "c": 1, "d": 1}, 0)
    assert tasks == {"a": 8, "b": 5, "c": 4, "d": 2}
    assert limit_parallelism(settings, {"a": 10}, {"a": 20}, 0) == ({"a": 12}, {})
    assert limit_parallelism(CAPSYS, {"a": 10}, {"a": 1}, 0) == ({"a": 1}, {})


def test_scale_down_waits_and_takes_the_most_that_was_proposed():
    settings = AutoscalerSettings(scale_down_interval_s=60)
    current, pending, seen = {"o": 10}, {}, []
    for now, wanted in ((0, 4), (30, 6), (59, 5), (60, 3)):
        tasks, pending = limit_parallelism(settings, current, {"o": wanted}, now, pending)
        seen.append(tasks["o"])
    assert seen == [10, 10, 10, 6]
    assert pending == {}


def test_a_waiting_scale_down_is_forgotten_when_the_tasks_are_needed_again():
    settings = AutoscalerSettings(scale_down_interval_s=60)
    _, waiting = limit_parallelism(settings, {"o": 10}, {"o": 4}, 0)
    assert waiting == {"o": (0, 4)}
    assert limit_parallelism(settings, {"o": 10}, {"o": 10}, 30, waiting) == ({"o": 10}, {})
    assert limit_parallelism(settings, {"o": 10}, {"o": 14}, 30, waiting) == ({"o": 14}, {})


test_bad_settings_are_named = refusals(
    lambda fields: AutoscalerSettings(**fields),
    ({"activation_s": -1}, "activation_s is -1; it must be a finite number of at least 0"),
    ({"utilization_max": 1.5}, "utilization_max is 1.5; it must be a share from 0 to 1"),
    ({"key_groups": 0}, "key_groups is 0; it must be a whole number of at least 1"),
    ({"utilization_target": 0}, "utilization_target is 0; it must be a share above 0"),
    ({"utilization_min": 0.8, "utilization_max": 0.4}, "utilization_min is 0.8, above utilization_max, 0.4"),
    ({"catch_up_s": 0}, r"catch_up_s is 0; it must be above 0 \(inf for no limit\)"),
    ({"scale_up_max_factor": math.nan}, "scale_up_max_factor is nan; it must be above 0"),
    ({"min_parallelism": 0}, "min_parallelism is 0; it must be a whole number of at least 1"),
    ({"min_parallelism": 4, "max_parallelism": 3}, "max_parallelism is 3; it must be a whole number of at least 4"),
)
