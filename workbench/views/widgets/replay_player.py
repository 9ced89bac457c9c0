"""The replay player: play a load under policies, step through it, and compare them."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from types import MappingProxyType

import ipywidgets
import plotly.graph_objects as go

from workbench import units
from workbench.errors import WorkbenchError
from workbench.scaling import Timeline
from workbench.study import compare_policies
from workbench.views import theme
from workbench.views.figures import draw_overlaid, draw_policies, same_axes, timeline
from workbench.views.findings import QUIET, decided
from workbench.views.parts import part
from workbench.views.widgets import panel
from workbench.views.widgets.panel import LiveChart

_FRAMES = 120
_FRAME_MS = 400
_NONE: Mapping[float, Mapping[str, Timeline]] = MappingProxyType({})
_PAGE, _HEIGHT = 700, 600  # pixels: of a narrow page, of the timelines


def moment(line: Timeline, time_s: float) -> str:
    """Describe the end of the step that contains `time_s`, on a clock that begins at midnight."""
    step = min(len(line.offered) - 1, max(0, math.ceil(time_s / line.step_s) - 1))
    done = [change for change in line.reconfigurations if change.at_s < time_s]  # at its end the next one begins
    text = (
        f"At {units.clock(time_s)}: {units.rate(float(line.offered[step]))} offered, "
        f"{units.rate(float(line.consumed[step]))} consumed by {units.some(int(line.tasks[step]), 'task')}; "
        f"{units.scaled(float(line.backlog[step]), 'records')} wait, "
        f"the last ones consumed had waited {units.seconds(float(line.latency_s[step]))}"
        + (f", the trigger interval of {units.seconds(line.batch_s)} included." if line.batch_s else ".")
    )
    if not done:
        return f"{text} Nothing has been reconfigured yet."
    last = done[-1]
    down = " The query is still down." if time_s < last.at_s + last.downtime_s else ""
    because = "".join(
        f" {operator} gets {decided(one)}: {one.reason}."
        for operator, one in last.reasons.items()
        if one.case not in QUIET
    )
    return (
        f"{text} Reconfiguration {len(done)} of {len(line.reconfigurations)} came at {units.clock(last.at_s)}, to "
        f"{units.some(sum(last.tasks.values()), 'task')}.{because}{down}"
    )


def frame_times(line: Timeline, frames: int = _FRAMES) -> tuple[float, ...]:
    """Return the ends of about `frames` frames, seconds: complete steps, the last one the end of the replay."""
    steps = len(line.offered)
    each = max(1, math.ceil(steps / frames))
    return tuple(end * line.step_s for end in (*range(each, steps, each), steps))


def next_change(line: Timeline, times: tuple[float, ...], frame: int) -> int:
    """Return the frame in which the next reconfiguration after `frame` begins; the last frame if there is none."""
    later = [change.at_s for change in line.reconfigurations if change.at_s >= times[frame]]
    return bisect_right(times, later[0], hi=len(times) - 1) if later else len(times) - 1


def most_interesting(lines: Mapping[str, Timeline]) -> str:
    """Return the policy to begin with: the leading one of those that reconfigure, else the first."""
    return compare_policies({name: line for name, line in lines.items() if line.reconfigurations}).leading or next(
        iter(lines)
    )


class ReplayPlayer(panel.Panel):
    """Plays replays of one load from midnight on: one policy in full, with the others over it.

    The `lines` are by the name of their policy. Without a `price_unit` they are compared by core-hours. `restarts`, the
    same replays by restart time (seconds), get a slider; `lines` are those of one of the times.
    """

    def __init__(
        self,
        lines: Mapping[str, Timeline],
        price_unit: str = "",
        *,
        restarts: Mapping[float, Mapping[str, Timeline]] = _NONE,
    ) -> None:
        if not lines:
            raise WorkbenchError("There is no replay to play. Give at least one timeline by the name of its policy.")
        now = next((seconds for seconds, one in restarts.items() if one == lines), None)
        if restarts and (now is None or any(one.keys() != lines.keys() for one in restarts.values())):
            raise WorkbenchError(
                "The replays by restart time do not match the timelines: one of the times must have these timelines, "
                f"and each must have the policies {', '.join(lines)}. Take both from replay_restarts."
            )
        self.lines, self._unit = dict(lines), price_unit
        self.alarm = panel.ErrorArea()
        first = most_interesting(self.lines)
        self.times = frame_times(self.lines[first])
        self._data = same_axes({name: timeline(one, name) for name, one in self.lines.items()})
        last = len(self.times) - 1
        begin = next_change(self.lines[first], self.times, 0)
        self.policy = panel.choice("Policy", [(name, name) for name in self.lines], first)
        self.play = ipywidgets.Play(value=begin, min=0, max=last, interval=_FRAME_MS, show_repeat=False)
        self.frame = panel.whole_slider("Shown until (frame)", begin, 0, last)
        self.jump = panel.button(
            "To the next reconfiguration", "Show all until the next change of tasks", "step-forward"
        )
        self.start = panel.button("To the start", "Show the first frame", "fast-backward")
        self.text = ipywidgets.HTML()
        self.chart = LiveChart(self._figure())
        self.comparison = LiveChart(self._compared())
        self.restart = panel.choice_slider(
            "Restart time", [(units.seconds(one), one) for one in restarts or (0.0,)], now or 0.0
        )
        self.alarm.on(lambda: self._restart(restarts), self.restart)
        ipywidgets.link((self.play, "value"), (self.frame, "value"))
        self.alarm.on(self.refresh, self.frame)
        self.alarm.on(self._choose, self.policy)
        self.alarm.on(lambda: self._to(next_change(self.line, self.times, self.frame.value)), self.jump)
        self.alarm.on(lambda: self._to(0), self.start)
        sliders = [self.frame, self.restart] if restarts else [self.frame]
        super().__init__(
            panel.grid(panel.ROW, self.policy, *sliders).add_class(panel.CONTROLS),
            ipywidgets.HBox([self.play, self.start, self.jump], layout={"flex_flow": "row wrap"}),
            self.alarm.widget,
            self.text,
            *self.chart.parts,
            *self.comparison.parts,
            dragged=sliders,
        )
        self._describe()

    @property
    def line(self) -> Timeline:
        """The present timeline."""
        return self.lines[self.policy.value]

    def refresh(self) -> None:
        """Show everything up to the present frame."""
        self._describe()
        self.chart.show(self._figure())

    def _figure(self) -> go.Figure:
        """Draw the replay until the present frame, on the axes of the complete replays."""
        until = self.times[self.frame.value]
        drawn = draw_overlaid({name: one.until(until) for name, one in self._data.items()}, self.policy.value)
        return theme.fit(drawn, _PAGE, _HEIGHT)

    def _compared(self) -> go.Figure:
        compared = draw_policies(compare_policies(self.lines, self._unit))
        return theme.fit(compared, _PAGE, compared.layout.height)

    def _restart(self, restarts: Mapping[float, Mapping[str, Timeline]]) -> None:
        self.lines = dict(restarts[self.restart.value])
        self._data = same_axes({name: timeline(one, name) for name, one in self.lines.items()})
        self.comparison.show(self._compared())
        self.refresh()

    def _describe(self) -> None:
        self.text.value = part("status", moment(self.line, self.times[self.frame.value]))

    def _choose(self) -> None:
        share = (self.frame.value + 1) / len(self.times)
        self.times = frame_times(self.line)
        self.play.max = self.frame.max = len(self.times) - 1
        wanted = max(0, math.ceil(share * len(self.times)) - 1)
        if wanted == self.frame.value:
            self.refresh()
        else:
            self._to(wanted)

    def _to(self, frame: int) -> None:
        self.frame.value = frame
