"""The provider's own output items, kept to be sent back in place of rebuilt ones.

Owns:  which form of an answer goes back to this backend, which keeps nothing of it for us.
Rule 1: originals stand in only for exactly the answer they came with: they are found by the items
        that would be sent without them.
Rule 2: an original loses the names (`id`, `status`) under which nothing is stored; reasoning stays
        as it was sealed.
Rule 3: a call told in another form than the one we rebuild (plain text where a function was
        offered, or the reverse) is rebuilt, because its result is lowered to match that form.
Rule 4: this saves fidelity and cache, nothing depends on it: after a restart rebuilt items serve.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holon.adapters.providers.openai_responses.items import (
    Item,
    hosted_item,
    is_hosted,
    is_sealed,
    type_first,
    wire_key,
)
from holon.adapters.providers.wire_names import plain_name
from holon.model.limits import MIB
from holon.model.lru import Lru

_ANSWERS_COUNT_MAX: Final = 4_096
_BYTES_MAX: Final = 64 * MIB
_KEPT_KINDS: Final = frozenset({"message", "function_call", "custom_tool_call"})
_STORED_NAMES: Final = frozenset({"id", "status"})


class OutputReplay:
    """Originals of the answers of one endpoint, bounded; the longest unused goes first."""

    def __init__(
        self, *, answers_max: int = _ANSWERS_COUNT_MAX, bytes_max: int = _BYTES_MAX
    ) -> None:
        self._originals: Lru[bytes, bytes] = Lru(answers_max, size_max=bytes_max)

    def keep(self, rebuilt: Sequence[Item], output: Sequence[dict[str, Any]]) -> None:
        """Remember the output an answer came as, by the items it would be rebuilt to."""
        sendable = originals_of(output)
        if _calls_in(sendable) != _calls_in(rebuilt):
            return
        originals = msgspec.json.encode(sendable)
        self._originals.put(_key_of(rebuilt), originals, len(originals))

    def in_place_of(self, rebuilt: Sequence[Item]) -> Sequence[Item]:
        """Return the originals where they are known, else the rebuilt items themselves."""
        if not self._originals or not rebuilt:
            return rebuilt
        originals = self._originals.get(_key_of(rebuilt))
        if originals is None:
            return rebuilt
        return msgspec.json.decode(originals, type=list[dict[str, Any]])


def originals_of(output: Sequence[dict[str, Any]]) -> list[Item]:
    """Return the items of an output as they can be sent back."""
    sendable = (_original(item) for item in output)
    return [item for item in sendable if item is not None]


def _original(item: dict[str, Any]) -> Item | None:
    if is_sealed(item):
        return type_first(item)
    if is_hosted(item):
        return hosted_item(item, keeps_id=False)
    is_kept = item.get("type") in _KEPT_KINDS and bool(item.get("content", True))
    if not is_kept:
        return None
    kept = {key: value for key, value in type_first(item).items() if key not in _STORED_NAMES}
    for key, fit in (("call_id", wire_key), ("name", plain_name)):
        if isinstance(kept.get(key), str):
            kept[key] = fit(kept[key])
    return kept


def _calls_in(items: Sequence[Item]) -> list[tuple[Any, Any]]:
    return [(item["type"], item["call_id"]) for item in items if "call_id" in item]


def _key_of(items: Sequence[Item]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(items)).digest()
