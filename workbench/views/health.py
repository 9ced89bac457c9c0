"""Health checks of a measurement: what a reader must know before trusting the number, and what to do."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from workbench import units
from workbench.measuring import SOURCE_MARGIN
from workbench.metrics import slow_executors
from workbench.records import Measurement
from workbench.views import findings
from workbench.views.figures import batch_times

_FIXED_SHARE = 0.25  # of the interval, that the fixed time of a batch should take at most
_LATE_SHARE = 0.01  # of the rows reaching the state, that may be dropped as late
_LEAST_THROTTLED = 0.01  # of its periods, below which a quota does not shape the slots


@dataclass(frozen=True)
class Check:
    """One check."""

    finding: str | None  # what was seen; None where the measurement does not show it
    advice: str = ""  # what to do; empty if all is well
    question: str = ""


_UNKNOWN = Check(None)
_AGAIN = "The rate may be too low: measure again while nothing else runs."


def checks(measurement: Measurement) -> tuple[Check, ...]:
    """Run every check; what was simulated has neither a machine that others use, nor batches and their source."""
    ran = measurement.ran
    observation = measurement.estimate.observation
    asked: tuple[tuple[bool, str, Callable[[Measurement], Check]], ...] = (
        (ran, "Is the fixed time of a batch small compared with the interval?", _fixed_cost),
        (True, "Was the warm-up steady?", _warm_up),
        (ran, "Is the state bounded?", _state),
        (ran and measurement.estimate.filled is not None, "Had the state its working size?", _filled),
        (ran, "Did the rows come in time for the watermark?", _late),
        (ran, "Was the machine left alone?", _disturbed),
        (True, "Were there enough probes?", _probes),
        (True, "Do the probes agree?", _contradictions),
        (ran, "Did the query, and not the source, limit the rate?", _source_bound),
        (True, "Was a rate found that is too much?", _no_upper_end),
        (ran, "Did the slots' CPU quota bind?", _quota),
        (ran and not measurement.machine.dedicated, "Were the slots' cores dedicated?", _counted),
        (ran and bool(observation and observation.executors), "Were the executors equally fast?", _executors),
        (ran and _topic_partitions(measurement) is not None, "Did every slot read the topic?", _idle_slots),
    )
    return tuple(replace(look(measurement), question=question) for needed, question, look in asked if needed)


def _fixed_cost(measurement: Measurement) -> Check:
    interval = measurement.budget.interval_s
    line = batch_times(measurement.query, measurement.budget, measurement.estimate, measurement.load_curve).line
    if line is None:
        return _UNKNOWN
    share = line.fixed / interval
    seen = (
        f"Every batch takes {units.seconds(line.fixed)} whatever its size, {units.share(share)} of the "
        f"{units.seconds(interval)} interval."
    )
    if share <= _FIXED_SHARE:
        return Check(seen)
    return Check(
        seen,
        f"Above {units.share(_FIXED_SHARE)} the fixed part dominates and rates do not scale with slots: "
        f"lengthen the interval (to {units.seconds(line.fixed / _FIXED_SHARE)} or more) or use stronger slots.",
    )


def _warm_up(measurement: Measurement) -> Check:
    if measurement.estimate.steady:
        return Check("The rate and the time per record had settled before the first probe.")
    return Check(
        "The warm-up reached its time limit while rate or time per record still changed.",
        "State or caches may not have been at their working size: state the rate only together with the state's size, "
        "or warm up longer (in a study warmup_s; in Python CapacityEstimator(warmup_cap_s=...)).",
    )


def _state(measurement: Measurement) -> Check:
    if not measurement.unbounded_state:
        return Check("The query is not declared to keep state without bound.")
    if measurement.estimate.rate is None:
        return _UNKNOWN
    return Check(
        findings.growing_state(measurement.estimate),
        "Bound the state (a join needs watermarks and a time range on both sides), or deploy for the rate at the "
        "largest state it may reach.",
    )


def _filled(measurement: Measurement) -> Check:
    if measurement.estimate.filled is None:
        return _UNKNOWN
    if measurement.estimate.filled:
        return Check("There is none, or as much left it as entered.")
    return Check(
        "No row left the state before the probes, so it still grew.",
        "The rate is that of a young state and may be too high: measure in a deployment of its own (in a study "
        "deployment: separate), whose state is not emptied between probes, so that it has minutes to fill.",
    )


def _late(measurement: Measurement) -> Check:
    observation = measurement.estimate.observation
    if observation is None:
        return _UNKNOWN
    share = observation.dropped_late
    if share <= _LATE_SHARE:
        return Check(f"{units.share(share)} of the rows reaching the state were dropped as late.")
    return Check(
        f"{units.share(share)} of the rows reaching the state came later than the watermark allows and were dropped.",
        "Dropped rows cost less than those that count, so the rate is too high: name the event-time column "
        "(--event-time), sort the data by it, or allow more delay in withWatermark.",
    )


def _disturbed(measurement: Measurement) -> Check:
    if not measurement.machine.load_seen:
        return _UNKNOWN
    taken = [p.number for p in measurement.estimate.probes if p.judgement is not None and p.judgement.disturbed]
    if not taken:
        return Check("No judged probe was disturbed.")
    listed = ", ".join(map(str, taken))
    seen = f"Probe{'s' * (len(taken) > 1)} {listed} had to be judged although others used the machine."
    return Check(seen, _AGAIN)


def _probes(measurement: Measurement) -> Check:
    if not measurement.estimate.exhausted:
        return Check("The bracket became as narrow as asked.")
    return Check(
        "The probes ran out before the bracket was as narrow as asked.",
        "Use the bracket, not the single rate; or ask for a wider one (--tolerance) or for more time (--minutes), or "
        "in Python allow more probes: CapacityEstimator(max_probes=..., most_s=...).",
    )


def _contradictions(measurement: Measurement) -> Check:
    rates = measurement.estimate.contradictions
    if not rates:
        return Check("No rate was both sustained and not.")
    quieter = "measure again on a quieter machine, or " if measurement.ran else ""
    return Check(
        f"Probes disagree about {', '.join(units.rate(rate) for rate in rates)}.",
        f"The bracket encloses the rates in doubt: {quieter}in Python observe longer: CapacityEstimator(window_s=...).",
    )


def _source_bound(measurement: Measurement) -> Check:
    estimate = measurement.estimate
    limit = measurement.source_limit
    if estimate.limit == "source":
        return Check(
            f"The source alone releases {units.rate(limit)}; the next probe would have come too close to that.",
            f"The rate is the source's, not the query's: read it as 'at least', and give the source {SOURCE_MARGIN} "
            "times the rate by fewer slots or a heavier query.",
        )
    bound = [p.number for p in estimate.probes if p.answered("source-bound")]
    if limit is None and not bound:
        return _UNKNOWN
    return Check(f"The source alone could release {units.rate(limit)}.")


def _no_upper_end(measurement: Measurement) -> Check:
    if measurement.estimate.limit != "none":
        return Check("Yes, the maximum has an upper end.")
    return Check(
        "No rate was confirmed as too much.",
        "The rate is a lower bound: raise the highest rate (--max-rate), or in Python allow more probes: "
        "CapacityEstimator(max_probes=...).",
    )


def _quota(measurement: Measurement) -> Check:
    observation = measurement.estimate.observation
    throttled = observation.quota_throttled if observation else None
    if throttled is None:
        return _UNKNOWN
    seen = f"The quota held the slots back in {units.share(throttled)} of its periods at the highest sustained rate."
    if throttled >= _LEAST_THROTTLED:
        return Check(seen)
    return Check(
        seen,
        "The slots were never as busy as their quota allows, so something else limits the rate: look at the fixed "
        "time, at key skew and at the number of tasks.",
    )


def _counted(measurement: Measurement) -> Check:
    used = measurement.used_cores
    cores = "" if used is None else f" The tasks' threads used {used:.2f} cores per slot."
    return Check(
        f"The cluster counts cores but does not limit them, so a slot may have had more or less than its own.{cores}",
        "Measure while nothing else runs on the workers, and compare with a plan for cores that are limited "
        "(Kubernetes, or a virtual machine per executor) with care.",
    )


def _executors(measurement: Measurement) -> Check:
    observation = measurement.estimate.observation
    assert observation is not None  # noqa: S101 - asked where there are several
    slow = slow_executors(observation.executors)
    if not slow:
        most = max(pace.times for pace in observation.executors)
        return Check(f"The slowest took {most:.2f} times as long as the others per record.")
    return Check(
        f"{slow[0].sentence}.",
        "A batch ends with its slowest task, so the other slots waited for it: look at what else its worker does, and "
        "measure again without it.",
    )


def _topic_partitions(measurement: Measurement) -> int | None:
    """Partitions of the topic it was measured with; None without one. A log's source may be another, and it says so."""
    if measurement.testbed_kind == "observed":
        return None
    observation = measurement.estimate.observation
    return None if observation is None else observation.source_partitions


def _idle_slots(measurement: Measurement) -> Check:
    partitions, slots = _topic_partitions(measurement), measurement.budget.slots
    assert partitions is not None  # noqa: S101 - asked where a topic was read
    if partitions >= slots:
        return Check(f"Partitions with records: {units.count(partitions)}, read by {units.some(slots, 'slot')}.")
    return Check(
        f"The topic has {units.some(partitions, 'partition')} with records, so {slots - partitions:,} of "
        f"{slots:,} slots had nothing to read.",
        "The rate is that of a topic with as few partitions: use a topic with at least as many as slots, or measure "
        "on fewer slots.",
    )
