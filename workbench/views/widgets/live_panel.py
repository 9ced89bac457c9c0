"""The live panel of long work: its state, its findings, its log, and buttons to start, cancel and resume it.

A measurement shows its probes; a study StreamBed's loop, adapted: explorer, optimizer, estimator, and the fitted forms.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import ipywidgets
import plotly.graph_objects as go

from workbench import units
from workbench.study import Runner, Snapshot, State
from workbench.views import figures, findings, theme
from workbench.views.parts import part, style
from workbench.views.widgets import panel
from workbench.views.widgets.panel import Deferred, LiveChart

_EVERY_S = 0.5
_WIDTH, _HEIGHT = 430, 400  # pixels of one of the loop's plots, whose legend is as wide
_SIGNS: dict[State, tuple[str, str]] = {
    "idle": ("○", "not started"),
    "running": ("▶", "running"),
    "stopping": ("◼", "stopping"),
    "cancelled": ("❚❚", "cancelled; it can be resumed"),
    "failed": ("✖", "failed; it can be resumed once the cause is fixed"),
    "done": ("✔", "done"),
}
_BUTTONS: dict[State, str] = {"idle": "Start", "done": "Done"}


def standing(now: Snapshot) -> tuple[dict[str, str], float]:
    """Put a snapshot into words, and say what share of the time has passed, or of the probes if that is unknown."""
    sign, word = _SIGNS[now.state]
    unknown = now.estimate is None or (now.estimate.rate is None and now.estimate.high == float("inf"))
    seen = "none yet" if now.estimate is None or unknown else findings.bracket(now.estimate)
    left = "not known before the first bracket" if now.left_s is None else f"about {units.seconds(now.left_s)}"
    facts = {
        "State": f"{sign} {word}",
        "Doing": now.step or "nothing",
        "Elapsed": units.seconds(round(now.elapsed_s)) if now.ran else "",  # simulated work takes no time
        "Measurement": f"{now.run} of at most {now.most_runs}" if now.most_runs > 1 else "",
        "Probe": f"{now.probes} of at most {now.most_probes}",
        "Best bracket so far": seen,
        "Time left": left if now.state == "running" and now.ran else "",
    }
    share = now.probes / max(1, now.most_probes)
    if now.left_s is not None and now.ran:
        share = now.elapsed_s / max(1e-9, now.elapsed_s + now.left_s)
    return {name: fact for name, fact in facts.items() if fact}, 1.0 if now.state == "done" else share


class Pane:
    """A figure of what is `seen` of a snapshot, redrawn when that changes; at first it shows what it waits for."""

    def __init__(
        self,
        waiting: str,
        seen: Callable[[Snapshot], Any],
        draw: Callable[[Any], go.Figure],
        fit: Callable[[go.Figure], go.Figure] = lambda drawn: theme.fit(drawn, _WIDTH, _HEIGHT),
    ) -> None:
        self._seen, self._draw, self._fit = seen, draw, fit
        self._drawn: object = None
        self.chart = LiveChart(fit(theme.blank(theme.figure(waiting), "Nothing yet")))

    def follow(self, now: Snapshot) -> None:
        """Draw what is new."""
        seen = self._seen(now)
        if seen is not None and seen != self._drawn:
            self._drawn = seen
            self.chart.show(self._fit(self._draw(seen)))


def _probes_of(now: Snapshot) -> figures.Probes | None:
    """Collect the probes of the present measurement; None before its first one."""
    if now.estimate is None or now.budget is None:
        return None
    asked = None if now.configured is None else now.configured.configuration
    expected = asked.predicted_rate if asked is not None and asked.budget == now.budget else None
    return figures.Probes(now.query, now.budget, now.estimate, now.ran, expected)


def _panes(now: Snapshot) -> tuple[Pane, ...]:
    """Make the figures of a study's loop, or the one of a measurement."""
    if not now.explores:
        return (Pane("No probe has been made yet", _probes_of, figures.draw_probes, fit=lambda drawn: drawn),)
    return (
        Pane(
            "Resource explorer: which budget is next, and why",
            lambda now: now.question,
            figures.draw_acquisition,
        ),
        Pane("Configuration optimizer: how the budget is divided", lambda now: now.configured, figures.draw_configured),
        Pane("Capacity estimator: the bracket of its maximum", _probes_of, figures.draw_bracket),
        Pane(
            "Capacity model: the forms, fitted after each run",
            lambda now: None if now.so_far is None else now.so_far.planned,
            lambda planned: figures.draw_model_forms(planned.exploration, planned.forms),
        ),
    )


class LivePanel(panel.Panel):
    """Shows a `runner`, of ``workbench.study.runner``, and lets it be started, cancelled and resumed."""

    def __init__(self, runner: Runner[Any]) -> None:
        self.runner = runner
        self.alarm = panel.ErrorArea()
        self._deferred: list[Deferred] = []
        self._ticker: threading.Thread | None = None
        self._following = False
        # Callbacks and the ticker are threads: the one that draws holds it, and draws the present state.
        self._lock = threading.RLock()
        self.start = ipywidgets.Button(
            description="Start", icon="play", button_style="primary", tooltip="Start, or go on from the last probe"
        )
        self.cancel = ipywidgets.Button(
            description="Cancel", icon="stop", tooltip="End it; finished probes are kept and not repeated"
        )
        self.state = ipywidgets.HTML()
        self.lines = panel.LiveLog()
        self.panes = _panes(runner.snapshot())
        charts = [ipywidgets.VBox(pane.chart.parts) for pane in self.panes]
        self.alarm.on(self.begin, self.start)
        self.alarm.on(self._stop, self.cancel)
        super().__init__(
            self.state,
            ipywidgets.HBox([self.start, self.cancel]),
            self.alarm.widget,
            panel.grid(panel.LOOP, *charts) if len(charts) > 1 else charts[0],
            self.lines,
        )
        self.refresh()

    def refresh(self) -> None:
        """Show the state of the work."""
        with self._lock:
            self._show(self.runner.snapshot())

    def _show(self, now: Snapshot) -> None:
        self.state.value = style("state.css") + part("standing", now.what, *standing(now))
        self.start.description, self.start.disabled = _BUTTONS.get(now.state, "Resume"), not now.may_start
        self.start.button_style = "primary" if now.may_start else ""
        self.start.icon = "check" if now.state == "done" else "play"
        self.cancel.disabled = now.state != "running"
        self.lines.lines = [f"[{line.at_s:5.0f} s] {line.text}" if now.ran else line.text for line in now.lines] or [
            "The log is empty."
        ]
        if now.error is not None:
            self.alarm.show(*now.error)
        for pane in self.panes:
            pane.follow(now)

    def then(self, title: str, build: Callable[[Any], Any]) -> Deferred:
        """Return a place under `title` that shows what `build` makes of the result: cards, or a widget."""
        deferred = Deferred(title, build)
        with self._lock:
            done = self.runner.snapshot().state == "done"
            if not done:
                self._deferred.append(deferred)
        if done:
            deferred.fill(self.runner.result)
        return deferred

    def wait(self, seconds: float | None = None) -> Snapshot:
        """Wait until the work and the panel have ended, at most `seconds` each; the buttons do nothing meanwhile."""
        now = self.runner.wait(seconds)
        if self._ticker is not None:
            self._ticker.join(seconds)
        return now

    def begin(self, *, wait: bool = False) -> None:
        """Start or resume the work, and follow it; the kernel stays free unless `wait` asks for the result.

        Work that was waited for raises a `WorkbenchError` if it failed or was cancelled.
        """
        with self._lock:
            self.runner.start()
            self.alarm.clear()
            if not self._following:
                self._following = True
                self._ticker = threading.Thread(target=self._follow, name="live panel", daemon=True)
                self._ticker.start()
        self.refresh()
        if wait:
            self.wait()
            _ = self.runner.result

    def _stop(self) -> None:
        self.runner.cancel()
        self.refresh()

    def _follow(self) -> None:
        """Refresh until the work has ended; runs in a thread, since the kernel is the analyst's."""
        while True:
            self.runner.wait(_EVERY_S)
            with self._lock:  # it ends on what it showed: a click on Resume comes before that, or begins again
                now = self.runner.snapshot()
                self._guarded(partial(self._show, now))
                if now.state not in {"running", "stopping"}:
                    self._following = False
                    break
        if now.state == "done":
            for deferred in self._deferred:
                self._guarded(partial(deferred.fill, self.runner.result))
            self._deferred.clear()

    def _guarded(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - in a thread nobody would see it
            self.alarm.show(type(error).__name__, str(error))
