"""The machine behind a run, and how it holds the run's slots."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.speed import CoreSpeed

SIMULATED, RECORDED = "simulated", "recorded"
"""How slots are made that no machine has."""

_VIRTUAL = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True)
class Machine:
    """What a run was made on: no host name, no user, no path.

    Parameters
    ----------
    slots
        How the slots are made: a CPU quota, whole cores, `SIMULATED`, or `RECORDED`.
    virtual
        Whether it is a virtual machine, whose speed others influence; None: unknown.
    cores
        Cores that the workbench may use; None: none are used.
    facts
        Further facts in words by name, such as versions.
    dedicated
        Whether the cores of the slots are held for them; False where a cluster only counts them.
    speed
        How fast its cores are, where that was timed apart from the observations; None: it was not. A Spark batch is
        only here.
    """

    slots: str = ""
    processor: str = ""
    virtual: bool | None = False
    cores: float | None = None
    memory_gib: float | None = None
    system: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    dedicated: bool = True
    speed: CoreSpeed | None = None

    @property
    def real(self) -> bool:
        """Whether something ran on it, and not a simulation or a table of rates."""
        return self.slots not in {SIMULATED, RECORDED}

    @property
    def load_seen(self) -> bool:
        """Whether other load on it was observed: that of a cluster's workers, and that behind a log, is not."""
        return "master" not in self.facts

    def described(self) -> dict[str, str]:
        """Every known fact in words, by name."""
        known = {
            "processor": self.processor,
            "virtual machine": _VIRTUAL[self.virtual] if self.processor else "",
            "cores": "" if self.cores is None else f"{self.cores:g}",
            "memory": "" if self.memory_gib is None else f"{self.memory_gib:.1f} GiB",
            "system": self.system,
            **self.facts,
            "slots are": self.slots,
        }
        return {name: value for name, value in known.items() if value}
