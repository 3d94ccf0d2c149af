"""Under which name a provider may keep a prompt.

Owns:  the cache key, and the fingerprint that tells two prompts apart.
Rule 1: the key depends on what stays the same from turn to turn: stable and agent-scoped text and
        the tools on offer. Turn-scoped text never rotates it.
Rule 2: the fingerprint covers everything in the frame; it is for people, never for caching.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from holon.model.ids import AgentId
from holon.model.prompt_frame import PromptBlock, PromptCache, PromptFrame, Stability
from holon.model.record import Record
from holon.model.tool import ToolSpec

_DIGEST_CHARS: Final = 16


class CacheFacts(Record, frozen=True, kw_only=True):
    """What else a cache identity tells; neither number is part of the key."""

    working_memory_revision: int = 0
    compression_epoch: int = 0


def cache_scope(
    agent_id: AgentId,
    frame: PromptFrame,
    tools: Sequence[ToolSpec],
    known: CacheFacts = CacheFacts(),  # noqa: B008 - a frozen value
) -> PromptCache:
    """Name the cache a frame belongs to."""
    blocks = (*frame.system_blocks, *frame.context_blocks)
    lasting = (block for block in blocks if block.stability is not Stability.TURN_SCOPED)
    offered = msgspec.json.encode(tools)
    scope = _digest(frame.system_prompt, lasting, offered)
    return PromptCache(
        agent_id=agent_id,
        prompt_cache_key=f"{agent_id}:ctx:{scope}",
        context_fingerprint=_digest(frame.system_prompt, blocks, offered),
        working_memory_revision=known.working_memory_revision,
        compression_epoch=known.compression_epoch,
    )


def _digest(system_prompt: str, blocks: Iterable[PromptBlock], offered: bytes) -> str:
    """Return a digest of texts and tools. Lengths go in, so that no two splits look the same."""
    found = sha256()
    for text in (system_prompt, *(f"{block.stability}:{block.text}" for block in blocks)):
        encoded = text.encode()
        found.update(len(encoded).to_bytes(8, "big") + encoded)
    found.update(offered)
    return found.hexdigest()[:_DIGEST_CHARS]
