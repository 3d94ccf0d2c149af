"""Event presentation: visibility, category, title and text of every event kind.

Owns:  one table row per event class, whose texts name the event's fields in braces, with functions
       for what depends on more; the display modes with their numbers, and which presentations each
       mode shows. Pages and streams carry presentations; every surface takes its texts from here.
Rule 1: every event class has a row; a test finds one without.
Rule 2: a presentation has no severity and no delivery hint: surfaces decide from visibility and
        category.
Rule 3: state-sync events tell a client to refresh a projection; they are in no conversation.
Rule 4: the outcome of a brief was decided with the commit that wrote it, and its event states it:
        each event is presented by itself. A brief of an older version does not state it; its
        outcome is derived from the surrounding events (`after`, and the closure of the same
        commit).
Rule 5: a mode is a choice of the reader. It does not affect who may replay an event.
Rule 6: `trace` is for inspecting raw events; it is no mode of the main conversation.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from holon.decide.text.bounded import bounded
from holon.model import agents, budgets, guidance, wake, work, workspaces
from holon.model.agents import ModelOverrideChanged
from holon.model.errors import BadInputError
from holon.model.events import event as events
from holon.model.events.briefs import BriefKind, BriefRecord, OperatorVisibility
from holon.model.events.event import (
    AssistantRoundRecorded,
    AuditEvent,
    BriefCreated,
    ClosureDecided,
    Event,
    ProviderDeferred,
    RuntimeErrorRecorded,
    ToolExecutionFailed,
    TurnEnded,
    TurnStarted,
)
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.memory import records
from holon.model.record import Record
from holon.model.text_size import one_line
from holon.model.turns import compaction
from holon.model.turns.turn import WaitingReason
from holon.model.values import WorkItemId
from holon.model.wake import WaitKind, WaitOpened
from holon.model.work import WorkItemState, WorkItemWritten

_COMPLETED_REMEMBERED_COUNT: Final = 16
_RESULT_LEVEL: Final = OperatorVisibility.TURN_RESULT.level


class Category(StrEnum):
    """The subject of an event."""

    OPERATOR_NOTIFICATION = "operator_notification"
    BRIEF = "brief"
    MESSAGE = "message"
    WORK_ITEM = "work_item"
    TASK = "task"
    WAITING = "waiting"
    WORKSPACE = "workspace"
    RUNTIME = "runtime"
    ASSISTANT_PROGRESS = "assistant_progress"
    TOOL = "tool"
    STATE_SYNC = "state_sync"
    TRACE = "trace"


class Row(NamedTuple):
    """The presentation of one kind of event."""

    category: Category
    title: str
    says: str


_MESSAGES: Final[Mapping[type[Record], Row]] = {
    events.MessageAdmitted: Row(
        Category.MESSAGE, "Message", "{message_kind} {message_id} was queued ({priority})"
    ),
    events.MessageProcessingStarted: Row(
        Category.MESSAGE, "Message", "{message_id} is being processed"
    ),
    events.MessageDeferred: Row(
        Category.MESSAGE, "Message", "{message_id} waits until {until:%Y-%m-%d %H:%M:%S} UTC"
    ),
    events.MessageProcessed: Row(Category.MESSAGE, "Message", "{message_id} is done: {reason}"),
    events.MessageAborted: Row(Category.MESSAGE, "Message", "{message_id} was aborted: {reason}"),
    events.MessageDropped: Row(Category.MESSAGE, "Message", "{message_id} was dropped: {reason}"),
    agents.UnseenLetGo: Row(
        Category.MESSAGE,
        "Messages discarded",
        "{message_count} messages, up to {last_message_id}, are too many to be shown to the agent",
    ),
    events.InterjectionAdmitted: Row(
        Category.MESSAGE, "Interjection", "{message_id} entered the running turn"
    ),
    events.TurnStarted: Row(Category.MESSAGE, "Turn", "Turn {turn_index} started"),
    events.BriefCreated: Row(Category.BRIEF, "Brief", "A {brief_kind} brief was written"),
}

_WORK: Final[Mapping[type[Record], Row]] = {
    work.WorkItemWritten: Row(
        Category.WORK_ITEM, "Work item", "Work item {work_item_id} was written"
    ),
    work.WorkItemPicked: Row(
        Category.WORK_ITEM, "Work item", "Work item {work_item_id} is current now"
    ),
    work.WorkItemFocusReleased: Row(Category.WORK_ITEM, "Work item", "No work item is current"),
    work.CompletionReportPromoted: Row(
        Category.WORK_ITEM, "Completion report", "Work item {work_item_id} has its report"
    ),
    work.CompletionReportMissing: Row(
        Category.WORK_ITEM,
        "Completion report",
        "Work item {work_item_id} was completed without a report: {problem}",
    ),
    work.WorkReminderInjected: Row(
        Category.WORK_ITEM, "Reminder", "The model was reminded of work item {work_item_id}"
    ),
    work.WorkReminderSkipped: Row(
        Category.WORK_ITEM,
        "Reminder",
        "A reminder of work item {work_item_id} was left out: {obstacle}",
    ),
    events.TaskCreated: Row(Category.TASK, "Task", "Task {task_id} was created ({task_kind})"),
    events.TaskStatusUpdated: Row(Category.TASK, "Task", "Task {task_id} is {status}"),
}

_WAITING: Final[Mapping[type[Record], Row]] = {
    wake.TimerCreated: Row(
        Category.WAITING, "Timer", "{timer_id} fires at {next_fire_at:%Y-%m-%d %H:%M:%S} UTC"
    ),
    wake.TimerFired: Row(Category.WAITING, "Timer", "{timer_id} fired"),
    wake.TimerRescheduled: Row(
        Category.WAITING,
        "Timer",
        "{timer_id} fires at {next_fire_at:%Y-%m-%d %H:%M:%S} UTC: the clock was set",
    ),
    wake.TimerCancelled: Row(Category.WAITING, "Timer", "{timer_id} was cancelled"),
    wake.WakeHintParked: Row(
        Category.WAITING, "Wake hint", "A hint from {source_key} waits ({revision})"
    ),
    wake.WakeHintTriggered: Row(Category.WAITING, "Wake hint", "Parked hints woke the agent"),
    wake.WakeHintIgnored: Row(
        Category.WAITING, "Wake hint", "A hint from {source_key} was ignored: {reason}"
    ),
    wake.CallbackDelivered: Row(
        Category.WAITING, "Callback", "{external_trigger_id} was used: {disposition}"
    ),
    wake.CallbackRefused: Row(
        Category.WAITING, "Callback", "A use of {external_trigger_id} was refused: {reason}"
    ),
    wake.ExternalTriggerCreated: Row(
        Category.TRACE, "Trigger", "{external_trigger_id} was created"
    ),
    wake.ExternalTriggerRotated: Row(
        Category.TRACE, "Trigger", "{external_trigger_id} has a new address"
    ),
    wake.ExternalTriggerRevoked: Row(
        Category.TRACE, "Trigger", "{external_trigger_id} was revoked"
    ),
    wake.WaitOpened: Row(Category.WAITING, "Wait", "Waiting began: {wait_kind}"),
    wake.WaitMoved: Row(Category.WAITING, "Wait", "{wait_id} is {state}"),
}

_WORKSPACES: Final[Mapping[type[Record], Row]] = {
    workspaces.WorkspaceAttached: Row(
        Category.WORKSPACE, "Workspace", "{workspace_id} was attached: {workspace_anchor}"
    ),
    workspaces.WorkspaceEntered: Row(
        Category.WORKSPACE, "Workspace", "The agent works in {cwd} now"
    ),
    workspaces.WorkspaceExited: Row(
        Category.WORKSPACE, "Workspace", "The agent left {workspace_id} and works at home"
    ),
    workspaces.WorkspaceDetached: Row(
        Category.WORKSPACE, "Workspace", "{workspace_id} was detached"
    ),
}

_SKILLS: Final[Mapping[type[Record], Row]] = {
    guidance.SkillActivated: Row(
        Category.TOOL, "Skill", "{skill_name} is in use ({load_reason}): {path}"
    ),
    guidance.SkillInstalled: Row(
        Category.RUNTIME, "Skill", "{skill_name} was installed from {source}"
    ),
    guidance.SkillUninstalled: Row(Category.RUNTIME, "Skill", "{skill_name} was uninstalled"),
}

_MEMORY: Final[Mapping[type[Record], Row]] = {
    records.WorkingMemoryUpdated: Row(
        Category.TRACE, "Memory", "Working memory is at revision {revision}: {reason}"
    ),
    records.EpisodeFinalized: Row(
        Category.TRACE,
        "Memory",
        "Turns {start_turn_index} to {end_turn_index} were archived as an episode:"
        " {boundary_reason}",
    ),
    guidance.InstructionSourceChanged: Row(
        Category.RUNTIME,
        "Instructions",
        "{path} changed during a turn that was shown {authority_class}",
    ),
}

_MODEL_AND_TOOLS: Final[Mapping[type[Record], Row]] = {
    events.TurnContextBuilt: Row(
        Category.RUNTIME, "Context", "The prompt was built in {context_build_ms} ms"
    ),
    events.AssistantRoundRecorded: Row(
        Category.ASSISTANT_PROGRESS, "Assistant", "Model round {round} ended without text"
    ),
    events.ProviderRoundCompleted: Row(
        Category.ASSISTANT_PROGRESS,
        "Provider",
        "Provider round {round} took {provider_round_ms} ms",
    ),
    events.ToolStarted: Row(Category.TOOL, "Tool", "{tool_name} started"),
    events.ToolExecuted: Row(Category.TOOL, "Tool", "{tool_name} took {duration_ms} ms"),
    events.ToolExecutionFailed: Row(Category.TOOL, "Tool", "{tool_name} failed: {error_kind}"),
}

_RUNTIME: Final[Mapping[type[Record], Row]] = {
    events.AgentCreated: Row(Category.RUNTIME, "Agent", "The agent was created"),
    events.AgentStateChanged: Row(Category.STATE_SYNC, "State", "The agent is {status}: {reason}"),
    agents.ModelOverrideChanged: Row(Category.RUNTIME, "Model", "The agent's model is {model}"),
    agents.AgentArchived: Row(Category.RUNTIME, "Agent", "The agent is archived: {reason}"),
    events.ContinuationResolved: Row(
        Category.RUNTIME, "Continuation", "{message_id} was classified"
    ),
    events.TurnResumed: Row(Category.TRACE, "Turn", "The open turn resumed after a restart"),
    compaction.TurnCompactionApplied: Row(
        Category.TRACE, "Compaction", "Rounds 1 to {through_round} of the turn became a recap"
    ),
    compaction.CheckpointRequested: Row(
        Category.TRACE, "Compaction", "The model was asked for a checkpoint"
    ),
    compaction.CheckpointResumed: Row(
        Category.TRACE, "Compaction", "The checkpoint is recorded; the turn continues"
    ),
    compaction.TurnBaselineOverBudget: Row(
        Category.RUNTIME,
        "Failure",
        "The request needs about {needed_tokens} tokens where {budget_tokens} fit",
    ),
    compaction.HistoryCompacted: Row(
        Category.TRACE, "Compaction", "Turns before {history_from_turn} became a recap"
    ),
    events.MaxOutputRecovery: Row(Category.RUNTIME, "Turn", "A cut answer is being continued"),
    events.TurnEnded: Row(
        Category.RUNTIME, "Turn", "Turn {turn_index} ended {terminal} after {duration_ms} ms"
    ),
    events.RuntimeErrorRecorded: Row(Category.RUNTIME, "Failure", "A turn failed"),
    events.ProviderDeferred: Row(
        Category.RUNTIME, "Deferred", "The turn is deferred until {until:%Y-%m-%d %H:%M:%S} UTC"
    ),
    events.ClosureDecided: Row(Category.RUNTIME, "Closure", "The pass ended {outcome}"),
    budgets.MessageHeld: Row(
        Category.RUNTIME, "Rate limited", "{message_id} waits until {until:%Y-%m-%d %H:%M:%S} UTC"
    ),
    budgets.SelfStartsEnded: Row(
        Category.RUNTIME, "Rate limited", "{turn_count} turns made no progress; the agent rests"
    ),
    budgets.BudgetUsedUp: Row(
        Category.RUNTIME,
        "Budget",
        "The {scope} budget is exhausted until {until:%Y-%m-%d %H:%M:%S} UTC: {measure}",
    ),
    budgets.BudgetFreed: Row(Category.RUNTIME, "Budget", "The budget is available again"),
    wake.SystemTickEmitted: Row(Category.RUNTIME, "Tick", "The runtime queued a tick"),
    events.ControlApplied: Row(Category.RUNTIME, "Control", "{action} was applied"),
}

ROWS: Final[Mapping[type[Record], Row]] = MappingProxyType(
    {
        **_MESSAGES,
        **_WORK,
        **_WAITING,
        **_WORKSPACES,
        **_SKILLS,
        **_MEMORY,
        **_MODEL_AND_TOOLS,
        **_RUNTIME,
    }
)


class OperatorEvent(Record, frozen=True, kw_only=True):
    """An event, presented."""

    visibility: OperatorVisibility
    category: Category
    title: str
    summary: str
    source_event_kind: str
    body: str | None = None


class PresentationContext(Record, frozen=True, kw_only=True):
    """Facts from earlier events of the same agent."""

    awaits_operator: bool = False
    completed_item_ids: tuple[WorkItemId, ...] = ()  # completed in this turn


class _Details(NamedTuple):
    """The presentation details of one event; the rest is in its row."""

    visibility: OperatorVisibility = OperatorVisibility.TRACE
    summary: str | None = None
    body: str | None = None


NOTHING_BEFORE: Final = PresentationContext()


def present(
    event: Event,
    context: PresentationContext = NOTHING_BEFORE,
    *,
    brief: BriefRecord | None = None,
) -> OperatorEvent:
    """Return the presentation of an event. `brief` is that of a brief_created event, if known."""
    row = ROWS[type(event)]
    details = _details(event, context, brief)
    text = row.says.format_map(msgspec.structs.asdict(event)) if details.summary is None else None
    return OperatorEvent(
        visibility=details.visibility,
        category=row.category,
        title=row.title,
        summary=one_line(text or details.summary or row.title),
        source_event_kind=kind_of(event),
        body=None if details.body is None else bounded(details.body).text,
    )


def context_at(events: Sequence[AuditEvent], event_seq: int) -> PresentationContext:
    """Return the context at one of these events of one agent, oldest first."""
    context = NOTHING_BEFORE
    for number, each in enumerate(events):
        if each.event_seq == event_seq:
            return _with_closure(context, events[number:])
        context = after(context, each.event)
    return context


def _with_closure(
    context: PresentationContext, following: Sequence[AuditEvent]
) -> PresentationContext:
    """Include the closure of the same commit, which the log records after the brief."""
    first, *rest = following
    for each in rest:
        if each.created_at != first.created_at or isinstance(
            each.event, TurnStarted | BriefCreated
        ):
            break
        if isinstance(each.event, ClosureDecided):
            return after(context, each.event)
    return context


def after(context: PresentationContext, event: Event) -> PresentationContext:
    """Return the context after this event."""
    match event:
        case TurnStarted():
            return NOTHING_BEFORE
        case ClosureDecided(waiting_reason=reason):
            awaits = reason is WaitingReason.AWAITING_OPERATOR_INPUT
            return msgspec.structs.replace(context, awaits_operator=awaits)
        case WaitOpened(wait_kind=WaitKind.OPERATOR):
            return msgspec.structs.replace(context, awaits_operator=True)
        case WorkItemWritten(work_item_id=item_id, state=WorkItemState.COMPLETED):
            completed = (*context.completed_item_ids, item_id)[-_COMPLETED_REMEMBERED_COUNT:]
            return msgspec.structs.replace(context, completed_item_ids=completed)
        case _:
            return context


def kind_of(event: Event) -> str:
    """Return the stable name of an event's kind."""
    return str(type(event).__struct_config__.tag)


def _details(event: Event, context: PresentationContext, brief: BriefRecord | None) -> _Details:
    match event:
        case BriefCreated():
            return _brief(event, context, brief)
        case WorkItemWritten(work_item_id=item_id, state=WorkItemState.COMPLETED):
            return _Details(OperatorVisibility.WORK_DONE, f"Work item {item_id} is completed")
        case AssistantRoundRecorded():
            return _round(event)
        case RuntimeErrorRecorded(failure=failure):
            summary = f"Turn failed: {failure.summary}"
            return _Details(OperatorVisibility.TURN_RESULT, summary, failure.recovery_hint)
        case _ if ROWS[type(event)].category is Category.ASSISTANT_PROGRESS:
            return _Details(OperatorVisibility.PROGRESS)
        case _:
            return _traced(event)


def _traced(event: Event) -> _Details:
    match event:
        case TurnEnded(reason=str() as reason):
            return _Details(body=reason)
        case ProviderDeferred(failure=failure):
            return _Details(body=failure.summary)
        case ModelOverrideChanged(model=None):
            return _Details(summary="The agent uses the runtime's model again")
        case ClosureDecided(outcome=outcome, waiting_reason=WaitingReason() as reason):
            return _Details(summary=f"The pass ended {outcome}: {reason}")
        case ToolExecutionFailed(tool_name=name, interrupted=True):
            return _Details(summary=f"{name} was interrupted; it may have had its effect")
        case _:
            return _Details()


def _brief(
    event: BriefCreated, context: PresentationContext, brief: BriefRecord | None
) -> _Details:
    is_result = event.brief_kind is BriefKind.RESULT
    if event.visibility is not None:
        visibility = event.visibility
    elif is_result and event.work_item_id in context.completed_item_ids:
        visibility = OperatorVisibility.WORK_DONE  # takes precedence over a wait for the operator
    elif context.awaits_operator:
        visibility = OperatorVisibility.ACTION_REQUIRED
    else:
        visibility = OperatorVisibility.TURN_RESULT
    if brief is None or not brief.text.strip():
        return _Details(visibility)
    return _Details(visibility, brief.text.strip().split("\n", 1)[0], brief.text)


def _round(event: AssistantRoundRecorded) -> _Details:
    visibility = OperatorVisibility.PROGRESS
    if event.preview.strip():
        preview = event.preview[:EVENT_TEXT_CHARS_MAX]
        return _Details(visibility, f"Assistant progress: {preview}", event.preview)
    if event.tool_names:
        return _Details(visibility, f"Model requested tools: {', '.join(event.tool_names)}")
    if event.tool_call_count:
        return _Details(visibility, f"Model requested {event.tool_call_count} tools")
    return _Details(visibility)


class DisplayMode(StrEnum):
    """The amount of detail to show, from results only to everything."""

    INFO = "info"
    VERBOSE = "verbose"
    DEBUG = "debug"
    TRACE = "trace"


class UnknownDisplayModeError(BadInputError):
    """The display mode is unknown or not available for a conversation."""

    code = "unknown_display_mode"
    hint = "choose info (3), verbose (4) or debug (5); raw events: holon events tail"


NUMBERS: Final[Mapping[str, DisplayMode]] = MappingProxyType(
    {"3": DisplayMode.INFO, "4": DisplayMode.VERBOSE, "5": DisplayMode.DEBUG}
)
_CONVERSATION: Final = (DisplayMode.INFO, DisplayMode.VERBOSE, DisplayMode.DEBUG)

# What a mode shows besides results. Tool events stay trace-level; these are the curated rows.
_ACTIVITY: Final = frozenset({Category.ASSISTANT_PROGRESS, Category.TOOL, Category.TASK})
_DETAILS: Final = _ACTIVITY | {
    Category.MESSAGE,
    Category.WORK_ITEM,
    Category.WAITING,
    Category.WORKSPACE,
    Category.RUNTIME,
}
_CATEGORIES: Final[Mapping[DisplayMode, frozenset[Category]]] = MappingProxyType(
    {
        DisplayMode.INFO: frozenset(),
        DisplayMode.VERBOSE: _ACTIVITY,
        DisplayMode.DEBUG: _DETAILS,
        DisplayMode.TRACE: frozenset(Category),
    }
)


def parse_display_mode(text: str) -> DisplayMode:
    """Return the conversation mode for a name or number, or raise."""
    name = text.strip().lower()
    if name in NUMBERS:
        return NUMBERS[name]
    for mode in _CONVERSATION:
        if mode.value == name:
            return mode
    raise UnknownDisplayModeError(f"{one_line(text, chars_max=40)!r} is no display mode")


def shows(mode: DisplayMode, presented: OperatorEvent) -> bool:
    """Whether a mode shows an event."""
    if presented.category in _CATEGORIES[mode]:
        return True
    is_synced = presented.category is Category.STATE_SYNC
    return presented.visibility.level <= _RESULT_LEVEL and not is_synced


def is_within(level: OperatorVisibility, visibility: OperatorVisibility) -> bool:
    """Whether an event passes the filter by `level`."""
    return visibility.level <= level.level
