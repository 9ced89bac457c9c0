"""Health checks of a measurement: what to know before trusting the number, and what to do."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from workbench import units
from workbench.capacity.explore import keeps_state
from workbench.capacity.planning import fixed_time
from workbench.measuring import SOURCE_MARGIN, batch_line
from workbench.metrics import slow_executors
from workbench.records import Measurement

_LATE_SHARE = 0.01  # of the rows reaching the state, that may be dropped as late
_LEAST_THROTTLED = 0.01  # of its periods, below which a quota does not shape the slots


class Check(NamedTuple):
    """One check."""

    question: str
    finding: str | None  # what was seen; None where the measurement does not show it
    advice: str = ""  # what to do; empty if all is well


def _check(question: str, fine: bool | None, well: str, seen: str, advice: str) -> Check:
    """Return what was seen, with advice unless it is fine; None: the measurement does not show it."""
    if fine is None:
        return Check(question, None)
    return Check(question, well) if fine else Check(question, seen, advice)


def checks(measurement: Measurement) -> Iterator[Check]:
    """Run every check; what was simulated has neither a machine that others use, nor batches and their source."""
    estimate, ran = measurement.estimate, measurement.ran
    wide = estimate.limit == "none" and math.isfinite(estimate.high)  # a rate is too much, but none that is near
    if ran:
        yield _fixed_cost(measurement)
    yield _check(
        "Was the warm-up steady?",
        estimate.steady,
        "The rate and the time per record had settled before the first probe.",
        "The warm-up reached its time limit while rate or time per record still changed.",
        "State or caches may not have been at their working size: state the rate only together with the state's size, "
        "or warm up longer (in a study warmup_s; in Python CapacityEstimator(warmup_cap_s=...)).",
    )
    if ran:
        yield from _state(measurement)
        taken = [p.number for p in estimate.probes if p.judgement is not None and p.judgement.disturbed]
        listed = f"Probe{'s' * (len(taken) > 1)} {', '.join(map(str, taken))}"
        yield _check(
            "Was the machine left alone?",
            not taken if measurement.machine.load_seen else None,
            "No judged probe was disturbed.",
            f"{listed} had to be judged although others used the machine.",
            "The rate may be too low: measure again while nothing else runs.",
        )
    yield _check(
        "Were there enough probes?",
        not (estimate.exhausted or wide),
        "The bracket became as narrow as asked.",
        "The probes ran out before the bracket was as narrow as asked.",
        "Use the bracket, not the single rate; or ask for a wider one (--tolerance) or for more time (--minutes; in "
        "a study deployment: separate), or in Python allow more probes: CapacityEstimator(max_probes=..., most_s=...).",
    )
    quieter = "measure again on a quieter machine, or " if ran else ""
    yield _check(
        "Do the probes agree?",
        not estimate.contradictions,
        "No rate was both sustained and not.",
        f"Probes disagree about {', '.join(map(units.rate, estimate.contradictions))}.",
        f"The bracket encloses the rates in doubt: {quieter}in Python observe longer: CapacityEstimator(window_s=...).",
    )
    if ran:
        yield _source(measurement)
    yield _check(
        "Was a rate found that is too much?",
        wide or estimate.limit != "none",
        "Yes, the maximum has an upper end.",
        "No rate was confirmed as too much.",
        "The rate is a lower bound: raise the highest rate (--max-rate), or in Python allow more probes: "
        "CapacityEstimator(max_probes=...).",
    )
    if ran:
        yield from _slots(measurement)


def _fixed_cost(measurement: Measurement) -> Check:
    line = batch_line(measurement.estimate, measurement.load_curve)
    question = "Is the fixed time of a batch small compared with the interval?"
    if line is None:
        return Check(question, None)
    return Check(question, *fixed_time(line.fixed, measurement.budget.interval_s))


def _state(measurement: Measurement) -> Iterator[Check]:
    estimate = measurement.estimate
    unbounded, unknown = measurement.unbounded_state, estimate.rate is None
    records = sum(probe.observation.consumed_rate * probe.seconds for probe in estimate.probes)
    yield _check(
        "Is the state bounded?",
        None if unbounded and unknown else not unbounded,
        "The query is not declared to keep state without bound.",
        f"The state grows with every record and had taken in about {units.scaled(records, 'records')} here. The rate "
        "holds for a state of that size; as the state grows, the query may sustain less.",
        "Bound the state (a join needs watermarks and a time range on both sides), or deploy for the rate at the "
        "largest state it may reach.",
    )
    if estimate.filled is not None:
        lacking_s = 0.0 if estimate.observation is None else estimate.observation.lacking_s
        of_young = "is that of a young state and may be too high"
        if lacking_s:
            of_young = (
                f"counts {lacking_s:.2f} s a batch for the state that is still to come, and may still be too high"
            )
        yield _check(
            "Was the state at its working size?",
            estimate.filled,
            "No operator keeps state."
            if keeps_state([measurement]) is False
            else "As many rows left the state as entered.",
            "More rows entered the state before the probes than left it, so it still grew.",
            f"The rate {of_young}. Measure in a deployment of its own (in a study "
            "deployment: separate), whose state is not emptied between probes, so that it has minutes to fill.",
        )
    late = None if estimate.observation is None else estimate.observation.dropped_late
    share = f"{units.share(late)} of the rows reaching the state"
    yield _check(
        "Did the rows come in time for the watermark?",
        None if late is None else late <= _LATE_SHARE,
        f"{share} were dropped as late.",
        f"{share} came later than the watermark allows and were dropped.",
        "Dropped rows cost less than those that count, so the rate is too high: name the event-time column "
        "(--event-time), sort the data by it, or allow more delay in withWatermark.",
    )


def _source(measurement: Measurement) -> Check:
    estimate, limit = measurement.estimate, measurement.source_limit
    bound = any(probe.answered("source-bound") for probe in estimate.probes)
    known = limit is not None or bound or estimate.limit == "source"
    return _check(
        "Did the query, and not the source, limit the rate?",
        estimate.limit != "source" if known else None,
        f"The source alone could release {units.rate(limit)}.",
        f"The source alone releases {units.rate(limit)}; the next probe would have come too close to that.",
        f"The rate is the source's, not the query's: read it as 'at least', and give the source {SOURCE_MARGIN} "
        "times the rate by fewer slots or a heavier query.",
    )


def _slots(measurement: Measurement) -> Iterator[Check]:
    """Check what slots had: their quota and cores, and where there are several, their executors and partitions."""
    seen, used, slots = measurement.estimate.observation, measurement.used_cores, measurement.budget.slots
    throttled = seen.quota_throttled if seen else None
    said = f"The quota held the slots back in {units.share(throttled)} of its periods at the highest sustained rate."
    yield _check(
        "Did the slots' CPU quota bind?",
        None if throttled is None else throttled >= _LEAST_THROTTLED,
        said,
        said,
        "The slots were never as busy as their quota allows, so something else limits the rate: look at the fixed "
        "time, at key skew and at the number of tasks.",
    )
    if not measurement.machine.dedicated:
        cores = "" if used is None else f" The query's tasks used {used:.2f} cores per slot."
        yield Check(
            "Were the slots' cores dedicated?",
            "The cluster counts cores but does not limit them, so a slot may have had more or less than its own."
            + cores,
            "Measure while nothing else runs on the workers, and compare with a plan for cores that are limited "
            "(Kubernetes, or a virtual machine per executor) with care.",
        )
    if seen is None:
        return
    if seen.executors:
        slow, most = slow_executors(seen.executors), max(pace.times for pace in seen.executors)
        yield _check(
            "Were the executors equally fast?",
            not slow,
            f"The slowest took {most:.2f} times as long as the others per record.",
            f"{slow[0].sentence}." if slow else "",
            "A batch ends with its slowest task, so the other slots waited for it: look at what else its worker does, "
            "and measure again without it.",
        )
    read = seen.source_partitions
    if read is not None and measurement.testbed_kind != "observed":  # a log's source may be no topic, and it says so
        yield _check(
            "Did every slot read the topic?",
            read >= slots,
            f"Partitions with records: {units.count(read)}, read by {units.some(slots, 'slot')}.",
            f"The topic has {units.some(read, 'partition')} with records, so {slots - read:,} of {slots:,} slots had "
            "nothing to read.",
            "The rate is that of a topic with as few partitions: use a topic with at least as many as slots, or "
            "measure on fewer slots.",
        )
