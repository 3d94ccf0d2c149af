"""What the runtime queues of its own accord, and what becomes true with it."""

import msgspec

from holon.decide.queue.admission import Admitted
from holon.decide.wake.activation import AskOperator, ContinueActive, EmitRecheckTick, OfferQueued
from holon.decide.wake.ticks import (
    BLANK_HINTS,
    NEWS,
    WORK_QUEUE,
    expiry_tick,
    hint_tick,
    operator_question,
    recheck_tick,
    tick_commit,
    timer_tick,
    work_tick,
)
from holon.decide.wake.timers import decide_fire
from holon.model.agents import AgentStatus
from holon.model.commits import (
    AgentGeneration,
    MoveWait,
    PutWorkItem,
    QueueMessage,
    TakeWakeHints,
    WaitInState,
    WakeHintAtRevision,
    WorkItemAtRevision,
)
from holon.model.events.reads import DueTimer
from holon.model.queue import (
    AdmissionContext,
    MessageKind,
    Priority,
    SystemOrigin,
    TextBody,
    TimerOrigin,
)
from holon.model.values import BriefId, WaitId
from holon.model.wake import WaitKind, WaitState
from tests.decide.sample_rows import AGENT_ID, HINT, NOW, agent_in, wait_of, weighed
from tests.support.builders import a_tick, a_timer, an_activation

vary = msgspec.structs.replace
MEMORY = an_activation()


def test_every_tick_is_the_runtimes_own_and_goes_behind_the_others() -> None:
    for planned in (hint_tick(AGENT_ID, [HINT]), work_tick(AGENT_ID, _offer())):
        request = planned.request
        assert request.kind is MessageKind.SYSTEM_TICK
        assert request.admission is AdmissionContext.RUNTIME_OWNED
        assert request.priority is Priority.BACKGROUND


def test_hints_that_bring_nothing_and_hints_that_do_have_different_keys() -> None:
    blank, full = HINT, vary(HINT, body={"status": "red"})
    assert hint_tick(AGENT_ID, [blank]).request.tick_key == BLANK_HINTS
    assert hint_tick(AGENT_ID, [blank, full]).request.tick_key == NEWS


def test_a_hint_tick_takes_the_hints_as_they_stood() -> None:
    planned = hint_tick(AGENT_ID, [HINT, vary(HINT, source_key="mail", revision=4)])
    assert planned.changes == (TakeWakeHints(agent_id=AGENT_ID, source_keys=("ci", "mail")),)
    assert planned.expects == (
        WakeHintAtRevision(agent_id=AGENT_ID, source_key="ci", revision=1),
        WakeHintAtRevision(agent_id=AGENT_ID, source_key="mail", revision=4),
    )


def test_only_a_single_hint_passes_on_what_it_belongs_to() -> None:
    told = vary(HINT, correlation_id="c1", causation_id="d1", wait_id=WaitId("wait_9"))
    alone = hint_tick(AGENT_ID, [told]).request
    assert (alone.correlation_id, alone.causation_id) == ("c1", "d1")
    among = hint_tick(AGENT_ID, [HINT, told]).request
    assert (among.correlation_id, among.causation_id) == (None, None)
    assert among.wait_id == "wait_9"


def test_an_offer_and_a_continuation_are_one_key_per_item() -> None:
    offered = work_tick(AGENT_ID, _offer())
    continued = work_tick(AGENT_ID, ContinueActive(item=weighed(), memory=MEMORY))
    assert offered.request.tick_key == continued.request.tick_key == "work:work_1"
    assert offered.request.origin == SystemOrigin(subsystem=WORK_QUEUE)
    assert offered.request.body != continued.request.body
    assert offered.expects == (WorkItemAtRevision(work_item_id=weighed().item.id, revision=1),)


def test_a_recheck_uses_up_the_reminders_and_leaves_the_items_blocked() -> None:
    reminder, other = wait_of(WaitKind.RECHECK), wait_of(WaitKind.OPERATOR)
    item = vary(weighed(blocked=True), waits=(other, reminder))
    planned = recheck_tick(AGENT_ID, EmitRecheckTick(items=(item, weighed("work_2"))), now=NOW)
    written = [change.item for change in planned.changes if isinstance(change, PutWorkItem)]
    assert [each.blocked_by for each in written] == ["the weather", None]
    assert [each.recheck_consumed_at for each in written] == [NOW, NOW]
    ended = [change for change in planned.changes if isinstance(change, MoveWait)]
    assert [(each.wait_id, each.state) for each in ended] == [(reminder.id, WaitState.RESOLVED)]
    assert planned.request.wait_id == reminder.id
    assert WaitInState(wait_id=reminder.id, state=WaitState.ACTIVE) in planned.expects


def test_a_reminder_that_ended_already_is_not_ended_again() -> None:
    over = wait_of(WaitKind.RECHECK, WaitState.TRIGGERED)
    item = vary(weighed(blocked=True), waits=(over,))
    planned = recheck_tick(AGENT_ID, EmitRecheckTick(items=(item,)), now=NOW)
    assert planned.request.wait_id is None
    assert not any(isinstance(change, MoveWait) for change in planned.changes)


def test_a_tick_is_queued_last_and_only_for_the_generation_that_was_seen() -> None:
    planned, agent = work_tick(AGENT_ID, _offer()), agent_in(AgentStatus.AWAKE_IDLE)
    admitted = Admitted(message=a_tick("msg_9", body=TextBody(text="go on")), tick_key="k")
    commit = tick_commit(planned, admitted, agent=agent)
    assert commit.commit_id == "tick:msg_9"
    assert isinstance(commit.changes[-1], QueueMessage)
    assert commit.expects[0] == AgentGeneration(agent_id=AGENT_ID, generation=agent.generation)


def test_the_operator_is_asked_by_a_wait_without_a_deadline() -> None:
    question = operator_question(
        AskOperator(item=weighed(), memory=MEMORY),
        wait_id=WaitId("wait_1"),
        brief_id=BriefId("brief_1"),
        workspace_id=None,
        now=NOW,
    )
    assert question.wait.kind is WaitKind.OPERATOR
    assert question.wait.deadline_at is None
    assert question.wait.work_item_id == weighed().item.id


def test_a_timer_and_a_wait_that_ran_out_come_next_in_the_queue() -> None:
    timer = vary(a_timer(), wait_id=WaitId("wait_7"))
    due = DueTimer(timer=timer, tick_pending=False)
    fired = timer_tick(due, decide_fire(due, now=timer.anchor_at))
    assert (fired.kind, fired.priority) == (MessageKind.TIMER_TICK, Priority.NEXT)
    assert (fired.origin, fired.wait_id) == (TimerOrigin(timer_id=timer.id), "wait_7")
    wait = wait_of(WaitKind.TASK)
    expired = expiry_tick(wait)
    assert (expired.priority, expired.tick_key) == (Priority.NEXT, f"wait:{wait.id}")
    assert (expired.wait_id, expired.work_item_id) == (wait.id, wait.work_item_id)


def _offer() -> OfferQueued:
    return OfferQueued(item=weighed(), memory=MEMORY)
