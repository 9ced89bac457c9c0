"""What to know, and to do, before trusting a capacity model at a target, or the runs behind it.

Advice fits how the runs were requested, and ends with a command that can be copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench import units
from workbench.advice import Advice
from workbench.capacity.model.forms import STREAMBED_FORMS, as_runs, fit_least_squares
from workbench.capacity.model.model import Model
from workbench.capacity.model.outliers import advise, describe_runs, unmeasured_memory_mb
from workbench.errors import WorkbenchError
from workbench.records import Measurement, ModelFinding, MstEstimate, Run
from workbench.spelling import spelled, spelled_options
from workbench.testbed.spark import cores_for_slots

FEWEST_RUNS = 7  # StreamBed's four corners and three more
FEWEST_SLOT_COUNTS = 3
FAR = 2.0
DISAGREEMENT = 0.1
WIDE = 0.3
PLAUSIBLE = 1.5
EDGE_GAIN = 0.02
LIKELY = 0.5
_LITTLE_RISK = 0.05
_LARGER_LOG = Advice("A log shows one slot count. Measure several", "workbench plan STUDY.yaml")


class Room(NamedTuple):
    """Slots of one size that the machine of the runs has room for."""

    measured: int  # the most slots of the runs
    most: int  # next to the driver
    cpus: float  # cores of each

    @classmethod
    def of(cls, runs: Sequence[Measurement]) -> "Room | None":
        """Find the room on the machine of `runs`; None where it is unknown: of a cluster, a log or what did not run."""
        run = max(runs, key=lambda one: one.budget.slots)
        machine, cpus = run.machine, run.budget.profile.cpus
        if run.testbed_kind != "spark" or machine.cores is None or not (machine.real and machine.load_seen):
            return None
        cores = cores_for_slots(machine.cores, quota=machine.slots.startswith("a CPU quota"))
        return cls(run.budget.slots, int(cores / cpus + 1e-9), cpus)

    def larger(self, asked: "Asked", slots: int) -> Advice:
        """Advise to measure more slots, as far as the machine goes, for a plan of `slots`."""
        size = f"The machine of the runs has room for {units.some(self.most, 'slot')} of {self.cpus:g} core"
        if self.most <= self.measured:
            return asked.plan(
                f"{size}; smaller slots (slot_cpus) give more counts, but no more cores. Without a cluster, deploy in "
                "steps and observe the log of each. With one, set master and larger counts of slots in the study, then"
            )
        add = f"Add larger counts to slots in the study, up to {self.most:,}, then"
        if slots <= FAR * self.most:
            return asked.plan(add)
        return asked.plan(f"{size}; more needs a cluster (master). {add}")


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


def remedies(asked: Asked, target: float | None = None, room: Room | None = None, slots: int = 0) -> Remedies:
    """Return the remedies for a plan of `target` (records/s); None: for all plans.

    `room` is that on the machine of the runs, for a plan of `slots`; None: unknown.
    """
    risk, plan, fresh = asked.less_risk, asked.plan, partial(asked.plan, journal="NEW.jsonl")
    if asked.kind == "observed" and asked.study is None:
        return Remedies(
            _LARGER_LOG,
            Advice("Run", asked.observe(target, risk)),
            Advice(
                "When the machine is quiet, write a new log, then run", asked.observe(target, asked.risk, another=True)
            ),
        )
    larger, quieter = plan("Add larger counts to slots in the study, then"), fresh("When the machine is quiet,")
    match asked.kind:
        case "fluid":
            quieter = fresh("Raise warmup_s or tolerance in the study, then")
        case "observed":
            larger, quieter = _LARGER_LOG, plan("When the machine is quiet, write a new log, then")
        case "recorded":
            larger = plan("Add rows with more slots to the table, then")
            quieter = plan("Correct the doubtful rows of the table, then")
        case "spark" if room is not None:
            larger = room.larger(asked, slots)
    return Remedies(larger, plan(f'Set "risk: {risk:g}" in the study, then'), quieter)


def check_model(
    model: Model,
    X: ArrayLike,  # noqa: N803
    y: ArrayLike,
    slots: float,
    memory_mb: float,
    *,
    answers: Mapping[str, float] | None = None,
    fewest_runs: int = FEWEST_RUNS,
    asked: Asked | None = None,
) -> tuple[ModelFinding, ...]:
    """Return the doubts about `model`, fitted to X and y, at a target budget; empty if there are none.

    `answers` are what `alike` gives, if known. `fewest_runs` are enough: fewer where their ratios are known well
    because they took turns in one deployment. Raises `WorkbenchError` when the target is not positive.
    """
    points, rates = as_runs(X, y, fewest=1)
    if not (slots > 0 and memory_mb > 0):
        raise WorkbenchError(
            f"The target is slots = {slots!r}, memory_mb = {memory_mb!r}; both must be positive. Give a budget."
        )
    target = np.array([[memory_mb, slots]], dtype=float)
    asked = asked or Asked()
    findings = (
        _few_runs(points, fewest_runs, asked),
        _extrapolation(points, slots, asked),
        _disagreement(model.form, answers or alike(model, points, rates, slots, memory_mb), points, slots),
        _wide(model, target, asked),
        _memory_not_measured(points, memory_mb),
        _memory_edge(model, points, slots, asked),
        _levels_off(model),
        _parts(model),
    )
    return tuple(finding for finding in findings if finding is not None)


def alike(
    model: Model,
    X: ArrayLike,  # noqa: N803
    y: ArrayLike,
    slots: float,
    memory_mb: float,
) -> dict[str, float]:
    """Capacity by `model` and by each form whose leave-one-out error is at most 1.5 times the lowest, records/s."""
    points, rates = as_runs(X, y, fewest=1)
    target = np.array([[memory_mb, slots]], dtype=float)
    fits = [fit_least_squares(form, points, rates) for form in STREAMBED_FORMS] if len(points) > 1 else []
    best = min((fit.leave_one_out for fit in fits), default=np.inf)
    answers = {fit.form: float(fit.predict(target)[0]) for fit in fits if fit.leave_one_out <= PLAUSIBLE * best}
    return answers | {model.form: float(model.predict(target)[0])}


def check_runs(
    runs: Sequence[Run], fitted: Sequence[int], left_out: Mapping[int, str], asked: Asked | None = None
) -> tuple[ModelFinding, ...]:
    """Return the doubts about `runs`, whatever the target; `left_out` are the rows not fitted, with the reason."""
    findings = (_left_out(runs, fitted, left_out), _doubtful(runs, fitted, asked or Asked()))
    return tuple(finding for finding in findings if finding is not None)


def _left_out(runs: Sequence[Run], fitted: Sequence[int], left_out: Mapping[int, str]) -> ModelFinding | None:
    if not left_out:
        return None
    memories = unmeasured_memory_mb(runs)
    nothing = (
        f" At {', '.join(map(str, memories))} MB per slot nothing could be measured, so that is not planned with."
        if memories
        else ""
    )
    answered = {runs[row].budget for row in fitted}  # by other runs, which leave nothing to do
    advice = advise(runs[row] for row in left_out if runs[row].budget not in answered)
    shows, are = ("does not show", "is") if len(left_out) == 1 else ("do not show", "are")
    return ModelFinding(
        "runs left out",
        len(left_out),
        f"{len(left_out)} of {units.some(len(runs), 'run')} {shows} the query's capacity and {are} not fitted. "
        + describe_runs(runs, left_out)
        + nothing,
        advice,
        settled=not advice,
    )


def _doubtful(runs: Sequence[Run], fitted: Sequence[int], asked: Asked) -> ModelFinding | None:
    ran = ((row, runs[row]) for row in fitted)
    doubted = {row: run.estimate for row, run in ran if isinstance(run, Measurement) and _doubt(run.estimate)}
    if not doubted:
        return None
    remedy = remedies(asked).quieter
    if asked.kind == "spark" and not asked.scheduled and all(map(_left_alone, doubted.values())):
        remedy = Advice("Check the plan with workbench verify.")
    verb = "is" if len(doubted) == 1 else "are"
    reasons = {row: _doubt(one) for row, one in doubted.items()}
    share = f"{len(reasons)} of {units.some(len(fitted), 'fitted run')} {verb} doubtful. "
    return ModelFinding(
        "doubtful runs", len(reasons), share + describe_runs(runs, reasons), remedy.words, remedy.command
    )


def _left_alone(estimate: MstEstimate) -> bool:
    judged = (probe.judgement for probe in estimate.probes if probe.judgement is not None)
    return estimate.steady and not any(one.disturbed or one.repeatable for one in judged)


def _doubt(estimate: MstEstimate) -> str:
    width = estimate.high / estimate.low - 1
    doubts = (
        (not estimate.steady, "the warm-up was not steady when its time was up"),
        (estimate.disturbed, "others slowed the machine"),
        (estimate.exhausted, f"the probes ran out with a bracket {units.percent(width)} wide"),
    )
    reasons = ", ".join(text for holds, text in doubts if holds)
    return f"{reasons}." if reasons else ""


def _few_runs(points: np.ndarray, fewest: int, asked: Asked) -> ModelFinding | None:
    counts = len(np.unique(points[:, 1]))
    if len(points) >= fewest and counts >= FEWEST_SLOT_COUNTS:
        return None
    more = (
        remedies(asked).larger
        if asked.kind == "observed"
        else Advice(f"Make at least {fewest} runs, at {FEWEST_SLOT_COUNTS} or more slot counts.")
    )
    return ModelFinding(
        "few runs",
        len(points),
        f"The model rests on {units.some(len(points), 'run')} at {units.some(counts, 'slot count')}.",
        more.words,
        more.command,
    )


def _extrapolation(points: np.ndarray, slots: float, asked: Asked) -> ModelFinding | None:
    factor = slots / points[:, 1].max()
    if factor < FAR:
        return None
    return ModelFinding(
        "extrapolation",
        factor,
        f"The plan has {units.number(factor, 2)} times the {units.some(round(points[:, 1].max()), 'slot')} measured.",
        "Deploy in steps, and observe the log of each."
        if asked.kind == "observed"
        else "Measure a larger budget if there is one, or deploy in steps and measure again.",
    )


def _disagreement(own: str, answers: Mapping[str, float], points: np.ndarray, slots: float) -> ModelFinding | None:
    middle = answers[own]
    spread = (max(answers.values()) - min(answers.values())) / middle if middle > 0 else np.inf
    if spread <= DISAGREEMENT:
        return None
    ranked = sorted(answers.items(), key=lambda item: item[1])
    return ModelFinding(
        "forms disagree",
        spread,
        f"Models that fit the runs about equally well differ by {units.percent(spread)} of the prediction at "
        f"{units.some(round(slots), 'slot')}: "
        + ", ".join(f"{form} {units.rate(answer)}" for form, answer in ranked)
        + ".",
        "Measure at more slots: the models differ only there."
        if slots > points[:, 1].max()
        else f"Measure again at about {units.some(round(slots), 'slot')}: more runs there separate the models.",
    )


def _wide(model: Model, target: np.ndarray, asked: Asked) -> ModelFinding | None:
    if model.law_ is None:
        return None
    low, high = model.interval(target)
    middle = model.predict(target)[0]
    width = (high[0] - low[0]) / middle if middle > 0 else np.inf
    if width <= WIDE:
        return None
    more = (
        "Observe a log whose load comes closer to the maximum"
        if asked.kind == "observed"
        else "Repeat runs of the largest budget"
    )
    return ModelFinding(
        "wide interval",
        width,
        f"The 90 % interval is {units.percent(width)} of the prediction wide.",
        f"{more}." if asked.risk is not None else f"{more}, or plan by risk instead of by margin.",
    )


def _memory_not_measured(points: np.ndarray, memory_mb: float) -> ModelFinding | None:
    least, most = points[:, 0].min(), points[:, 0].max()
    if least <= memory_mb <= most:
        return None
    measured = f"{least:,g}" if least == most else f"{least:,g} to {most:,g}"
    return ModelFinding(
        "memory not measured",
        max(memory_mb / most, least / memory_mb),
        f"The memory of {units.count(memory_mb)} MB per slot lies outside the {measured} MB measured: what it does to "
        "capacity is guessed.",
        "Measure with this memory, or plan with a memory that was measured.",
    )


def _memory_edge(model: Model, points: np.ndarray, slots: float, asked: Asked) -> ModelFinding | None:
    memory = np.unique(points[:, 0])
    if len(memory) < FEWEST_SLOT_COUNTS - 1:
        return None
    before, last = model.predict(np.array([[memory[-2], slots], [memory[-1], slots]]))
    gain = last / before - 1 if before > 0 else np.inf
    if gain <= EDGE_GAIN:
        return None
    more = asked.plan(
        "Add rows with more memory to the table, then"
        if asked.kind == "recorded"
        else "Add a larger memory_mb to the study, then"
    )
    return ModelFinding(
        "memory at the edge",
        gain,
        f"On {units.some(round(slots), 'slot')} the largest memory tried, {units.count(memory[-1])} MB, carries "
        f"{units.percent(gain, 1)} more than the second largest: the optimum may lie beyond.",
        more.words,
        more.command,
    )


def _parts(model: Model) -> ModelFinding | None:
    parts = model.parts_
    if parts is None or parts.explains:
        return None
    return ModelFinding(
        "batch not explained",
        parts.error,
        f"What a batch is made of (driver, tasks, rows) misses the {parts.readings} readings by "
        f"{units.percent(parts.error)}, so capacity is continued as a curve over slots.",
        "Measure again when the machine is quieter, or at a longer trigger interval.",
    )


def _levels_off(model: Model) -> ModelFinding | None:
    law = model.law_
    if law is None or law.levelling <= LIKELY:
        return None
    return ModelFinding(
        "levels off",
        law.levelling,
        f"With probability {units.percent(law.levelling)} capacity levels off by "
        f"{units.count(law.levelling_slots, 'slots')}: slots that are added carry clearly less than those before.",
        "Measure at more slots, and look for skewed keys: a key that fills one task is not spread by more slots.",
    )
