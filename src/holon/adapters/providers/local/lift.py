"""What a local model wrote, as an answer.

Owns:  telling words from calls, and the ids of calls.
Rule 1: where calls were allowed, an answer that begins with `{` is a call and nothing else.
Rule 2: a call's id follows from the number of rounds before it, so that the same conversation gives
        the same answer, and is not an id the conversation already uses.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holon.model.answer import ModelAnswer
from holon.model.conversation import (
    AssistantBlock,
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolUseBlock,
    tool_uses_of,
)
from holon.model.errors import NotJsonError
from holon.model.ids import CallId
from holon.model.json_value import JsonValue
from holon.model.provider_attempt import TokenUsage, TransportDiagnostics
from holon.model.provider_errors import UnreadableResponseError
from holon.model.record import Record
from holon.model.turn import StopReason


class Written(NamedTuple):
    """What the engine produced in one go."""

    text: str
    was_cut: bool
    usage: TokenUsage


class WrittenCall(Record, frozen=True, kw_only=True):
    """A call as the grammar has it written."""

    tool: str
    arguments: JsonValue


def begins_call(text: str) -> bool:
    """Whether what was written so far is going to be a call."""
    return text.startswith("{")


def lift(
    written: Written, *, may_call: bool, call_id: CallId, diagnostics: TransportDiagnostics
) -> ModelAnswer:
    """Return the answer the text stands for, or raise UnreadableResponseError."""
    block: AssistantBlock
    if not written.text.strip():
        raise _unreadable("the model wrote nothing", written, diagnostics)
    try:
        if may_call and begins_call(written.text):
            stop = StopReason.TOOL_USE
            call = msgspec.json.decode(written.text, type=WrittenCall)
            block = ToolUseBlock(call_id=call_id, name=call.tool, input=call.arguments)
        else:
            stop = StopReason.MAX_TOKENS if written.was_cut else StopReason.END_TURN
            block = TextBlock(text=written.text.strip())
    except (msgspec.DecodeError, NotJsonError) as error:
        what = "a call that was cut off" if written.was_cut else "a call that cannot be read"
        raise _unreadable(f"the model wrote {what}", written, diagnostics) from error
    return ModelAnswer(
        blocks=(block,), stop_reason=stop, usage=written.usage, diagnostics=diagnostics
    )


def next_call_id(conversation: Sequence[ConversationMessage]) -> CallId:
    """Return an id for the next round's call."""
    rounds = [message for message in conversation if isinstance(message, AssistantMessage)]
    used = {use.call_id for message in rounds for use in tool_uses_of(message.blocks)}
    number = len(rounds) + 1
    while (call_id := CallId(f"local_call_{number}")) in used:
        number += 1
    return call_id


def _unreadable(
    why: str, written: Written, diagnostics: TransportDiagnostics
) -> UnreadableResponseError:
    return UnreadableResponseError(why, usage=written.usage, diagnostics=diagnostics)
