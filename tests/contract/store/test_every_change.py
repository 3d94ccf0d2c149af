"""Every kind of change does what it says, as far as the reads of the port show it.

The part of the answer that a change is to move is compared before and after it: a change that does
nothing fails, and so does a read that shows nothing of it.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, get_args

import pytest

from holon.decide.workspaces import attach_target_of
from holon.model.agents import AgentContext, AgentStatus, IdentityStatus, TurnRateState
from holon.model.budgets import (
    BudgetHold,
    BudgetMeasure,
    BudgetScope,
    PauseTurns,
    ReviewHolds,
    UnpauseTurns,
    UpdateTurnRate,
)
from holon.model.commits import (
    AdvanceTask,
    AppendBrief,
    AppendDeliverySummary,
    AppendTranscript,
    ArchiveAgent,
    CancelTimer,
    Change,
    CreateTask,
    CreateTimer,
    CreateTrigger,
    DeferMessage,
    DeliverTrigger,
    FinishToolCall,
    FireTimer,
    FocusWorkItem,
    MarkSeen,
    MoveTrigger,
    MoveWait,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    RecordClosure,
    ReleaseDeferred,
    RememberActivation,
    RescheduleTimer,
    ResumeTurn,
    SetModelOverride,
    StartToolCall,
    TakeWakeHints,
)
from holon.model.guidance import ActivateSkill, NoteInstructionChange, RestoreSkills
from holon.model.limits import DAY_MS
from holon.model.memory.records import ArchiveEpisode, MemoryState, RememberWork, WorkingMemory
from holon.model.queue import MessageState
from holon.model.tasks import TaskStatus
from holon.model.turns.compaction import RememberContext
from holon.model.turns.tools import ToolCallState
from holon.model.turns.turn import Completed
from holon.model.values import MessageId, SummaryId, TaskId, TimerId, WaitId, WorkItemId
from holon.model.wake import TimerStatus, TriggerStatus, WaitState, WakeDisposition
from holon.model.work import CompletionReportPromoted, DeliverySummary
from holon.model.workspaces import (
    AttachWorkspace,
    DetachWorkspace,
    EnterWorkspace,
    ExitWorkspace,
    ResolvedDirectory,
    WorkspaceBindings,
)
from holon.ports.reads import StoreReads
from holon.ports.store import Store
from tests.contract.store.steps import (
    HOUR,
    OTHER,
    claimed,
    ended,
    held,
    in_status,
    make,
    noted,
    queued,
    settled,
)
from tests.decide.memory_rows import an_episode
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_hint,
    a_receipt,
    a_round,
    a_skill_activation,
    a_source_change,
    a_task,
    a_timer,
    a_tool_call,
    a_trigger,
    a_turn,
    a_wait,
    a_work_item,
    an_activation,
    an_agent,
    an_entry,
    an_identity,
    moment,
)

Read = Callable[[StoreReads], Awaitable[Any]]


class Trial(NamedTuple):
    """A change, what comes before it, and the answer it moves."""

    change: Change
    read: Read
    found: object
    before: Sequence[Change] = ()


def agent(pick: Callable[[Any], object]) -> Read:
    """A part of the state of the agent."""

    async def read(reads: StoreReads) -> object:
        return pick(await reads.agents.agent(MAIN))

    return read


def snapshot(pick: Callable[[Any], object]) -> Read:
    """A part of what scheduling decides on."""

    async def read(reads: StoreReads) -> object:
        return pick(await reads.agents.snapshot(MAIN, now=START))

    return read


def turn_log(pick: Callable[[Any], object]) -> Read:
    """A part of the turn."""

    async def read(reads: StoreReads) -> object:
        found = await reads.turns.turn_log(TURN.turn_id)
        return None if found is None else pick(found)

    return read


def bindings(pick: Callable[[WorkspaceBindings], object]) -> Read:
    """A part of where the agent works."""

    async def read(reads: StoreReads) -> object:
        return pick(await reads.workspaces.workspace_bindings(MAIN))

    return read


async def another_agent(reads: StoreReads) -> object:
    found = await reads.agents.agent(OTHER)
    return None if found is None else found.identity


async def message_state(reads: StoreReads) -> object:
    entry = await reads.queue.message(MessageId("msg_1"))
    return None if entry is None else entry.state


async def unseen(reads: StoreReads) -> object:
    return [message.id for message in await reads.queue.unseen(MAIN, limit=9)]


async def newest_event(reads: StoreReads) -> object:
    return (await reads.events.events_after(MAIN, 0, limit=99))[-1].event


async def task_status(reads: StoreReads) -> object:
    found = await reads.tasks.task(TaskId("task_1"))
    return None if found is None else found.status


async def timer_slot(reads: StoreReads) -> object:
    found = await reads.wake.timer(TIMER)
    return None if found is None else (found.status, found.next_fire_at, found.fire_count)


async def trigger(reads: StoreReads) -> object:
    found = await reads.wake.trigger_of(MAIN)
    return None if found is None else (found.status, found.epoch, found.delivery_count)


async def waits(reads: StoreReads) -> object:
    return [wait.state for wait in await reads.wake.waits_on("task_1")]


async def tainted_path(reads: StoreReads) -> object:
    surface = await reads.agents.agent_surface(MAIN)
    return surface and surface.tainted and surface.tainted.path


async def episodes(reads: StoreReads) -> object:
    return list(await reads.memory.episodes(MAIN, limit=9))


TURN: Final = a_turn()
CALL: Final = a_tool_call(TURN)
WORK: Final = WorkItemId("work_1")
TIMER: Final = TimerId("timer_1")
CLAIMED: Final = (queued("msg_1"), claimed("msg_1"))
IN_A_TURN: Final = (*CLAIMED, OpenTurn(turn=TURN))
PUT_OFF: Final = DeferMessage(
    agent_id=MAIN, message_id=MessageId("msg_1"), turn_id=TURN.turn_id, until=moment(1_000)
)
RECEIPT: Final = FinishToolCall(
    agent_id=MAIN,
    turn_id=TURN.turn_id,
    effect_id=CALL.effect_id,
    tool_name=CALL.name,
    state=ToolCallState.SUCCEEDED,
    receipt=a_receipt(CALL),
)
SUMMARY: Final = DeliverySummary(
    id=SummaryId("sum_1"), agent_id=MAIN, work_item_id=WORK, created_at=START, text="done"
)
PACE: Final = TurnRateState(self_started_count=2, self_started_at=START)
USED_UP: Final = PauseTurns(
    agent_id=MAIN,
    hold=BudgetHold(
        scope=BudgetScope.AGENT,
        measure=BudgetMeasure.TOKENS_PER_DAY,
        used=2,
        allowed=1,
        until=moment(DAY_MS),
    ),
)
AIM: Final = attach_target_of(ResolvedDirectory(path="/srv/site"), WorkspaceBindings(), now=START)
ATTACHED: Final = AttachWorkspace(agent_id=MAIN, entry=AIM.entry)
ENTERED: Final = EnterWorkspace(agent_id=MAIN, place=AIM.place, occupancy_id="occ_1")
SKILL: Final = a_skill_activation(TURN)
CONTEXT: Final = AgentContext(history_from_turn=2, compression_epoch=1, recap=("turn 1",))
REMEMBERED: Final = WorkingMemory(objective="mend the roof")
DELIVERED: Final = DeliverTrigger(
    hint=a_hint(source_key="trigger:trig_1"),
    external_trigger_id=a_trigger().external_trigger_id,
    epoch=1,
    disposition=WakeDisposition.TRIGGERED,
)

TRIALS: Final = (
    # Agents.
    Trial(an_agent(OTHER), another_agent, an_identity(OTHER)),
    Trial(
        in_status(AgentStatus.PAUSED),
        agent(lambda state: (state.posture.status, state.posture.since)),
        (AgentStatus.PAUSED, moment(1)),
    ),
    Trial(
        FocusWorkItem(agent_id=MAIN, work_item_id=WORK),
        agent(lambda state: state.focus.current_work_item_id),
        WORK,
        (PutWorkItem(item=a_work_item()),),
    ),
    Trial(
        SetModelOverride(agent_id=MAIN, model="m"),
        agent(lambda state: state.model.override_model),
        "m",
    ),
    Trial(
        ArchiveAgent(agent_id=MAIN, reason="over"),
        agent(lambda state: state.identity.status),
        IdentityStatus.ARCHIVED,
    ),
    Trial(
        RecordClosure(agent_id=MAIN, closure=Completed()),
        agent(lambda state: state.last_closure),
        Completed(),
    ),
    Trial(AppendBrief(brief=a_brief()), lambda reads: reads.events.brief(a_brief().id), a_brief()),
    Trial(
        RememberContext(agent_id=MAIN, context=CONTEXT),
        lambda reads: reads.agents.agent_context(MAIN),
        CONTEXT,
    ),
    # The queue.
    Trial(queued("msg_1"), message_state, MessageState.QUEUED),
    Trial(claimed("msg_1"), message_state, MessageState.CLAIMED, (queued("msg_1"),)),
    Trial(
        PUT_OFF,
        snapshot(lambda found: found.deferred_until),
        moment(1_000),
        (*IN_A_TURN, ended(TURN)),
    ),
    Trial(
        ReleaseDeferred(agent_id=MAIN),
        snapshot(lambda found: [head.message_id for head in found.heads]),
        ["msg_1"],
        (*IN_A_TURN, ended(TURN), PUT_OFF),
    ),
    Trial(settled("msg_1"), message_state, MessageState.PROCESSED, CLAIMED),
    Trial(
        MarkSeen(agent_id=MAIN, message_ids=(MessageId("msg_1"),)),
        unseen,
        [],
        (queued("msg_1"), settled("msg_1", unseen=True)),
    ),
    # Turns.
    Trial(OpenTurn(turn=TURN), turn_log(lambda log: log.turn), TURN, CLAIMED),
    Trial(
        ResumeTurn(
            agent_id=MAIN,
            turn_id=TURN.turn_id,
            message_id=MessageId("msg_1"),
            generation=2,
            resume_count=1,
        ),
        turn_log(lambda log: log.turn.resume_count),
        1,
        IN_A_TURN,
    ),
    Trial(
        AppendTranscript(entry=an_entry(TURN, position=0, data=a_round())),
        turn_log(lambda log: log.entries),
        (an_entry(TURN, position=0, data=a_round()),),
        IN_A_TURN,
    ),
    Trial(
        StartToolCall(call=CALL),
        turn_log(lambda log: [each.call for each in log.calls]),
        [CALL],
        IN_A_TURN,
    ),
    Trial(
        RECEIPT,
        turn_log(lambda log: [(each.call.state, each.receipt) for each in log.calls]),
        [(ToolCallState.SUCCEEDED, a_receipt(CALL))],
        (*IN_A_TURN, StartToolCall(call=CALL)),
    ),
    Trial(ended(TURN), turn_log(lambda log: log.turn.terminal), ended(TURN).terminal, IN_A_TURN),
    # Work and tasks.
    Trial(PutWorkItem(item=a_work_item()), lambda reads: reads.work.work_item(WORK), a_work_item()),
    Trial(
        AppendDeliverySummary(summary=SUMMARY),
        newest_event,  # the port has no read of the report itself
        CompletionReportPromoted(work_item_id=WORK),
        (PutWorkItem(item=a_work_item()),),
    ),
    Trial(
        RememberActivation(memory=an_activation()),
        snapshot(lambda found: [each.activation for each in found.queued]),
        [an_activation()],
        (PutWorkItem(item=a_work_item()),),
    ),
    Trial(CreateTask(task=a_task()), task_status, TaskStatus.RUNNING),
    Trial(
        AdvanceTask(agent_id=MAIN, task_id=TaskId("task_1"), status=TaskStatus.FAILED),
        task_status,
        TaskStatus.FAILED,
        (CreateTask(task=a_task()),),
    ),
    # What wakes agents.
    Trial(CreateTimer(timer=a_timer()), timer_slot, (TimerStatus.ACTIVE, START, 0)),
    Trial(
        FireTimer(agent_id=MAIN, timer_id=TIMER, slot=START, next_fire_at=None),
        timer_slot,
        (TimerStatus.COMPLETED, None, 1),
        (CreateTimer(timer=a_timer()),),
    ),
    Trial(
        RescheduleTimer(agent_id=MAIN, timer_id=TIMER, slot=START, next_fire_at=HOUR),
        timer_slot,
        (TimerStatus.ACTIVE, HOUR, 0),
        (CreateTimer(timer=a_timer()),),
    ),
    Trial(
        CancelTimer(agent_id=MAIN, timer_id=TIMER),
        timer_slot,
        (TimerStatus.CANCELLED, None, 0),
        (CreateTimer(timer=a_timer()),),
    ),
    Trial(ParkWakeHint(hint=a_hint()), snapshot(lambda found: found.hints), (a_hint(),)),
    Trial(
        TakeWakeHints(agent_id=MAIN, source_keys=("github",)),
        snapshot(lambda found: found.hints),
        (),
        (ParkWakeHint(hint=a_hint()),),
    ),
    Trial(CreateTrigger(trigger=a_trigger()), trigger, (TriggerStatus.ACTIVE, 1, 0)),
    Trial(
        MoveTrigger(
            agent_id=MAIN,
            external_trigger_id=a_trigger().external_trigger_id,
            from_epoch=1,
            epoch=2,
            status=TriggerStatus.ACTIVE,
        ),
        trigger,
        (TriggerStatus.ACTIVE, 2, 0),
        (CreateTrigger(trigger=a_trigger()),),
    ),
    Trial(
        DELIVERED,
        trigger,
        (TriggerStatus.ACTIVE, 1, 1),
        (CreateTrigger(trigger=a_trigger()),),
    ),
    Trial(OpenWait(wait=a_wait()), waits, [WaitState.ACTIVE]),
    Trial(
        MoveWait(
            agent_id=MAIN,
            wait_id=WaitId("wait_1"),
            state=WaitState.TRIGGERED,
            by="task_1",
            triggered_by=MessageId("msg_1"),
        ),
        waits,
        [WaitState.TRIGGERED],
        (queued("msg_1"), OpenWait(wait=a_wait())),
    ),
    # How fast turns follow each other.
    Trial(UpdateTurnRate(agent_id=MAIN, pace=PACE), agent(lambda state: state.pace), PACE),
    Trial(
        held(until_ms=1_000),
        snapshot(lambda found: found.slowed_until),
        moment(1_000),
        (queued("msg_1"),),
    ),
    Trial(USED_UP, lambda reads: reads.budgets.is_anybody_held(), True),
    Trial(
        UnpauseTurns(agent_id=MAIN),
        lambda reads: reads.budgets.is_anybody_held(),
        False,
        (USED_UP,),
    ),
    Trial(ReviewHolds(), agent(lambda state: state.pace.budget_until), moment(1), (USED_UP,)),
    # Places.
    Trial(ATTACHED, bindings(lambda found: found.attached), (AIM.entry,)),
    Trial(
        ENTERED,
        bindings(lambda found: found.active and found.active.execution_root),
        "/srv/site",
        (ATTACHED,),
    ),
    Trial(
        ExitWorkspace(agent_id=MAIN, workspace_id=AIM.entry.workspace_id),
        bindings(lambda found: found.active),
        None,
        (ATTACHED, ENTERED),
    ),
    Trial(
        DetachWorkspace(agent_id=MAIN, workspace_id=AIM.entry.workspace_id),
        bindings(lambda found: found.attached),
        (),
        (ATTACHED,),
    ),
    # Guidance.
    Trial(
        ActivateSkill(activation=SKILL),
        lambda reads: reads.guidance.active_skills(MAIN),
        [SKILL],
        IN_A_TURN,
    ),
    Trial(
        RestoreSkills(),
        lambda reads: reads.guidance.has_skills_to_restore(),
        False,
        (*IN_A_TURN, ActivateSkill(activation=SKILL), ended(TURN), settled("msg_1")),
    ),
    Trial(
        NoteInstructionChange(agent_id=MAIN, event=a_source_change(TURN)),
        tainted_path,
        "AGENTS.md",
    ),
    # Memory.
    Trial(
        RememberWork(agent_id=MAIN, state=MemoryState(memory=REMEMBERED)),
        lambda reads: reads.memory.working_memory(MAIN),
        REMEMBERED,
    ),
    Trial(ArchiveEpisode(episode=an_episode(1)), episodes, [an_episode(1)]),
    # The log alone.
    Trial(noted(), newest_event, noted().event),
)


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: type(trial.change).__name__)
async def test_a_change_is_read_back(store: Store, trial: Trial) -> None:
    if trial.before:
        await make(store, *trial.before)
    assert await trial.read(store.reads) != trial.found
    await make(store, trial.change, at=moment(1))
    assert await trial.read(store.reads) == trial.found


def test_every_kind_of_change_is_tried() -> None:
    assert {type(trial.change) for trial in TRIALS} == set(get_args(Change))
