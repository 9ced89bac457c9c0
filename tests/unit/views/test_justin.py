"""The card of Justin's decisions, on a replay."""

import re

from workbench.answers import page
from workbench.answers.replayed import answer
from workbench.simulation import RateTrace
from workbench.study import replay_policies
from workbench.views.findings import decided
from workbench.views.widgets.replay_player import moment

LOAD = RateTrace.steps([(1200, 200_000), (1800, 900_000)])


def test_every_decision_between_memory_and_tasks_has_its_reason():
    replayed = replay_policies("q11", LOAD, slots=12, policies=("ds2", "justin"))
    made_of = {card.name: card for card in page.cards(answer(replayed))}
    assert "reasons-ds2" not in made_of
    line = replayed.timelines["justin"]
    made = [one for change in line.reconfigurations for name, one in change.reasons.items() if name == "sessions"]
    card = made_of["reasons-justin"]
    assert card.folded
    assert 0 < len(card.table.rows) <= len(made)
    for at_s, operator, tasks, hits, latency_ms, proposed, text, because in card.table.rows:
        (change,) = [one for one in line.reconfigurations if one.at_s == at_s]
        decision = change.reasons[operator]
        assert (tasks, proposed, text) == (decision.previous.tasks, decision.proposed, decided(decision))
        assert change.tasks[operator] == decision.state.tasks
        assert hits == 100 * decision.seen.hit_rate
        assert latency_ms == 1e3 * decision.seen.latency_s
        assert because.endswith(decision.reason)
        assert f"DS2 proposes {proposed} task" in because
    more = sum("twice the memory" in row[6] for row in card.table.rows)
    assert re.match(rf"{len(card.table.rows)} decisions on operators with state: {more} for more memory", card.finding)


def test_the_player_gives_the_reason_of_the_last_change():
    line = replay_policies("q11", LOAD, slots=12, policies=("justin",)).timelines["justin"]
    change = next(one for one in line.reconfigurations if one.reasons["sessions"].state.scaled_up)
    told = moment(line, change.at_s + 1)
    assert f"sessions gets {decided(change.reasons['sessions'])}: {change.reasons['sessions'].reason}." in told
