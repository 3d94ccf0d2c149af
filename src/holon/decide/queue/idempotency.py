"""Idempotent records: the same key gives the same record.

Owns:  the id of a record, derived from its agent and an idempotency key.
Rule 1: the same key gives the same id, so a second request finds the record of the first.
Rule 2: a key belongs to one agent: the same text under another agent is another key.
"""

import hashlib
from typing import Final

from holon.decide.queue.admission import key_refusal
from holon.model.errors import Refusal, RefusalCode, RefusedError
from holon.model.values import AgentId, IdPrefix

_DIGEST_CHARS: Final = 32
# The form of every id that comes from a key; random ids are shorter.
KEYED_RECORD_GLOB: Final = "*_" + "[0-9a-f]" * _DIGEST_CHARS
KEYED_REQUEST_GLOB: Final = f"{IdPrefix.REQUEST.value}_" + "[0-9a-f]" * _DIGEST_CHARS


def keyed_id(prefix: IdPrefix, agent_id: AgentId, key: str) -> str:
    """Return the id of the record a key stands for; raises RefusedError for what is no key."""
    refusal = key_refusal(key)
    if refusal is not None:
        raise RefusedError(refusal)
    digest = hashlib.sha256(f"{agent_id}\0{key}".encode()).hexdigest()
    return f"{prefix.value}_{digest[:_DIGEST_CHARS]}"


def keyed_request(agent_id: AgentId, key: str, *, content: str) -> str:
    """Return the name of a request: the same only for the same key and the same content."""
    name = f"{keyed_id(IdPrefix.REQUEST, agent_id, key)}\0{content}"
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{IdPrefix.REQUEST.value}_{digest[:_DIGEST_CHARS]}"


def key_conflict(record_id: str) -> Refusal:
    """The key was used before, for something else."""
    return Refusal(
        code=RefusalCode.IDEMPOTENCY_CONFLICT,
        message=f"the idempotency key was used before, for {record_id} with other content",
        hint="use a new key for new content, or repeat the same body",
        field="idempotency_key",
    )
