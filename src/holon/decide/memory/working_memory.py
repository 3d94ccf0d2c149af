"""Working memory after a turn: the next state, and the delta the next prompt shows.

Owns:  the next working memory, its revision and its delta; the memory changes of a settlement:
       working memory, delta, and the episodes it closes.
Rule 1: memory follows from settled evidence alone: the same turn and the same rows give the same
        memory. It moves when a turn is settled and at no other time.
Rule 2: the revision goes up by one when something changed, and not otherwise.
Rule 3: a delta is shown once. It stays pending until a turn that was shown it, and in which a
        provider answered, is settled; what changes meanwhile is added to it.
Rule 4: what the prompt's lasting part shows (`base`) moves with the compression epoch alone.
Rule 5: objectives come from work items, decisions from calls. Text of a turn that was shown outside
        content is labelled with the authority of that content.
Rule 6: memory is derived from the settlement and the rows it was decided on, so that memory and its
        turn become durable together or not at all.
Rule 7: a turn that was deferred before a provider answered leaves nothing in memory.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from holon.decide.memory.episodes import EpisodeUpdate, TurnBoundary, next_episode
from holon.decide.turns.evidence import TurnEvidence, evidence_of, memory_line, newest_of
from holon.model.commits import Change, Commit, MoveWait, RecordClosure, SettleTurn
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.memory.records import (
    MEMORY_DELTA_ENTRIES_COUNT_MAX,
    MEMORY_ENTRIES_COUNT_MAX,
    MEMORY_FILES_COUNT_MAX,
    MEMORY_SUMMARY_CHARS_MAX,
    ArchiveEpisode,
    MemoryDeltaReason,
    MemoryState,
    RememberWork,
    TurnMemoryDelta,
    WorkingMemory,
    WorkingMemoryDelta,
)
from holon.model.queue import MessageEnvelope, MessageKind
from holon.model.record import Record
from holon.model.turns.compaction import RememberContext
from holon.model.turns.transcript import TurnLog
from holon.model.turns.turn import Closure, TerminalKind, TurnTerminal, Waiting
from holon.model.values import WorkspaceId
from holon.model.wake import WaitKind, WaitRecord
from holon.model.work import TodoState, WorkItemRecord, WorkItemState
from holon.model.workspaces import AGENT_HOME, WORKSPACE_ROOT

_WAKES: Final = frozenset(
    {MessageKind.TIMER_TICK, MessageKind.SYSTEM_TICK, MessageKind.CALLBACK_EVENT}
)
_UNVERIFIED: Final = "did not hold: "
_PUT_OFF: Final = TerminalKind.DEFERRED


class SettledTurn(Record, frozen=True, kw_only=True):
    """A turn at its end, and the rows as its settlement leaves them."""

    terminal: TurnTerminal
    message_kind: MessageKind
    evidence: TurnEvidence
    was_prompted: bool  # a provider answered: the model has seen this turn's prompt
    message_count: int
    item: WorkItemRecord | None = None  # in focus now, and open
    queued: tuple[WorkItemRecord, ...] = ()
    waits: tuple[WaitRecord, ...] = ()
    workspace_id: WorkspaceId | None = None
    compression_epoch: int = 0


def remembered(state: MemoryState, turn: SettledTurn) -> MemoryState:
    """Return working memory once the turn is settled; episodes are not considered."""
    memory = next_memory(state.memory, turn)
    changed = changed_fields(state.memory, memory)
    pending = None if turn.was_prompted else state.pending_delta
    moved = MemoryState(
        revision=state.revision + bool(changed),
        last_prompted_revision=state.revision
        if turn.was_prompted
        else state.last_prompted_revision,
        memory=memory,
        pending_delta=pending,
        base=state.base,
        base_epoch=state.base_epoch,
        builder=state.builder,
        archived_episode_count=state.archived_episode_count,
        authority_class=turn.evidence.authority_class,
    )
    if changed:
        delta = _pending_delta(pending, changed, moved, turn)
        moved = msgspec.structs.replace(moved, pending_delta=delta)
    if turn.compression_epoch != state.base_epoch:
        epoch = turn.compression_epoch
        moved = msgspec.structs.replace(moved, base=memory, base_epoch=epoch)
    return moved


def next_memory(before: WorkingMemory, turn: SettledTurn) -> WorkingMemory:
    """Return what the agent is in the middle of, now that the turn has ended."""
    item, evidence = turn.item, turn.evidence
    item_id = None if item is None else item.id
    kept = before if before.current_work_item_id == item_id else WorkingMemory()
    files = newest_of((*evidence.files, *kept.working_set_files), count_max=MEMORY_FILES_COUNT_MAX)
    return WorkingMemory(
        current_work_item_id=item_id,
        objective=None if item is None else memory_line(item.objective),
        work_summary=summary_of(turn) or kept.work_summary,
        scope_hints=scope_of(turn.workspace_id, files),
        plan=() if item is None else _plan(item),
        todo_list=() if item is None else _todos(item),
        working_set_files=files,
        recent_decisions=newest_of(
            (*evidence.decisions, *before.recent_decisions), count_max=MEMORY_ENTRIES_COUNT_MAX
        ),
        pending_followups=_followups(kept, turn),
        waiting_on=waiting_lines(turn.waits),
    )


def summary_of(turn: SettledTurn) -> str | None:
    """Return the last text of a turn, or how it failed; labelled if it saw outside content."""
    terminal = turn.terminal
    if terminal.kind is not TerminalKind.COMPLETED:
        return f"turn {terminal.turn_index} ended {terminal.kind}"
    text = memory_line(terminal.last_assistant_message or "", chars_max=MEMORY_SUMMARY_CHARS_MAX)
    if not text or turn.evidence.is_instructed:
        return text or None
    label = f"[{turn.evidence.authority_class}] "
    return memory_line(label + text, chars_max=MEMORY_SUMMARY_CHARS_MAX)


def waiting_lines(waits: tuple[WaitRecord, ...]) -> tuple[str, ...]:
    """Return what the agent waits for; a rest and a reminder are nothing to wait for."""
    lines = (
        memory_line(f"{wait.kind}: {wait.waiting_for}")
        for wait in waits
        if wait.state.is_open and wait.kind not in (WaitKind.REST, WaitKind.RECHECK)
    )
    return newest_of(lines, count_max=MEMORY_ENTRIES_COUNT_MAX)


def scope_of(workspace_id: WorkspaceId | None, files: tuple[str, ...]) -> tuple[str, ...]:
    """Name the workspace, if it was chosen, and the folders that files lie in."""
    is_chosen = workspace_id not in (None, AGENT_HOME, WORKSPACE_ROOT)
    place = (f"workspace {workspace_id}",) if is_chosen else ()
    folders = (f"{path.rpartition('/')[0]}/" for path in files if "/" in path)
    return newest_of((*place, *folders), count_max=MEMORY_ENTRIES_COUNT_MAX)


def changed_fields(before: WorkingMemory, after: WorkingMemory) -> tuple[str, ...]:
    """Name the parts that differ, in their order."""
    names = WorkingMemory.__struct_fields__
    return tuple(name for name in names if getattr(before, name) != getattr(after, name))


def _pending_delta(
    pending: WorkingMemoryDelta | None,
    changed: tuple[str, ...],
    state: MemoryState,
    turn: SettledTurn,
) -> WorkingMemoryDelta:
    unshown = () if pending is None else pending.changed_fields
    names = tuple(
        name for name in WorkingMemory.__struct_fields__ if name in changed or name in unshown
    )
    return WorkingMemoryDelta(
        from_revision=state.revision - 1 if pending is None else pending.from_revision,
        to_revision=state.revision,
        created_at_turn=turn.terminal.turn_index,
        reason=_reason(names, turn),
        changed_fields=names,
        summary_lines=tuple(_line(name, getattr(state.memory, name)) for name in names),
    )


def _reason(changed: tuple[str, ...], turn: SettledTurn) -> MemoryDeltaReason:
    if "current_work_item_id" in changed:
        return MemoryDeltaReason.ACTIVE_WORK_CHANGED
    if changed == ("scope_hints",):
        return MemoryDeltaReason.SCOPE_HINTS_CHANGED
    if turn.message_kind is MessageKind.TASK_RESULT:
        return MemoryDeltaReason.TASK_REJOINED
    if turn.message_kind in _WAKES:
        return MemoryDeltaReason.WAKE_RESUMED
    return MemoryDeltaReason.TERMINAL_TURN_COMPLETED


def _line(name: str, value: str | tuple[str, ...] | None) -> str:
    label = name.replace("_", " ")
    if not value:
        return f"{label}: nothing now"
    if isinstance(value, str):
        return memory_line(f"{label}: {value}")
    entries = "; ".join(value[:MEMORY_DELTA_ENTRIES_COUNT_MAX])
    more_count = len(value) - MEMORY_DELTA_ENTRIES_COUNT_MAX
    more = f" (and {more_count} more)" if more_count > 0 else ""
    return memory_line(f"{label}{more}: {entries}")


def _plan(item: WorkItemRecord) -> tuple[str, ...]:
    blocked = () if item.blocked_by is None else (memory_line(f"blocked: {item.blocked_by}"),)
    written = () if item.plan_artifact is None else (memory_line(f"in {item.plan_artifact.path}"),)
    return (f"{item.plan_status}", *written, *blocked)


def _todos(item: WorkItemRecord) -> tuple[str, ...]:
    """What is left of the checklist, in its order."""
    open_todos = [todo for todo in item.todo_list if todo.state is not TodoState.COMPLETED]
    lines = tuple(
        memory_line(f"{todo.state}: {todo.text}") for todo in open_todos[:MEMORY_ENTRIES_COUNT_MAX]
    )
    return newest_of(lines, count_max=MEMORY_ENTRIES_COUNT_MAX)


def _followups(memory: WorkingMemory, turn: SettledTurn) -> tuple[str, ...]:
    """Checks that failed and were not made good since, and other items that wait for their turn."""
    verified: dict[str, bool | None] = {}
    for run in turn.evidence.checks:  # newest first: the latest state counts
        verified.setdefault(_unverified(run.cmd), run.ended_well)
    failed = [line for line, ended_well in verified.items() if ended_well is False]
    earlier = (
        line
        for line in memory.pending_followups
        if line.startswith(_UNVERIFIED) and verified.get(line) is None
    )
    queued = (
        memory_line(f"work item {item.id}: {item.objective}")
        for item in turn.queued
        if item.state is WorkItemState.OPEN
    )
    return newest_of((*failed, *earlier, *queued), count_max=MEMORY_ENTRIES_COUNT_MAX)


def _unverified(cmd: str) -> str:
    return memory_line(f"{_UNVERIFIED}{cmd}")


class MemoryFacts(Record, frozen=True, kw_only=True):
    """A turn that ends, what was remembered before it, and the rows around it."""

    state: MemoryState
    message: MessageEnvelope
    log: TurnLog
    snapshot: AgentSnapshot
    bound: WeighedItem | None = None  # the item the turn began with
    completed: tuple[WorkItemRecord, ...] = ()  # items the turn completed
    slept: bool = False
    workspace_id: WorkspaceId | None = None


class _Settled(Record, frozen=True, kw_only=True):
    """The parts of a settlement that memory is drawn from."""

    ending: SettleTurn
    closure: Closure
    ended_waits: frozenset[str]
    compression_epoch: int


def with_memory(commit: Commit, facts: MemoryFacts) -> Commit:
    """Return the settlement with what is to be remembered of its turn."""
    changes = (*commit.changes, *memory_changes(commit, facts))
    return msgspec.structs.replace(commit, changes=changes)


def memory_changes(commit: Commit, facts: MemoryFacts) -> tuple[Change, ...]:
    """Return the memory changes; none when nothing happened."""
    settled = _parts_of(commit, facts.state.base_epoch)
    ending = settled.ending
    if ending.terminal.kind is _PUT_OFF and ending.round_count == 0:
        return ()
    turn = _turn_of(settled, facts)
    state = remembered(facts.state, turn)
    built = _built(settled, turn, facts, state.memory)
    state = msgspec.structs.replace(
        state,
        builder=built.builder,
        archived_episode_count=state.archived_episode_count + len(built.closed),
    )
    agent_id = ending.agent_id
    moved = state.pending_delta if state.revision != facts.state.revision else None
    return (
        RememberWork(agent_id=agent_id, state=state, moved=moved),
        *(ArchiveEpisode(episode=episode) for episode in built.closed),
    )


def _parts_of(commit: Commit, epoch: int) -> _Settled:
    """Extract from a settlement what memory needs of the turn."""
    ending: SettleTurn | None = None
    closure: Closure | None = None
    waits: list[str] = []
    for change in commit.changes:
        match change:
            case SettleTurn():
                ending = change
            case RecordClosure():
                closure = change.closure
            case MoveWait():
                waits.append(change.wait_id)
            case RememberContext():
                epoch = change.context.compression_epoch
            case _:
                continue
    assert ending is not None, "a settlement ends a turn"
    assert closure is not None, "a settlement records its closure"
    return _Settled(
        ending=ending,
        closure=closure,
        ended_waits=frozenset(waits),
        compression_epoch=epoch,
    )


def _turn_of(settled: _Settled, facts: MemoryFacts) -> SettledTurn:
    snapshot = facts.snapshot
    return SettledTurn(
        terminal=settled.ending.terminal,
        message_kind=facts.message.kind,
        evidence=evidence_of(facts.log, before=facts.state.authority_class),
        was_prompted=settled.ending.round_count > 0,
        message_count=snapshot.agent.totals.message_count,
        item=_focus(snapshot),
        queued=tuple(each.item for each in snapshot.queued[:MEMORY_ENTRIES_COUNT_MAX]),
        waits=_waits(settled, snapshot),
        workspace_id=facts.workspace_id,
        compression_epoch=settled.compression_epoch,
    )


def _focus(snapshot: AgentSnapshot) -> WorkItemRecord | None:
    if snapshot.current is None or snapshot.current.item.state is not WorkItemState.OPEN:
        return None
    return snapshot.current.item


def _waits(settled: _Settled, snapshot: AgentSnapshot) -> tuple[WaitRecord, ...]:
    own = () if snapshot.current is None else snapshot.current.waits
    return tuple(
        wait for wait in (*own, *snapshot.agent_waits) if wait.id not in settled.ended_waits
    )


def _built(
    settled: _Settled, turn: SettledTurn, facts: MemoryFacts, memory: WorkingMemory
) -> EpisodeUpdate:
    began = facts.log.turn
    boundary = TurnBoundary(
        turn_id=began.turn_id,
        began_at=began.opened_at,
        task_rejoined=turn.message_kind is MessageKind.TASK_RESULT,
        is_waiting=facts.slept or isinstance(settled.closure, Waiting),
        focus=None if turn.item is None else turn.item.id,
    )
    delta = _turn_delta(turn, facts, memory)
    return next_episode(facts.state.builder, delta, boundary, agent_id=began.agent_id)


def _turn_delta(turn: SettledTurn, facts: MemoryFacts, memory: WorkingMemory) -> TurnMemoryDelta:
    """What the turn adds to the episode: its own doings, and how things stand behind it."""
    evidence = turn.evidence
    item = _worked_on(turn, facts)
    return TurnMemoryDelta(
        turn_index=turn.terminal.turn_index,
        ended_at=turn.terminal.completed_at,
        message_count=turn.message_count,
        authority_class=evidence.authority_class,
        work_item_id=None if item is None else item.id,
        workspace_id=turn.workspace_id,
        objective=None if item is None else memory_line(item.objective),
        work_summary=summary_of(turn),
        scope_hints=scope_of(turn.workspace_id, evidence.files),
        working_set_files=evidence.files,
        commands=_lines(run.line for run in evidence.commands),
        verification=_lines(run.line for run in evidence.checks),
        decisions=evidence.decisions,
        carry_forward=newest_of(
            (*memory.todo_list, *memory.pending_followups), count_max=MEMORY_ENTRIES_COUNT_MAX
        ),
        waiting_on=memory.waiting_on,
    )


def _worked_on(turn: SettledTurn, facts: MemoryFacts) -> WorkItemRecord | None:
    """The item the turn began with, or else the one it took up, or began and completed."""
    if facts.bound is not None:
        return facts.bound.item
    return turn.item or (facts.completed[-1] if facts.completed else None)


def _lines(entries: Iterable[str]) -> tuple[str, ...]:
    return newest_of(entries, count_max=MEMORY_ENTRIES_COUNT_MAX)
