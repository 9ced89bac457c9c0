"""The cards of a measurement: capacity, operators, source, health, circumstances."""

from collections.abc import Callable

from workbench import units
from workbench.placement import measured_query
from workbench.records import Measurement
from workbench.views import findings
from workbench.views.cards import Card, Cell, fold, gather
from workbench.views.figures import (
    BatchTimes,
    Operators,
    batch_times,
    draw_batch_times,
    draw_dataflow_graph,
    draw_operators,
    draw_probes,
    observed_graph,
    operators,
    probes,
)
from workbench.views.first_screen import header_html, origin, testbed_name
from workbench.views.health import advice_cards, summary_card
from workbench.views.tables import batches_table, facts_table, operators_table, probes_table


def cards(measurement: Measurement) -> list[Card]:
    """Make all cards; one that cannot be made becomes an error card and never hides the others."""
    front: tuple[Callable[[Measurement], list[Card]], ...] = (_capacity, advice_cards)
    evidence: tuple[Callable[[Measurement], list[Card]], ...] = (
        *([_batches] if measurement.ran else []),
        _operators,
        _dataflow,
        *([_source] if measurement.ran else []),
        lambda each: [summary_card(each)],
        _circumstances,
    )
    return [*gather(front, measurement), *map(fold, gather(evidence, measurement))]


def _capacity(measurement: Measurement) -> list[Card]:
    estimate = measurement.estimate
    data = probes(measurement.query, measurement.budget, estimate, ran=measurement.ran)
    sentences = (
        f"{data.finding}.",
        findings.bracket(estimate),
        _found(measurement),
        findings.growing_state(estimate) if measurement.unbounded_state else "",
        findings.interval(measurement.interval) if measurement.ran else "",
    )
    finding = " ".join(filter(None, sentences))
    title = f"What rate does {measurement.query} sustain?"
    html = header_html(
        origin(measurement.testbed_kind),
        (
            measurement.query,
            measurement.started_at[:10],
            testbed_name(measurement.testbed_kind, measurement.testbed),
            measurement.machine.processor or "",
        ),
    )
    return [Card("capacity", title, finding, draw_probes(data), probes_table(measurement), html=html)]


def _found(measurement: Measurement) -> str:
    """Say how the rate was found, and in what time, if it took any."""
    if measurement.testbed_kind == "recorded":
        return "Taken from the table."
    estimate = measurement.estimate
    made = sum(probe.phase != "warm-up" for probe in estimate.probes)
    how, time = ("Measured", "") if measurement.ran else ("Found", " of simulated time")
    kind = "readings" if estimate.from_readings else "probes"
    return f"{how} by {units.count(made)} {kind} in {units.seconds(estimate.seconds)}{time}."


def _batches(measurement: Measurement) -> list[Card]:
    data = batch_times(measurement.query, measurement.budget, measurement.estimate, measurement.load_curve)
    title = "How does a batch's time grow with its size?"
    if not data.rows:
        return [Card("batches", title, "No probe was made after the warm-up.", kind="no-data")]
    return [Card("batches", title, data.finding + _seen(data), draw_batch_times(data), batches_table(measurement))]


def _seen(data: BatchTimes) -> str:
    part = "" if data.line is None else f" The fixed part is {units.share(data.line.fixed / data.interval_s)} of it."
    return (
        f".{part} Seen were batches of {units.scaled(min(data.rows), '')} to {units.scaled(max(data.rows), 'records')}."
    )


def _operators(measurement: Measurement) -> list[Card]:
    title = "Which operator does the work?"
    observation = measurement.estimate.observation
    if observation is None:
        text = "No rate was sustained, so there is no observation at a maximum. Give more slots or probe lower rates."
        return [Card("operators", title, text, kind="no-data")]
    if not observation.operators:
        text = f"The testbed {measurement.testbed} reports no operators."
        return [Card("operators", title, text, kind="no-data")]
    data = operators(measurement.query, observation)
    table = operators_table(observation.operators, measurement.costs)
    figure = draw_operators(data) if data.metrics else None
    return [Card("operators", title, data.finding + _busiest(data), figure, table)]


def _dataflow(measurement: Measurement) -> list[Card]:
    observation = measurement.estimate.observation
    if observation is None or not observation.operators:
        return []  # the card before says why
    measured = measured_query(measurement.query, observation.operators, observation.edges or None)
    data = observed_graph(measured.dataflow, observation)
    text = ". Which operator feeds which was not observed: they are shown as a chain." if measured.guessed else "."
    return [Card("dataflow", "How do the records flow?", data.finding + text, draw_dataflow_graph(data))]


def _busiest(data: Operators) -> str:
    busiest = data.busiest
    if busiest is None:
        return "."
    return (
        f": its tasks are busy {units.share(busiest.busyness)} of the time and process "
        f"{units.rate(busiest.true_processing_rate)} each while busy."
    )


def _source(measurement: Measurement) -> list[Card]:
    title = "What does the source cost?"
    source = measurement.source
    if source is None:
        return [
            Card("source", title, "The source's profile is not recorded, so its share is not known.", kind="no-data")
        ]
    finding = (
        f"Releasing one record takes the source {units.seconds(source.per_record_s)} of CPU time; alone it "
        f"releases {units.rate(source.rate_limit)} at most."
    )
    facts: dict[str, Cell | bool] = {
        "Fixed CPU time per task and batch": units.seconds(source.fixed_s),
        "CPU time per record": units.seconds(source.per_record_s),
        "Highest rate of the source alone": units.rate(source.rate_limit),
    }
    rate = measurement.estimate.rate
    if rate:
        part = rate * source.per_record_s / measurement.budget.cpus
        finding += f" At the sustained rate that is {units.share(part)} of the slots' cores."
    return [Card("source", title, finding, table=facts_table("Profile of the source", facts))]


def _circumstances(measurement: Measurement) -> list[Card]:
    budget = measurement.budget
    facts: dict[str, Cell | bool] = {
        "Query": measurement.query,
        "Testbed": measurement.testbed,
        "Started": measurement.started_at,
        "Slots": budget.slots,
        "Cores per slot": budget.profile.cpus,
        "Memory per slot (MB)": budget.profile.memory_mb,
        **({"Trigger interval (s)": budget.interval_s} if measurement.ran else {}),
        **{f"Machine: {name}": value for name, value in measurement.machine.described().items()},
        **({} if measurement.core_speed is None else {"Speed of the cores": str(measurement.core_speed)}),
        **{f"Setting: {name}": value for name, value in measurement.settings.items()},
        "Workbench version": measurement.workbench_version,
    }
    finding = (
        f"{measurement.query} ran with {findings.where(budget, ran=measurement.ran)} and "
        f"{units.count(budget.profile.memory_mb)} MB per slot on {measurement.testbed}. "
        "Every figure here comes from this run."
    )
    table = facts_table("Circumstances of the measurement", facts)
    return [Card("circumstances", "How was it measured?", finding, table=table)]
