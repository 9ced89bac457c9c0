"""The Resource Explorer (StreamBed, section VI): which budgets to measure, and when to stop.

The four corners of the space come first. Then a Gaussian process (scikit-optimize, Expected Improvement) proposes the
budget that should lower the model's cost most: the lowest leave-one-out error over the forms after the new run
(Equation 9). The exploration ends when the cost of a run exceeds 1.10 times the one before, and that run is not fitted.

With ``choice="edge"``, ours, the corners are followed by the middle slot count and then by the most slots, again and
again, with the least and the most memory in turn. The most slots say most about what many slots carry; the middle ones
distinguish a hot key from uneven keys; repeats average out run effects. It ends after a number of calls, not by the
cost, and all runs are fitted.

Deviation: the paper's cost is called an RMSE and is a mean absolute error, and is called so here. A budget may be
measured again, as in the paper. The Gaussian process lives on the indices of the grid, not on its values.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import get_args

from workbench import units
from workbench.capacity.explore.exploration import MOST_RUNS, Choice, Exploration, conclude, costs_of, stopping_row
from workbench.capacity.explore.optimizer import ConfigurationOptimizer, minimal_first
from workbench.capacity.explore.questions import Question, Space, Why, edge, next_question, on_the_way
from workbench.capacity.model import SCALING, STREAMBED_FORMS, Growth, Model, full, why_no_capacity
from workbench.checks import one_of
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.measuring import Concluded, Event, result_of
from workbench.records import FailedRun, Run
from workbench.workload import Query


@dataclass(eq=False)
class ResourceExplorer:
    """Explores a space of budgets until the capacity model stops improving.

    A loop of your own makes the same runs as `run`::

        while (budget := explorer.ask()) is not None:
            explorer.tell(optimizer.measure(query, budget))
        explorer.conclude()
    """

    optimizer: ConfigurationOptimizer
    space: Space
    seed: int = 0  # of the Gaussian process; the same seed and measurements give the same exploration
    _: KW_ONLY
    form: str = SCALING  # of the model; or one of StreamBed's, or ``"halves"`` for its selection
    score_form: str | None = None  # whose leave-one-out error is the cost, to replay Table III; None: the lowest
    most_runs: int = MOST_RUNS  # no budget is asked for that would exceed them
    # Most budgets asked for; None: as many as the runs allow. The first at a memory also takes a run of the minimal
    # configuration, unless it is that itself.
    most_calls: int | None = None
    choice: Choice = "improvement"  # of budgets after the corners: the paper's Gaussian process and stop rule
    estimates: int = 1  # runs per budget asked for after the corners; more of them average out run effects
    available: Callable[[Budget], int] | None = None  # measurements of a budget, if bounded: a table's row has one
    growth: Growth | None = None  # what more slots are, if known; see `ScalingModel`
    most_s: float = math.inf  # from the beginning of `steps`, after which no run begins that would last longer
    clock: Callable[[], float] = time.monotonic
    _late: str | None = field(default=None, init=False)
    _runs: list[Run] = field(default_factory=list, init=False)
    _answers: list[int] = field(default_factory=list, init=False)  # rows of runs that answer a question
    calls: int = field(default=0, init=False)  # budgets asked for and answered
    _given: int = field(default=0, init=False)  # answers so far to the open question, which needs `estimates`
    _asked: Why | None = field(default=None, init=False)
    _decided: Why | str | None = field(default=None, init=False)  # the open question, or why there is none

    def __post_init__(self) -> None:
        if self.estimates < 1:
            raise WorkbenchError(f"estimates is {self.estimates!r}; a call of the optimizer takes at least 1 run.")
        one_of("The choice", self.choice, get_args(Choice))
        for name, most, things in (("most_calls", self.most_calls, "calls"), ("most_runs", self.most_runs, "runs")):
            if most is not None and most < len(self.space.corners):
                raise WorkbenchError(
                    f"{name} is {most!r}; the corners of the space alone are {len(self.space.corners)} {things}. Raise "
                    "it."
                )
        self.score_forms = STREAMBED_FORMS if self.score_form is None else (self.score_form,)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs recorded so far."""
        return tuple(self._runs)

    def ask(self) -> Budget | None:
        """Return the budget to measure next, the same until it is answered; None when the exploration is over."""
        question = self.question()
        return None if question is None else question.why.budget

    def question(self) -> Question | None:
        """Return the budget to measure next with the reason; None when the exploration is over."""
        decided = self._decide()
        return Question(decided, self.space, self.runs) if isinstance(decided, Why) else None

    def reason(self) -> str | None:
        """Why the exploration is over; None while it goes on."""
        decided = self._decide()
        return decided if isinstance(decided, str) else None

    def tell(self, run: Run) -> None:
        """Record a run. It answers the open question, whatever its budget, unless it is a minimal run that this needs.

        Such a run is recorded too if `optimizer` made it and it was not given.
        """
        minimal = self.optimizer.minimal_of(run.query, run.budget)
        if minimal is not None and not any(one is minimal for one in (*self._runs, run)):
            self._runs.append(minimal)
        self._runs.append(run)
        self._decided = None
        if self._asked is not None and on_the_way(run, self._asked.budget):
            return  # the question stays open
        self._asked = None
        self._answers.append(len(self._runs) - 1)
        self._given += 1
        wanted = self.estimates if self.calls >= len(self.space.corners) else 1
        if self._given >= wanted or isinstance(run, FailedRun) or self._used_up(run.budget):
            self.calls += 1
            self._given = 0

    def explore(self, query: Query) -> Model:
        """Explore `query` and return the model; `run` returns the runs as well."""
        return self.run(query).model

    def run(self, query: Query) -> Exploration:
        """Explore `query`; see `steps`."""
        return result_of(self.steps(query))

    def steps(self, query: Query) -> Generator[Event, None, Exploration]:
        """Explore `query`, yield the events, and return the exploration; refuse if too few runs show a capacity."""
        times = [self.clock()]
        while (question := self.question()) is not None:
            # The first run includes the warm-up, later ones do not.
            first_s = min(self.optimizer.estimator.most_s or 0.0, self.most_s / 2)
            longest_s = max((end - begun for begun, end in pairwise(times[1:])), default=first_s)
            if self._runs and times[-1] + longest_s > times[0] + self.most_s:
                self._late = f"its {self.most_s / 60:g} minutes were over after {units.some(len(self._runs), 'run')}"
                break
            yield Concluded(question)
            self.tell((yield from self.optimizer.steps(query, question.why.budget))[-1])
            times.append(self.clock())
        return self.conclude()

    def conclude(self) -> Exploration:
        """Fit the model to the runs recorded so far; see `conclude`. Where time ended them, one is enough."""
        return conclude(
            self._runs,
            self._late or self.reason() or "ended early",
            form=self.form,
            score_forms=self.score_forms,
            most_runs=self.most_runs,
            choice=self.choice,
            growth=self.growth,
            least=1 if self._late else None,
        )

    def ahead(self) -> tuple[Budget, ...]:
        """Return the budgets that will be asked for whatever the runs show if none fails: the corners, and the edge."""
        present = self.ask()
        if present is None:
            return ()
        answered = {self._runs[row].budget for row in self._answers}
        corners = [corner for corner in self.space.corners if corner not in answered]
        begun = [present] * (self.estimates - self._given if self._given else 0)
        if self.choice == "improvement":
            return self._left_to_measure(corners or (present,) * (self.estimates - self._given))
        first = max(self.calls, len(self.space.corners)) + bool(begun)
        last = first + self.most_runs if self.most_calls is None else self.most_calls
        slots, memory_mb = self.space.slots, self.space.memory_mb
        points = (edge((len(slots), len(memory_mb)), call - len(self.space.corners)) for call in range(first, last))
        later = [self.space.budget(slots[i], memory_mb[j]) for i, j in points]
        return self._left_to_measure((*corners, *begun, *(budget for budget in later for _ in range(self.estimates))))

    def _decide(self) -> Why | str:
        """Decide what to measure next, or say why the exploration is over."""
        if self._decided is None:
            self._decided = self._over() or self._asked or self._next()
            self._asked = self._decided if isinstance(self._decided, Why) else None
        return self._decided

    def _over(self) -> str | None:
        if self.choice == "improvement":
            costs = costs_of(self._runs, self.score_forms)
            stop = stopping_row(costs, self.most_runs)
            if stop is not None:
                before, after = units.rate(costs[stop - 1]), units.rate(costs[stop])
                return f"run {stop + 1} raised the model's error from {before} to {after}"
        if self.calls >= len(self.space.corners) and all(why_no_capacity(run) for run in self._runs):
            return "no corner of the space gave a capacity"
        most = self.space.budget(self.space.slots[-1], self.space.memory_mb[-1])
        if any(run.budget == most and full(run) is not None for run in self._runs):
            return "on the most slots a batch took longer than the trigger interval even at a low rate"
        if len(self._runs) >= self.most_runs:
            return f"{len(self._runs)} runs were made"
        if self.most_calls is not None and self.calls >= self.most_calls:
            return f"{self.most_calls} budgets were asked for"
        return None

    def _next(self) -> Why | str:
        why: Why | None
        if self._given:
            why = Why(self._runs[self._answers[-1]].budget, "again")
        else:
            why = next_question(
                self._runs,
                self._answers,
                self.space,
                self.seed,
                calls=self.calls,
                choice=self.choice,
                forms=self.score_forms,
                used_up=[budget for budget in self.space.budgets if self._used_up(budget)],
            )
            if why is None:
                taken = "all measurements of the budgets left to ask for were taken"
                return taken if self.available else "every budget left to ask for has failed"
        budget = why.budget
        tasks = next((run.tasks for run in self._runs if run.tasks is not None), {})
        takes = len(minimal_first(budget, len(tasks), [run.budget for run in self._runs]))
        if len(self._runs) + takes > self.most_runs:
            return f"{len(self._runs)} runs were made, and the next budget takes {takes} of at most {self.most_runs}"
        return why

    def _left_to_measure(self, budgets: Sequence[Budget]) -> tuple[Budget, ...]:
        """Return those of `budgets` that have measurements left, in order."""
        if self.available is None:
            return tuple(budgets)
        taken = Counter(run.budget for run in self._runs)
        found = []
        for budget in budgets:
            if taken[budget] < self.available(budget):
                taken[budget] += 1
                found.append(budget)
        return tuple(found)

    def _used_up(self, budget: Budget) -> bool:
        return self.available is not None and sum(run.budget == budget for run in self._runs) >= self.available(budget)
