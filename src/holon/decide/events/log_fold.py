"""The fold of the audit log: object states from events.

Owns:  the map from an event to the objects it moves, and the fold over one agent's log.
Rule 1: folding the events of an agent gives the lifecycle states its rows hold (invariant I6).
Rule 2: an object that ended does not move again (I3). Writing a completed work item once more in
        the same state is no move: its report may follow its completion.
Rule 3: the end of a turn leaves no event of its own for a skill: folding TurnEnded moves the skills
        the turn activated.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias, assert_never

from holon.model.agents import AgentArchived
from holon.model.events.event import (
    AgentCreated,
    AgentStateChanged,
    Event,
    InterjectionAdmitted,
    MessageAborted,
    MessageAdmitted,
    MessageDeferred,
    MessageDropped,
    MessageProcessed,
    MessageProcessingStarted,
    TaskCreated,
    TaskStatusUpdated,
    ToolExecuted,
    ToolExecutionFailed,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from holon.model.guidance import (
    ActivateSkill,
    ActivationState,
    InstructionSourceChanged,
    RestoreSkills,
    SkillActivated,
    SkillChange,
)
from holon.model.memory.records import EpisodeFinalized, MemoryEvent, WorkingMemoryUpdated
from holon.model.queue import MessageState
from holon.model.tasks import TaskStatus
from holon.model.turns.compaction import HistoryCompacted
from holon.model.turns.tools import ToolCallState
from holon.model.turns.turn import TerminalKind
from holon.model.values import AgentId
from holon.model.wake import (
    TimerCancelled,
    TimerCreated,
    TimerFired,
    TimerRescheduled,
    TimerStatus,
    WaitMoved,
    WaitOpened,
    WaitState,
)
from holon.model.work import WorkItemFocusReleased, WorkItemPicked, WorkItemState, WorkItemWritten
from holon.model.workspaces import (
    WorkspaceAttached,
    WorkspaceDetached,
    WorkspaceEntered,
    WorkspaceEvent,
    WorkspaceExited,
)

DROPPED: Final = ""  # no end: it may be used again
USED_AGAIN: Final = "turn_active_again"  # in this turn, and session_active before it
TURN_OPEN = "open"
NO_FOCUS = ""
AT_HOME = ""
ATTACHED = "attached"
DETACHED = "detached"  # no end: it may be attached again
ARCHIVED = "archived"
SELF = ""  # the folded log belongs to one agent, which needs no id
_MessageEvent: TypeAlias = (
    MessageAdmitted
    | MessageProcessingStarted
    | MessageDeferred
    | MessageProcessed
    | MessageAborted
    | MessageDropped
    | InterjectionAdmitted
)
_TurnEvent: TypeAlias = (
    TurnStarted | TurnResumed | TurnEnded | ToolStarted | ToolExecuted | ToolExecutionFailed
)
_AgentEvent: TypeAlias = AgentCreated | AgentStateChanged | AgentArchived
_WakeEvent: TypeAlias = (
    TimerCreated | TimerFired | TimerRescheduled | TimerCancelled | WaitOpened | WaitMoved
)
_SettingEvent: TypeAlias = (
    WorkItemPicked | WorkItemFocusReleased | HistoryCompacted | SkillActivated | MemoryEvent
)


def skill_events(change: SkillChange) -> tuple[tuple[AgentId, Event], ...]:
    """Return the events a change leaves, each with the agent whose log it goes to."""
    match change:
        case ActivateSkill(activation=used):
            activated = SkillActivated(
                skill_name=used.skill_name,
                load_reason=used.load_reason,
                path=used.path,
                entrypoint_path=used.entrypoint_path,
                turn_id=used.turn_id,
                was_session_active=used.is_lasting,
            )
            return ((used.agent_id, activated),)
        case RestoreSkills():
            return ()
        case _:
            assert_never(change)


def skill_key(event: SkillActivated) -> str:
    """Return what distinguishes one activation of an agent from another."""
    return f"{event.load_reason} {event.entrypoint_path}"


def state_when_used(event: SkillActivated) -> str:
    """Return where an activation stands while its turn runs."""
    return USED_AGAIN if event.was_session_active else ActivationState.TURN_ACTIVE


def states_at_turn_end(states: Mapping[str, str], terminal: TerminalKind) -> dict[str, str]:
    """Return where the end of a turn leaves the activations it moves."""
    session_active = ActivationState.SESSION_ACTIVE
    fresh = session_active if terminal is TerminalKind.COMPLETED else DROPPED
    after = {ActivationState.TURN_ACTIVE: fresh, USED_AGAIN: session_active}
    return {key: after[state] for key, state in states.items() if state in after}


class Subject(StrEnum):
    """The kinds of object whose state the log records."""

    AGENT = "agent"
    IDENTITY = "identity"  # recorded only when it is no longer in use
    FOCUS = "focus"
    MESSAGE = "message"
    TURN = "turn"
    TOOL_CALL = "tool_call"
    WORK_ITEM = "work_item"
    WORK_ITEM_REVISION = "work_item_revision"
    TASK = "task"
    TIMER = "timer"
    WAIT = "wait"
    WORKSPACE = "workspace"
    ACTIVE_WORKSPACE = "active_workspace"
    SKILL = "skill"
    HISTORY = "history"
    WORKING_MEMORY = "working_memory"
    EPISODE = "episode"
    TAINTED_INSTRUCTIONS = "tainted_instructions"


_ENDS: dict[Subject, frozenset[str]] = {
    Subject.MESSAGE: frozenset(s for s in MessageState if s.is_terminal),
    Subject.TURN: frozenset(TerminalKind),
    Subject.TOOL_CALL: frozenset(set(ToolCallState) - {ToolCallState.STARTED}),
    Subject.WORK_ITEM: frozenset({WorkItemState.COMPLETED}),
    Subject.TASK: frozenset(
        {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.INTERRUPTED}
    ),
    Subject.TIMER: frozenset({TimerStatus.COMPLETED, TimerStatus.CANCELLED}),
    Subject.WAIT: frozenset(s for s in WaitState if not s.is_open),
    Subject.EPISODE: frozenset({ARCHIVED}),
    Subject.IDENTITY: frozenset({ARCHIVED}),
}

Key: TypeAlias = tuple[Subject, str]


class Move(NamedTuple):
    """One object came to stand in a state."""

    subject: Subject
    id: str
    state: str


class LateMove(NamedTuple):
    """An object moved although it had ended."""

    move: Move
    ended_as: str
    at: int  # the place of the offending event in the sequence that was folded, from 0


class FoldedState(NamedTuple):
    """Where every object named by the log stands, and what moved after its end."""

    states: dict[Key, str]
    late: tuple[LateMove, ...]


def is_end(subject: Subject, state: str) -> bool:
    """Whether an object of this kind stays in this state for good."""
    return state in _ENDS.get(subject, frozenset())


def fold(events: Iterable[Event]) -> FoldedState:
    """Return where the events of one agent leave everything they name."""
    states: dict[Key, str] = {}
    late: list[LateMove] = []
    used: dict[str, str] = {}  # skills the open turn has made active; TurnEnded moves them too
    for place, event in enumerate(events):
        for move in moves_of(event):
            before = states.get((move.subject, move.id))
            if before is not None and is_end(move.subject, before):
                rewritten = move.subject is Subject.WORK_ITEM and move.state == before
                if not rewritten:
                    late.append(LateMove(move, before, place))
            states[move.subject, move.id] = move.state
            if move.subject is Subject.SKILL:
                used[move.id] = move.state
        if used and isinstance(event, TurnEnded):
            ended = states_at_turn_end(used, event.terminal)
            states.update({(Subject.SKILL, id_): state for id_, state in ended.items()})
            used.clear()
    return FoldedState(states, tuple(late))


def moves_of(event: Event) -> tuple[Move, ...]:
    """Return the moves of an event; most events beside lifecycle ones have none."""
    match event:
        case (
            MessageAdmitted()
            | MessageProcessingStarted()
            | MessageDeferred()
            | MessageProcessed()
            | MessageAborted()
            | MessageDropped()
            | InterjectionAdmitted()
        ):
            return (Move(Subject.MESSAGE, event.message_id, _message_state(event)),)
        case (
            TurnStarted()
            | TurnResumed()
            | TurnEnded()
            | ToolStarted()
            | ToolExecuted()
            | ToolExecutionFailed()
        ):
            return (_turn_move(event),)
        case (
            TimerCreated()
            | TimerFired()
            | TimerRescheduled()
            | TimerCancelled()
            | WaitOpened()
            | WaitMoved()
        ):
            return (_wake_move(event),)
        case WorkspaceAttached() | WorkspaceEntered() | WorkspaceExited() | WorkspaceDetached():
            return (_workspace_move(event),)
        case (
            TaskCreated(task_id=task_id, status=status)
            | TaskStatusUpdated(task_id=task_id, status=status)
        ):
            return (Move(Subject.TASK, task_id, status),)
        case WorkItemWritten(work_item_id=item_id, state=state, revision=revision):
            return (
                Move(Subject.WORK_ITEM, item_id, state),
                Move(Subject.WORK_ITEM_REVISION, item_id, str(revision)),
            )
        case AgentCreated() | AgentStateChanged() | AgentArchived():
            return (_agent_move(event),)
        case (
            WorkItemPicked()
            | WorkItemFocusReleased()
            | HistoryCompacted()
            | SkillActivated()
            | WorkingMemoryUpdated()
            | EpisodeFinalized()
        ):
            return (_setting_move(event),)
        case InstructionSourceChanged(tainted=True, turn_id=turn_id, path=path):
            return (Move(Subject.TAINTED_INSTRUCTIONS, SELF, f"{turn_id} {path}"),)
        case _:
            return ()


def _agent_move(event: _AgentEvent) -> Move:
    match event:
        case AgentCreated(status=status) | AgentStateChanged(status=status):
            return Move(Subject.AGENT, SELF, status)
        case AgentArchived():
            return Move(Subject.IDENTITY, SELF, ARCHIVED)
        case _:
            assert_never(event)


def _message_state(event: _MessageEvent) -> MessageState:
    match event:
        case MessageAdmitted() | MessageDeferred():
            return MessageState.QUEUED
        case MessageProcessingStarted():
            return MessageState.CLAIMED
        case MessageProcessed():
            return MessageState.PROCESSED
        case MessageAborted():
            return MessageState.ABORTED
        case MessageDropped():
            return MessageState.DROPPED
        case InterjectionAdmitted():
            return MessageState.INTERJECTED
        case _:
            assert_never(event)


def _turn_move(event: _TurnEvent) -> Move:
    match event:
        case TurnStarted(turn_id=turn_id) | TurnResumed(turn_id=turn_id):
            return Move(Subject.TURN, turn_id, TURN_OPEN)
        case TurnEnded(turn_id=turn_id, terminal=terminal):
            return Move(Subject.TURN, turn_id, terminal)
        case ToolStarted(effect_id=effect_id):
            return Move(Subject.TOOL_CALL, effect_id, ToolCallState.STARTED)
        case ToolExecuted(effect_id=effect_id):
            return Move(Subject.TOOL_CALL, effect_id, ToolCallState.SUCCEEDED)
        case ToolExecutionFailed(effect_id=effect_id, interrupted=interrupted):
            state = ToolCallState.INTERRUPTED if interrupted else ToolCallState.FAILED
            return Move(Subject.TOOL_CALL, effect_id, state)
        case _:
            assert_never(event)


def _wake_move(event: _WakeEvent) -> Move:
    match event:
        case TimerCreated(timer_id=timer_id) | TimerRescheduled(timer_id=timer_id):
            return Move(Subject.TIMER, timer_id, TimerStatus.ACTIVE)
        case TimerFired(timer_id=timer_id, next_fire_at=following):
            state = TimerStatus.COMPLETED if following is None else TimerStatus.ACTIVE
            return Move(Subject.TIMER, timer_id, state)
        case TimerCancelled(timer_id=timer_id):
            return Move(Subject.TIMER, timer_id, TimerStatus.CANCELLED)
        case WaitOpened(wait_id=wait_id):
            return Move(Subject.WAIT, wait_id, WaitState.ACTIVE)
        case WaitMoved(wait_id=wait_id, state=state):
            return Move(Subject.WAIT, wait_id, state)
        case _:
            assert_never(event)


def _setting_move(event: _SettingEvent) -> Move:
    match event:
        case WorkItemPicked(work_item_id=item_id):
            return Move(Subject.FOCUS, SELF, item_id)
        case WorkItemFocusReleased():
            return Move(Subject.FOCUS, SELF, NO_FOCUS)
        case HistoryCompacted(history_from_turn=first):
            return Move(Subject.HISTORY, SELF, str(first))
        case SkillActivated():
            return Move(Subject.SKILL, skill_key(event), state_when_used(event))
        case WorkingMemoryUpdated(revision=revision):
            return Move(Subject.WORKING_MEMORY, SELF, str(revision))
        case EpisodeFinalized(episode_id=episode_id):
            return Move(Subject.EPISODE, episode_id, ARCHIVED)
        case _:
            assert_never(event)


def _workspace_move(event: WorkspaceEvent) -> Move:
    match event:
        case WorkspaceAttached(workspace_id=workspace_id):
            return Move(Subject.WORKSPACE, workspace_id, ATTACHED)
        case WorkspaceDetached(workspace_id=workspace_id):
            return Move(Subject.WORKSPACE, workspace_id, DETACHED)
        case WorkspaceEntered(workspace_id=workspace_id):
            return Move(Subject.ACTIVE_WORKSPACE, SELF, workspace_id)
        case WorkspaceExited():
            return Move(Subject.ACTIVE_WORKSPACE, SELF, AT_HOME)
        case _:
            assert_never(event)
