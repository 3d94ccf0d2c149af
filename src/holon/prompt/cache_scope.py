"""Under which name a provider may keep a prompt.

Owns:  the cache key, and the fingerprint that tells two prompts apart.
Rule 1: the key depends on what stays the same from turn to turn: stable and agent-scoped text and
        the tools on offer. Turn-scoped text never rotates it.
Rule 2: the fingerprint covers everything in the frame, and the input it is for; it is for people,
        never for caching.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Final

from holon.model.ids import AgentId
from holon.model.prompt_frame import PromptBlock, PromptCache, PromptFrame, Stability
from holon.model.record import Record
from holon.prompt.offered_tools import OfferedTools

_DIGEST_CHARS: Final = 16
_STABLE_TEXTS_COUNT: Final = 64  # texts of ours, each the same in every prompt


class CacheFacts(Record, frozen=True, kw_only=True):
    """What else a cache identity tells; nothing of it is part of the key."""

    current_input: str | None = None
    working_memory_revision: int = 0
    compression_epoch: int = 0


def cache_scope(
    agent_id: AgentId,
    frame: PromptFrame,
    tools: OfferedTools,
    known: CacheFacts = CacheFacts(),  # noqa: B008 - a frozen value
) -> PromptCache:
    """Name the cache a frame belongs to."""
    always = (tools.sha256.encode(), sha256(frame.system_prompt.encode()).digest())
    lasting, fleeting = list[bytes](), list[bytes]()
    for block in (*frame.system_blocks, *frame.context_blocks):
        is_lasting = block.stability is not Stability.TURN_SCOPED
        (lasting if is_lasting else fleeting).append(_digest(block))
    if known.current_input is not None:
        fleeting.append(sha256(known.current_input.encode()).digest())
    scope = _joined((*always, *lasting))
    return PromptCache(
        agent_id=agent_id,
        prompt_cache_key=f"{agent_id}:ctx:{scope}",
        context_fingerprint=_joined((*always, *lasting, *fleeting)),
        working_memory_revision=known.working_memory_revision,
        compression_epoch=known.compression_epoch,
    )


def _digest(block: PromptBlock) -> bytes:
    if block.stability is Stability.STABLE:
        return _stable_digest(block.text)
    return sha256(f"{block.stability}:{block.text}".encode()).digest()


@lru_cache(maxsize=_STABLE_TEXTS_COUNT)
def _stable_digest(text: str) -> bytes:
    return sha256(f"{Stability.STABLE}:{text}".encode()).digest()


def _joined(digests: Iterable[bytes]) -> str:
    """Return the digest of digests: each has the same length, so no two splits look the same."""
    return sha256(b"".join(digests)).hexdigest()[:_DIGEST_CHARS]
