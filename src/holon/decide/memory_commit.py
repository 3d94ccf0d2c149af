"""What is remembered of a turn, in the very commit that settles it.

Owns:  the memory changes of a settlement: working memory, its delta, and episodes that it closes.
Rule 1: they are drawn from the settlement itself and the rows it was decided on, so that memory and
        the turn it speaks of become true together or not at all.
Rule 2: a turn that was put off before a provider said anything has left nothing to remember.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from holon.decide.episode_building import Built, TurnBoundary, build_on
from holon.decide.memory_update import SettledTurn, remembered, scope_of, summary_of
from holon.decide.turn_evidence import evidence_of, memory_line, newest_of
from holon.model.closure import Closure, Waiting
from holon.model.commit import Change, Commit, MoveWait, RecordClosure, SettleTurn
from holon.model.context_change import RememberContext
from holon.model.ids import WorkspaceId
from holon.model.memory import MemoryState, TurnMemoryDelta, WorkingMemory
from holon.model.memory_change import ArchiveEpisode, RememberWork
from holon.model.memory_limits import MEMORY_ENTRIES_COUNT_MAX
from holon.model.message import MessageEnvelope, MessageKind
from holon.model.record import Record
from holon.model.snapshot import AgentSnapshot, WeighedItem
from holon.model.transcript import TurnLog
from holon.model.turn import TerminalKind
from holon.model.wait import WaitRecord
from holon.model.work_item import WorkItemRecord, WorkItemState

_PUT_OFF: Final = TerminalKind.DEFERRED


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
    """Return the changes; there are none when nothing happened."""
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
    """Pick out of a settlement what it says about the turn."""
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
) -> Built:
    began = facts.log.turn
    boundary = TurnBoundary(
        turn_id=began.turn_id,
        began_at=began.opened_at,
        task_rejoined=turn.message_kind is MessageKind.TASK_RESULT,
        is_waiting=facts.slept or isinstance(settled.closure, Waiting),
        focus=None if turn.item is None else turn.item.id,
    )
    delta = _delta(turn, facts, memory)
    return build_on(facts.state.builder, delta, boundary, agent_id=began.agent_id)


def _delta(turn: SettledTurn, facts: MemoryFacts, memory: WorkingMemory) -> TurnMemoryDelta:
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
