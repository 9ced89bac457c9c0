"""What a query's log shows in addition to its head-room, with remedies: drift, overrun, runs that end, its state."""

from datetime import UTC, datetime

from workbench import units
from workbench.advice import Advice
from workbench.observing import StateSeen
from workbench.study import Observed

_SHOWN_S = 366 * 86_400.0  # furthest date that is given, from the end of the log
_COSTS = 0.1  # share of a batch from which a cost of keeping state is named
_HITS = 0.8  # share of reads; with less, a cache is too small
_MANY = 50  # stores per slot
_GREW_S = 600.0  # by which a watermark fell further behind


def changes(found: Observed) -> dict[str, Advice]:
    """Return what changes or costs time, each with a remedy."""
    said = {**_drift(found), **_overrun(found)}
    if found.ending is not None and found.run is None:
        endless = "Its runs take what there is and end (availableNow), so there is no trigger interval."
        said[endless] = Advice("Ask how long a run may take, and size it for that: --rows with --deadline.")
    for state in found.running.states:
        said |= {**_growth(state, found), **_costs(state, found), **_late(state)}
    if not found.running.slots:
        untold = "Progress events do not show slots, memory or what operators do; the answer is for the slots that run."
        said[untold] = Advice(
            "Give the tasks that run at once as --slots; for plans, give an event log, which has them."
        )
    return said


def _moment(at_s: float) -> str:
    """Write seconds since 1970 to the minute, in UTC."""
    return units.moment(datetime.fromtimestamp(at_s, UTC).isoformat())


def _drift(found: Observed) -> dict[str, Advice]:
    room, drift = found.headroom, found.headroom.drift
    if drift is None:
        return {}
    ends = f"{units.seconds(drift.low_s)} to {units.seconds(drift.high_s)}"
    each, ending = units.seconds(drift.per_batch_s), units.seconds(drift.ending_s)
    mean = "" if drift.ending_s == drift.per_batch_s else " on average"
    said = (
        f"A batch takes {each} longer after each batch{mean} (90 %: {ends}), whatever it holds, "
        f"since batch {drift.since:,} ({_moment(drift.since_s)})"
    )
    if drift.ending_s <= 0:
        said += "; this had ended by the log's end"
    elif ending != each:
        said += f"; at the log's end {ending}"
    left_s = (drift.overrun_s or 0.0) - found.running.batches[-1].start_s
    if room.overrun is None and 0 < left_s < _SHOWN_S:
        at = _moment(drift.overrun_s or 0.0)
        said += f"; at its busiest it outlasts the trigger interval in {units.seconds(left_s)} ({at})"
    if drift.at_first > 0:
        said += f". When that began it sustained at least {units.rate(drift.at_first, 2)}"
    remedy = (
        "Look for what grows with every batch: small files and versions of the sink's table (compact them, expire old "
        "ones), state without a watermark, files of the checkpoint."
    )
    return {f"{said}.": Advice(remedy)}


def _overrun(found: Observed) -> dict[str, Advice]:
    room, said = found.headroom, {}
    if room.overrun is not None:
        kept = "it still keeps up" if room.keeps_up else "it leaves rows behind"
        longer = (
            f"Since batch {room.overrun.number:,} ({_moment(room.overrun.start_s)}) most batches take longer than the "
            f"trigger interval of {units.seconds(room.interval_s)}; at the log's end {kept}."
        )
        said[longer] = Advice("Find what makes batches long, then set a longer interval or more slots.")
    if not room.agree and room.neighbours_s is not None:
        own, error = units.seconds(max(0.0, room.neighbours_s)), units.seconds(room.neighbours_error_s)
        follow = (
            "The size of a batch depends on how long the batch before it took, so a line through all batches does not "
            f"show what a row costs. Between consecutive batches a row costs {own} (standard deviation {error})."
        )
        said[follow] = Advice("Use the cost between consecutive batches, or give a log whose load changes.")
    return said


def _growth(state: StateSeen, found: Observed) -> dict[str, Advice]:
    grown = [units.scaled(state.rows_per_day, "rows", 2)] * (state.rows_per_day > 0)
    grown += [units.size(state.memory_per_day)] * (state.memory_per_day > 0)
    grown += [f"{units.size(state.disk_per_day)} on disk"] * (state.disk_per_day > 0)
    if not grown:
        return {}
    said = f"The state of {state.operator} grows by {' and '.join(grown)} a day"
    running = found.running
    memory = float(running.slots * running.memory_mb << 20)
    full_s = state.full_s(memory)
    if running.cpu_share is not None and full_s is not None and full_s < _SHOWN_S:  # logs of tasks show the memory
        at = _moment(running.ended_s + full_s)
        said += f", and meets the {units.size(memory)} of its slots in {units.seconds(full_s)} ({at})"
    remedy = "Let rows leave the state: a watermark with a window, a time limit of a join, or a timeout."
    return {f"{said}.": Advice(remedy)}


def _costs(state: StateSeen, found: Observed) -> dict[str, Advice]:
    said, slots, operator = {}, found.running.slots, state.operator
    in_rocksdb = state.compaction_s is not None
    committing_s = state.in_turns_s(state.commit_s, slots)
    if committing_s > _COSTS * state.batch_s:
        stores = f" and {units.some(state.instances, 'store')}" if state.instances else ""
        commits = (
            f"Committing the state of {operator} takes {units.seconds(committing_s)} of the "
            f"{units.seconds(state.batch_s)} of a batch, with {units.some(state.partitions, 'partition')}{stores}."
        )
        changelogs = "changelogs (spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled=true)"
        said[commits] = Advice(
            "Use fewer partitions (spark.sql.shuffle.partitions, fixed by the first start)"
            + (f", or {changelogs}." if in_rocksdb else ".")
        )
    if slots and state.instances > _MANY * slots:
        many = f"The state of {operator} has {state.instances:,} stores on {units.some(slots, 'slot')}."
        said[many] = Advice("Use fewer partitions: each store has memory, files and a commit of its own.")
    if state.hit_rate is not None and state.hit_rate < _HITS:
        hits = f"The cache of {operator} answers {units.share(round(state.hit_rate, 2))} of the reads of its state."
        said[hits] = Advice(
            "Raise its memory (spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB)."
            if in_rocksdb
            else "Find why its tasks change their executors (spark.locality.wait, lost executors)."
        )
    compacting_s = state.in_turns_s(state.compaction_s or 0.0, slots)
    if compacting_s > _COSTS * state.batch_s:
        compacts = f"RocksDB compacts the state of {operator} for {units.seconds(compacting_s)} of each batch."
        said[compacts] = Advice(
            "Set spark.sql.streaming.stateStore.rocksdb.compactOnCommit=false, or write fewer rows."
        )
    return said


def _late(state: StateSeen) -> dict[str, Advice]:
    said = {}
    if state.dropped:
        dropped = f"{state.operator} dropped {units.some(state.dropped, 'row')} that came after the watermark."
        said[dropped] = Advice("Lengthen the delay of withWatermark, or find which source is late.")
    if state.lag_s is not None and state.lag_grew_s > _GREW_S:
        more = f"{units.seconds(state.lag_grew_s)} more than at first"
        late = f"The watermark is {units.seconds(state.lag_s)} behind, {more}."
        said[late] = Advice("Find the source or partition whose event time stands still: the slowest holds it back.")
    return said
