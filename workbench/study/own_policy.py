"""Scaling policies of your own, named ``module:name``; what goes wrong in their code is yours to fix, and named."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.checks import finite, shown
from workbench.dataflow import Dataflow
from workbench.errors import WorkbenchError
from workbench.scaling import AnyPolicy, Decision, Window
from workbench.study.own import load_own, users_code


@dataclass(frozen=True)
class OwnPolicy:
    """A user's policy under the name that it was loaded by, ``module:name``."""

    name: str
    policy: Any

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next."""
        return self.policy.interval_s  # type: ignore[no-any-return]

    def begin(self, dataflow: Dataflow, decision: Decision, source_rates: Mapping[str, float]) -> Decision:
        """Place the first deployment, if the policy places tasks."""
        if not hasattr(self.policy, "begin"):
            return decision
        with users_code(f"The policy {self.name!r} failed in begin", "Fix its code."):
            return self.policy.begin(dataflow, decision, source_rates)  # type: ignore[no-any-return]

    def decide(self, window: Window, memory: object) -> Any:  # noqa: ANN401 - the replay checks the answer
        """Decide as the user's policy does."""
        with users_code(f"The policy {self.name!r} failed in decide at {window.now_s:g} s", "Fix its code."):
            return self.policy.decide(window, memory)


def own_policy(name: str) -> AnyPolicy:
    """Load a policy of your own, ``module:name`` of a `Policy`, or of a class of it that needs no arguments."""
    found: Any = load_own(name, "policy")
    if isinstance(found, type):
        remedy = "Name an object, or a class whose arguments all have defaults."
        with users_code(f"The policy {name!r} cannot be made", remedy):
            found = found()
    with users_code(f"The policy {name!r} does not give its members", "Fix it."):  # of a property
        interval: Any = getattr(found, "interval_s", None)
        decides = callable(getattr(found, "decide", None))
    if not decides or not (finite(interval) and interval > 0):
        raise WorkbenchError(
            f"{name!r} is no policy: it needs decide(window, memory), and interval_s, the seconds from one decision to "
            f"the next, above 0; interval_s is {shown(interval)}. See the how-to for an example."
        )
    return OwnPolicy(name, found)
