"""What the model reads of its turns, as provider-neutral messages.

Owns:  the rendering of transcripts as a conversation, and the check that a provider will take it.
Rule 1: roles alternate, starting and ending with the user; neighbours of one role are joined.
Rule 2: the results of a round come first in the message after it, one per tool use, in call order;
        whatever else was said meanwhile follows them.
Rule 3: outside words are data: decide/message_view renders them with their provenance. What a tool
        found is shown as it is; only characters that hide a text in a text are taken out of it.
Rule 4: of a turn that was compacted its opening, its recap and its newest rounds are shown, as the
        turn itself saw them last; of turns that were let go, the agent's recap (decide/compaction).
Rule 5: of a turn that was set aside it is only shown that it was: what it read ended the process.
Rule 6: nothing is invented here. A call that has no receipt stays unanswered, and `problems_of`
        says so; answering it is the business of the commit that ended it.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Final, NamedTuple, assert_never

from holon.decide.batch_receipt import batch_text
from holon.decide.conversation_size import bytes_of
from holon.decide.fencing import without_tags
from holon.decide.message_view import render_message
from holon.decide.recap import history_recap_text, newest_compaction, turn_recap_text
from holon.decide.turn_replay import receipts_by_place, was_set_aside
from holon.model.agent import AgentContext
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
from holon.model.ids import AgentId, CallId, TurnId
from holon.model.limits import INPUT_LOOKED_AT_BYTES_MAX
from holon.model.record import Record
from holon.model.transcript import (
    AssistantRound,
    ContinuationPrompt,
    IncomingMessage,
    Interjection,
    RuntimeFailure,
    TranscriptData,
    TurnCompaction,
    TurnLog,
    WorkReminder,
)
from holon.model.turn import ToolReceipt

INTERJECTION_HEADER: Final = "[Operator message received while this turn was in progress]"
UNSEEN_HEADER: Final = "[Earlier message, shown to you for the first time]"
INCOMING_HEADER: Final = "[Message]"
SET_ASIDE_TEXT: Final = (
    "[Runtime: a turn was set aside because the runtime ended or hung in it twice. What it read and"
    " did is not shown; the operator was told.]"
)


class RoundsRecap(Record, tag=True, frozen=True, kw_only=True):
    """What stands in a conversation for the rounds of a turn that are no longer shown."""

    turn_id: TurnId
    compaction: TurnCompaction


def conversation_of(logs: Sequence[TurnLog]) -> tuple[ConversationMessage, ...]:
    """Return the turns as one conversation, oldest first."""
    messages: list[ConversationMessage] = []
    for log in logs:
        append_turn(messages, log)
    return tuple(messages)


def append_recap(
    messages: list[ConversationMessage], agent_id: AgentId, context: AgentContext
) -> None:
    """Add what is left of the turns that were let go, if any were."""
    first_turn = context.history_from_turn
    if first_turn > 1:
        recap = history_recap_text(agent_id, context.recap, first_turn=first_turn)
        _append(messages, _said(recap))


class RenderedTurn(NamedTuple):
    """What is shown of a turn: its messages, before they are joined to others, and their size."""

    messages: tuple[ConversationMessage, ...]
    size_bytes: int


def rendered_turn(log: TurnLog, *, input_bytes_max: int | None = None) -> RenderedTurn:
    """Render what is shown of a turn; of one that was set aside, that it was."""
    if was_set_aside(log):
        aside = (_said(SET_ASIDE_TEXT),)
        return RenderedTurn(aside, bytes_of(aside))
    receipts = receipts_by_place(log.calls)
    said = tuple(
        message
        for data in shown_entries(log)
        for message in _messages_of(data, receipts, input_bytes_max)
    )
    return RenderedTurn(said, bytes_of(said))


def append_rendered(messages: list[ConversationMessage], turn: RenderedTurn) -> int:
    """Add a rendered turn, and return how many bytes that is."""
    for message in turn.messages:
        _append(messages, message)
    return turn.size_bytes


def append_turn(
    messages: list[ConversationMessage], log: TurnLog, *, input_bytes_max: int | None = None
) -> int:
    """Add what is shown of a turn, and return how many bytes that is."""
    return append_rendered(messages, rendered_turn(log, input_bytes_max=input_bytes_max))


def shown_entries(log: TurnLog) -> Iterator[TranscriptData | RoundsRecap]:
    """Yield what is shown of a turn: all of it, or a recap in place of its first rounds."""
    newest = newest_compaction(log.entries)
    through_round = 0 if newest is None else newest.through_round
    number = 0  # of the round an entry belongs to
    for entry in log.entries:
        if isinstance(entry.data, AssistantRound):
            if number == 0 and newest is not None and through_round:
                yield RoundsRecap(turn_id=log.turn.turn_id, compaction=newest)
            number = entry.data.round
        if number == 0 or number > through_round:
            yield entry.data


def append_entry(
    messages: list[ConversationMessage],
    data: TranscriptData | RoundsRecap,
    receipts: Mapping[tuple[int, int], ToolReceipt],
    *,
    input_bytes_max: int | None = None,
) -> int:
    """Add what one transcript entry says, and return how many bytes that is.

    Of what came in, at most so much of each body is shown.
    """
    said = _messages_of(data, receipts, input_bytes_max)
    for message in said:
        _append(messages, message)
    return bytes_of(said)


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


def incoming_texts(
    incoming: IncomingMessage, *, body_bytes_max: int | None = None
) -> tuple[str, ...]:
    """Return what the model reads when a turn begins; the message the turn answers comes last."""
    share = INPUT_LOOKED_AT_BYTES_MAX // (1 + len(incoming.unseen))
    render = partial(render_message, body_bytes_max=body_bytes_max, looked_at_bytes_max=share)
    unseen = (f"{UNSEEN_HEADER}\n{render(each)}" for each in incoming.unseen)
    newest = render(incoming.message)
    return (*unseen, f"{INCOMING_HEADER}\n{newest}")


def _messages_of(
    data: TranscriptData | RoundsRecap,
    receipts: Mapping[tuple[int, int], ToolReceipt],
    input_bytes_max: int | None,
) -> tuple[ConversationMessage, ...]:
    match data:
        case IncomingMessage():
            return (_said(*incoming_texts(data, body_bytes_max=input_bytes_max)),)
        case AssistantRound():
            return _round_messages(data, receipts)
        case Interjection(interjected=interjected):
            return (_said(f"{INTERJECTION_HEADER}\n{interjected.text}"),)
        case ContinuationPrompt(text=text) | WorkReminder(text=text):
            return (_said(text),)
        case RoundsRecap(turn_id=turn_id, compaction=compaction):
            return (_said(turn_recap_text(turn_id, compaction)),)
        case TurnCompaction(request=request):
            return () if request is None else (_said(request),)
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
                    call_id=use.call_id,
                    content=without_tags(_read_as(receipt)),
                    is_error=receipt.is_error,
                )
            )
    spoken = AssistantMessage(blocks=tuple(b for b in data.spoke.blocks if not _is_blank(b)))
    return (spoken, UserMessage(blocks=tuple(results)))


def _read_as(receipt: ToolReceipt) -> str:
    is_batch = receipt.name == "ExecCommandBatch" and not receipt.is_error
    return batch_text(receipt.content) if is_batch else receipt.content


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
