"""What a planned study shows, and its report."""

import re
from dataclasses import replace

import pytest
from batch_truths import Engine
from figure_checks import check_figure
from staged_runs import laid_out

from workbench import units
from workbench.capacity import ModelFinding, Stage
from workbench.capacity.explore import conclude
from workbench.capacity.planning import InstanceType, Price
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.records import Machine
from workbench.report import render, show_planned
from workbench.study import Study, run_study, write_planned
from workbench.views.figures.capacity import capacity, draw_capacity
from workbench.views.figures.exploration import convergence, draw_convergence
from workbench.views.plan_cards import cards

STUDY = Study(
    "nexmark:q1", (2e6, 2e7, 1e15), (2, 8, 16), (512,), testbed="fluid", slot_cpus=1.0, most_runs=4, form="linear"
)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return run_study(STUDY, Journal(tmp_path_factory.mktemp("planned") / "j.jsonl"))


def test_the_first_card_answers(planned):
    made = {card.name: card for card in cards(planned)}
    assert [card.kind for card in made.values()].count("error") == 0
    first = next(iter(made.values()))
    assert first.name == "answer"
    assert all(f"{plan.budget.slots} slots" in first.html for plan in planned.plans)
    assert not first.folded
    assert len(first.table.rows) == len(planned.plans)


def test_a_target_that_cannot_be_planned_is_shown_with_the_reason(planned):
    refused = next(card for card in cards(planned) if card.name.startswith("refused"))
    assert "No plan" in refused.heading_html()
    assert "No data" not in refused.heading_html()
    assert "No number of slots" in refused.finding


def test_every_card_has_a_name_of_its_own(planned):
    names = [card.name for card in cards(replace(planned, refused=((1e30, "No."), (1e31, "No."))))]
    assert len(set(names)) == len(names)


def test_what_is_fine_is_no_advice(planned):
    (card,) = [card for card in cards(planned) if card.name == "overstatement"]
    assert "so it is not affected" in card.finding
    assert card.kind == "result"


def test_forms_safety_and_slots_are_shown(planned):
    made = {card.name: card for card in cards(planned)}
    largest = max(planned.plans, key=lambda plan: plan.rate)
    forms = made["forms"]
    found = planned.forms
    assert [row[0].split(",")[0] for row in forms.table.rows] == ["linear", "sqrt", "log", "scaling", "the plan"]
    assert [row[0].split(",")[0] for row in forms.table.rows if "the paper's choice" in row[0]] == [found.chosen]
    assert forms.table.rows[-1][6:9] == (*(plan.budget.slots for plan in planned.plans), None)
    assert forms.table.rows[0][6:9] == found.fits[0].slots
    assert forms.finding == f"{forms.figure.layout.meta['finding']}."
    assert units.rate(largest.rate) in made["safety"].finding
    assert made["safety"].table.rows[0][2] >= made["safety"].table.rows[-1][2]
    for plan in planned.plans:
        settings = made[f"settings-{plan.rate:.0f}"]
        assert settings.finding.startswith(f"{settings.figure.layout.meta['finding']}. ")
        tasks = next(trace for trace in settings.figure.data if trace.uid == "shares-tasks")
        assert sum(tasks.x) == plan.budget.slots


@pytest.mark.parametrize(
    ("machine", "cpus", "says"),
    [
        (Machine(slots="a CPU quota", cores=2.0), 0.2, True),
        (Machine(slots="a CPU quota", cores=2.0), 0.4, False),  # up to 4 slots share 1.6 cores, and 4 were measured
        (Machine(), 0.2, False),
    ],
)
def test_what_the_law_assumes_of_slots_that_share_a_core_is_said(planned, machine, cpus, says):
    engine = Engine(noise=0.02)
    runs = [engine.run(n, divided=(16,) * (n == 4), cpus=cpus, machine=machine) for n in (1, 2, 4)]
    explored = replace(planned, exploration=conclude(runs, "measured", choice="edge"), plans=())
    (card,) = [card for card in cards(explored) if card.name == "forms"]
    said = "with a probability of 80 % up to 8 slots, which share at most 1.6 cores of one machine, and of 60 % beyond"
    assert (said in card.finding) == says
    assert ("Before any run" in card.finding) == says


def test_a_plan_for_micro_batches_shows_its_partitions(planned):
    stages = [Stage("scan", 0.01, 1e-5, source=True), Stage("count", 0.05, 1e-4, stateful=True)]
    layout = laid_out(stages, 4, 1.0, rate=30_000)
    plan = replace(planned.plans[0], allocation=None, layout=layout)
    made = {card.name: card for card in cards(replace(planned, plans=(plan,)))}
    figure = check_figure(made[f"settings-{plan.rate:.0f}"].figure)
    assert [trace.uid for trace in figure.data] == ["layout-partitions"]  # one slot count: no curve over several
    bare = cards(replace(planned, plans=(replace(plan, layout=None),)))
    assert next(card for card in bare if card.name.startswith("settings")).figure is None


def test_the_last_question_to_the_gaussian_process_is_shown(planned):
    runs = planned.exploration.runs
    longer = conclude((*runs, runs[-1]), "ended", choice="edge", growth="tasks")
    card = next(card for card in cards(replace(planned, exploration=longer)) if card.name == "acquisition")
    assert card.folded
    assert card.finding.startswith("After 4 runs the explorer asks for ")


def test_no_plan_has_no_price_of_safety(planned):
    names = [card.name for card in cards(replace(planned, plans=()))]
    assert "safety" not in names
    assert "forms" in names


def test_the_figure_of_capacity_shows_runs_targets_and_the_extrapolation(planned):
    data = capacity(planned.exploration, planned.plans)
    assert data.targets == tuple((plan.budget.slots, plan.rate, 512) for plan in planned.plans)
    assert len(data.runs) == len(planned.exploration.measurements)
    assert data.most_measured == 16
    drawn = draw_capacity(data)
    assert "extrapolated" in [note.text for note in drawn.layout.annotations]
    assert drawn.layout.meta["finding"] == data.finding
    far = replace(planned.plans[-1], extrapolation=65.5625)
    said = "66 times the largest slot count measured"
    assert said in capacity(planned.exploration, (far,)).finding
    assert said in far.sentence()
    within = capacity(planned.exploration, ())
    assert within.targets == ()


def test_the_figure_of_the_exploration_shows_every_run(planned):
    data = convergence(planned.exploration)
    assert len(data.costs) == len(planned.exploration.measurements)
    made = next(card for card in cards(planned) if card.name == "runs")
    assert [row[3] for row in made.table.rows][:3] == [*["a corner of the space"] * 2, "farthest from the runs so far"]
    assert [row[6] for row in made.table.rows] == [run.predicted_rate for run in planned.exploration.runs]
    assert draw_convergence(data).layout.meta["finding"] == data.finding


def test_one_card_that_fails_does_not_hide_the_others(planned):
    broken = replace(planned, plans=(replace(planned.plans[0], price="not a price"),))
    made = cards(broken)
    assert any(card.kind == "error" for card in made)
    assert any(card.name == "runs" for card in made)


def test_the_report_is_one_file_with_the_answer(planned, tmp_path):
    write_planned(planned, tmp_path / "planned.json")
    report = render("plan", {"planned": str(tmp_path / "planned.json")}, tmp_path / "plan.html")
    assert report.complete
    html = (tmp_path / "plan.html").read_text()
    assert len(html) < 3_000_000
    assert f"{planned.plans[0].budget.slots} slots" in html
    assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', html)


def test_no_path_and_no_plans_are_told_apart(tmp_path):
    with pytest.raises(WorkbenchError, match="set the parameter 'planned'"):
        show_planned("", "")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(WorkbenchError, match="holds no plans"):
        show_planned(str(tmp_path / "x.json"), "")


def test_each_concern_is_one_card_with_all_its_targets(planned):
    far, near = (
        ModelFinding("extrapolation", times, f"It extrapolates {times:g} times.", "Measure more.") for times in (12, 3)
    )
    alone = ModelFinding("levels off", 0.9, "It levels off.", "Spread the keys.")
    one, other = planned.plans
    plans = (replace(one, cards=(far, alone)), replace(other, cards=(near,)))
    for order in (plans, plans[::-1]):
        made = {card.name: card for card in cards(replace(planned, plans=order))}
        card = made["extrapolation"]
        assert (card.kind, card.title) == ("health", "Extrapolation")
        assert card.finding == "At 2 M records/s (2 targets, see the table): It extrapolates 12 times. Measure more."
        assert set(card.table.rows) == {(2e6, far.finding, far.advice), (2e7, near.finding, near.advice)}
        assert made["levels-off"].finding == "At 2 M records/s: It levels off. Spread the keys."
        assert made["levels-off"].table is None


def test_the_settings_name_the_containers(planned):
    card = next(card for card in cards(planned) if card.name == "settings-20000000")
    plan = planned.plans[1]
    assert f"Start it with these settings: {plan.room()}. " in card.finding
    assert "The driver is not included in the price" not in card.finding  # there is none
    assert "The last rows are not Spark settings" in card.finding
    assert ("spark.kubernetes.executor.request.cores", f"{plan.executor.millicores}m") in card.table.rows


def test_counts_are_numbers_in_csv_and_have_commas_on_the_page(planned):
    plan = planned.plans[1]
    many = dict.fromkeys(plan.allocation.tasks, 8055)
    large = replace(planned, plans=(replace(plan, allocation=replace(plan.allocation, tasks=many)),))
    card = next(card for card in cards(large) if card.name.startswith("settings-"))
    for name in many:
        assert f"tasks of {name},8055\r\n" in card.table.csv()
    assert ">8,055</td>" in card.table_html()


def test_workers_are_a_number_and_their_type_a_name(planned):
    instance = InstanceType("large", "x", "y", 8, 16384, 0.5, "USD", "z", "2026")
    price = Price(instance, 8055, 1, 4027.5, 0)
    card, *_ = cards(replace(planned, plans=(replace(planned.plans[0], price=price),)))
    assert ",8055,large," in card.table.csv()


def test_slots_of_the_executors_add_up(planned):
    plan = planned.plans[1]
    budget = plan.budget
    odd = replace(plan, budget=replace(budget, slots=23), executors=2)
    assert odd.room() == "2 executors with room for 12 slots each: 24, of which the plan uses 23"
    assert replace(odd, budget=replace(budget, slots=24)).room() == "2 executors of 12 slots"
    assert replace(odd, budget=replace(budget, slots=1), executors=1).room() == "1 executor of 1 slot"


def test_a_batch_has_one_time(planned):
    parts = {"driver": 0.37, "tasks, fixed": 0.38, "rows": 0.8}
    stages = [Stage("scan", 0.01, 1e-5, source=True), Stage("count", 0.05, 1e-4, stateful=True)]
    one = planned.plans[0]
    plan = replace(
        one,
        budget=replace(one.budget, interval_s=2.0),
        testbed_kind="spark",
        allocation=None,
        layout=laid_out(stages, 4, 2.0, rate=30_000),
        batch_parts=parts,
    )
    card = next(card for card in cards(replace(planned, plans=(plan,))) if card.name.startswith("settings"))
    assert (
        "A batch at this rate takes 1.6 s of the 2 s interval: 0.37 s for the driver, 0.38 s of fixed work in tasks, "
        "0.8 s for the rows."
    ) in card.finding
    assert "batches take at most" not in card.finding
    assert plan.latency_s(0.5) == pytest.approx(1 + 1.55)


def test_simulated_runs_are_not_said_to_take_time_and_their_settings_are_not_on_the_first_screen(planned):
    made = {card.name: card for card in cards(planned)}
    assert re.fullmatch(r"4 runs, .+ of simulated time, by fluid, seed 0, .+\.", made["runs"].finding)
    assert "simulated engine (fluid)" in made["answer"].html
    for name in ("answer", "model"):
        assert "jitter" not in made[name].finding + made[name].html


def test_the_backlog_is_that_of_the_largest_target(planned):
    card = next(card for card in cards(planned) if card.name == "waiting")
    assert re.match(
        r"After 10 min down, the backlog at 20 M records/s is gone in about .+ \(.+ at the interval's low end\)\.",
        card.finding,
    )
    assert card.title == "How long does a backlog last?"
    assert "wait" not in card.finding
    assert not any("Latency" in column.name for column in card.table.columns)
