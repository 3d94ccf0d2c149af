"""The provider-neutral prompt: blocks with a known stability, before any wire lowering.

Owns:  prompt blocks, the frame and the cache identity.
Rule 1: stable blocks come first, then agent-scoped, then history, then turn-scoped: the order that
        lets a provider reuse its cache.
"""

from enum import StrEnum

import msgspec

from holon.model.record import Record
from holon.model.turns.conversation import ConversationMessage
from holon.model.turns.tools import ToolSpec
from holon.model.values import AgentId


class Stability(StrEnum):
    """How often a block changes."""

    STABLE = "stable"
    AGENT_SCOPED = "agent_scoped"
    TURN_SCOPED = "turn_scoped"


class PromptBlock(Record, frozen=True, kw_only=True):
    """One piece of prompt text."""

    text: str
    stability: Stability
    cache_breakpoint: bool = False


class PromptCache(Record, frozen=True, kw_only=True):
    """The identity under which a provider may keep this prompt."""

    agent_id: AgentId
    prompt_cache_key: str
    context_fingerprint: str
    working_memory_revision: int = msgspec.field(default_factory=int)
    compression_epoch: int = msgspec.field(default_factory=int)


class PromptFrame(Record, frozen=True, kw_only=True):
    """Everything a model reads besides the conversation."""

    system_prompt: str
    system_blocks: tuple[PromptBlock, ...] = ()
    context_blocks: tuple[PromptBlock, ...] = ()
    cache: PromptCache | None = None


class ConversationPosition(Record, frozen=True, kw_only=True):
    """A place in a conversation: before this block of this message."""

    message_index: int
    block_index: int


class ProviderRequest(Record, frozen=True, kw_only=True):
    """One round's full, replayable request.

    `turn_start` is where the running turn begins. Turn-scoped context is lowered there:
    behind the append-only history and in front of everything the turn itself appends, so neither
    loses its cached prefix. Without a position it goes before the text of the last user message.
    """

    agent_id: AgentId
    frame: PromptFrame
    conversation: tuple[ConversationMessage, ...]
    tools: tuple[ToolSpec, ...]
    turn_start: ConversationPosition | None = None
