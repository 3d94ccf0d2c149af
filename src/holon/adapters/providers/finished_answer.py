"""What every finished answer has to satisfy, whichever wire brought it.

Owns:  the last check between a wire's `lift` and the runtime.
Rule 1: an answer says something: words, thinking or a call. Only behind the results of its calls
        may a model end its turn in silence: it is done and has said all it wanted. What a
        provider did by itself says nothing; alone, it is an answer only when that was cut short.
Rule 2: the calls of one answer have distinct ids, because results are matched by them.
Rule 3: a model that says it stopped for a tool has named one.
"""

from collections.abc import Mapping, Sequence

import msgspec

from holon.model.answer import ModelAnswer
from holon.model.conversation import (
    AssistantBlock,
    ConversationMessage,
    OpaqueBlock,
    TextBlock,
    ToolResultBlock,
    tool_uses_of,
)
from holon.model.json_value import JsonValue
from holon.model.limits import PROVIDER_OPAQUE_CHARS_MAX
from holon.model.provider_attempt import TokenUsage
from holon.model.provider_errors import UnreadableResponseError
from holon.model.turn import StopReason


def may_be_silent(conversation: Sequence[ConversationMessage]) -> bool:
    """Whether the model was told nothing since its last words but the results of its calls."""
    newest = conversation[-1].blocks if conversation else ()
    return bool(newest) and all(isinstance(block, ToolResultBlock) for block in newest)


def opaque_block(item: Mapping[str, JsonValue], origin: str) -> OpaqueBlock | None:
    """Return what a provider did by itself, to be sent back as it came; nothing when too large."""
    content = msgspec.json.encode(item).decode()
    if len(content) > PROVIDER_OPAQUE_CHARS_MAX:
        return None
    return OpaqueBlock(content=content, origin=origin)


def finished_answer(
    blocks: Sequence[AssistantBlock],
    stop_reason: StopReason,
    usage: TokenUsage | None,
    *,
    silence_counts: bool = False,
) -> ModelAnswer:
    """Return the answer, or raise UnreadableResponseError for one nobody could act on."""
    kept = tuple(block for block in blocks if not (isinstance(block, TextBlock) and not block.text))
    calls = tool_uses_of(kept)
    is_silent = all(isinstance(block, OpaqueBlock) for block in kept)
    goes_on = bool(kept) and stop_reason is StopReason.MAX_TOKENS
    may_end = silence_counts and stop_reason is StopReason.END_TURN
    if is_silent and not goes_on and not may_end:
        raise UnreadableResponseError("the answer is empty: no text, no call", usage=usage)
    if stop_reason is StopReason.TOOL_USE and not calls:
        raise UnreadableResponseError("the model stopped for a tool and named none", usage=usage)
    if len({call.call_id for call in calls}) < len(calls):
        raise UnreadableResponseError("the answer repeats a tool call id", usage=usage)
    return ModelAnswer(blocks=kept, stop_reason=stop_reason, usage=usage)
