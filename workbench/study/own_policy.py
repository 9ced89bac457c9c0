"""Scaling policies of your own, named ``module:name``; what goes wrong in their code is yours to fix, and named."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.checks import finite, shown
from workbench.dataflow import Dataflow
from workbench.errors import WorkbenchError
from workbench.scaling import AnyPolicy, Decision, Window
from workbench.study.own import described, load_own


@dataclass(frozen=True)
class OwnPolicy:
    """A user's policy under the name it was loaded by.

    Parameters
    ----------
    name
        ``module:name``.
    policy
        What was loaded.
    """

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
        try:
            return self.policy.begin(dataflow, decision, source_rates)  # type: ignore[no-any-return]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever the user's code does, such as sys.exit
            raise _failed(self.name, "begin", error) from error

    def decide(self, window: Window, memory: object) -> Any:  # noqa: ANN401 - the replay checks the answer
        """Decide as the user's policy does."""
        try:
            return self.policy.decide(window, memory)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever the user's code does, such as sys.exit
            raise _failed(self.name, f"decide at {window.now_s:g} s", error) from error


def own_policy(name: str) -> AnyPolicy:
    """Load a policy of your own, ``module:name`` of a `Policy`, or of a class of it that needs no arguments."""
    found: Any = load_own(name, "policy")
    if isinstance(found, type):
        try:
            found = found()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever the user's class does, such as sys.exit
            raise WorkbenchError(
                f"The policy {name!r} cannot be made: {described(error)}. Name an object, or a class "
                "whose arguments all have defaults."
            ) from error
    try:
        interval: Any = getattr(found, "interval_s", None)
        decides = callable(getattr(found, "decide", None))
    except Exception as error:  # of a property
        raise WorkbenchError(f"The policy {name!r} does not give its members: {described(error)}. Fix it.") from error
    if not decides or not (finite(interval) and interval > 0):
        raise WorkbenchError(
            f"{name!r} is no policy: it needs decide(window, memory), and interval_s, the seconds from one decision to "
            f"the next, above 0; interval_s is {shown(interval)}. See the how-to for an example."
        )
    return OwnPolicy(name, found)


def _failed(name: str, what: str, error: BaseException) -> WorkbenchError:
    return WorkbenchError(f"The policy {name!r} failed in {what}: {described(error)}. Fix its code.")
