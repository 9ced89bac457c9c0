"""The live panel, without a browser: buttons are clicked, traits are looked at."""

import threading

import ipywidgets
import numpy as np
import pytest
from wrapped_fluid import Interrupted, eventless

from workbench.answers.measured import cards
from workbench.capacity import compare_forms
from workbench.capacity.explore import reasons
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator
from workbench.simulation import preset
from workbench.study import Runner, Snapshot, Study, measuring, planning
from workbench.testbed import FluidTestbed
from workbench.views import findings
from workbench.views.cards import Card
from workbench.views.widgets.live_panel import LivePanel, standing

BUDGET = Budget(8, SlotProfile(1.0, 1024), 5.0)
ESTIMATOR = CapacityEstimator(tolerance=0.02)
PATIENCE_S = 60


def trace(pane, name):
    """Find a trace of a pane; a live figure's have other uids than the figure it shows."""
    (found,) = [one for one in pane.chart.widget.data if one.name == name]
    return found


def filled(later):
    return not isinstance(later.children[0], ipywidgets.HTML)


def ended(panel):
    """Click on start; what is known when the work has ended."""
    panel.start.click()
    return panel.wait(PATIENCE_S)


def panel_of(work):
    return LivePanel(Runner(Snapshot("the work"), eventless(work), ESTIMATOR))


def at_first(act):
    """Work that does `act` when it is started, and ends when it is resumed."""
    rounds = []

    def work(report):
        rounds.append(1)
        if len(rounds) == 1:
            act(report)
        return f"result of {len(rounds)} rounds"

    return work


def fails(_):
    raise ValueError("<b>broken</b>")


def test_start_measures_and_shows_the_probes(journal):
    runner = measuring(preset("q1"), BUDGET, FluidTestbed(), journal, ESTIMATOR)
    panel = LivePanel(runner)
    later = panel.then("What does it sustain?", cards)
    assert not filled(later)
    assert "It appears here when the work above is done." in later.children[0].value
    assert (panel.start.description, panel.start.disabled, panel.cancel.disabled) == ("Start", False, True)
    assert "not started" in panel.state.value
    now = ended(panel)
    assert now.state == "done"
    assert "✔ done" in panel.state.value
    assert "The maximum is between" in panel.state.value
    assert f"{now.probes} of at most 20" in panel.state.value
    assert (panel.start.description, panel.start.disabled, panel.start.button_style) == ("Done", True, "")
    assert panel.cancel.disabled
    assert '<progress aria-label="Share of the time that has passed" value="1.000">' in panel.state.value
    assert panel.alarm.widget.value == ""
    (pane,) = panel.panes
    assert pane.chart.finding.startswith("q1 sustains")
    assert trace(pane, "batch time").x
    assert panel.lines.lines[-1] == "finished"  # without a time: it is simulated
    assert filled(later)
    shown = later.children[0].outputs
    assert any("q1 sustains" in output["data"].get("text/html", "") for output in shown)
    assert any("application/vnd.plotly.v1+json" in output["data"] for output in shown)
    assert filled(panel.then("again", cards))


def test_the_chart_of_a_study_names_the_query_and_the_budget_that_is_measured(journal):
    study = Study("nexmark:q1", (1e6, 2e6, 3e6), (2, 8), (512,), testbed="fluid", most_runs=4)
    panel = LivePanel(planning(study, journal, FluidTestbed()))
    assert ended(panel).state == "done"
    last = panel.runner.result.exploration.measurements[-1]
    assert "for 3 target rates" in panel.state.value
    assert panel.panes[2].chart.finding == findings.capacity("nexmark:q1", last.budget, last.estimate, ran=False)


def test_a_study_shows_the_loop_is_cancelled_and_resumed(journal):
    study = Study("nexmark:q11", (1e6,), (5, 8, 12), (512, 1024), testbed="fluid", most_runs=9)
    testbed = Interrupted(lambda number: panel.runner.cancel() if number == 25 else None)
    panel = LivePanel(planning(study, journal, testbed))
    explorer, optimizer, estimator, model = panel.panes
    assert [pane.chart.finding.split(":")[0] for pane in panel.panes] == [
        "Resource explorer",
        "Configuration optimizer",
        "Capacity estimator",
        "Capacity model",
    ]
    assert ended(panel).state == "cancelled"
    asked = panel.runner.snapshot().question
    assert explorer.chart.finding == asked.sentence
    assert panel.start.description == "Resume"
    last = ended(panel)
    assert last.state == "done", last.error
    assert any(line.startswith("resuming: ") for line in panel.lines.lines)
    assert panel.alarm.widget.value == ""
    whys = reasons(panel.runner.result.exploration.runs, study.space, study.seed)
    assert explorer.chart.finding == last.question.sentence
    assert last.question.why.budget == whys[-1].budget
    assert np.array(trace(explorer, "expected improvement").z) == pytest.approx(whys[-1].acquired.improvement.T)
    assert optimizer.chart.finding == last.configured.sentence
    assert "BIDS2 divides" in optimizer.chart.finding
    tasks = last.configured.configuration.tasks
    assert list(trace(optimizer, "Slots (tasks at once)").x) == list(tasks.values())
    ends = trace(estimator, "bracket so far").y
    assert (ends[-2], ends[-4]) == pytest.approx((last.estimate.low, last.estimate.high))
    found = compare_forms(last.so_far.planned.exploration, last.so_far.planned.plans)
    assert model.chart.finding == findings.forms(found).removesuffix(".")
    assert trace(model, "errors").x == tuple(fit.left_out for fit in found.fits)


def test_a_resume_while_the_end_is_being_drawn_is_followed_to_the_end():
    clicks = []
    panel = panel_of(at_first(fails))
    later = panel.then("What follows", lambda _: [Card("a", "It followed", "x")])
    draw = panel._show

    def draws(now):
        draw(now)
        if now.state == "failed" and not clicks:  # the button is live now, and the panel is still drawing
            clicks.append(threading.Thread(target=panel.start.click))
            clicks[0].start()

    panel._show = draws
    ended(panel)
    clicks[0].join(PATIENCE_S)
    assert panel.wait(PATIENCE_S).state == "done"
    assert "✔ done" in panel.state.value
    assert panel.start.disabled
    assert filled(later)
    assert panel.alarm.widget.value == ""


def test_cancel_sets_a_flag_and_resume_goes_on():
    def cancels(report):
        panel.cancel.click()
        assert panel.runner.snapshot().state == "stopping"
        report.check()

    panel = panel_of(at_first(cancels))
    panel.start.click()
    assert panel.wait(PATIENCE_S).state == "cancelled"
    assert (panel.start.description, panel.start.disabled) == ("Resume", False)
    assert "cancelled; it can be resumed" in panel.state.value
    panel.start.click()
    assert panel.wait(PATIENCE_S).state == "done"
    assert panel.runner.result == "result of 2 rounds"


def test_an_error_of_the_work_shows_as_a_card_and_goes_with_the_next_start():
    panel = panel_of(at_first(fails))
    panel.start.click()
    assert panel.wait(PATIENCE_S).state == "failed"
    assert "ValueError: &lt;b&gt;broken&lt;/b&gt;" in panel.alarm.widget.value
    assert panel.lines.lines[-1].endswith("<b>broken</b>")
    assert ended(panel).state == "done"
    assert panel.alarm.widget.value == ""


def test_an_error_of_what_follows_shows_as_a_card():
    panel = panel_of(lambda _: "result")
    later = panel.then("What follows", lambda result: result.missing)
    ended(panel)
    assert "AttributeError" in later.children[0].value


def test_waiting_tells_why_there_is_no_result():
    def work(_):
        raise WorkbenchError("The slots are too small; give more.")

    panel = panel_of(work)
    with pytest.raises(WorkbenchError, match="has no result yet: it is failed \\(The slots are too small; give more"):
        panel.begin(wait=True)


@pytest.mark.parametrize(
    ("snapshot", "share", "left"),
    [
        (Snapshot("w", most_probes=20), 0, None),
        (Snapshot("w", "running", 30, most_probes=20, probes=5), 0.25, "not known before the first bracket"),
        (Snapshot("w", "running", 30, most_probes=20, probes=5, left_s=90), 0.25, "about 90 s"),
        (Snapshot("w", "cancelled", 30, most_probes=20, probes=5), 0.25, None),
        (Snapshot("w", "done", 30, most_probes=20, probes=5), 1, None),
        (Snapshot("w", "running", 0.2, most_probes=20, probes=5, left_s=1200, ran=False), 0.25, None),
    ],
)
def test_standing_in_words(snapshot, share, left):
    facts, passed = standing(snapshot)
    assert (passed, facts.get("Time left")) == (share, left)
    assert "Measurement" not in facts
    assert ("Elapsed" in facts) == snapshot.ran  # what is simulated takes no time that is worth a line
    assert standing(Snapshot("w", run=2, most_runs=7))[0]["Measurement"] == "2 of at most 7"
