"""What the journal has of one measurement: a fold of its events."""

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.journal import Journal
from workbench.measuring.events import Abandoned, Deployed, Event, Finished, LoadProbed, Probed, event_of, recorded
from workbench.records import Measurement, Probe


@dataclass(frozen=True)
class Deployment:
    """What one deployment contributed to a measurement; code warms up again in each."""

    probes: tuple[Probe, ...] = ()
    load_curve: tuple[Probe, ...] = ()


@dataclass(frozen=True)
class State:
    """The progress of a measurement."""

    finished: tuple[Measurement, ...] = ()
    deployments: tuple[Deployment, ...] = ()  # observations since it was last finished or abandoned

    @property
    def history(self) -> tuple[Probe, ...]:
        """Probes of the estimate under way, in order."""
        return tuple(probe for deployment in self.deployments for probe in deployment.probes)

    @property
    def load_curve(self) -> tuple[Probe, ...]:
        """Runs at lower rates since it was last finished, in order."""
        return tuple(probe for deployment in self.deployments for probe in deployment.load_curve)


def replay(journal: Journal, key: str) -> State:
    """Fold the events in `journal` of the measurement `key`."""
    return fold(recorded(journal, key))


def last_finished(journal: Journal, key: str) -> Measurement | None:
    """Return the measurement `key` that was finished last; earlier ones, of which there may be many, are not read."""
    finished = journal.entries("finished", key)
    event = event_of(finished[-1], f"the journal {journal.path}") if finished else None
    return event.measurement if isinstance(event, Finished) else None


def fold(events: Iterable[Event]) -> State:
    """Return the state after `events`."""
    finished: list[Measurement] = []
    deployments: list[tuple[list[Probe], list[Probe]]] = []  # probes and load curve of each
    for event in events:
        match event:
            case Finished(_, measurement):
                finished.append(measurement)
                deployments = []
            case Abandoned():
                deployments = []
            case Deployed():
                deployments.append(([], []))
            # A probe without a deployment is another process's, which measured the same while this one finished it.
            case Probed(_, probe) if deployments:
                deployments[-1][0].append(probe)
            case LoadProbed(_, probe) if deployments:
                deployments[-1][1].append(probe)
            case _:
                pass
    return State(tuple(finished), tuple(Deployment(tuple(probes), tuple(curve)) for probes, curve in deployments))
