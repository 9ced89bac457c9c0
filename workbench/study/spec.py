"""The study file: what to plan, in one YAML file, strictly validated."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, get_args, get_type_hints

from workbench import bounds, defaults, units
from workbench.capacity import Space
from workbench.capacity.explore import Choice
from workbench.capacity.model import FORMS, Growth
from workbench.checks import shown, whole, within
from workbench.errors import WorkbenchError
from workbench.reading import parse_yaml, read_text
from workbench.records import NOOP, EndingRun, JobSettings, Outage, ScriptFacts
from workbench.simulation import RateTrace
from workbench.study.catalogue import SOURCES, GivenRows, Inputs
from workbench.testbed.spark import LOCAL, Cluster
from workbench.workload import OutputMode

SHARED_S = 1200.0  # for the runs of a study in shared deployments by default
Check = Callable[[str, Any], Any]
"""Takes a key and its value, and returns the value, or refuses it."""


def number(low: float, high: float, unit: str = "", ends: Literal["()", "[)", "(]", "[]"] = "[]") -> Check:
    """Allow numbers from `low` to `high`, with the `ends` that belong to them."""
    return lambda name, value: within(name, value, low, high, unit, ends=ends)


def amount(least: float, most: float, unit: str, example: str) -> Check:
    """Allow numbers, also as texts with a suffix, such as 60k."""

    def check(name: str, value: object) -> float:
        if isinstance(value, str):
            try:
                value = units.read_rate(value)
            except WorkbenchError:
                raise WorkbenchError(f"{name} is {shown(value)}; write {example}.") from None
        return within(name, value, least, most, unit, ends="[]")

    return check


def count(least: int, most: int) -> Check:
    """Allow whole numbers."""
    return lambda name, value: whole(name, value, least, most)


def list_of(item: Check, most: int, allowed: str) -> Check:
    """Allow lists of at most `most` entries."""

    def check(name: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise WorkbenchError(f"{name} is {shown(value)}; it must be a list of {allowed}.")
        if len(value) > most:
            raise WorkbenchError(f"{name} has {len(value):,} entries; it must have at most {most:,}.")
        return tuple(item(f"{name}[{place}]", one) for place, one in enumerate(value))

    return check


def _must(fits: Callable[[Any], bool], allowed: str) -> Check:
    def check(name: str, value: object) -> object:
        if not fits(value):
            raise WorkbenchError(f"{name} is {shown(value)}; it must be {allowed}.")
        return value

    return check


def text(allowed: str) -> Check:
    """Allow texts that are not empty."""
    return _must(
        lambda one: isinstance(one, str) and one.strip() != "" and "\0" not in one and len(one) <= bounds.TEXT,
        f"{allowed}, of at most {bounds.TEXT:,} characters",
    )


def one_of(*allowed: str) -> Check:
    """Allow only these texts."""
    return _must(lambda one: isinstance(one, str) and one in allowed, f"one of {', '.join(allowed)}")


def settings(name: str, value: object) -> dict[str, str]:
    """Accept Spark's settings as YAML has them: texts, numbers, true and false."""
    if not isinstance(value, Mapping):
        raise WorkbenchError(f"{name} is {shown(value)}; it must be a mapping, such as spark.some.name: value.")
    if len(value) > bounds.GRID:
        raise WorkbenchError(f"{name} has {len(value):,} entries; it must have at most {bounds.GRID:,}.")
    for key, one in value.items():
        if not isinstance(one, str | int | float):
            raise WorkbenchError(f"spark: {shown(key)} is {shown(one)}; it must be a text, a number, true or false.")
    return {key: str(one).lower() if isinstance(one, bool) else str(one) for key, one in value.items()}


def place_or_memory(name: str, value: object) -> str:
    """Accept a place, or ``memory``."""
    return "" if value == "memory" else text("memory, or the path or URI of a folder")(name, value)


def texts(allowed: str) -> Check:
    """Allow lists of texts."""
    return list_of(text(allowed), bounds.GRID, f"texts, each {allowed}")


def inputs_by_argument(name: str, value: object) -> dict[str, dict[str, Any]]:
    """Accept the data set of each argument of a query."""
    if not isinstance(value, Mapping) or len(value) > bounds.GRID:
        raise WorkbenchError(
            f"{name} is {shown(value)}; it must name the data set of each argument of the query's function, such as "
            "orders: {dataset: orders.parquet, event_time: time}."
        )
    found = {}
    for argument, one in value.items():
        what = f"{name}: {shown(argument)}"
        if isinstance(one, Mapping):
            _check_keys(what, one, [*_INPUT])
        fed = isinstance(one, Mapping) and "dataset" in one
        if not (fed and isinstance(argument, str) and argument.isidentifier()):
            raise WorkbenchError(
                f"{what} is {shown(one)}; it must be an argument of the query's function, with its dataset, and may "
                f"have {', '.join([*_INPUT][1:])}."
            )
        given = ((key, check) for key, check in _INPUT.items() if one.get(key) is not None)
        found[argument] = {key: check(f"{what}: {key}", one[key]) for key, check in given}
    return found


def _check_keys(what: str, given: Mapping[Any, Any], names: Sequence[str]) -> None:
    """Refuse a key that is none of these names; a few of them are all listed, of many the one that is near."""
    for key in given:
        if key not in names:
            near = get_close_matches(str(key)[: bounds.TEXT], names, 1)
            known = "" if near and len(names) > _FEW else f"known are {', '.join(names)}"
            hint = f"{'; ' * bool(known)}did you mean {near[0]!r}?" if near else "."
            raise WorkbenchError(f"{what} has the unknown key {shown(key)}; {known}{hint} Correct or remove it.")


_FEW = 5
_INPUT: Mapping[str, Check] = {
    "dataset": text("the path of a file or folder"),
    "event_time": text("the name of a column"),
    "share": number(0, 1, ends="()"),
    "renew": list_of(text("the name of a column"), bounds.GRID, "names of columns"),
}


_RATE = amount(bounds.LEAST_RATE, bounds.RATE, "records/s", "records/s above 0, such as 60000 or 60k")
_SECONDS, _NO_SECONDS = (number(least, bounds.SECONDS, "seconds") for least in (bounds.LEAST_S, 0))
_SLOTS = count(1, bounds.TASKS)
_MEMORIES = list_of(count(1, bounds.MEMORY_MB), bounds.GRID, "whole numbers of MiB above 0, ascending")
_CSV = text("the path of a CSV file")
_READS = (
    ("recorded", "table", "a table of measurements. Add 'table: FILE', a CSV file with memory_mb, slots and rate"),
    ("observed", "log", "an event log. Add 'log: PATH', a file or folder that a running query writes"),
)
CLUSTER_KEYS = ("checkpoint", "executor_slots", "python", "environment", "driver_host", "event_log", "allocation_s")


@dataclass(frozen=True)
class Study:
    """What to plan: the keys of a study file, each with the check that it must pass.

    The reference (``docs/reference.md``, "Study") says what each means, and its default; comments what code must know.
    """

    query: Annotated[str, text("a text such as nexmark:q5 or jobs:orders")]
    targets: Annotated[tuple[float, ...], list_of(_RATE, bounds.TARGETS, "rates above 0, records/s")]
    slots: Annotated[tuple[int, ...], list_of(_SLOTS, bounds.GRID, "whole numbers above 0, ascending")]
    memory_mb: Annotated[tuple[int, ...], _MEMORIES]
    dataset: Annotated[str | None, text("the path of a file or folder")] = None
    event_time: Annotated[str | None, text("the name of a column")] = None
    # by argument: see `workbench.workload.Input`
    inputs: Annotated[Inputs, inputs_by_argument] = field(default_factory=dict, hash=False)
    source: Annotated[str, one_of(*SOURCES)] = "replay"
    schema: Annotated[str | None, text("the path of a file")] = None
    output_mode: Annotated[OutputMode | None, one_of(*get_args(OutputMode))] = None
    testbed: Annotated[str, one_of("spark", "fluid", "recorded", "observed")] = "spark"
    # on a cluster a slot has a whole core unless `slot_cpus` says more, and each budget a deployment of its own
    master: Annotated[str, text("local, spark://HOST:PORT, k8s://https://HOST:PORT or yarn")] = LOCAL
    # each run writes to a place of its own below it, which is removed with the run: see `workbench.records.Sink`
    sink: Annotated[str, text("a sink, such as parquet /data/out")] = NOOP
    checkpoint: Annotated[str, place_or_memory] = ""
    # of a cluster: see `workbench.testbed.spark.Cluster`
    executor_slots: Annotated[int, _SLOTS] = Cluster.executor_slots
    python: Annotated[str | None, text("the path or name of an interpreter")] = None
    environment: Annotated[str | None, text("the path of an archive")] = None
    driver_host: Annotated[str | None, text("the name or address of this machine")] = None
    event_log: Annotated[str | None, text("the URI of a folder")] = None
    allocation_s: Annotated[float, _SECONDS] = Cluster.allocation_s
    # unresolved: ``${NAME}`` is a variable of the environment, such as a secret; refuses `workbench.records.OURS`
    spark: Annotated[Mapping[str, str], settings] = field(default_factory=dict, hash=False)
    packages: Annotated[tuple[str, ...], texts("Maven coordinates")] = ()
    jars: Annotated[tuple[str, ...], texts("the path of a jar")] = ()
    py_files: Annotated[tuple[str, ...], texts("the path of a .py, .zip or .egg file")] = ()
    files: Annotated[tuple[str, ...], texts("the path of a file")] = ()
    # of a script, as init found it: see `workbench.records.ScriptFacts`
    query_name: Annotated[str | None, text("the name that the script gives its query")] = None
    reads: Annotated[tuple[str, ...], texts("a format of Spark's, such as kafka or parquet")] = ()
    script_sets: Annotated[tuple[str, ...], texts("a setting, NAME=VALUE")] = ()
    table: Annotated[str | None, _CSV] = None
    log: Annotated[str | None, text("the path of an event log")] = None
    slot_cpus: Annotated[float, number(bounds.LEAST_CPUS, bounds.CPUS, "cores")] = defaults.SLOT_CPUS
    interval_s: Annotated[float, _SECONDS] = defaults.INTERVAL_S
    intervals: Annotated[tuple[float, ...], list_of(_SECONDS, bounds.INTERVALS, "seconds above 0")] = ()
    latency_s: Annotated[float | None, _SECONDS] = None
    tolerance: Annotated[float, number(0.001, 1, ends="[)")] = defaults.TOLERANCE
    # longest warm-up: of the code without a quota, at most 100 s, and again of the run on its slots; code that still
    # compiles afterwards lowers the rate that is found
    warmup_s: Annotated[float, _SECONDS] = defaults.WARMUP_CAP_S
    # of every run: see `CapacityEstimator`; lower values are sooner done and less certain
    patience_s: Annotated[float, _NO_SECONDS] = defaults.PATIENCE_S
    max_repeats: Annotated[int, count(0, bounds.RUNS)] = defaults.MAX_REPEATS
    plan_memory_mb: Annotated[tuple[int, ...], _MEMORIES] = ()
    margin: Annotated[float | None, number(0, bounds.MARGIN, ends="(]")] = None
    risk: Annotated[float | None, number(1e-6, 1, ends="[)")] = None
    low_rate: Annotated[float | None, _RATE] = None
    outage_s: Annotated[float | None, _SECONDS] = None
    catch_up_s: Annotated[float | None, _SECONDS] = None
    rows: Annotated[float | None, amount(1, bounds.NUMBER, "rows", "a number above 0, such as 4e8 or 400M")] = None
    deadline_s: Annotated[float | None, _SECONDS] = None
    start_s: Annotated[float, _NO_SECONDS] = EndingRun.start_s
    day: Annotated[str | None, _CSV] = None
    keys: Annotated[str | None, text("the path of a file that workbench keys --json printed")] = None
    prices: Annotated[str | None, _CSV] = None  # without them, slots x memory is the cost
    form: Annotated[str, one_of(*FORMS, "halves")] = "scaling"
    minutes: Annotated[float | None, number(1, bounds.MINUTES, "minutes")] = None
    most_runs: Annotated[int, count(3, bounds.RUNS)] = 20
    most_calls: Annotated[int | None, count(3, bounds.RUNS)] = None
    choice: Annotated[Choice, one_of(*get_args(Choice))] = "improvement"
    estimates: Annotated[int, count(1, bounds.RUNS)] = 1
    seed: Annotated[int, count(0, bounds.SEED)] = 0
    deployment: Annotated[str | None, one_of("shared", "separate")] = None
    growth: Annotated[Growth | None, one_of(*get_args(Growth))] = None
    file: Annotated[str | None, text("the path of a study")] = None  # file of the study; not one of its keys

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is one.default:  # not given
                continue
            object.__setattr__(self, one.name, check_key(one.name, value))
        if self.cluster is not None and self.slot_cpus == defaults.SLOT_CPUS:  # not given: Spark assigns whole cores
            object.__setattr__(self, "slot_cpus", 1.0)
        _ = self.space  # says what is wrong with it
        for testbed, name, needs in _READS:
            given = getattr(self, name)
            if self.testbed == testbed and given is None:
                raise WorkbenchError(f"The {testbed} testbed needs {needs}.")
            if self.testbed != testbed and given is not None:
                raise WorkbenchError(
                    f"{name} is {shown(given)}, which the {self.testbed} testbed does not read. Add "
                    f"'testbed: {testbed}', or remove it."
                )
        self.given_rows.check()
        self._check_spark()
        if len(self.slots) == 1 and not ((self.shared or self.log is not None) and self.form == "scaling"):
            raise WorkbenchError(
                f"slots is {shown(list(self.slots))}; one slot count is enough only in a shared deployment on Spark, "
                "with form: scaling, where runs with more partitions show what tasks cost. Give more, as in "
                "[1, 2, 4]."
            )
        if list(self.plan_memory_mb) != sorted(set(self.plan_memory_mb)):
            raise WorkbenchError(f"plan_memory_mb is {shown(list(self.plan_memory_mb))}; it must ascend. Sort it.")
        self._check_run()
        self._check_intervals()

    def _check_spark(self) -> None:
        """Refuse settings of Spark on another testbed, and a deployment that cannot be shared."""
        brought = [one.name for one in fields(JobSettings) if getattr(self, one.name) not in (NOOP, "", (), {})]
        for given, what, lacks in (
            (self.job_settings, f"{', '.join(brought[:1])} is given", "starts no Spark"),
            (self.intervals, f"intervals is {shown(list(self.intervals))}", "has no trigger interval"),
            (self.source == "kafka", "source is 'kafka'", "reads no topic"),
            (self.deployment == "shared", "deployment is 'shared'", "deploys each budget apart"),
        ):
            if given and self.testbed != "spark":
                raise WorkbenchError(
                    f"{what}, but the {self.testbed} testbed {lacks}. Remove it, or use testbed: spark."
                )
        for wrong, why in (
            (self.source == "kafka", "with source: kafka each budget needs its own: a new rate starts the query again"),
            (self.cluster, "on a cluster each budget is deployed apart: a smaller budget must use fewer executors"),
        ):
            if wrong and self.deployment == "shared":
                raise WorkbenchError(f"deployment is 'shared', but {why}. Remove it.")

    @property
    def given_rows(self) -> GivenRows:
        """The rows that the query reads."""
        return GivenRows(self.dataset, self.event_time, self.source, self.schema, self.inputs)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data that feeds the query, in the order of its inputs."""
        return self.given_rows.datasets

    @property
    def cluster(self) -> Cluster | None:
        """The cluster to measure on; None: this machine."""
        given = [name for name in CLUSTER_KEYS[1:] if getattr(self, name) != getattr(Study, name)]
        if self.master == LOCAL:
            if given:
                raise WorkbenchError(
                    f"{given[0]} is given, but the master is {LOCAL!r}, which has no use for it. Set the master, such "
                    "as spark://HOST:7077, or remove it."
                )
            return None
        if self.testbed != "spark":
            raise WorkbenchError(
                f"The master is {self.master!r}, but the {self.testbed} testbed starts no Spark. Remove it, or use "
                "testbed: spark."
            )
        return Cluster(self.master, **{name: getattr(self, name) for name in CLUSTER_KEYS})

    @property
    def job_settings(self) -> JobSettings:
        """What the job brings along; a cluster's checkpoint is the cluster's."""
        found = JobSettings(**{one.name: getattr(self, one.name) for one in fields(JobSettings)})
        return found if self.master == LOCAL else replace(found, checkpoint="")

    @property
    def script(self) -> ScriptFacts | None:
        """What the study records of its script; None: nothing."""
        found = ScriptFacts(self.query_name or "", self.reads, self.script_sets)
        return None if found == ScriptFacts() else found

    @property
    def shared(self) -> bool:
        """Whether budgets share a deployment."""
        if self.deployment is not None:
            return self.deployment == "shared"
        return self.testbed == "spark" and self.master == LOCAL and self.source == "replay"

    @property
    def most_s(self) -> float:
        """Seconds for the runs."""
        if self.minutes is not None:
            return 60 * self.minutes
        return SHARED_S if self.shared else math.inf

    @property
    def outage(self) -> Outage | None:
        """The outage to catch up after."""
        return None if self.outage_s is None or self.catch_up_s is None else Outage(self.outage_s, self.catch_up_s)

    @property
    def run(self) -> EndingRun | None:
        """The run that must end in time; None: the query runs continuously."""
        if self.rows is None or self.deadline_s is None:
            return None
        return EndingRun(self.rows, self.deadline_s, self.start_s)

    @property
    def space(self) -> Space:
        """Budgets that may be measured."""
        return Space(self.slots, self.memory_mb, self.slot_cpus, self.interval_s, largest_first=self.shared)

    def _check_run(self) -> None:
        for pair in (("outage_s", "catch_up_s"), ("rows", "deadline_s")):
            lacking = [name for name in pair if getattr(self, name) is None]
            if len(lacking) == 1:
                (given,) = {*pair} - {*lacking}
                raise WorkbenchError(f"{given} is given without {lacking[0]}. Add it, or leave both out.")
        if self.run is None:
            if self.start_s != EndingRun.start_s:
                raise WorkbenchError("start_s is given without rows and deadline_s, which it is of. Add them.")
            return
        if len(self.targets) != 1 or not math.isclose(self.targets[0], self.run.rate, rel_tol=1e-6):
            raise WorkbenchError(
                f"targets is {shown(list(self.targets))}, but {self.rows:,.0f} rows within {self.deadline_s:g} s take "
                f"{self.run.rate:,.0f} records/s. Leave targets out."
            )
        if self.outage_s is not None or self.low_rate is not None or self.day is not None:
            raise WorkbenchError(
                "rows are of a run that ends, and outage_s, low_rate and day of a query that goes on. Leave either out."
            )

    def _check_intervals(self) -> None:
        if self.intervals and self.interval_s not in self.intervals:
            raise WorkbenchError(
                f"intervals is {shown(list(self.intervals))} without the interval_s of {self.interval_s:g} s that the "
                "budgets are explored at. Add it, or set interval_s to one of them."
            )
        if self.intervals and len(set(self.intervals)) < len(self.intervals):
            raise WorkbenchError(
                f"intervals is {shown(list(self.intervals))}; each may occur only once. Remove the repeats."
            )
        if self.latency_s is not None and len(self.intervals) < 2:
            raise WorkbenchError(
                f"latency_s is {self.latency_s:g}, but there are no intervals to choose from. Add, for example, "
                f"'intervals: [1, {self.interval_s:g}, 5]'."
            )


_HINTS = get_type_hints(Study, include_extras=True)


def check_key(name: str, value: object) -> Any:  # noqa: ANN401 - what the key holds
    """Return the value of a study's key in its final type; refuse an invalid one, whatever the other keys are."""
    kind, check = get_args(_HINTS[name])
    return None if value is None and NoneType in get_args(kind) else check(name, value)


def read_study(path: str | Path, changes: Mapping[str, Any] = MappingProxyType({})) -> Study:
    """Read a study file; `changes`, by its keys, replace what it says."""
    what = f"The study {path}"
    return replace(study_of(read_text(path, what, bounds.YAML_BYTES), what, changes), file=str(path))


def study_of(text: str, what: str, changes: Mapping[str, Any] = MappingProxyType({})) -> Study:
    """Build a study from the text of a file; see `read_study`."""
    try:
        data = parse_yaml(text)
    except ValueError as error:
        raise WorkbenchError(f"{what} cannot be read as YAML: {error}. Correct it.") from error
    if not isinstance(data, Mapping):
        found = "empty" if data is None else f"{shown(data)}, not a mapping of keys"
        raise WorkbenchError(f"{what} is {found}; begin with a line such as 'query: nexmark:q5'.")
    return study_from({**data, **changes}, what)


def cluster_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a cluster among the options of a command, by their names in a study."""
    named = {name: options[name] for name in ("master", *CLUSTER_KEYS)}
    return {name: value for name, value in named.items() if value is not None}


def cluster_of(options: Mapping[str, Any]) -> Cluster | None:
    """Make the cluster that the options of a command name; None: this machine."""
    given = cluster_given(options)
    if given.get("master", LOCAL) != LOCAL:
        return Cluster(**given)
    for name in given.keys() & {*CLUSTER_KEYS}:
        raise WorkbenchError(
            f"{name} is given without a cluster. Give the master, such as spark://HOST:7077, too, or leave it out.",
            settings=("master", name),
        )
    return None


def cluster_changes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options of a command change in a study: its master, and the settings of a cluster."""
    given = cluster_given(options)
    return given if given.get("master") != LOCAL else {name: getattr(Study, name) for name in CLUSTER_KEYS} | given


def study_from(data: Mapping[str, Any], what: str = "The study") -> Study:
    """Build a study from plain values; see `read_study` for the errors."""
    _check_keys(what, data, [one.name for one in fields(Study) if one.name != "file"])
    try:
        data = _with_rates(data)
        lacking = next((name for name in _EXAMPLES if name not in data), None)
        if lacking is None:
            return Study(**data)
    except WorkbenchError as error:
        raise WorkbenchError(f"{what}: {error.message}", settings=error.settings) from error
    raise WorkbenchError(f"{what} lacks {lacking!r}; add it. For example: {_EXAMPLES[lacking]}")


def _with_rates(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Derive missing rates from the day's load, or from the run that must end in time."""
    day = data.get("day")
    if "targets" in data:
        return data
    if isinstance(day, str):
        trace = RateTrace.from_csv(day)
        above = trace.rates_per_s[trace.rates_per_s > 0]
        return {"targets": [trace.peak_per_s], "low_rate": float(min(above, default=trace.peak_per_s)), **data}
    given = {name: check_key(name, data[name]) for name in ("rows", "deadline_s", "start_s") if name in data}
    if given.get("rows") is None or given.get("deadline_s") is None:
        return data
    return {"targets": [EndingRun(**given).rate], **data}


_EXAMPLES = {
    "query": "query: nexmark:q5",
    "targets": "targets: [100000, 200000]",
    "slots": "slots: [2, 3, 4]",
    "memory_mb": "memory_mb: [512, 1024]",
}
