"""A model that says what a script tells it to say.

Owns:  the scripted provider. What it answers depends on the conversation alone, so a turn that is
       resumed after a crash goes on where it was.
Rule 1: the newest user message that a rule recognizes chooses the rule; the number of rounds since
        then chooses the line.
Rule 2: a script that runs out ends the turn with its last words; a prompt no rule knows is echoed.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from holon.model.conversation import (
    AssistantBlock,
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolUseBlock,
    UserMessage,
)
from holon.model.ids import CallId
from holon.model.instant import later
from holon.model.json_value import JsonValue
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_attempt import TokenUsage
from holon.model.provider_errors import (
    AuthRejectedError,
    ContextTooLongError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitedError,
    UnreadableResponseError,
)
from holon.model.record import Record
from holon.model.turn import ModelSpoke, StopReason
from holon.ports.clock import Clock

FAILURES: Final[dict[str, type[ProviderError]]] = {
    error.code: error
    for error in (
        AuthRejectedError,
        ContextTooLongError,
        ProviderOverloadedError,
        ProviderTimeoutError,
        ProviderUnreachableError,
        RateLimitedError,
        UnreadableResponseError,
    )
}


class ScriptedCall(Record, frozen=True, kw_only=True):
    """A tool the model asks for."""

    name: str
    input: JsonValue = msgspec.field(default_factory=dict)


class ScriptedRound(Record, frozen=True, kw_only=True):
    """One line of the script: words and calls, or a failure; after a while."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop_reason: StopReason | None = None
    fail: str | None = None
    after_ms: int = 0


class ScriptedRule(Record, frozen=True, kw_only=True):
    """What the model says to messages that contain `when`."""

    when: str
    rounds: tuple[ScriptedRound, ...]


class Script(Record, frozen=True, kw_only=True):
    """Everything the model knows to say. The first rule that fits is taken."""

    rules: tuple[ScriptedRule, ...] = ()


def read_script(data: bytes) -> Script:
    """Read a script from its JSON form."""
    return msgspec.json.decode(data, type=Script)


class ScriptedProvider:
    """Plays a script."""

    def __init__(self, script: Script, clock: Clock) -> None:
        self._script = script
        self._clock = clock

    async def answer(self, request: ProviderRequest) -> ModelSpoke:
        """Return the line that comes next in this conversation."""
        line, number = self._line_for(request.conversation)
        if line.after_ms:
            await self._clock.sleep_until(later(self._clock.now(), by_ms=line.after_ms))
        if line.fail is not None:
            raise FAILURES[line.fail](f"scripted failure: {line.fail}")
        return spoken(line, call_prefix=f"call_{number}")

    def _line_for(self, conversation: Sequence[ConversationMessage]) -> tuple[ScriptedRound, int]:
        rounds = 0
        for message in reversed(conversation):
            match message:
                case AssistantMessage():
                    rounds += 1
                case UserMessage():
                    if (rule := self._rule_for(message)) is not None:
                        return rule.rounds[min(rounds, len(rule.rounds) - 1)], rounds
        return ScriptedRound(text="Understood."), rounds

    def _rule_for(self, message: UserMessage) -> ScriptedRule | None:
        said = "\n".join(b.text for b in message.blocks if isinstance(b, TextBlock))
        return next((rule for rule in self._script.rules if rule.when in said), None)


def spoken(line: ScriptedRound, *, call_prefix: str) -> ModelSpoke:
    """Return a scripted line as the provider's answer."""
    blocks: list[AssistantBlock] = [TextBlock(text=line.text)] if line.text else []
    blocks.extend(
        ToolUseBlock(call_id=CallId(f"{call_prefix}_{index}"), name=call.name, input=call.input)
        for index, call in enumerate(line.calls)
    )
    stop = line.stop_reason or (StopReason.TOOL_USE if line.calls else StopReason.END_TURN)
    return ModelSpoke(
        blocks=tuple(blocks),
        stop_reason=stop,
        usage=TokenUsage(input_tokens=10, output_tokens=max(1, len(line.text) // 4)),
    )
