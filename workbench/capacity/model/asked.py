"""How runs and plans were requested, so that advice fits them and has a command that can be copied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from workbench.advice import Advice
from workbench.spelling import spelled, spelled_options

_LITTLE_RISK = 0.05
_LARGER_LOG = Advice("A log shows one slot count. Measure several", "workbench plan STUDY.yaml")


@dataclass(frozen=True)
class Asked:
    """How runs and plans were requested."""

    kind: str = "spark"  # kind of the testbed of the runs: ``"spark"``, ``"fluid"``, ``"recorded"`` or ``"observed"``
    study: str | None = None  # path of the study; None: there is none, or it is unknown
    log: str | None = None  # path of the log that was read; None: there is none, or it is unknown
    # options of the command by name, except the target and risk that `observe` takes
    options: Mapping[str, object] = field(default_factory=dict, hash=False)
    risk: float | None = None  # accepted probability of falling short; None: the plans are by margin
    scheduled: bool = False  # whether a report ran the study, which keeps its runs where no command looks

    @property
    def less_risk(self) -> float:
        """Risk that advice aims at: less than was accepted."""
        return _LITTLE_RISK if self.risk is None else min(_LITTLE_RISK, self.risk / 2)

    def plan(self, first: str, **changes: object) -> Advice:
        """Advise to plan the study, after what must be done `first`, with `changes` of the options."""
        if self.scheduled:
            return Advice(f"{first} run the report again.")
        study = "STUDY.yaml" if self.study is None else spelled(self.study)
        return Advice(f"{first} run", _joined("workbench plan", study, spelled_options({**self.options, **changes})))

    def observe(self, target: float | None = None, risk: float | None = None, *, another: bool = False) -> str:
        """Return the command that plans `target` (records/s) by the log, or by `another`, whose path is left open."""
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
    """Remedies for too few slots measured, for too much risk, and for doubtful runs."""

    larger: Advice
    safer: Advice
    quieter: Advice


def remedies(asked: Asked, target: float | None = None) -> Remedies:
    """Return the remedies for a plan of `target` (records/s); None: for all plans."""
    risk, plan, fresh = asked.less_risk, asked.plan, partial(asked.plan, journal="NEW.jsonl")
    if asked.kind == "observed" and asked.study is None:
        return Remedies(
            _LARGER_LOG,
            Advice("Run", asked.observe(target, risk)),
            Advice(
                "When the machine is quiet, write a new log, then run", asked.observe(target, asked.risk, another=True)
            ),
        )
    of_a_study = Remedies(
        plan("Add larger counts to slots in the study, then"),
        plan(f'Set "risk: {risk:g}" in the study, then'),
        fresh("When the machine is quiet,"),
    )
    match asked.kind:
        case "fluid":
            return of_a_study._replace(quieter=fresh("Raise warmup_s or tolerance in the study, then"))
        case "observed":
            return of_a_study._replace(
                larger=_LARGER_LOG, quieter=plan("When the machine is quiet, write a new log, then")
            )
        case "recorded":
            return of_a_study._replace(
                larger=plan("Add rows with more slots to the table, then"),
                quieter=plan("Correct the doubtful rows of the table, then"),
            )
    return of_a_study
