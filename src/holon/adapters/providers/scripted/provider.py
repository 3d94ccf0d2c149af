"""A model that says what a script tells it to say.

Owns:  the scripted provider. What it answers depends on the conversation alone, so a turn that is
       resumed after a crash goes on where it was.
Rule 1: `fail_times` is the one thing counted here, per place in a conversation: a line that fails a
        few times is said in the end, however often a restart makes it fail again.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from holon.adapters.providers.scripted.expectations import Shown, unmet_by
from holon.adapters.providers.scripted.script import FAILURES, Line, Script, ScriptedRound, line_for
from holon.decide.prompt_layout import layout_of
from holon.model.answer import AnswerProgress, CallGrew, ModelAnswer, TextGrew, ThinkingGrew
from holon.model.conversation import (
    AssistantBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from holon.model.ids import AgentId, CallId
from holon.model.instant import later
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_attempt import TokenUsage
from holon.model.provider_errors import RequestRejectedError
from holon.model.turn import StopReason
from holon.ports.clock import Clock
from holon.ports.provider import Hear

THINKING_ORIGIN: Final = "scripted:scripted"
_PIECES_COUNT: Final = 4


class ScriptedProvider:
    """Plays a script."""

    def __init__(self, script: Script, clock: Clock) -> None:
        self._script = script
        self._clock = clock
        self._failed: Counter[tuple[AgentId, int, int]] = Counter()

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return the line that comes next in this conversation."""
        line = line_for(self._script, request.conversation, turn_start=request.turn_start)
        self._require_shown(line, request)
        if line.round.after_ms:
            await self._clock.sleep_until(later(self._clock.now(), by_ms=line.round.after_ms))
        self._fail_if_told(line, request)
        answer = spoken(line.round, call_prefix=f"call_{line.number}")
        for progress in growth_of(answer):
            hear(progress)
        return answer

    def _require_shown(self, line: Line, request: ProviderRequest) -> None:
        if line.round.expect is None:
            return
        layout = layout_of(request)
        shown = Shown(
            system="\n".join(block.text for block in layout.system),
            conversation=layout.conversation,
            tools=[tool.name for tool in request.tools],
        )
        if (unmet := unmet_by(line.round.expect, shown)) is not None:
            script = f"script {self._script.name!r}" if self._script.name else "the script"
            raise RequestRejectedError(f"{script}, round {line.number + 1}: {unmet}")

    def _fail_if_told(self, line: Line, request: ProviderRequest) -> None:
        if line.round.fail is None:
            return
        place = (request.agent_id, len(request.conversation), line.number)
        if line.round.fail_times is not None and self._failed[place] >= line.round.fail_times:
            del self._failed[place]
            return
        self._failed[place] += 1
        raise FAILURES[line.round.fail](
            f"scripted failure: {line.round.fail}", retry_after_ms=line.round.retry_after_ms
        )


def spoken(line: ScriptedRound, *, call_prefix: str) -> ModelAnswer:
    """Return a scripted line as the provider's answer."""
    stop = line.stop_reason or (StopReason.TOOL_USE if line.calls else StopReason.END_TURN)
    estimate = TokenUsage(input_tokens=10, output_tokens=max(1, len(line.text) // 4))
    return ModelAnswer(
        blocks=tuple(_blocks(line, call_prefix)),
        stop_reason=stop,
        usage=line.usage or estimate,
    )


def _blocks(line: ScriptedRound, call_prefix: str) -> Iterator[AssistantBlock]:
    if line.thinking:
        yield ThinkingBlock(text=line.thinking, origin=THINKING_ORIGIN)
    if line.text:
        yield TextBlock(text=line.text)
    for index, call in enumerate(line.calls):
        call_id = CallId(call.id or f"{call_prefix}_{index}")
        yield ToolUseBlock(call_id=call_id, name=call.name, input=call.input)


def growth_of(answer: ModelAnswer) -> Iterator[AnswerProgress]:
    """Yield an answer the way a stream would have brought it."""
    for block in answer.blocks:
        match block:
            case ThinkingBlock(text=text):
                yield from (ThinkingGrew(text=piece) for piece in pieces_of(text))
            case TextBlock(text=text):
                yield from (TextGrew(text=piece) for piece in pieces_of(text))
            case OpaqueBlock():
                pass  # nothing a watcher could read
            case ToolUseBlock(call_id=call_id, name=name):
                arguments = msgspec.json.encode(block.input).decode()
                for piece in pieces_of(arguments):
                    yield CallGrew(call_id=call_id, name=name, fragment=piece)


def pieces_of(text: str, *, count: int = _PIECES_COUNT) -> list[str]:
    """Return a text in a few pieces, none of them empty."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]
