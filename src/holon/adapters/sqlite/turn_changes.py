"""Writing changes to turns, their transcript and their tool calls.

Owns:  the rows of `turns`, `transcript`, `tool_calls` and `tool_latency`.
Rule 1: only a call that ran is counted, so the names in `tool_latency` are those of real tools.
"""

from typing import TypeAlias, assert_never

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.pace_changes import PaceChanges
from holon.adapters.sqlite.skill_changes import SkillChanges
from holon.adapters.sqlite.statements import Statements
from holon.model.commit import (
    AppendTranscript,
    FinishToolCall,
    OpenTurn,
    ResumeTurn,
    SettleTurn,
    StartToolCall,
)
from holon.model.instant import to_micros
from holon.model.turn import TerminalKind

TurnChange: TypeAlias = (
    OpenTurn | ResumeTurn | AppendTranscript | StartToolCall | FinishToolCall | SettleTurn
)

_MISSING = "turns_row_missing"
_AGENT_MISSING = "agents_row_missing"


class TurnChanges:
    """Writes what happens in turns."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("turns")
        self._agent_sql = named_queries("agents")
        self._message_sql = named_queries("messages")
        self._pace = PaceChanges(statements)
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
