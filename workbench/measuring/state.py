"""What the journal knows about one measurement: a fold of its events."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from workbench.journal import Journal
from workbench.measuring.events import Deployed, Event, Finished, GivenUp, LoadProbed, Probed, recorded
from workbench.records import Measurement, Probe


@dataclass(frozen=True)
class Deployment:
    """What one deployment contributed to a measurement; code warms up again in each."""

    probes: tuple[Probe, ...] = ()
    load_curve: tuple[Probe, ...] = ()


@dataclass(frozen=True)
class State:
    """How far a measurement has come.

    Parameters
    ----------
    finished
        Its finished measurements, in order.
    deployments
        What was observed since it was last finished or given up, by deployment.
    """

    finished: tuple[Measurement, ...] = ()
    deployments: tuple[Deployment, ...] = ()

    @property
    def history(self) -> tuple[Probe, ...]:
        """Probes of the estimate under way, in order."""
        return tuple(probe for deployment in self.deployments for probe in deployment.probes)

    @property
    def load_curve(self) -> tuple[Probe, ...]:
        """Runs at lower rates since it was last finished, in order."""
        return tuple(probe for deployment in self.deployments for probe in deployment.load_curve)


def replay(journal: Journal, key: str) -> State:
    """Fold what `journal` holds of the measurement `key`."""
    return fold(recorded(journal, key))


def fold(events: Iterable[Event], state: State | None = None) -> State:
    """Advance `state` by `events`."""
    state = state or State()
    for event in events:
        match event:
            case Finished(_, measurement):
                state = State((*state.finished, measurement))
            case GivenUp():
                state = replace(state, deployments=())
            case Deployed():
                state = replace(state, deployments=(*state.deployments, Deployment()))
            # Without a deployment a probe is another process's, which measured the same while this one finished it.
            case Probed(_, probe) if state.deployments:
                last = state.deployments[-1]
                state = _with_last(state, replace(last, probes=(*last.probes, probe)))
            case LoadProbed(_, probe) if state.deployments:
                last = state.deployments[-1]
                state = _with_last(state, replace(last, load_curve=(*last.load_curve, probe)))
            case _:
                pass
    return state


def _with_last(state: State, deployment: Deployment) -> State:
    return replace(state, deployments=(*state.deployments[:-1], deployment))
