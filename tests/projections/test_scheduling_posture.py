"""Why an agent runs or rests."""

from datetime import UTC, datetime

import msgspec
import pytest

from holon.model.agents import AgentStatus, IdentityStatus, TurnRateState
from holon.model.events.reads import ListedAgent
from holon.model.values import TurnId, WorkItemId
from holon.model.wake import WaitKind
from holon.model.work import PlanStatus
from holon.projections.agents.list import Posture, scheduling_posture
from tests.projections.surface_facts import a_listed_agent, an_agent_state
from tests.support.builders import a_wait, a_work_item, an_identity

ARCHIVED = msgspec.structs.replace(an_identity(), status=IdentityStatus.ARCHIVED)
BUSY = an_agent_state(status=AgentStatus.AWAKE_RUNNING, open_turn_id=TurnId("turn_1"))
RUNNABLE = WorkItemId("work_1")
TASK_WAIT = a_wait("wait_t", kind=WaitKind.TASK)
OPERATOR_WAIT = a_wait("wait_o", kind=WaitKind.OPERATOR, source_id=None)
EXTERNAL_WAIT = a_wait("wait_e", kind=WaitKind.EXTERNAL)
REST = a_wait("wait_r", kind=WaitKind.REST)
BLOCKED = a_work_item(blocked_by="a review")
UNCLEAR = a_work_item(plan_status=PlanStatus.NEEDS_INPUT)


@pytest.mark.requirement("console:posture-says-why")
@pytest.mark.parametrize(
    ("listed", "posture"),
    [
        (a_listed_agent(an_agent_state(identity=ARCHIVED)), Posture.ARCHIVED),
        (a_listed_agent(an_agent_state(status=AgentStatus.STOPPED), queued_count=1), "stopped"),
        (a_listed_agent(an_agent_state(status=AgentStatus.PAUSED)), Posture.STOPPED),
        (a_listed_agent(BUSY, queued_count=3), Posture.ACTIVE_TURN),
        (
            a_listed_agent(queued_count=3, runnable_work_item_id=RUNNABLE),
            Posture.HAS_QUEUED_INPUT,
        ),
        (
            a_listed_agent(runnable_work_item_id=RUNNABLE, waits=(TASK_WAIT,)),
            Posture.HAS_RUNNABLE_WORK,
        ),
        (a_listed_agent(waits=(EXTERNAL_WAIT, OPERATOR_WAIT, TASK_WAIT)), "waiting_for_task"),
        (a_listed_agent(waits=(EXTERNAL_WAIT, OPERATOR_WAIT)), Posture.WAITING_FOR_OPERATOR),
        (a_listed_agent(waits=(REST, EXTERNAL_WAIT)), Posture.WAITING_FOR_EXTERNAL),
        (a_listed_agent(stuck_work_item=UNCLEAR), Posture.WAITING_FOR_OPERATOR),
        (a_listed_agent(stuck_work_item=BLOCKED, waits=(REST,)), Posture.BLOCKED),
        (a_listed_agent(waits=(REST,)), Posture.IDLE),
        (a_listed_agent(), Posture.IDLE),
    ],
)
def test_the_first_reason_that_applies_is_the_posture(listed: ListedAgent, posture: str) -> None:
    assert scheduling_posture(listed).posture == posture
    assert scheduling_posture(listed).reason


def test_a_posture_names_what_it_is_about() -> None:
    assert scheduling_posture(a_listed_agent(BUSY)).run_id == "turn_1"
    assert scheduling_posture(a_listed_agent(runnable_work_item_id=RUNNABLE)).work_item_id
    waiting = scheduling_posture(a_listed_agent(waits=(TASK_WAIT,)))
    assert (waiting.waiting_intent_id, waiting.task_id) == ("wait_t", "task_1")
    blocked = scheduling_posture(a_listed_agent(stuck_work_item=BLOCKED))
    assert (blocked.work_item_id, blocked.reason) == ("work_1", "a review")


@pytest.mark.requirement("scheduling-large:budget-holds-turns")
def test_a_held_agent_and_one_that_was_given_up_say_so() -> None:
    until = datetime(2026, 3, 1, 12, tzinfo=UTC)
    held = msgspec.structs.replace(an_agent_state(), pace=TurnRateState(budget_until=until))
    seen = scheduling_posture(a_listed_agent(held, queued_count=2))
    assert seen.posture is Posture.HAS_QUEUED_INPUT
    assert "budget is exhausted until 2026-03-01T12:00" in seen.reason
    given_up = msgspec.structs.replace(an_agent_state(), pace=TurnRateState(gave_up=True))
    seen = scheduling_posture(a_listed_agent(given_up, runnable_work_item_id=RUNNABLE))
    assert seen.posture is Posture.IDLE
    assert "outside input" in seen.reason
