"""What is said of the forms of a model."""

import pytest

from workbench.records import FormComparison, FormFit, FormTarget
from workbench.views import findings


def fit(form, share, slots=9):
    return FormFit(form, (0.0, 1.0), None if share is None else 1e5 * share, share, None, None, (slots,), (2e5,))


def compared(evidence="law", form=0.094, law=0.012, **changes):
    fits = (fit("linear", 0.2, 8), fit("sqrt", form, changes.pop("slots", 9)), fit("scaling", law, 12))
    target = FormTarget(200_000.0, 1024, 12, 230_000.0)
    given = {"runs": 7, "targets": (target,), "chosen": "sqrt", "rule": "halves", "used": "scaling"} | changes
    return FormComparison(fits=fits, evidence=evidence, **given)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (compared(), "because it misses a run left out by 1.2 %, sqrt by 9.4 %"),
        (compared("form", 0.012, 0.05), "although sqrt misses a run left out by 1.2 %, the law by 5 %"),
        (compared("too few", runs=3), "because 3 runs are too few to distinguish them"),
        (compared("too few", None, runs=3), "because 3 runs are too few for an error on a run left out"),
        (compared(slots=None), "no number of slots"),
        (compared("set", used="log"), "the study sets"),
        (compared("set", used="sqrt"), "the plan uses it, because the study sets its form"),
        (compared("too few", runs=1, chosen=None), "1 run cannot make a model"),
        (compared(targets=()), "takes sqrt; the plan uses the scaling law because it misses"),
        (compared(), "StreamBed's rule (by halves) takes sqrt, which asks for 9 slots"),
        (compared(rule="leave-one-out"), "The error on a run left out chooses sqrt, which asks for 9 slots"),
        (compared("too few", None, rule="first"), "too few runs for any error, so the first form is taken: sqrt"),
    ],
)
def test_the_chosen_form_the_plan_s_and_the_evidence_are_said(found, says):
    assert says in findings.forms(found)
