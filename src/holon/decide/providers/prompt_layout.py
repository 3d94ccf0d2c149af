"""Prompt layout: where each piece of a request goes, the same for every wire.

Owns:  the order that serves the provider's cache: stable system, agent-scoped system, history, and
       turn-scoped text at the head of the running turn's first message.
Rule 1: the system part never holds turn-scoped text, so it is byte-identical from turn to turn.
Rule 2: within one stability, pieces keep the order the frame gives them.
Rule 3: a cached prefix may end behind the last stable and the last agent-scoped piece.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from holon.model.providers.prompt_frame import (
    ConversationPosition,
    PromptBlock,
    PromptFrame,
    ProviderRequest,
    Stability,
)
from holon.model.record import Record
from holon.model.turns.conversation import (
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    UserBlock,
    UserMessage,
)

_SYSTEM_ORDER: Final = (Stability.STABLE, Stability.AGENT_SCOPED)


class PromptLayout(Record, frozen=True, kw_only=True):
    """A request, laid out: the system pieces in order, and the conversation as it is read."""

    system: tuple[PromptBlock, ...]
    conversation: tuple[ConversationMessage, ...]


def layout_of(request: ProviderRequest) -> PromptLayout:
    """Lay out a request for any wire."""
    pieces = tuple(_pieces(request.frame))
    system = tuple(
        _ending(tuple(piece for piece in pieces if piece.stability is stability))
        for stability in _SYSTEM_ORDER
    )
    turn_scoped = tuple(piece for piece in pieces if piece.stability is Stability.TURN_SCOPED)
    return PromptLayout(
        system=tuple(piece for part in system for piece in part),
        conversation=_with_turn_scoped(request, turn_scoped),
    )


def _pieces(frame: PromptFrame) -> Iterator[PromptBlock]:
    if frame.system_prompt.strip():
        yield PromptBlock(text=frame.system_prompt, stability=Stability.STABLE)
    for block in (*frame.system_blocks, *frame.context_blocks):
        if block.text.strip():
            yield block


def _ending(part: tuple[PromptBlock, ...]) -> tuple[PromptBlock, ...]:
    """Mark the last piece, and only it, as the end of a cached prefix."""
    last = len(part) - 1
    return tuple(
        msgspec.structs.replace(piece, cache_breakpoint=index == last)
        for index, piece in enumerate(part)
    )


def _with_turn_scoped(
    request: ProviderRequest, pieces: tuple[PromptBlock, ...]
) -> tuple[ConversationMessage, ...]:
    conversation = request.conversation
    position = request.turn_start or _last_text_position(conversation)
    if not pieces or position is None:
        return conversation
    opening = conversation[position.message_index]
    if not isinstance(opening, UserMessage):
        return conversation
    scoped = tuple(TextBlock(text=piece.text) for piece in pieces)
    blocks: tuple[UserBlock, ...] = (
        *opening.blocks[: position.block_index],
        *scoped,
        *opening.blocks[position.block_index :],
    )
    return (
        *conversation[: position.message_index],
        UserMessage(blocks=blocks),
        *conversation[position.message_index + 1 :],
    )


def _last_text_position(
    conversation: tuple[ConversationMessage, ...],
) -> ConversationPosition | None:
    """The first own text of the last user message, behind the tool results it begins with."""
    for index in range(len(conversation) - 1, -1, -1):
        message = conversation[index]
        if isinstance(message, UserMessage):
            results = sum(isinstance(block, ToolResultBlock) for block in message.blocks)
            return ConversationPosition(message_index=index, block_index=results)
    return None
