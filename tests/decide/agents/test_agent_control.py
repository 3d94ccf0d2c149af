"""What an operator's request to an agent's lifecycle amounts to."""

import msgspec
import pytest

from holon.decide.agents.control import (
    SIGNALS,
    ControlRequest,
    decide_control,
    is_already,
    model_commit,
    refuse_target,
)
from holon.model.agents import AgentFocus, AgentStatus, IdentityStatus
from holon.model.commits import (
    AgentGeneration,
    Commit,
    RecordEvent,
    ReleaseDeferred,
    SetAgentStatus,
)
from holon.model.errors import Refusal, RefusalCode
from holon.model.events.event import ControlApplied
from holon.model.events.reads import AgentSnapshot
from holon.model.values import TurnId
from tests.decide.sample_rows import AGENT_ID, NOW, agent_in

vary = msgspec.structs.replace
SETTLED = Commit(
    commit_id="settle:msg_1",
    at=NOW,
    changes=(
        RecordEvent(agent_id=AGENT_ID, event=ControlApplied(action="note", request_id="r")),
        SetAgentStatus(agent_id=AGENT_ID, status=AgentStatus.AWAKE_IDLE, reason="settled"),
    ),
    expects=(AgentGeneration(agent_id=AGENT_ID, generation=1),),
)


def asked(action: str, *, run_id: str | None = None) -> ControlRequest:
    return ControlRequest(agent_id=AGENT_ID, action=action, request_id="r1", run_id=run_id)


def seen(status: AgentStatus, *, turn: str | None = None) -> AgentSnapshot:
    focus = AgentFocus(open_turn_id=None if turn is None else TurnId(turn))
    return AgentSnapshot(agent=vary(agent_in(status), focus=focus))


def refused(decided: Commit | Refusal) -> RefusalCode:
    assert isinstance(decided, Refusal)
    return decided.code


@pytest.mark.parametrize("status", list(AgentStatus))
def test_what_is_so_already_is_no_news(status: AgentStatus) -> None:
    found = {action for action in SIGNALS if is_already(seen(status), asked(action))}
    expected = {AgentStatus.STOPPED: {"stop"}, AgentStatus.PAUSED: {"pause"}}
    assert found == expected.get(status, {"resume"})


def test_an_archived_agent_is_not_driven_any_more() -> None:
    archived = agent_in(AgentStatus.STOPPED, identity_status=IdentityStatus.ARCHIVED)
    refusal = refuse_target(AgentSnapshot(agent=archived))
    assert refusal is not None
    assert refusal.code is RefusalCode.AGENT_ARCHIVED
    assert refuse_target(seen(AgentStatus.STOPPED)) is None


def test_a_stop_moves_the_posture_once_and_settles_the_turn_with_it() -> None:
    running = seen(AgentStatus.AWAKE_RUNNING, turn="turn_1")
    decided = decide_control(running, asked("stop"), settled=SETTLED, now=NOW)
    assert isinstance(decided, Commit)
    moves = [each for each in decided.changes if isinstance(each, SetAgentStatus)]
    assert [each.status for each in moves] == [AgentStatus.STOPPED]
    assert decided.changes[0] == SETTLED.changes[0]
    assert SETTLED.expects[0] in decided.expects


def test_an_abort_needs_a_turn_and_the_one_that_was_named() -> None:
    idle, running = seen(AgentStatus.ASLEEP), seen(AgentStatus.AWAKE_RUNNING, turn="turn_2")
    none = decide_control(idle, asked("abort"), settled=None, now=NOW)
    assert refused(none) is RefusalCode.NO_CURRENT_RUN
    other = decide_control(running, asked("abort", run_id="turn_1"), settled=SETTLED, now=NOW)
    assert refused(other) is RefusalCode.STALE_RUN_ID


def test_a_move_the_posture_does_not_allow_is_refused() -> None:
    decided = decide_control(seen(AgentStatus.STOPPED), asked("pause"), settled=None, now=NOW)
    assert refused(decided) is RefusalCode.TRANSITION_FORBIDDEN


def test_another_model_releases_what_was_put_off() -> None:
    commit = model_commit("control:r1", seen(AgentStatus.ASLEEP), "a/b", models=(), now=NOW)
    assert ReleaseDeferred(agent_id=AGENT_ID) in commit.changes
