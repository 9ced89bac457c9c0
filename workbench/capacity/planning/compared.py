"""The forms of capacity model compared: what each predicts for every target, and its error.

The paper's three compete by the paper's rule (StreamBed, section VI). The scaling law, which the plan uses by default,
takes part outside the competition: its errors are determined in the same way, by fitting it again to the same runs.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from workbench.arrays import Floats
from workbench.capacity.explore import Exploration
from workbench.capacity.model import (
    MARGIN,
    SCALING,
    STREAMBED_FORMS,
    CapacityModel,
    Model,
    fit_least_squares,
    halves,
    model_of_form,
    root_mean_square,
)
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, FormComparison, FormEvidence, FormFit, FormRule, FormTarget

_SURE = 0.95
_FEWEST_RUNS = 4


def compare_forms(
    exploration: Exploration, plans: Sequence[CapacityPlan] = (), refused: Sequence[float] = ()
) -> FormComparison:
    """Fit linear, sqrt and log, the form in use and the scaling law to the same runs, and compare them.

    `refused`: rates, records/s, without a plan, which are targets, too: at the measured memory nearest to the median.
    """
    targets = _targets(exploration, plans, refused)
    step = next((plan.executor_slots for plan in plans if plan.executor_slots is not None), 1)
    used, misses, fits = exploration.model.form, dict[str, Floats](), list[FormFit]()
    for form in dict.fromkeys((*STREAMBED_FORMS, used, SCALING)):
        model = fitted_form(exploration, form)
        if model is not None:
            misses[form] = _misses(exploration, form)
            fits.append(_fit(exploration, model, misses[form], targets, step))
    chosen, rule = _choice([fit for fit in fits if fit.form in STREAMBED_FORMS])
    evidence: FormEvidence = "set"
    if used == SCALING:
        evidence = _evidence(misses.get(chosen or ""), misses.get(SCALING))
    return FormComparison(len(exploration.fitted), targets, tuple(fits), chosen, rule, used, evidence)


def fitted_form(exploration: Exploration, form: str, rows: Sequence[int] | None = None) -> Model | None:
    """Fit `form` to the fitted runs, or to `rows` of them; None where that is impossible."""
    if rows is None and form == exploration.model.form:
        return exploration.model
    kept = range(len(exploration.fitted)) if rows is None else rows
    like, runs = exploration.model, exploration.fitted_runs
    model = model_of_form(form, stateful=like.stateful, growth=like.growth)
    points, rates = exploration.points[list(kept)], exploration.rates[list(kept)]
    try:
        return model.fit(points, rates, [runs[row] for row in kept] if form == SCALING else None)
    except WorkbenchError:  # a form may be undefined at a run
        return None


def _targets(
    exploration: Exploration, plans: Sequence[CapacityPlan], refused: Sequence[float]
) -> tuple[FormTarget, ...]:
    memories = exploration.points[:, 0]
    memory = float(memories[np.abs(memories - np.median(memories)).argmin()])
    explored_s = exploration.runs[0].budget.interval_s
    found = [FormTarget(rate, memory) for rate in refused]
    for plan in plans:
        same = plan.budget.interval_s == explored_s
        answer = (plan.budget.slots, plan.expected_rate) if same else (None, None)
        found.append(FormTarget(plan.rate, plan.budget.profile.memory_mb, *answer))
    return tuple(sorted(found, key=lambda one: one.rate))


def _misses(exploration: Exploration, form: str) -> Floats:
    """Rate minus prediction at each run, from the fit to the others, records/s; empty where undefined."""
    points, rates = exploration.points, exploration.rates
    if form != SCALING:
        return np.array(fit_least_squares(form, points, rates).misses)
    misses = list[float]()
    for row in range(len(rates)):
        others = [one for one in range(len(rates)) if one != row]
        model = fitted_form(exploration, form, others) if others else None
        if model is None:
            return np.array([])
        misses.append(float(rates[row] - model.predict(points[[row]])[0]))
    return np.array(misses)


def _fit(exploration: Exploration, model: Model, misses: Floats, targets: Sequence[FormTarget], step: int) -> FormFit:
    off = np.abs(misses)
    left_out: tuple[float | None, float | None] = (
        (float(off.mean()), float((off / exploration.rates).mean())) if len(off) else (None, None)
    )
    coefficients: tuple[float, ...] = ()
    if isinstance(model, CapacityModel):
        coefficients = (*map(float, model.coef_), float(model.intercept_))
    elif model.law_ is not None:
        coefficients = tuple(map(float, model.law_.expected_exponents))
    least = min(run.budget.slots for run in exploration.runs)
    return FormFit(
        model.form,
        coefficients,
        *left_out,
        *_upper_half(exploration, model.form),
        tuple(_slots(model, one, least, step) for one in targets),
        tuple(one.slots and float(model.predict([[one.memory_mb, one.slots]])[0]) for one in targets),
    )


def _upper_half(exploration: Exploration, form: str) -> tuple[float | None, float | None]:
    split = halves(exploration.points)
    model = None if split is None else fitted_form(exploration, form, split[0].tolist())
    if split is None or model is None:
        return None, None
    points, rates = exploration.points[split[1]], exploration.rates[split[1]]
    error = root_mean_square(model.predict(points) - rates)
    return error, error / float(rates.mean())


def _slots(model: Model, target: FormTarget, least: int, step: int) -> int | None:
    try:
        return model.slots_for(target.rate, target.memory_mb, MARGIN, min_slots=least, step=step)
    except WorkbenchError:
        return None


def _choice(fits: Sequence[FormFit]) -> tuple[str | None, FormRule]:
    """Choose as `select_model` does; return the form and the error that decided."""
    if not fits:
        return None, "first"
    halved = {fit.form: fit.upper_half for fit in fits if fit.upper_half is not None}
    left_out = {fit.form: fit.left_out for fit in fits if fit.left_out is not None}
    errors = halved or left_out
    if not errors:
        return fits[0].form, "first"
    return min(errors, key=lambda form: errors[form]), "halves" if halved else "leave-one-out"


def _evidence(chosen: Floats | None, law: Floats | None) -> FormEvidence:
    """Whether the law or the chosen form misses left-out runs by clearly less."""
    if chosen is None or law is None or min(len(chosen), len(law)) < _FEWEST_RUNS:
        return "too few"
    gains = np.abs(chosen) - np.abs(law)
    doubt = stdtrit(len(gains) - 1, _SURE) * gains.std(ddof=1) / math.sqrt(len(gains))
    if abs(gains.mean()) <= doubt:
        return "alike"
    return "law" if gains.mean() > 0 else "form"
