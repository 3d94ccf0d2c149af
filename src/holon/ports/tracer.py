"""Tracing: spans of turns, rounds and tool calls.

Contract (kept by tests/contract/test_tracer.py, run against every implementation):
- no method raises, waits, or changes what a turn does;
- a tracer receives ids, names, counts, times and outcomes, and no text of a prompt, an answer, a
  call or a result;
- a turn span that is left without `ended` was cut off.
"""

from types import TracebackType
from typing import Protocol

from holon.model.commits import FinishToolCall
from holon.model.providers.attempts import TokenUsage
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.turn import Finish, ModelAnswered, ModelFailed, RoundTiming
from holon.model.values import AgentId, TurnId


class TurnSpan(Protocol):
    """One turn, while it runs: `with` it around the work."""

    def ended(self, finish: Finish, usage: TokenUsage, round_count: int) -> None:
        """Record how it ended."""
        ...

    def __enter__(self) -> "TurnSpan":
        """Begin."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it, with or without an error."""
        ...


class Tracer(Protocol):
    """Something that gathers spans."""

    def turn(self, agent_id: AgentId, turn_id: TurnId) -> TurnSpan:
        """Return the span of a turn that begins."""
        ...

    def round_ended(
        self, turn_id: TurnId, answer: ModelAnswered | ModelFailed, timing: RoundTiming
    ) -> None:
        """A model was asked, and answered or not."""
        ...

    def tool_ended(self, call: ToolCallRecord, finished: FinishToolCall) -> None:
        """A call has its result."""
        ...


class _NoSpan:
    """Nothing is measured."""

    def ended(self, finish: Finish, usage: TokenUsage, round_count: int) -> None:
        """Forget it."""

    def __enter__(self) -> "TurnSpan":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class NoTracer:
    """A tracer that gathers no spans."""

    def __init__(self) -> None:
        self._span = _NoSpan()

    def turn(self, agent_id: AgentId, turn_id: TurnId) -> TurnSpan:
        """Return the span that measures nothing."""
        return self._span

    def round_ended(
        self, turn_id: TurnId, answer: ModelAnswered | ModelFailed, timing: RoundTiming
    ) -> None:
        """Forget it."""

    def tool_ended(self, call: ToolCallRecord, finished: FinishToolCall) -> None:
        """Forget it."""
