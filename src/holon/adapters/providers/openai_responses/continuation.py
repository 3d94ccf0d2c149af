"""Continuing from the provider's last response instead of sending the conversation again.

Owns:  the windows (what the provider already holds, by scope) and the decision to use one.
Rule 1: a window is used only when the request has the same shape and the provider's items are a
        strictly shorter prefix of ours. Anything else goes out whole, with the reason on record.
Rule 2: a window is taken out before the request is sent and put back only by a complete answer, so
        an error, a cut-off answer or a cancelled request leaves none behind.
Rule 3: reasoning is not compared: the provider keeps its own, and what we replay of it may differ.
"""

from collections.abc import Sequence
from enum import StrEnum
from itertools import dropwhile
from typing import Final, TypeAlias

import msgspec

from holon.adapters.providers.openai_responses.conversation_memo import EncodedMessage, Progress
from holon.adapters.providers.openai_responses.items import is_reasoning
from holon.model.lru import Lru
from holon.model.prompt_frame import PromptFrame
from holon.model.record import Record

_WINDOWS_COUNT_MAX: Final = 256

Scope: TypeAlias = tuple[str, str]


class ContinuationNote(StrEnum):
    """How a request was shortened, or why it was not."""

    HIT = "hit"
    MISSING_SCOPE = "missing_continuation_scope"
    INITIAL_REQUEST = "not_applicable_initial_request"
    SHAPE_CHANGED = "request_shape_changed"
    NOT_APPEND_ONLY = "conversation_not_strict_append_only"
    MISSING_RESPONSE_ID = "missing_response_id"
    REFUSED = "previous_response_refused"  # a hit the provider refused; sent again, whole


class Window(Record, frozen=True, kw_only=True):
    """What the provider holds of one conversation after its last response."""

    shape: bytes
    progress: Progress
    response_id: str | None


class WholeRequest(Record, frozen=True, kw_only=True):
    """Send everything."""

    why: ContinuationNote


class OnlyNewItems(Record, frozen=True, kw_only=True):
    """Send what the provider does not have, and name what it does have."""

    previous_response_id: str
    items: Sequence[msgspec.Raw]


Plan: TypeAlias = WholeRequest | OnlyNewItems


def scope_of(frame: PromptFrame) -> Scope | None:
    """Return the scope a window is kept under: the cache identity, where the frame has one."""
    return None if frame.cache is None else (frame.cache.agent_id, frame.cache.prompt_cache_key)


def plan_request(
    *,
    scope: Scope | None,
    window: Window | None,
    shape: bytes,
    messages: Sequence[EncodedMessage],
) -> Plan:
    """Decide what to send. First matching rule wins; read top to bottom."""
    if scope is None:
        return WholeRequest(why=ContinuationNote.MISSING_SCOPE)
    if window is None:
        return WholeRequest(why=ContinuationNote.INITIAL_REQUEST)
    if window.response_id is None:
        return WholeRequest(why=ContinuationNote.MISSING_RESPONSE_ID)
    if window.shape != shape:
        return WholeRequest(why=ContinuationNote.SHAPE_CHANGED)
    items = _items_behind(window.progress, messages)
    if not items:
        return WholeRequest(why=ContinuationNote.NOT_APPEND_ONLY)
    return OnlyNewItems(previous_response_id=window.response_id, items=items)


def _items_behind(known: Progress, messages: Sequence[EncodedMessage]) -> Sequence[msgspec.Raw]:
    """Return what follows the known items; nothing where ours do not begin with them."""
    first = len(messages)
    while first and _before(first, messages).count > known.count:
        first -= 1
    progress = _before(first, messages)
    items = [item for message in messages[first:] for item in message.items]
    passed = 0
    while progress.count < known.count and passed < len(items):
        progress = progress.behind((items[passed],))
        passed += 1
    if progress != known:
        return ()
    # Reasoning before the first new item is part of what is known.
    return tuple(dropwhile(is_reasoning, items[passed:]))


def _before(index: int, messages: Sequence[EncodedMessage]) -> Progress:
    return messages[index - 1].progress if index else Progress()


class ContinuationWindows:
    """The windows of one endpoint, bounded; the longest unused goes first."""

    def __init__(self, *, windows_max: int = _WINDOWS_COUNT_MAX) -> None:
        self._windows: Lru[Scope, Window] = Lru(windows_max)

    def take(self, scope: Scope | None) -> Window | None:
        """Take the window of a scope out, if there is one."""
        return None if scope is None else self._windows.pop(scope)

    def keep(self, scope: Scope | None, window: Window) -> None:
        """Keep a window until the next request of its scope."""
        if scope is not None:
            self._windows.put(scope, window)
