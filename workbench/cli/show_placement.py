"""What is printed of placements: one plan, methods side by side, worker shapes."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from workbench import units
from workbench.cli import look
from workbench.placement import Compared, Comparison, Placed, PlacementInput, Spread
from workbench.views.placement_front import costs, misses, more_tasks

_USED_UP = {"cpu": "cores of worker {} are", "io": "access to state of worker {} is", "net": "network of worker {} is"}
_MOST_COLUMNS = 10  # of workers
_COSTS = ("cpu", "io", "net")


def show_placed(placed: Placed, given: PlacementInput) -> None:
    """Print what a plan sustains, and which worker gets how many tasks of each operator."""
    out = look.console()
    problem = placed.problem
    cost = costs(placed.cost)
    sustained = "" if placed.rate is None else f" sustains {units.rate(placed.rate.rate)}; {_limit(placed)}"
    look.answer(out, f"{placed.method}{sustained or f' has the cost {cost}'}.")
    out.print(_tasks(placed) if problem.workers <= _MOST_COLUMNS else _tasks_of_alike(placed))
    look.line(out, f"cost (0 is perfectly even): {cost}" + (f"; {placed.note}" if placed.note else ""))
    sustains = None if placed.rate is None else placed.rate.rate
    _show_missed(out, given, placed, sustains, alone=placed.method != "optimal")
    show_basis(out, given)


def show_compared(given: PlacementInput, rows: Comparison) -> None:
    """Print what the best method gains over the default scheduler, and a row for each method."""
    out = look.console()
    look.answer(out, _gain(rows))
    rated = given.rate is not None
    table = look.table(
        {
            "method": "left",
            **dict.fromkeys((f"{name}\ncost" for name in _COSTS), "right"),
            "decided\nin": "right",
            **({"records/s,\nmedian": "right", "lowest to\nhighest": "right"} if rated else {}),
        },
        spare=("decided\nin", *(f"{name}\ncost" for name in reversed(_COSTS))) if rated else ("decided\nin",),
    )
    for row in sorted(rows, key=lambda row: (-(row.median or 0.0), tuple(row.costs))):
        placed = row.placed
        table.add_row(
            placed.method,
            *map(units.number, placed.cost),
            units.seconds(placed.seconds),
            *(_rates(row) if rated else ()),
        )
    out.print(table)
    _show_missed(out, given, rows.best.placed, rows.best.median)
    drawn = next((row.draws for row in rows if row.draws > 1), None)
    if drawn is not None:
        look.line(out, f"note: where chance has a part, {drawn} plans are drawn; costs are those of the first.")
    for row in rows:
        if row.placed.problem.parallelism != given.problem.parallelism:
            own, asked = row.placed.problem.tasks, given.problem.tasks
            name = f"{row.placed.method}, reconstructed from CAPSys's account of it,"
            look.line(out, f"note: {name} chose its own number of tasks, {units.count(own)} instead of {asked}.")
    for method, reason in rows.refused.items():
        look.line(out, f"note: {method} has no plan: {reason}")
    show_basis(out, given)


def show_shapes(spreads: Sequence[Spread]) -> None:
    """Print which worker shape to choose, and what random placements sustain on each."""
    out = look.console()
    best = spreads[0]
    look.answer(
        out,
        f"Choose {best.workers:,} x {best.slots:,}: {units.some(best.workers, 'worker')} "
        f"of {units.some(best.slots, 'slot')}; nine of ten random placements sustain "
        f"{units.rate(best.quantile(0.1))}.",
    )
    table = look.table(
        {"shape": "left", **dict.fromkeys(("nine of ten", "median", "worst", "highest of\nany plan"), "right")}
    )
    for one in spreads:
        rates = (*(one.quantile(share) for share in (0.1, 0.5, 0.0)), one.best)
        table.add_row(f"{one.workers:,} x {one.slots:,}", *(units.scaled(rate, "") for rate in rates))
    out.print(table)
    look.line(out, "note: records/s; shapes are workers x slots.")


def _tasks(placed: Placed) -> Table:
    """Make a row for each operator and a column for each worker."""
    problem = placed.problem
    table = look.table({"operator": "left", **{f"w{worker}": "right" for worker in range(problem.workers)}})
    for name, row in zip(problem.operators, placed.counts.tolist(), strict=True):
        table.add_row(name, *(f"{count:,}" if count else "." for count in row))
    return table


def _tasks_of_alike(placed: Placed) -> Table:
    """Make a row for all workers that have the same tasks, named by the first of them."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for worker, counts in enumerate(placed.counts.T.tolist()):
        alike.setdefault(tuple(counts), []).append(worker)
    table = look.table({"workers": "left", "tasks": "left"})
    for counts, workers in alike.items():
        tasks = (f"{name} {count:,}" for name, count in zip(placed.problem.operators, counts, strict=True) if count)
        more = f" and {len(workers) - 1:,} more" if len(workers) > 1 else ""
        table.add_row(f"w{workers[0]}{more}", ", ".join(tasks) or "none")
    return table


def _gain(rows: Comparison) -> str:
    best, default = rows.best, rows.default
    name = best.placed.method
    if best.median is None or math.isinf(best.median):
        others = "" if default is None else f"; {default.placed.method} has {costs(default.costs)}{_in_median(default)}"
        return f"{name} has the least costs, CPU first: {costs(best.costs)}{others}."
    found = f"{name} sustains {units.rate(best.median)}"
    if default is None or not default.median:
        return f"{found}."
    more = best.median / default.median - 1
    gain = f"{units.share(round(more, 2))} more than" if round(more, 2) else "as much as"
    return f"{found}, {gain} {default.placed.method}{_in_median(default)} ({units.rate(default.median)})."


def _in_median(row: Compared | None) -> str:
    return "" if row is None or row.draws == 1 else f" in the median of {row.draws} draws"


def _rates(row: Compared) -> tuple[str, str]:
    spread = "" if row.draws == 1 else f"{units.scaled(row.lowest, '')} to {units.scaled(row.highest, '')}"
    return units.scaled(row.median, ""), spread


def _limit(placed: Placed) -> str:
    if placed.rate is None or placed.rate.resource is None:
        return "nothing limits it"
    if placed.rate.resource == "task":
        return "then a task is busy all the time"
    return f"then the {_USED_UP[placed.rate.resource].format(f'w{placed.rate.worker}')} used up"


def _show_missed(
    out: Console, given: PlacementInput, placed: Placed, sustained: float | None, *, alone: bool = False
) -> None:
    """Say that the rate asked for is not carried: by no placement, or by the one `alone` that was asked for."""
    if sustained is None or not misses(sustained, given.rate):
        return
    whose = "this placement does not carry" if alone else "no placement carries"
    busy = placed.rate is not None and placed.rate.resource == "task"  # which no worker changes
    tasks = more_tasks(given)
    split = f"more tasks: {tasks}" if tasks else "more tasks" * busy
    workers = "" if busy else f"{'--method optimal or ' * alone}--workers {given.problem.workers + 1}{_speeds(given)}"
    remedy = ", and ".join(filter(None, (split, workers)))
    look.line(out, f"note: the input asks for {units.rate(given.rate)}, which {whose}; try {remedy}")


def _speeds(given: PlacementInput) -> str:
    """Give the option that says the speeds of one more worker too, where the input says those of the others."""
    return f" --speeds {','.join(f'{speed:.12g}' for speed in given.speeds_with_one_more)}" if given.sized else ""


def show_basis(out: Console, given: PlacementInput) -> None:
    """Say which plan is placed, and what the rates rest on."""
    if given.chosen:
        look.line(out, f"note: the plan is {given.chosen}; choose with --rate")
    if given.basis:
        look.line(out, f"note: {given.basis}")
