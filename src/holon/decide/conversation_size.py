"""How large a conversation is, before any wire has lowered it.

Owns:  the measure everything about budgets is counted in: bytes of what is said, and a little for
       what any wire puts around a block.
"""

from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from holon.model.conversation import (
    AssistantBlock,
    ConversationMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
)
from holon.model.text_size import utf8_bytes

BLOCK_BYTES: Final = 32  # names and braces around each block


def bytes_of(messages: Iterable[ConversationMessage]) -> int:
    """Return about how many bytes these messages are."""
    return sum(_block_bytes(block) for message in messages for block in message.blocks)


def _block_bytes(block: AssistantBlock | UserBlock) -> int:
    match block:
        case TextBlock(text=text):
            said = utf8_bytes(text)
        case ThinkingBlock(text=text, signature=signature):
            said = utf8_bytes(text) + utf8_bytes(signature or "")
        case OpaqueBlock(content=content):
            said = utf8_bytes(content)
        case ToolUseBlock(call_id=call_id, name=name, input=asked):
            said = utf8_bytes(call_id) + utf8_bytes(name) + len(msgspec.json.encode(asked))
        case ToolResultBlock(call_id=call_id, content=content):
            said = utf8_bytes(call_id) + utf8_bytes(content)
        case _:
            assert_never(block)
    return BLOCK_BYTES + said
