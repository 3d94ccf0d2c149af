"""The table of operator events: category, title and words of every event kind.

Owns:  the row of each event class. Words name the event's own fields in braces; what depends on
       more than that is in operator_event.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from holon.model import agent_event as agents
from holon.model import context_event as contexts
from holon.model import event as events
from holon.model import instruction_event as instructions
from holon.model import memory_event as memory
from holon.model import pace_event as pacing
from holon.model import skill_event as skills
from holon.model import trigger_event as triggers
from holon.model import wake_event as waking
from holon.model import work_event as work
from holon.model import workspace_event as places
from holon.model.record import Record


class Category(StrEnum):
    """What an event is about."""

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
    """How one kind of event reads."""

    category: Category
    title: str
    says: str


_MESSAGES: Final[Mapping[type[Record], Row]] = {
    events.MessageAdmitted: Row(
        Category.MESSAGE, "Message", "{message_kind} {message_id} was queued ({priority})"
    ),
    events.MessageProcessingStarted: Row(Category.MESSAGE, "Message", "{message_id} was taken up"),
    events.MessageDeferred: Row(
        Category.MESSAGE, "Message", "{message_id} waits until {until:%Y-%m-%d %H:%M:%S} UTC"
    ),
    events.MessageProcessed: Row(Category.MESSAGE, "Message", "{message_id} is done: {reason}"),
    events.MessageAborted: Row(Category.MESSAGE, "Message", "{message_id} was aborted: {reason}"),
    events.MessageDropped: Row(Category.MESSAGE, "Message", "{message_id} was dropped: {reason}"),
    agents.UnseenLetGo: Row(
        Category.MESSAGE,
        "Messages let go",
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
    waking.TimerCreated: Row(
        Category.WAITING, "Timer", "{timer_id} fires at {next_fire_at:%Y-%m-%d %H:%M:%S} UTC"
    ),
    waking.TimerFired: Row(Category.WAITING, "Timer", "{timer_id} fired"),
    waking.TimerRescheduled: Row(
        Category.WAITING,
        "Timer",
        "{timer_id} fires at {next_fire_at:%Y-%m-%d %H:%M:%S} UTC: the clock was set",
    ),
    waking.TimerCancelled: Row(Category.WAITING, "Timer", "{timer_id} was cancelled"),
    waking.WakeHintParked: Row(
        Category.WAITING, "Wake hint", "A hint from {source_key} waits ({revision})"
    ),
    waking.WakeHintTriggered: Row(Category.WAITING, "Wake hint", "Parked hints woke the agent"),
    waking.WakeHintIgnored: Row(
        Category.WAITING, "Wake hint", "A hint from {source_key} was ignored: {reason}"
    ),
    triggers.CallbackDelivered: Row(
        Category.WAITING, "Callback", "{external_trigger_id} was used: {disposition}"
    ),
    triggers.CallbackRefused: Row(
        Category.WAITING, "Callback", "A use of {external_trigger_id} was refused: {reason}"
    ),
    triggers.ExternalTriggerCreated: Row(
        Category.TRACE, "Trigger", "{external_trigger_id} was created"
    ),
    triggers.ExternalTriggerRotated: Row(
        Category.TRACE, "Trigger", "{external_trigger_id} has a new address"
    ),
    triggers.ExternalTriggerRevoked: Row(
        Category.TRACE, "Trigger", "{external_trigger_id} was revoked"
    ),
    waking.WaitOpened: Row(Category.WAITING, "Wait", "Waiting began: {wait_kind}"),
    waking.WaitMoved: Row(Category.WAITING, "Wait", "{wait_id} is {state}"),
}

_WORKSPACES: Final[Mapping[type[Record], Row]] = {
    places.WorkspaceAttached: Row(
        Category.WORKSPACE, "Workspace", "{workspace_id} was attached: {workspace_anchor}"
    ),
    places.WorkspaceEntered: Row(Category.WORKSPACE, "Workspace", "The agent works in {cwd} now"),
    places.WorkspaceExited: Row(
        Category.WORKSPACE, "Workspace", "The agent left {workspace_id} and works at home"
    ),
    places.WorkspaceDetached: Row(Category.WORKSPACE, "Workspace", "{workspace_id} was detached"),
}

_SKILLS: Final[Mapping[type[Record], Row]] = {
    skills.SkillActivated: Row(
        Category.TOOL, "Skill", "{skill_name} is in use ({load_reason}): {path}"
    ),
    skills.SkillInstalled: Row(
        Category.RUNTIME, "Skill", "{skill_name} was installed from {source}"
    ),
    skills.SkillUninstalled: Row(Category.RUNTIME, "Skill", "{skill_name} was uninstalled"),
}

_MEMORY: Final[Mapping[type[Record], Row]] = {
    memory.WorkingMemoryUpdated: Row(
        Category.TRACE, "Memory", "Working memory is at revision {revision}: {reason}"
    ),
    memory.EpisodeFinalized: Row(
        Category.TRACE,
        "Memory",
        "Turns {start_turn_index} to {end_turn_index} were archived as an episode:"
        " {boundary_reason}",
    ),
    instructions.InstructionSourceChanged: Row(
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
        Category.ASSISTANT_PROGRESS, "Assistant", "Model round {round} ended without words"
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
        Category.RUNTIME, "Continuation", "What {message_id} amounts to was decided"
    ),
    events.TurnResumed: Row(Category.TRACE, "Turn", "The open turn goes on after a restart"),
    contexts.TurnCompactionApplied: Row(
        Category.TRACE, "Compaction", "Rounds 1 to {through_round} of the turn became a recap"
    ),
    contexts.CheckpointRequested: Row(
        Category.TRACE, "Compaction", "The model was asked for a checkpoint"
    ),
    contexts.CheckpointResumed: Row(
        Category.TRACE, "Compaction", "The checkpoint is noted; the turn goes on"
    ),
    contexts.TurnBaselineOverBudget: Row(
        Category.RUNTIME,
        "Failure",
        "The request needs about {needed_tokens} tokens where {budget_tokens} fit",
    ),
    contexts.HistoryCompacted: Row(
        Category.TRACE, "Compaction", "Turns before {history_from_turn} became a recap"
    ),
    events.MaxOutputRecovery: Row(Category.RUNTIME, "Turn", "A cut answer is being continued"),
    events.TurnEnded: Row(
        Category.RUNTIME, "Turn", "Turn {turn_index} ended {terminal} after {duration_ms} ms"
    ),
    events.RuntimeErrorRecorded: Row(Category.RUNTIME, "Failure", "A turn failed"),
    events.ProviderDeferred: Row(
        Category.RUNTIME, "Put off", "The turn was put off until {until:%Y-%m-%d %H:%M:%S} UTC"
    ),
    events.ClosureDecided: Row(Category.RUNTIME, "Closure", "The pass ended {outcome}"),
    pacing.MessageHeld: Row(
        Category.RUNTIME, "Slowed down", "{message_id} waits until {until:%Y-%m-%d %H:%M:%S} UTC"
    ),
    pacing.SelfStartsEnded: Row(
        Category.RUNTIME, "Slowed down", "Nothing came of {turn_count} turns; the agent rests"
    ),
    pacing.BudgetUsedUp: Row(
        Category.RUNTIME,
        "Budget",
        "The {scope} budget is used up until {until:%Y-%m-%d %H:%M:%S} UTC: {measure}",
    ),
    pacing.BudgetFreed: Row(Category.RUNTIME, "Budget", "There is room in the budget again"),
    waking.SystemTickEmitted: Row(Category.RUNTIME, "Tick", "The runtime asks the agent to look"),
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
