"""How runs and plans were asked for, so that advice is for such runs and gives a command that can be copied and run."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
        With which the log was read, as the shell reads them, but for those that `observe` takes.
    risk
        Accepted probability of falling short; None: the plans are by margin.
    """

    kind: str = "spark"
    study: str | None = None
    log: str | None = None
    options: str = ""
    risk: float | None = None

    @property
    def plan(self) -> str:
        """The command that plans the study; with a placeholder where its path is not known."""
        return f"workbench plan {'STUDY.yaml' if self.study is None else _spelled(self.study)}"

    def observe(self, target: float | None = None, risk: float | None = None, *, another: bool = False) -> str:
        """Give the command that plans `target` (records/s) by the log, or by another one, whose name nobody knows."""
        log = "LOG" if self.log is None or another else _spelled(self.log)
        parts = (
            f"workbench observe {log}",
            self.options,
            "" if target is None else f"--target {target:.12g}",
            "" if risk is None else f"--risk {risk:g}",
        )
        return " ".join(filter(None, parts))


def _spelled(path: str) -> str:
    """Spell a path as a shell reads it, from this folder or home where below: pages travel, folders name people."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser raises where there is none
    for base, begin in ((Path.cwd(), ""), (home, "~/")):
        if Path(path).is_absolute() and Path(path).is_relative_to(base):
            return begin + shlex.quote(str(Path(path).relative_to(base)))
    return shlex.quote(path)


class Remedies(NamedTuple):
    """What to do about too few slots measured, too much risk, and doubtful runs."""

    larger: str
    safer: str
    quieter: str


def remedies(asked: Asked, target: float | None = None) -> Remedies:
    """Say what to do about a plan for `target` (records/s); None: about all of them."""
    risk = _LITTLE_RISK if asked.risk is None else min(_LITTLE_RISK, asked.risk / 2)
    plan = asked.plan
    if asked.kind == "observed" and asked.study is None:
        return Remedies(
            _LARGER_LOG,
            f"Run: {asked.observe(target, risk)}",
            f"When the machine is quiet, write a new log, then run: {asked.observe(target, asked.risk, another=True)}",
        )
    of_a_study = Remedies(
        f"Add larger counts to slots in the study, then run: {plan}",
        f'Set "risk: {risk:g}" in the study, then run: {plan}',
        f"When the machine is quiet, run: {plan} --journal NEW.jsonl",
    )
    match asked.kind:
        case "fluid":
            return of_a_study._replace(
                quieter=f"Raise warmup_s or tolerance in the study, then run: {plan} --journal NEW.jsonl"
            )
        case "observed":
            return of_a_study._replace(
                larger=_LARGER_LOG, quieter=f"When the machine is quiet, write a new log, then run: {plan}"
            )
        case "recorded":
            return of_a_study._replace(
                larger=f"Add rows with more slots to the table, then run: {plan}",
                quieter=f"Correct the doubtful rows of the table, then run: {plan}",
            )
    return of_a_study
