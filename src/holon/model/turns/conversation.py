"""The provider-neutral conversation: messages made of blocks.

Owns:  the block union and the messages a provider request is made of.
Rule 1: every tool use block is answered by exactly one tool result block, in the next user message.
Rule 2: thinking is opaque and goes back to the provider that produced it: byte for byte where the
        provider sealed it, else without secrets.
"""

from typing import Final, TypeAlias

from holon.model.record import Record
from holon.model.values import CallId, JsonValue, require_json, require_unicode

THINK_OPENING: Final = "<think>"  # where reasoning stood in the text of the answer
REASONING_FIELDS: Final = ("reasoning_content", "reasoning")  # the servers' two names for it
_PLAIN_PLACES: Final = frozenset({THINK_OPENING, *REASONING_FIELDS})


class TextBlock(Record, tag_field="type", tag="text", frozen=True, kw_only=True):
    """Plain text.

    `phase` is a provider's own label for them (a comment on the way, or the final answer), and
    `origin` the `transport:provider/model` that gave it and is sent it back.
    """

    text: str
    phase: str | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        require_unicode(self.text)


class ThinkingBlock(Record, tag_field="type", tag="thinking", frozen=True, kw_only=True):
    """A provider's reasoning, kept verbatim where it is sealed.

    `signature` is the provider's own sealed form of it (a signature, redacted data, or a whole
    reasoning item as JSON text), or the place that plain reasoning stood in and goes back to;
    `origin` is the `transport:provider/model` that can read it. No other is ever sent the block.
    """

    text: str
    signature: str | None = None
    redacted: bool = False
    origin: str | None = None

    @property
    def is_sealed(self) -> bool:
        """Whether the provider takes it back only byte for byte."""
        return bool(self.signature) and self.signature not in _PLAIN_PLACES


class OpaqueBlock(Record, tag_field="type", tag="opaque", frozen=True, kw_only=True):
    """What a provider did by itself, such as a search of its own: JSON text, kept verbatim.

    `origin` is the `transport:provider/model` it came from; no other is ever sent it.
    """

    content: str
    origin: str

    def __post_init__(self) -> None:
        require_unicode(self.content)


class ToolUseBlock(Record, tag_field="type", tag="tool_use", frozen=True, kw_only=True):
    """The model asks for a tool. `call_id` is the provider's name for this call."""

    call_id: CallId
    name: str
    input: JsonValue

    def __post_init__(self) -> None:
        require_json(self.input)


class ToolResultBlock(Record, tag_field="type", tag="tool_result", frozen=True, kw_only=True):
    """The answer to one tool use."""

    call_id: CallId
    content: str
    is_error: bool = False


AssistantBlock: TypeAlias = TextBlock | ThinkingBlock | OpaqueBlock | ToolUseBlock
UserBlock: TypeAlias = TextBlock | ToolResultBlock


class AssistantMessage(Record, tag_field="role", tag="assistant", frozen=True, kw_only=True):
    """One model round."""

    blocks: tuple[AssistantBlock, ...]


class UserMessage(Record, tag_field="role", tag="user", frozen=True, kw_only=True):
    """What the runtime hands to the model: input, tool results, interjections."""

    blocks: tuple[UserBlock, ...]


ConversationMessage: TypeAlias = AssistantMessage | UserMessage


def text_of(blocks: tuple[AssistantBlock, ...]) -> str:
    """Return the text of a round, joined; without thinking and tool uses."""
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def tool_uses_of(blocks: tuple[AssistantBlock, ...]) -> tuple[ToolUseBlock, ...]:
    """Return the tool uses of a round, in order."""
    return tuple(block for block in blocks if isinstance(block, ToolUseBlock))
