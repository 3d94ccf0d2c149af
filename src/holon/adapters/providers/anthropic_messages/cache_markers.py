"""Placement of Anthropic cache markers (`cache_control`).

Owns:  the choice of marked blocks in the system part and in the conversation.
Rule 1: a request has at most four markers, the limit of the API.
Rule 2: the rolling marker is on the last cacheable block up to the end of the last user message,
        tool results included: each round extends the prefix that the previous round wrote.
Rule 3: the history before the running turn ends with a marker of its own. Turn-scoped text follows
        it and is absent from the next turn, so no later marker of this turn serves that one.
Rule 4: thinking blocks and blank text cannot carry a marker; the API refuses it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from holon.model.providers.prompt_frame import ConversationPosition, PromptBlock
from holon.model.turns.conversation import (
    AssistantBlock,
    ConversationMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    UserMessage,
)
from holon.model.values import JsonValue

MARKER: Final[Mapping[str, JsonValue]] = {"type": "ephemeral"}

_SYSTEM_MARKERS_COUNT_MAX: Final = 2  # the other two are for the conversation


def system_marks(system: Sequence[PromptBlock]) -> frozenset[int]:
    """Return which system blocks are marked: the last ones at which a cached prefix may end."""
    ends = [index for index, block in enumerate(system) if block.cache_breakpoint]
    return frozenset(ends[-_SYSTEM_MARKERS_COUNT_MAX:])


def conversation_marks(
    conversation: Sequence[ConversationMessage], turn_start: ConversationPosition | None
) -> Mapping[int, frozenset[int]]:
    """Return the marked blocks of each message that has any, both by their index."""
    ends = (_end_of_last_user_message(conversation), turn_start)
    places = {_last_cacheable(conversation, before=end) for end in ends if end is not None}
    marks: dict[int, frozenset[int]] = {}
    for place in places:
        if place is not None:
            message, block = place
            marks[message] = marks.get(message, frozenset()) | {block}
    return marks


def is_cacheable(block: UserBlock | AssistantBlock) -> bool:
    """Whether the wire takes a marker on this block."""
    match block:
        case TextBlock(text=words) | ToolResultBlock(content=words):
            return bool(words.strip())
        case ToolUseBlock():
            return True
        case ThinkingBlock() | OpaqueBlock():
            return False


def _end_of_last_user_message(
    conversation: Sequence[ConversationMessage],
) -> ConversationPosition | None:
    for index in range(len(conversation) - 1, -1, -1):
        message = conversation[index]
        if isinstance(message, UserMessage):
            return ConversationPosition(message_index=index, block_index=len(message.blocks))
    return None


def _last_cacheable(
    conversation: Sequence[ConversationMessage], *, before: ConversationPosition
) -> tuple[int, int] | None:
    blocks_count: int | None = before.block_index
    for message_index in range(min(before.message_index, len(conversation) - 1), -1, -1):
        blocks = conversation[message_index].blocks[:blocks_count]
        for block_index in range(len(blocks) - 1, -1, -1):
            if is_cacheable(blocks[block_index]):
                return message_index, block_index
        blocks_count = None
    return None
