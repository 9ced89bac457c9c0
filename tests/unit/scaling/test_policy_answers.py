"""A policy of the user may ask for anything: what cannot be deployed is refused in its name."""

import math

import pytest
from refusals import refusals
from replayed import chain, compare

from workbench.dataflow import OperatorProfile
from workbench.errors import WorkbenchError
from workbench.scaling import AutoscalerSettings, Controller, Decision, Ds2Policy, Static, replay
from workbench.simulation import OperatorModel, RateTrace

PROFILES = {name: OperatorProfile(1e-3, 0, 0, 1.0) for name in "ab"}
MODEL = chain("pair", **{name: OperatorModel(profile) for name, profile in PROFILES.items()})
FLOW = MODEL.dataflow
ONE = {"a": 1, "b": 1}
LOAD = RateTrace.constant(500, 60)


class Says:
    """Answers the same, whatever it sees."""

    interval_s = 10.0

    def __init__(self, answer):
        self.answer = answer

    def decide(self, *_):
        return self.answer


test_an_answer_that_cannot_be_deployed_is_refused = refusals(
    lambda answer: replay(LOAD, MODEL, Says(answer), ONE),
    (None, r"Policy Says decided None; decide must return a pair: first the tasks by operator, a Decision or None"),
    ((ONE, 1, 2), r"Policy Says decided .*; decide must return a pair"),
    ((7, None), r"Policy Says gave 7; tasks must be a mapping with one number for each of a, b\."),
    (({"a": 1}, None), r"Policy Says gave \{'a': 1\}; tasks must be a mapping with one number for each of a, b"),
    (({"a": 1, "b": 0}, None), "Policy Says gave operator 'b' 0 tasks; it needs a whole number of at least 1"),
    (({"a": 1, "b": True}, None), "Policy Says gave operator 'b' True tasks"),
    (({"a": 1, "b": 10**9}, None), r"Policy Says gave 1,000,000,001 tasks; a replay takes at most 100,000\."),
    ((Decision(ONE, 5.0), None), "Policy Says gave managed_mb = 5.0; it must be a mapping of MB by operator"),
    ((Decision(ONE, {"a": "much"}), None), "Policy Says gave operator 'a' 'much' MB of managed memory; it must be"),
    ((Decision(ONE, {"a": math.nan}), None), "Policy Says gave operator 'a' nan MB"),
    ((Decision(ONE, {"c": 1.0}), None), "Policy Says gave operator 'c' 1.0 MB .* for operators of a, b"),
    ((Decision(ONE, None, 3), None), "Policy Says gave the placement 3; it must be a Cluster or None"),
)


@pytest.mark.parametrize("interval", [0, -1.0, math.nan, math.inf, None, "5"])
def test_an_interval_must_be_seconds(interval):
    policy = Says((None, None))
    policy.interval_s = interval
    with pytest.raises(WorkbenchError, match=r"Policy Says has interval_s = .*; it must be a finite number of seconds"):
        replay(LOAD, MODEL, policy, ONE)


class Timeless:
    def decide(self, *_):
        return None, None


test_what_is_no_policy_and_wrong_numbers_are_refused = refusals(
    lambda policy, options: replay(LOAD, MODEL, policy, ONE, **options),
    (Timeless(), {}, "Policy Timeless has no interval_s"),
    *(
        (nothing, {}, f"{name} is not a policy: it has no method decide")
        for nothing, name in ((None, "NoneType"), ("ds2", "str"), (Static, "Static"))
    ),
    *(
        (Static(), {"speed": speed}, f"speed is {speed}; it must be a finite number above 0")
        for speed in (0, -1, math.nan, math.inf)
    ),
    (Static(), {"restart_s": -1}, "restart_s is -1"),
    (Static(), {"step_s": 0}, "step_s is 0"),
    (Static(), {"state_bytes_per_s": 0}, "state_bytes"),
)


def test_too_many_tasks_are_refused_from_the_start_and_from_ds2():
    with pytest.raises(WorkbenchError, match="The start of the replay gave 1,000,000,001 tasks"):
        replay(LOAD, MODEL, Static(), {"a": 10**9, "b": 1})
    boundless = AutoscalerSettings(activation_s=5.0, utilization_target=1e-9)
    with pytest.raises(WorkbenchError, match=r"Policy Ds2Policy gave [\d,]+ tasks; .* limit the policy"):
        replay(LOAD, MODEL, Ds2Policy(boundless), ONE)


def test_a_policy_may_ask_for_the_placement_that_there_is():
    placed = Controller(Static(), PROFILES, 2, 2).begin(FLOW, Decision(ONE), {"source": 1.0})
    line = replay(LOAD, MODEL, Says((placed, None)), placed)
    assert line.reconfigurations == ()


def test_a_dataflow_with_profiles_is_a_query():
    known = replay(LOAD, MODEL, Static(), ONE)
    line = replay(trace=LOAD, dataflow=FLOW, policy=Static(), tasks=ONE, profiles=PROFILES)
    assert line.summary() == known.summary()
    assert compare(LOAD, FLOW, {"static": Static()}, ONE, profiles=PROFILES) == {"static": known.summary()}
    for dataflow, options, message in (
        (FLOW, {}, "'pair' does not include the costs of its operators; give profiles"),
        (FLOW, {"profiles": {"a": 1.0}}, "give profiles, a mapping with an OperatorProfile for each"),
        (FLOW, {"profiles": {"a": PROFILES["a"]}}, "no model for operator 'b'"),
        (MODEL, {"profiles": PROFILES}, "leave profiles out"),
        ("q8", {}, "The dataflow of a replay is a str; give a QueryModel, or a Dataflow with profiles"),
    ):
        with pytest.raises(WorkbenchError, match=message):
            replay(LOAD, dataflow, Static(), ONE, **options)
