"""What the model reads of its turns, as provider-neutral messages.

Owns:  the rendering of transcripts as a conversation, and the check that a provider will take it.
Rule 1: roles alternate, starting and ending with the user; neighbours of one role are joined.
Rule 2: the results of a round come first in the message after it, one per tool use, in call order;
        whatever else was said meanwhile follows them.
Rule 3: outside words are data: each message names its origin, authority, surface and admission, a
        line each, and its body stands inside a fence longer than any the body itself contains.
Rule 4: nothing is invented here. A call that has no receipt stays unanswered, and `problems_of`
        says so; answering it is the business of the commit that ended it.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Final, assert_never

import msgspec

from holon.decide.turn_replay import receipts_by_place
from holon.model.conversation import (
    AssistantBlock,
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    UserBlock,
    UserMessage,
    tool_uses_of,
)
from holon.model.ids import CallId
from holon.model.limits import HISTORY_TURNS_COUNT_DEFAULT
from holon.model.message import BriefBody, JsonBody, MessageBody, MessageEnvelope, TextBody
from holon.model.transcript import (
    AssistantRound,
    ContinuationPrompt,
    IncomingMessage,
    Interjection,
    RuntimeFailure,
    TranscriptData,
    TurnLog,
    WorkReminder,
)
from holon.model.turn import ToolReceipt

INTERJECTION_HEADER: Final = "[Operator message received while this turn was in progress]"
UNSEEN_HEADER: Final = "[Earlier message, shown to you for the first time]"
INCOMING_HEADER: Final = "[Message]"

_FENCE_CHARS_MIN: Final = 5
_DASHES: Final = re.compile("-+")


def conversation_of(logs: Sequence[TurnLog]) -> tuple[ConversationMessage, ...]:
    """Return the turns as one conversation, oldest first."""
    messages: list[ConversationMessage] = []
    for log in logs:
        receipts = receipts_by_place(log)
        for entry in log.entries:
            append_entry(messages, entry.data, receipts)
    return tuple(messages)


def append_entry(
    messages: list[ConversationMessage],
    data: TranscriptData,
    receipts: Mapping[tuple[int, int], ToolReceipt],
) -> None:
    """Add what one transcript entry says to a conversation."""
    for message in _messages_of(data, receipts):
        _append(messages, message)


def history_turns_count(turn_index: int) -> int:
    """Return how many turns before this one the model still reads.

    Between one and two epochs of them: the oldest epoch is let go as a whole, so that in between
    each turn's request begins with the bytes of the one before it.
    """
    epoch = HISTORY_TURNS_COUNT_DEFAULT
    let_go = max(0, (turn_index - 1) // epoch - 1) * epoch
    return turn_index - 1 - let_go


def render_message(message: MessageEnvelope) -> str:
    """Return a message with its provenance, its body fenced as data."""
    body = _body_text(message.body)
    longest = max((len(run) for run in _DASHES.findall(body)), default=0)
    fence = "-" * max(_FENCE_CHARS_MIN, longest + 1)
    return "\n".join(
        (
            f"id: {message.id}",
            f"kind: {message.kind}",
            f"origin: {msgspec.json.encode(message.origin).decode()}",
            f"authority: {message.authority_class}",
            f"surface: {message.delivery_surface}",
            f"admission: {message.admission_context}",
            fence,
            body,
            fence,
        )
    )


def is_sendable(conversation: Sequence[ConversationMessage]) -> bool:
    """Whether a provider will take this conversation as a request."""
    return not problems_of(conversation)


def problems_of(conversation: Sequence[ConversationMessage]) -> tuple[str, ...]:
    """Say everything that would make a provider refuse this conversation."""
    problems: list[str] = []
    asked: list[CallId] = []  # by the message before
    expects_user = True
    for index, message in enumerate(conversation):
        if isinstance(message, UserMessage) is not expects_user:
            problems.append(f"message {index} is out of turn")
        expects_user = isinstance(message, AssistantMessage)
        if not message.blocks:
            problems.append(f"message {index} is empty")
        answered = _answered_by(message)
        if answered != asked:
            problems.append(f"message {index} answers {answered} where {asked} was asked")
        if any(isinstance(b, ToolResultBlock) for b in message.blocks[len(answered) :]):
            problems.append(f"message {index} has a result after other words")
        asked = _asked_by(message)
        if len(set(asked)) != len(asked):
            problems.append(f"message {index} uses a call id twice")
    if expects_user:
        problems.append("the conversation does not end with the user")
    return tuple(problems)


def _messages_of(
    data: TranscriptData, receipts: Mapping[tuple[int, int], ToolReceipt]
) -> tuple[ConversationMessage, ...]:
    match data:
        case IncomingMessage(message=message, unseen=unseen):
            earlier = (f"{UNSEEN_HEADER}\n{render_message(each)}" for each in unseen)
            return (_said(*earlier, f"{INCOMING_HEADER}\n{render_message(message)}"),)
        case AssistantRound():
            return _round_messages(data, receipts)
        case Interjection(interjected=interjected):
            return (_said(f"{INTERJECTION_HEADER}\n{interjected.text}"),)
        case ContinuationPrompt(text=text) | WorkReminder(text=text):
            return (_said(text),)
        case RuntimeFailure(failure=failure, retry_at=datetime() as moment):
            until = moment.isoformat(timespec="minutes")
            return (_said(f"[Runtime: this turn was put off until {until}: {failure.summary}]"),)
        case RuntimeFailure(failure=failure):
            return (_said(f"[Runtime: this turn ended in failure: {failure.summary}]"),)
        case _:
            assert_never(data)


def _round_messages(
    data: AssistantRound, receipts: Mapping[tuple[int, int], ToolReceipt]
) -> tuple[ConversationMessage, ...]:
    results: list[UserBlock] = []
    for position, use in enumerate(tool_uses_of(data.spoke.blocks)):
        receipt = receipts.get((data.round, position))
        if receipt is not None:
            results.append(
                ToolResultBlock(
                    call_id=use.call_id, content=receipt.content, is_error=receipt.is_error
                )
            )
    spoken = AssistantMessage(blocks=tuple(b for b in data.spoke.blocks if not _is_blank(b)))
    return (spoken, UserMessage(blocks=tuple(results)))


def _append(messages: list[ConversationMessage], message: ConversationMessage) -> None:
    """Add a message, joining it to the one before when both have the same role."""
    if not message.blocks:
        return
    match (messages[-1] if messages else None), message:
        case UserMessage(blocks=before), UserMessage(blocks=more):
            messages[-1] = UserMessage(blocks=(*before, *more))
        case AssistantMessage(blocks=said), AssistantMessage(blocks=further):
            messages[-1] = AssistantMessage(blocks=(*said, *further))
        case _:
            messages.append(message)


def _said(*texts: str) -> UserMessage:
    return UserMessage(blocks=tuple(TextBlock(text=text) for text in texts))


def _is_blank(block: AssistantBlock) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()


def _body_text(body: MessageBody) -> str:
    match body:
        case TextBody(text=text):
            return text
        case JsonBody(value=value):
            return msgspec.json.encode(value).decode()
        case BriefBody(title=title, text=text):
            return f"{title}\n{text}" if title else text
        case _:
            assert_never(body)


def _asked_by(message: ConversationMessage) -> list[CallId]:
    match message:
        case AssistantMessage(blocks=blocks):
            return [use.call_id for use in tool_uses_of(blocks)]
        case UserMessage():
            return []
        case _:
            assert_never(message)


def _answered_by(message: ConversationMessage) -> list[CallId]:
    """Return the calls a message answers before it says anything else."""
    match message:
        case AssistantMessage():
            return []
        case UserMessage(blocks=blocks):
            leading = takewhile(lambda block: isinstance(block, ToolResultBlock), blocks)
            return [block.call_id for block in leading if isinstance(block, ToolResultBlock)]
        case _:
            assert_never(message)
