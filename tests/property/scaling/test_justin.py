"""What every decision of Justin keeps, whatever the metrics."""

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.scaling import JustinVariant, MemoryState, StateMetrics, justin, justin_decisions
from workbench.scaling._justin import _improved

METRICS = st.builds(
    StateMetrics, st.none() | st.sampled_from([0.0, 0.5, 0.8, 0.9, 1.0]), st.none() | st.sampled_from([0.0, 1e-3, 2e-3])
)
VARIANTS = st.builds(
    JustinVariant,
    st.sampled_from(["differs", "exceeds"]),
    st.sampled_from([0.0, 0.1]),
    st.none() | st.sampled_from([0.0, 0.9]),
)


@examples(150)
@given(data=st.data(), max_level=st.integers(1, 4), variant=VARIANTS)
def test_levels_and_tasks(data, max_level, variant):
    states = st.builds(
        MemoryState, st.integers(1, 9), st.none() | st.integers(0, max_level - 1), scaled_up=st.booleans()
    )
    previous = data.draw(st.dictionaries(st.sampled_from("abc"), states, min_size=1))
    proposal = {name: data.draw(st.integers(1, 9)) for name in previous}
    now, before = ({name: m for name in previous if (m := data.draw(st.none() | METRICS))} for _ in range(2))
    decision = justin(previous, proposal, now, before, max_level, variant=variant)
    assert list(decision) == list(proposal)
    explained = justin_decisions(previous, proposal, now, before, max_level, variant=variant)
    for name, state in decision.items():
        old, found = previous[name], explained[name]
        assert found.state == state
        if found.case == "roll back":
            assert not _improved(now[name], before.get(name), variant.min_gain)
        assert state.tasks in {old.tasks, proposal[name]}
        if name not in now:
            assert state == MemoryState(proposal[name], None)
            continue
        assert 0 <= state.level < max_level
        assert abs(state.level - (old.level or 0)) <= 1
        assert state.scaled_up == (found.case in {"scale up", "grow again"})
        if state.scaled_up:  # never both at once
            assert (state.tasks, state.level) == (old.tasks, (old.level or 0) + 1)
            assert proposal[name] != old.tasks
        if proposal[name] == old.tasks:
            assert state == MemoryState(old.tasks, old.level or 0)
