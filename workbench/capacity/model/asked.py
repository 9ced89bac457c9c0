"""How runs and plans were asked for, so that advice is for such runs and gives a command that can be copied and run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.spelling import spelled, spelled_options

_LITTLE_RISK = 0.05
_LARGER_LOG = "A log shows one slot count. Measure several: workbench plan STUDY.yaml"


@dataclass(frozen=True)
class Asked:
    """How runs and plans were asked for.

    Parameters
    ----------
    kind
        Kind of the testbed of the runs: ``"spark"``, ``"fluid"``, ``"recorded"`` or ``"observed"``.
    study
        Path of the study; None: there is none, or it is not known.
    log
        Path of the log that was read; None: there is none, or it is not known.
    options
        Options of the command by their names, but for the target and risk that `observe` takes.
    risk
        Accepted probability of falling short; None: the plans are by margin.
    scheduled
        Whether a report ran the study, which keeps its runs where no command looks.
    """

    kind: str = "spark"
    study: str | None = None
    log: str | None = None
    options: Mapping[str, object] = field(default_factory=dict, hash=False)
    risk: float | None = None
    scheduled: bool = False

    @property
    def less_risk(self) -> float:
        """Risk that advice asks for: less than was accepted."""
        return _LITTLE_RISK if self.risk is None else min(_LITTLE_RISK, self.risk / 2)

    def plan(self, **changes: object) -> str:
        """Say how to plan the study with `changes` of the options; with a placeholder where its path is not known."""
        if self.scheduled:
            return "run the report again"
        study = "STUDY.yaml" if self.study is None else spelled(self.study)
        return "run: " + _joined("workbench plan", study, spelled_options({**self.options, **changes}))

    def observe(self, target: float | None = None, risk: float | None = None, *, another: bool = False) -> str:
        """Give the command that plans `target` (records/s) by the log, or by another one, whose name nobody knows."""
        return _joined(
            "workbench observe",
            "LOG" if self.log is None or another else spelled(self.log),
            spelled_options(self.options),
            "" if target is None else f"--target {target:.12g}",
            "" if risk is None else f"--risk {risk:g}",
        )


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


class Remedies(NamedTuple):
    """What to do about too few slots measured, too much risk, and doubtful runs."""

    larger: str
    safer: str
    quieter: str


def remedies(asked: Asked, target: float | None = None) -> Remedies:
    """Say what to do about a plan for `target` (records/s); None: about all of them."""
    risk, plan, fresh = asked.less_risk, asked.plan(), asked.plan(journal="NEW.jsonl")
    if asked.kind == "observed" and asked.study is None:
        return Remedies(
            _LARGER_LOG,
            f"Run: {asked.observe(target, risk)}",
            f"When the machine is quiet, write a new log, then run: {asked.observe(target, asked.risk, another=True)}",
        )
    of_a_study = Remedies(
        f"Add larger counts to slots in the study, then {plan}",
        f'Set "risk: {risk:g}" in the study, then {plan}',
        f"When the machine is quiet, {fresh}",
    )
    match asked.kind:
        case "fluid":
            return of_a_study._replace(quieter=f"Raise warmup_s or tolerance in the study, then {fresh}")
        case "observed":
            return of_a_study._replace(
                larger=_LARGER_LOG, quieter=f"When the machine is quiet, write a new log, then {plan}"
            )
        case "recorded":
            return of_a_study._replace(
                larger=f"Add rows with more slots to the table, then {plan}",
                quieter=f"Correct the doubtful rows of the table, then {plan}",
            )
    return of_a_study
