"""Which changes memory search has to know about.

Owns:  the map from a durable change to the marks it leaves, in the same commit.
Rule 1: a record that is written while a turn runs is marked with that turn, so that what the turn
        was shown can never be forgotten: labels go down with it and do not come up again.
Rule 2: what a task printed or a trigger sent is evidence, although the runtime brings it
        (decide/shown_authority).
Rule 3: a turn the runtime begins by itself is marked as going on: what the turn before it, or the
        one its chain began with, was shown counts for it as well.
"""

from collections.abc import Iterable
from typing import Final

from holon.decide.shown_authority import worth_of
from holon.model.commit import (
    AdvanceTask,
    AppendBrief,
    AppendTranscript,
    Change,
    CreateTask,
    PutWorkItem,
    SettleTurn,
    StartToolCall,
)
from holon.model.ids import AgentId, TurnId
from holon.model.memory_change import ArchiveEpisode
from holon.model.memory_index import MemoryKind
from holon.model.memory_mark import MemoryMark, SourceChanged, TurnShown
from holon.model.provenance import AuthorityClass
from holon.model.transcript import IncomingMessage
from holon.model.workspace_change import AttachWorkspace, DetachWorkspace

COMMAND_TOOLS: Final = frozenset({"ExecCommand", "ExecCommandBatch"})


def turn_of(changes: Iterable[Change]) -> TurnId | None:
    """Return the turn a commit ends, if it ends one; the rest of it is that turn's doing."""
    return next((each.turn_id for each in changes if isinstance(each, SettleTurn)), None)


def marks_of(change: Change, *, turn_id: TurnId | None) -> tuple[MemoryMark, ...]:
    """Return the marks of a change; most changes leave none."""
    match change:
        case AppendBrief(brief=brief):
            by = brief.turn_id or turn_id
            return (_changed(brief.agent_id, MemoryKind.BRIEF, brief.id, by),)
        case PutWorkItem(item=item):
            return (_changed(item.agent_id, MemoryKind.WORK_ITEM, item.id, turn_id),)
        case CreateTask(task=task):
            return (_changed(task.agent_id, MemoryKind.TASK, task.id, turn_id),)
        case AdvanceTask(agent_id=agent_id, task_id=task_id):
            return (_changed(agent_id, MemoryKind.TASK, task_id, turn_id),)
        case StartToolCall(call=call) if call.name in COMMAND_TOOLS:
            kind = MemoryKind.TOOL_EXECUTION
            return (_changed(call.agent_id, kind, call.effect_id, call.turn_id),)
        case AttachWorkspace(agent_id=agent_id, entry=entry):
            kind = MemoryKind.WORKSPACE_PROFILE
            return (_changed(agent_id, kind, entry.workspace_id, turn_id),)
        case DetachWorkspace(agent_id=agent_id, workspace_id=workspace_id):
            kind = MemoryKind.WORKSPACE_PROFILE
            return (_changed(agent_id, kind, workspace_id, turn_id),)
        case ArchiveEpisode(episode=episode):
            return (
                SourceChanged(
                    agent_id=episode.agent_id,
                    kind=MemoryKind.EPISODE,
                    source_id=episode.id,
                    turn_id=turn_id,
                    turns=(episode.start_turn_index, episode.end_turn_index),
                ),
            )
        case AppendTranscript(entry=entry) if isinstance(entry.data, IncomingMessage):
            return (_shown(entry.turn_id, entry.data),)
        case _:
            return ()


def _changed(
    agent_id: AgentId, kind: MemoryKind, source_id: str, turn_id: TurnId | None
) -> SourceChanged:
    return SourceChanged(agent_id=agent_id, kind=kind, source_id=source_id, turn_id=turn_id)


def _shown(turn_id: TurnId, incoming: IncomingMessage) -> TurnShown:
    worth = worth_of((incoming.message, *incoming.unseen))
    chain = incoming.message.followup
    return TurnShown(
        turn_id=turn_id,
        authority_class=worth,
        goes_on=worth is AuthorityClass.RUNTIME_INSTRUCTION,
        root_id=None if chain is None else chain.root_id,
    )
