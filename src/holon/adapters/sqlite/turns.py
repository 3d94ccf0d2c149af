"""Turns: the rows of `turns`, `transcript`, `tool_calls`, `tool_latency` and `agent_contexts`.

Owns:  the turn reads, with a cache of settled turns, since each next turn of an agent reads the
       same ones again; writing turns, transcripts, calls and context starts.
Rule 1: a settled turn does not change once all its calls have ended, so the cached value stays
        valid. Retention removes a turn as a whole, and it is not requested again.
Rule 2: the cache is bounded by size; the least recently used turn goes first.
Rule 3: only a call that ran is counted, so the names in `tool_latency` are those of real tools.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar, assert_never

import apsw

from holon.adapters.sqlite.budgets import TurnLimitChanges
from holon.adapters.sqlite.database.row_codec import (
    CallRow,
    EntryRow,
    TurnRow,
    encode,
    recorded_call,
    transcript_entry,
    turn_record,
)
from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Row,
    Statements,
    at_most,
    named_queries,
    numbers,
)
from holon.adapters.sqlite.guidance import SkillChanges
from holon.model.commits import (
    AppendTranscript,
    FinishToolCall,
    OpenTurn,
    ResumeTurn,
    SettleTurn,
    StartToolCall,
)
from holon.model.limits import (
    EVENT_PAGE_COUNT_MAX,
    MIB,
    SURFACE_TURNS_COUNT_MAX,
)
from holon.model.lru import Lru
from holon.model.turns.compaction import RememberContext
from holon.model.turns.tools import ToolLatency
from holon.model.turns.transcript import TurnLog
from holon.model.turns.turn import TerminalKind, TurnRecord
from holon.model.values import AgentId, TurnId, to_micros

_NEWEST: Final = 2**63 - 1  # what a page begins before when no cursor is given

KEPT_CHARS_MAX: Final = 2 * MIB
TURN_CHARS_MAX: Final = KEPT_CHARS_MAX // 64  # a larger one is read each time
_OfTurn = TypeVar("_OfTurn", EntryRow, CallRow)
TurnChange: TypeAlias = (
    OpenTurn | ResumeTurn | AppendTranscript | StartToolCall | FinishToolCall | SettleTurn
)
_MISSING = "turns_row_missing"
_AGENT_MISSING = "agents_row_missing"


class SettledTurns:
    """Remembers turns of one store."""

    def __init__(self, *, chars_max: int = KEPT_CHARS_MAX) -> None:
        self._kept: Lru[str, TurnLog] = Lru(size_max=chars_max)

    def known(self, turn_id: str) -> TurnLog | None:
        """A turn that was read before."""
        return self._kept.get(turn_id)

    def read(self, row: TurnRow, entries: Sequence[EntryRow], calls: Sequence[CallRow]) -> TurnLog:
        """Return what rows mean, and remember it."""
        log = turn_log(row, entries, calls)
        chars = _chars_of(row, entries, calls)
        if chars <= TURN_CHARS_MAX and all(call.finished_at is not None for call in calls):
            self._kept.put(row.turn_id, log, chars)
        return log


def turn_log(row: TurnRow, entries: Sequence[EntryRow], calls: Sequence[CallRow]) -> TurnLog:
    """Return what the rows of a turn mean."""
    turn = turn_record(row)
    return TurnLog(
        turn=turn,
        entries=tuple(transcript_entry(each, agent_id=turn.agent_id) for each in entries),
        calls=tuple(recorded_call(each, agent_id=turn.agent_id) for each in calls),
    )


def _chars_of(row: TurnRow, entries: Sequence[EntryRow], calls: Sequence[CallRow]) -> int:
    return (
        len(row.terminal or "")
        + sum(len(entry.data) for entry in entries)
        + sum(len(call.input) + len(call.receipt or "") for call in calls)
    )


class _TurnPlace(NamedTuple):
    turn_id: str
    turn_index: int


class SqliteTurnReads(ReadSession):
    """Turns with what was recorded in them."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self._settled = SettledTurns()

    async def turn_log(self, turn_id: TurnId) -> TurnLog | None:
        """A turn with everything recorded in it."""
        with self._moment():
            found = self._one("turn", (turn_id,))
            return None if found is None else self._log_of(found)

    async def recent_turns(
        self, agent_id: AgentId, *, limit: int, from_turn: int = 0
    ) -> Sequence[TurnLog]:
        """The newest settled turns, none before `from_turn`, oldest of them first."""
        with self._moment():
            asked = (agent_id, limit, from_turn)
            newest_first = [_TurnPlace._make(row) for row in self._all("recent", asked)]
            logs = {place.turn_id: self._settled.known(place.turn_id) for place in newest_first}
            unread = [place.turn_index for place in newest_first if logs[place.turn_id] is None]
            if unread:
                logs |= self._read_since(agent_id, unread[-1])
        return [log for log in reversed(logs.values()) if log is not None]

    async def named(self, agent_id: AgentId, turn_ids: Sequence[TurnId]) -> Sequence[TurnRecord]:
        """Those of the named turns that are kept and are this agent's, without what they hold."""
        with self._moment():
            found = [self._one("turn", (turn_id,)) for turn_id in turn_ids[:EVENT_PAGE_COUNT_MAX]]
        turns = (turn_record(TurnRow._make(row)) for row in found if row is not None)
        return [turn for turn in turns if turn.agent_id == agent_id]

    async def turns_page(
        self, agent_id: AgentId, *, before_index: int | None, limit: int
    ) -> Sequence[TurnLog]:
        """Turns with everything recorded in them, newest first, the open one included."""
        before = _NEWEST if before_index is None else before_index
        most = at_most(limit, SURFACE_TURNS_COUNT_MAX)
        with self._moment():
            found = self._all("turns_page", (agent_id, before, most))
            return [self._log_of(row) for row in found]

    async def agents_with_open_turns(self) -> Sequence[AgentId]:
        """Agents whose lane was cut off by the end of an earlier process."""
        return [AgentId(str(row[0])) for row in self._all("agents_with_open_turns")]

    async def tool_latencies(self, agent_id: AgentId, *, limit: int) -> Sequence[ToolLatency]:
        """How long the agent's calls took, by tool."""
        return [
            ToolLatency(
                tool_name=str(name), call_count=calls, total_ms=total, max_ms=longest, last_ms=last
            )
            for name, *columns in self._all("tool_latencies", (agent_id, limit))
            for calls, total, longest, last in [numbers(columns)]
        ]

    def _read_since(self, agent_id: AgentId, turn_index: int) -> dict[str, TurnLog]:
        """Read settled turns: three queries, however many there are."""
        since = (agent_id, turn_index)
        entries = _by_turn(map(EntryRow._make, self._all("recent_entries", since)))
        calls = _by_turn(map(CallRow._make, self._all("recent_calls", since)))
        turns = map(TurnRow._make, self._all("recent_turns", since))
        return {
            row.turn_id: self._settled.read(row, entries[row.turn_id], calls[row.turn_id])
            for row in turns
        }

    def _log_of(self, found: Row) -> TurnLog:
        row = TurnRow._make(found)
        entries = [EntryRow._make(each) for each in self._all("entries", (row.turn_id,))]
        calls = [CallRow._make(each) for each in self._all("calls", (row.turn_id,))]
        return turn_log(row, entries, calls)


def _by_turn(rows: Iterable[_OfTurn]) -> defaultdict[str, list[_OfTurn]]:
    found: defaultdict[str, list[_OfTurn]] = defaultdict(list)
    for row in rows:
        found[row.turn_id].append(row)
    return found


class TurnChanges:
    """Writes what happens in turns."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("turns")
        self._agent_sql = named_queries("agents")
        self._message_sql = named_queries("messages")
        self._pace = TurnLimitChanges(statements)
        self._skills = SkillChanges(statements)

    def write(self, change: TurnChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case OpenTurn():
                self._open(change)
            case ResumeTurn():
                self._resume(change)
            case AppendTranscript(entry=entry):
                self._statements.run(
                    self._sql["append_transcript"],
                    (
                        entry.turn_id,
                        entry.position,
                        to_micros(entry.created_at),
                        encode(entry.data),
                    ),
                )
            case StartToolCall():
                self._start_call(change)
            case FinishToolCall():
                self._finish_call(change, at=at)
            case SettleTurn():
                self._settle(change)
                self._pace.count(change)
                self._skills.settle(change)
            case _:
                assert_never(change)

    def _open(self, change: OpenTurn) -> None:
        turn = change.turn
        self._statements.run(
            self._sql["open_turn"],
            (
                turn.turn_id,
                turn.agent_id,
                turn.turn_index,
                turn.message_id,
                turn.work_item_id,
                to_micros(turn.opened_at),
                turn.resume_count,
            ),
        )

    def _resume(self, change: ResumeTurn) -> None:
        self._statements.change_one(
            self._sql["resume_turn"],
            (
                change.turn_id,
                change.agent_id,
                change.generation,
                change.resume_count,
                change.crash_count,
                change.crash_progress,
            ),
            missing=_MISSING,
        )
        self._statements.change_one(
            self._message_sql["hold_message"],
            (change.message_id, change.agent_id, change.generation),
            missing="messages_row_missing",
        )
        self._statements.change_one(
            self._agent_sql["raise_generation"],
            (change.agent_id, change.generation),
            missing=_AGENT_MISSING,
        )

    def _start_call(self, change: StartToolCall) -> None:
        call = change.call
        self._statements.run(
            self._sql["start_tool_call"],
            (
                call.effect_id,
                call.call_id,
                call.turn_id,
                call.round,
                call.position,
                call.name,
                encode(call.input),
                to_micros(call.started_at),
                call.work_item_id,
            ),
        )

    def _finish_call(self, change: FinishToolCall, *, at: int) -> None:
        self._statements.change_one(
            self._sql["finish_tool_call"],
            (
                change.effect_id,
                change.turn_id,
                change.state.value,
                encode(change.receipt),
                at,
                change.duration_ms,
            ),
            missing="tool_calls_row_missing",
        )
        if change.duration_ms is not None:
            self._statements.run(
                self._sql["count_tool_call"],
                (change.agent_id, change.tool_name, change.duration_ms),
            )

    def _settle(self, change: SettleTurn) -> None:
        terminal, usage = change.terminal, change.usage
        self._statements.change_one(
            self._sql["settle_turn"],
            (
                change.turn_id,
                change.agent_id,
                to_micros(terminal.completed_at),
                encode(terminal),
                encode(usage),
                change.round_count,
                int(terminal.kind is TerminalKind.DEFERRED),
            ),
            missing=_MISSING,
        )
        self._statements.change_one(
            self._agent_sql["count_turn"],
            (
                change.agent_id,
                terminal.turn_index,
                change.round_count,
                usage.input_tokens,
                usage.output_tokens,
            ),
            missing=_AGENT_MISSING,
        )


class ContextChanges:
    """Writes where an agent's history begins."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("contexts")

    def write(self, change: RememberContext, *, at: int) -> None:
        """Write one move."""
        del at  # a context has no moment
        context = change.context
        self._statements.run(
            self._sql["remember_context"],
            (
                change.agent_id,
                context.history_from_turn,
                context.compression_epoch,
                encode(context.recap),
            ),
        )
