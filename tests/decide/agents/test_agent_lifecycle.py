"""The agent lifecycle, asked as a table: what it allows, what it forbids, what it can reach."""

import itertools

import pytest

from holon.decide.agents.lifecycle import TRANSITIONS, admits, may_run, next_status
from holon.model.agents import AgentSignal, AgentStatus
from holon.model.errors import ForbiddenTransitionError

S, G = AgentStatus, AgentSignal
# Written a second time, by hand, so that an edit of the table has to be meant twice.
ALLOWED: dict[tuple[AgentStatus, AgentSignal], AgentStatus] = {
    (S.BOOTING, G.BOOTED): S.AWAKE_IDLE,
    (S.BOOTING, G.PAUSE_REQUESTED): S.PAUSED,
    (S.BOOTING, G.STOP_REQUESTED): S.STOPPED,
    (S.AWAKE_IDLE, G.WOKEN): S.AWAKE_IDLE,
    (S.AWAKE_IDLE, G.RUN_STARTED): S.AWAKE_RUNNING,
    (S.AWAKE_IDLE, G.RESTED): S.ASLEEP,
    (S.AWAKE_IDLE, G.PAUSE_REQUESTED): S.PAUSED,
    (S.AWAKE_IDLE, G.STOP_REQUESTED): S.STOPPED,
    (S.AWAKE_RUNNING, G.RUN_STARTED): S.AWAKE_RUNNING,
    (S.AWAKE_RUNNING, G.RUN_SETTLED): S.AWAKE_IDLE,
    (S.AWAKE_RUNNING, G.TASK_AWAITED): S.AWAITING_TASK,
    (S.AWAKE_RUNNING, G.RESTED): S.ASLEEP,
    (S.AWAKE_RUNNING, G.PAUSE_REQUESTED): S.PAUSED,
    (S.AWAKE_RUNNING, G.STOP_REQUESTED): S.STOPPED,
    (S.AWAITING_TASK, G.WOKEN): S.AWAKE_IDLE,
    (S.AWAITING_TASK, G.RUN_STARTED): S.AWAKE_RUNNING,
    (S.AWAITING_TASK, G.RESTED): S.ASLEEP,
    (S.AWAITING_TASK, G.PAUSE_REQUESTED): S.PAUSED,
    (S.AWAITING_TASK, G.STOP_REQUESTED): S.STOPPED,
    (S.ASLEEP, G.WOKEN): S.AWAKE_IDLE,
    (S.ASLEEP, G.RUN_STARTED): S.AWAKE_RUNNING,
    (S.ASLEEP, G.RESTED): S.ASLEEP,
    (S.ASLEEP, G.PAUSE_REQUESTED): S.PAUSED,
    (S.ASLEEP, G.STOP_REQUESTED): S.STOPPED,
    (S.PAUSED, G.RESUME_REQUESTED): S.AWAKE_IDLE,
    (S.PAUSED, G.STOP_REQUESTED): S.STOPPED,
    (S.STOPPED, G.RESUME_REQUESTED): S.BOOTING,
}


@pytest.mark.parametrize(("status", "signal"), list(itertools.product(AgentStatus, AgentSignal)))
def test_every_posture_answers_every_signal_as_written(
    status: AgentStatus, signal: AgentSignal
) -> None:
    expected = ALLOWED.get((status, signal))
    if expected is None:
        with pytest.raises(ForbiddenTransitionError) as caught:
            next_status(status, signal)
        assert (caught.value.state, caught.value.signal) == (status, signal)
    else:
        assert next_status(status, signal) is expected


@pytest.mark.parametrize("status", AgentStatus)
def test_every_posture_has_a_row_a_way_in_and_a_way_out(status: AgentStatus) -> None:
    ways_in = {
        source
        for source, row in TRANSITIONS.items()
        for target in row.values()
        if target is status and source is not status
    }
    assert ways_in
    assert any(target is not status for target in TRANSITIONS[status].values())


def test_the_table_cannot_be_changed_while_running() -> None:
    with pytest.raises(TypeError):
        TRANSITIONS[S.STOPPED] = {}  # type: ignore[index]


@pytest.mark.parametrize("start", AgentStatus)
def test_every_posture_can_be_reached_from_every_other(start: AgentStatus) -> None:
    reached, frontier = {start}, [start]
    while frontier:
        for target in TRANSITIONS[frontier.pop()].values():
            if target not in reached:
                reached.add(target)
                frontier.append(target)
    assert reached == set(AgentStatus)


@pytest.mark.requirement("lifecycle:stopped-leaves-only-by-resume")
def test_stopped_is_left_by_resume_and_nothing_else() -> None:
    assert set(TRANSITIONS[S.STOPPED]) == {G.RESUME_REQUESTED}


@pytest.mark.requirement("lifecycle:wake-does-not-cross-stopped")
@pytest.mark.parametrize("status", [S.STOPPED, S.PAUSED])
def test_a_wake_moves_neither_a_stopped_nor_a_paused_agent(status: AgentStatus) -> None:
    with pytest.raises(ForbiddenTransitionError):
        next_status(status, G.WOKEN)


@pytest.mark.requirement("lifecycle:resume-boots-again")
def test_a_resumed_agent_boots_before_it_is_awake() -> None:
    booting = next_status(S.STOPPED, G.RESUME_REQUESTED)
    assert booting is S.BOOTING
    assert not may_run(booting)
    assert next_status(booting, G.BOOTED) is S.AWAKE_IDLE


@pytest.mark.requirement("lifecycle:operator-may-always-interrupt")
@pytest.mark.parametrize("status", [s for s in AgentStatus if s not in (S.PAUSED, S.STOPPED)])
def test_the_operator_may_pause_or_stop_whatever_is_up(status: AgentStatus) -> None:
    assert next_status(status, G.PAUSE_REQUESTED) is S.PAUSED
    assert next_status(status, G.STOP_REQUESTED) is S.STOPPED


@pytest.mark.requirement("lifecycle:sleep-is-entered-explicitly")
def test_sleep_is_entered_by_resting_and_by_nothing_else() -> None:
    rows = TRANSITIONS.values()
    assert {signal for row in rows for signal, to in row.items() if to is S.ASLEEP} == {G.RESTED}


@pytest.mark.requirement("lifecycle:sleeping-agent-can-wake")
def test_a_sleeping_agent_wakes_or_goes_straight_to_work() -> None:
    assert next_status(S.ASLEEP, G.WOKEN) is S.AWAKE_IDLE
    assert next_status(S.ASLEEP, G.RUN_STARTED) is S.AWAKE_RUNNING


@pytest.mark.requirement("lifecycle:paused-runs-nothing")
@pytest.mark.requirement("lifecycle:booting-runs-nothing")
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (S.BOOTING, False),
        (S.AWAKE_IDLE, True),
        (S.AWAKE_RUNNING, True),
        (S.AWAITING_TASK, True),
        (S.ASLEEP, True),
        (S.PAUSED, False),
        (S.STOPPED, False),
    ],
)
def test_which_postures_may_run(status: AgentStatus, expected: bool) -> None:
    assert may_run(status) is expected


@pytest.mark.parametrize("status", AgentStatus)
def test_only_a_posture_that_may_run_has_a_row_for_starting(status: AgentStatus) -> None:
    assert (G.RUN_STARTED in TRANSITIONS[status]) is may_run(status)


@pytest.mark.requirement("lifecycle:only-stopped-closes-the-door")
@pytest.mark.parametrize("status", AgentStatus)
def test_only_a_stopped_agent_takes_no_messages(status: AgentStatus) -> None:
    assert admits(status) is (status is not S.STOPPED)
