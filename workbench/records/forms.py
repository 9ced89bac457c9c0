"""How the forms of capacity model compare on the runs behind a plan; StreamBed, section VI."""

from dataclasses import dataclass
from typing import Literal

FormRule = Literal["halves", "leave-one-out", "first"]
FormEvidence = Literal["set", "too few", "alike", "law", "form"]


@dataclass(frozen=True)
class FormTarget:
    """A target rate, records/s, at a memory per slot, MiB; and the plan for it.

    `slots` and `expected_rate` (records/s) are the plan's; None without one at the trigger interval explored.
    """

    rate: float
    memory_mb: float
    slots: int | None = None
    expected_rate: float | None = None


@dataclass(frozen=True)
class FormFit:
    """One form, fitted to all runs, and its errors, records/s and relative to the rates; None: not defined.

    Parameters
    ----------
    form
        Its name; ``"scaling"`` is the workbench's law.
    coefficients
        a, b and c of Equations 6 to 8; of the law, the expected exponents of memory and slots.
    left_out, left_out_share
        Mean absolute error at a run when the form is fitted to the others; mean of the relative ones.
    upper_half, upper_half_share
        Root-mean-square error on the upper half of the runs when the form is fitted to the lower half; relative to the
        mean rate there.
    slots
        By target, fewest slots that carry StreamBed's margin of 1.10 times the rate; None: no number does.
    predicted
        By target, capacity at the plan's slots, records/s; None without a plan.
    """

    form: str
    coefficients: tuple[float, ...]
    left_out: float | None
    left_out_share: float | None
    upper_half: float | None
    upper_half_share: float | None
    slots: tuple[int | None, ...]
    predicted: tuple[float | None, ...]


@dataclass(frozen=True)
class FormComparison:
    """The paper's three forms and the law on the same runs.

    Parameters
    ----------
    fits
        Those that can be fitted: the paper's, others that the plan uses, the law.
    chosen
        The paper's choice; None where two runs are missing.
    rule
        What chose it: StreamBed's halves; with fewer than two runs left to test, the leave-one-out error; where that is
        not defined, the first form.
    evidence
        For the law against the paper's choice: ``"law"`` or ``"form"`` misses a run left out by clearly less (a paired
        t-test, 95 % one-sided); ``"alike"``: neither does; ``"too few"``: there are fewer than four runs, or no such
        errors; ``"set"``: the plan uses a form that the study sets.
    """

    runs: int
    targets: tuple[FormTarget, ...]
    fits: tuple[FormFit, ...]
    chosen: str | None
    rule: FormRule
    used: str
    evidence: FormEvidence

    def fit_of(self, form: str | None) -> FormFit | None:
        """Give the fit of `form`; None where there is none."""
        return next((fit for fit in self.fits if fit.form == form), None)
