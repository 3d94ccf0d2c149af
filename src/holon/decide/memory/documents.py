"""Memory documents: what memory search indexes, and from which records.

Owns:  the texts, titles and labels of indexed documents, and the form of a `source_ref`; the map
       from a durable change to the index marks it leaves, in the same commit.
Rule 1: a document has the lowest authority of what went into it. What an agent or the runtime wrote
        is not the operator's text, even when the operator was answered; command output is evidence;
        a file that any command can write is evidence too.
Rule 2: a document belongs where its record says, not where the agent is today. A record that names
        no workspace, or the agent's home, belongs to the agent.
Rule 3: commands are indexed as they were requested. Their output is not indexed here.
Rule 4: a record that is written while a turn runs is marked with that turn, so that what the turn
        was shown is never lost: labels go down with it and do not come up again.
Rule 5: what a task printed or a trigger sent is evidence, although the runtime carries it
        (decide/queue/message_view).
Rule 6: a turn the runtime begins by itself is marked as a continuation: what the turn before it, or
        the first of its chain, was shown counts for it as well.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final, assert_never

import msgspec

from holon.decide.queue.authority import lowest
from holon.decide.queue.message_view import lowest_authority_of
from holon.decide.wake.triggers import without_addresses
from holon.model.commits import (
    AdvanceTask,
    AppendBrief,
    AppendTranscript,
    Change,
    CreateTask,
    PutWorkItem,
    SettleTurn,
    StartToolCall,
)
from holon.model.errors import BadIdError
from holon.model.events.briefs import BriefRecord
from holon.model.limits import MEMORY_SNIPPET_CHARS_MAX, MEMORY_TITLE_CHARS_MAX
from holon.model.memory.index import (
    MemoryDocument,
    MemoryKind,
    MemoryMark,
    MemoryScope,
    MemorySource,
    MemoryText,
    SourceChanged,
    TurnShown,
)
from holon.model.memory.records import ArchiveEpisode, EpisodeRecord, MemoryHit
from holon.model.queue import AuthorityClass
from holon.model.record import Record
from holon.model.tasks import CommandRecovery, TaskRecord
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.transcript import IncomingMessage
from holon.model.values import AgentId, Instant, JsonValue, TurnId, WorkspaceId
from holon.model.work import TodoState, WorkItemRecord
from holon.model.workspaces import AGENT_HOME, AttachWorkspace, DetachWorkspace, WorkspaceEntry

MEMORY_FILES: Final = {
    "agent_memory:self": "memory/self.md",
    "agent_memory:operator": "memory/operator.md",
}
_REF_CHARS_MAX: Final = 256
_REF: Final = re.compile(
    f"(?:{'|'.join(kind.value for kind in MemoryKind)}):[a-z0-9](?:[a-z0-9_:.-]*[a-z0-9_-])?"
)
_COMMAND: Final = re.compile(r"(?::batch_item:[0-9]+)?:cmd$")
_FILE_TITLES: Final = {
    "agent_memory:self": "What the agent wrote down about itself",
    "agent_memory:operator": "What the agent wrote down about its operator",
}
_TICKS: Final = {TodoState.PENDING: " ", TodoState.IN_PROGRESS: "~", TodoState.COMPLETED: "x"}
COMMAND_TOOLS: Final = frozenset({"ExecCommand", "ExecCommandBatch"})


class _Text(Record, frozen=True, kw_only=True):
    """The text of one document and where it belongs."""

    title: str
    body: str
    updated_at: Instant
    suffix: str = ""  # of the source_ref, when a record has several documents
    least: AuthorityClass = AuthorityClass.RUNTIME_INSTRUCTION
    workspace_id: WorkspaceId | None = None
    source_path: str | None = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


def require_source_ref(text: str) -> str:
    """Return a reference that has the form of one, or raise BadIdError."""
    if len(text) <= _REF_CHARS_MAX and ".." not in text and _REF.fullmatch(text) is not None:
        return text
    raise BadIdError(
        "this is not a source_ref; a file, a path or an address cannot be read this way",
        hint="search first, and copy the source_ref of a hit as it stands",
    )


def source_of(source_ref: str) -> tuple[MemoryKind, str] | None:
    """Return the record a reference leads to, if it has the form of one."""
    if _REF.fullmatch(source_ref) is None:
        return None
    kind, _, rest = source_ref.partition(":")
    return MemoryKind(kind), _COMMAND.sub("", rest)


def verified_hit(hit: MemoryHit, document: MemoryDocument) -> MemoryHit:
    """Return a hit as its source has it; a snippet the source does not hold is not shown.

    The index lies where an agent's commands can write. It may say which texts match, never what is
    in them or what they are worth.
    """
    text = " ".join(document.body.split())
    snippet = hit.snippet if hit.snippet.strip("…") in text else text[:MEMORY_SNIPPET_CHARS_MAX]
    return MemoryHit(
        kind=document.kind.value,
        source_ref=document.source_ref,
        scope_kind=document.scope_kind.value,
        agent_id=document.agent_id,
        title=document.title,
        snippet=snippet,
        score=hit.score,
        updated_at=document.updated_at,
        authority_class=document.authority_class,
        workspace_id=document.workspace_id,
        source_path=document.source_path,
        metadata=document.metadata,
    )


def text_of(document: MemoryDocument, *, chars_max: int) -> MemoryText:
    """Return the exact text of a document, within a bound."""
    return MemoryText(
        kind=document.kind,
        source_ref=document.source_ref,
        scope_kind=document.scope_kind,
        agent_id=document.agent_id,
        title=document.title,
        updated_at=document.updated_at,
        authority_class=document.authority_class,
        content=document.body[:chars_max],
        truncated=len(document.body) > chars_max,
        workspace_id=document.workspace_id,
        source_path=document.source_path,
        metadata=document.metadata,
    )


def is_visible(document: MemoryDocument, scope: MemoryScope) -> bool:
    """Whether a search of this scope may show a document."""
    return (
        scope.all_workspaces
        or document.workspace_id is None
        or document.workspace_id == scope.workspace_id
    )


def documents_of(source: MemorySource) -> tuple[MemoryDocument, ...]:
    """Return the documents of a record; a record that is gone has none."""
    return tuple(
        MemoryDocument(
            kind=source.kind,
            source_ref=f"{source.source_key}{text.suffix}",
            source_key=source.source_key,
            agent_id=source.agent_id,
            title=text.title,
            body=text.body,
            updated_at=text.updated_at,
            authority_class=lowest((source.authority_class, text.least)),
            # An agent's home is the agent's own: its content is found from every workspace.
            workspace_id=None if text.workspace_id == AGENT_HOME else text.workspace_id,
            source_path=text.source_path,
            metadata=text.metadata,
        )
        for text in _texts(source)
        if text.body
    )


def file_document(
    agent_id: AgentId, source_ref: str, body: str, *, updated_at: datetime
) -> MemoryDocument:
    """Return the document of one of the two files an agent keeps its memory in."""
    return MemoryDocument(
        kind=MemoryKind.AGENT_MEMORY,
        source_ref=source_ref,
        source_key=source_ref,
        agent_id=agent_id,
        title=_FILE_TITLES[source_ref],
        body=body,
        updated_at=updated_at,
        authority_class=AuthorityClass.EXTERNAL_EVIDENCE,
        source_path=MEMORY_FILES[source_ref],
    )


def _texts(source: MemorySource) -> Iterable[_Text]:
    match source.record:
        case None:
            return ()
        case BriefRecord() as brief:
            return (_brief(brief),)
        case WorkItemRecord() as item:
            return (_item(item),)
        case TaskRecord() as task:
            return (_task(task),)
        case ToolCallRecord() as call:
            return _commands(call)
        case WorkspaceEntry() as entry:
            return (_workspace(entry),)
        case EpisodeRecord() as episode:
            return (_episode(episode),)
        case _:
            assert_never(source.record)


def _brief(brief: BriefRecord) -> _Text:
    texts = (brief.text, None if brief.failure is None else brief.failure.summary)
    return _Text(
        title=_title(brief.text),
        body=_joined(texts),
        updated_at=brief.created_at,
        workspace_id=brief.workspace_id,
        metadata=_named(
            brief_kind=brief.kind.value, work_item_id=brief.work_item_id, turn_id=brief.turn_id
        ),
    )


def _item(item: WorkItemRecord) -> _Text:
    todos = (f"- [{_TICKS[todo.state]}] {todo.text}" for todo in item.todo_list)
    plan = item.plan_artifact
    return _Text(
        title=_title(item.objective),
        body=_joined(
            (
                item.objective,
                *todos,
                None if plan is None else plan.preview,
                item.blocked_by and f"blocked by: {item.blocked_by}",
                item.result_summary,
            )
        ),
        updated_at=item.updated_at,
        workspace_id=item.workspace_id,
        metadata=_named(state=item.state.value),
    )


def _task(task: TaskRecord) -> _Text:
    command = task.recovery.spec.cmd if isinstance(task.recovery, CommandRecovery) else None
    result = task.result_summary
    return _Text(
        title=_title(task.summary or command or task.kind.value),
        body=_joined((task.summary, command, result)),
        updated_at=task.updated_at,
        least=AuthorityClass.RUNTIME_INSTRUCTION
        if result is None
        else AuthorityClass.EXTERNAL_EVIDENCE,
        metadata=_named(
            task_kind=task.kind.value, status=task.status.value, work_item_id=task.work_item_id
        ),
    )


def _commands(call: ToolCallRecord) -> Iterable[_Text]:
    """The command lines of a call, each a document of its own."""
    arguments: JsonValue = call.input if isinstance(call.input, dict) else {}
    items = arguments.get("items")
    lines = [(":cmd", arguments.get("cmd"))]
    if isinstance(items, list):
        lines += [(f":batch_item:{at}:cmd", _line(item)) for at, item in enumerate(items)]
    for suffix, line in lines:
        if isinstance(line, str) and line.strip():
            line = without_addresses(line)  # a command that configures an outside system has one
            yield _Text(
                title=_title(line),
                body=line,
                updated_at=call.started_at,
                suffix=suffix,
                metadata=_named(
                    tool_name=call.name, work_item_id=call.work_item_id, turn_id=call.turn_id
                ),
            )


def _line(item: JsonValue) -> JsonValue:
    return item.get("cmd") if isinstance(item, dict) else None


def _workspace(entry: WorkspaceEntry) -> _Text:
    name = entry.workspace_alias or entry.repo_name or entry.workspace_anchor.rsplit("/", 1)[-1]
    return _Text(
        title=_title(f"Workspace {name}"),
        body=_joined((f"Workspace {name}", entry.repo_name, entry.workspace_anchor)),
        updated_at=entry.updated_at,
        workspace_id=entry.workspace_id,
        source_path=entry.workspace_anchor,
    )


def _episode(episode: EpisodeRecord) -> _Text:
    return _Text(
        title=_title(episode.summary),
        body=_joined(
            (
                episode.summary,
                *episode.decisions,
                *episode.verification,
                *episode.carry_forward,
                *episode.waiting_on,
                *episode.working_set_files,
                *episode.commands,
            )
        ),
        updated_at=episode.finalized_at,
        workspace_id=episode.workspace_id,
        metadata=_named(
            boundary_reason=episode.boundary_reason.value,
            work_item_id=episode.work_item_id,
            turns=f"{episode.start_turn_index}-{episode.end_turn_index}",
        ),
    )


def _title(text: str) -> str:
    """The first line that is not blank."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first[:MEMORY_TITLE_CHARS_MAX]


def _joined(lines: Iterable[str | None]) -> str:
    return "\n".join(line for line in lines if line)


def _named(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def turn_of(changes: Iterable[Change]) -> TurnId | None:
    """Return the turn a commit ends, if it ends one; the commit's other changes belong to it."""
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
            return (_turn_shown(entry.turn_id, entry.data),)
        case _:
            return ()


def _changed(
    agent_id: AgentId, kind: MemoryKind, source_id: str, turn_id: TurnId | None
) -> SourceChanged:
    return SourceChanged(agent_id=agent_id, kind=kind, source_id=source_id, turn_id=turn_id)


def _turn_shown(turn_id: TurnId, incoming: IncomingMessage) -> TurnShown:
    authority = lowest_authority_of((incoming.message, *incoming.unseen))
    chain = incoming.message.followup
    return TurnShown(
        turn_id=turn_id,
        authority_class=authority,
        goes_on=authority is AuthorityClass.RUNTIME_INSTRUCTION,
        root_id=None if chain is None else chain.root_id,
    )
