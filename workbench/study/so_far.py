"""What the runs of a study say of its targets before it is over."""

from dataclasses import dataclass
from functools import cached_property

from workbench import units
from workbench.capacity.explore import conclude
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, InstanceType, Measurement, Run
from workbench.study.planned import Planned
from workbench.study.spec import Study
from workbench.study.targets import plan_targets

_SURE, _NEAR = 2.0, 3.0  # high / low of an answer's interval at most, and times beyond the runs at most


@dataclass(frozen=True, eq=False)
class SoFar:
    """What `runs` say of the targets of `study`, before it is over."""

    study: Study
    runs: tuple[Run, ...]
    instances: tuple[InstanceType, ...]

    @cached_property
    def planned(self) -> Planned | None:
        """The model of the runs and what would be planned with it, however sure; None where they allow no model."""
        study = self.study
        try:
            found = conclude(self.runs, self._after, form=study.form, choice="edge", growth=study.growth, least=1)
            return plan_targets(study, found, (), self.instances)
        except WorkbenchError:
            return None

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """An answer where it is sure enough, else what was sustained; of simulated runs, which take no time, nothing.

        An answer has a 90 % interval whose ends differ by at most a factor of 2, and goes at most 3 times beyond the
        runs. Or it is an upper bound: slots that were measured, and whose interval lies above the rate.
        """
        made = [run for run in self.runs if isinstance(run, Measurement)]
        if not made or not made[-1].ran:
            return ()
        best = max(made, key=lambda run: run.estimate.low)
        slots = units.some(best.budget.slots, "slot")
        known = f"{self._after}: at least {units.rate(best.estimate.low)} on {slots}, by a probe that was sustained"
        if self.planned is None:
            return (known,) if best.estimate.low else ()
        fewest = min(run.budget.slots for run in made)  # a plan has no fewer
        bound = fewest if fewest > min(self.study.slots) else 0
        sure = [
            plan
            for plan in self.planned.plans
            if (plan.high <= _SURE * plan.low and plan.extrapolation <= _NEAR)
            or (plan.budget.slots == bound and plan.low >= plan.rate)
        ]
        answered = {plan.rate for plan in sure}
        open_ = [units.rate(rate) for rate in self.study.targets if rate not in answered]
        said = [f"answer {self._after}: {_needs(plan, bound)}" for plan in sure]
        return (*said, *([f"{known}; not answered yet: {', '.join(open_)}"] if open_ else []))

    @property
    def _after(self) -> str:
        return f"after {units.some(len(self.runs), 'run')}"


def _needs(plan: CapacityPlan, fewest: int) -> str:
    """Say what a rate needs; with `fewest` slots, of which fewer are still to be measured, at most."""
    slots, profile = plan.budget.slots, plan.budget.profile
    return (
        f"{plan.query} at {units.rate(plan.rate)} needs {'at most ' * (slots == fewest)}{units.some(slots, 'slot')} of "
        f"{profile.cpus:g} core and {profile.memory_mb:,} MB (capacity {units.rate(plan.expected_rate)}, 90 % interval "
        f"{units.rate(plan.low)} to {units.rate(plan.high)})."
    )
