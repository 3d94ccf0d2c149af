"""Waiting for the answer to one message.

Owns:  how the end of a message is told from its agent's events, and which briefs answer it.
Rule 1: the briefs of a message's own turn answer it; what entered a running turn is answered by
        that turn's briefs.
Rule 2: nothing is asked again and again: events are followed from before the message was sent.
Rule 3: a message that was sent before, under the same key, may have ended long ago.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from holon.client.event_stream import envelope_of, follow
from holon.model.json_value import JsonValue
from holon.model.limits import SURFACE_PAGE_COUNT_MAX

if TYPE_CHECKING:
    from holon.cli.runtime_call import Target

_ENDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "message_processed": "processed",
        "message_processing_aborted": "aborted",
        "message_dropped": "dropped",
    }
)
_INTERJECTED: Final = "interjected"
BUDGET_HOLD: Final = "a budget is used up"
# Events after which nothing happens for a while, and why.
_HOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "budget_used_up": BUDGET_HOLD,
        "provider_deferred": "the provider takes no more before then",
    }
)


ToldHeld: TypeAlias = Callable[[JsonValue, str], None]  # until when, and why


class Answer(NamedTuple):
    """How a message ended, and the briefs that answer it, the last one also by itself."""

    ended: str
    brief: "JsonValue"
    briefs: "list[JsonValue]"  # oldest first: reports of completed work, then the end of the turn

    @property
    def is_well(self) -> bool:
        """Whether the message led to what it asked for, as far as the runtime can tell."""
        failed = self.brief is not None and self.brief.get("kind") == "failure"
        return self.ended in ("processed", _INTERJECTED) and not failed


def await_answer(
    target: "Target",
    receipt: "JsonValue",
    *,
    after_seq: int,
    told_held: "ToldHeld",
) -> Answer:
    """Return the answer to a message once it has ended; say until when it is held meanwhile."""
    watch = _Watch(str(receipt["message_id"]))
    ended = _ended_before(target, receipt)
    if ended is None:
        told = _noting_holds(_told(target, after_seq), told_held)
        ended = next(end for end in map(watch.end_of, told) if end is not None)
    page = target.read("briefs", {"limit": SURFACE_PAGE_COUNT_MAX}, part="briefs")
    newest_first = [each for each in page["briefs"] if watch.is_answered_by(each)]
    last = newest_first[0] if newest_first else None
    # Earlier turns on the same message were put off; what they said has been answered since.
    turn_id = None if last is None else last.get("turn_id")
    briefs = [each for each in reversed(newest_first) if each.get("turn_id") == turn_id]
    return Answer(ended, last, briefs)


def _ended_before(target: "Target", receipt: "JsonValue") -> str | None:
    if not receipt.get("duplicate"):
        return None
    state = str(target.read(f"messages/{receipt['message_id']}").get("state"))
    return state if state in (*_ENDS.values(), _INTERJECTED) else None


def _told(target: "Target", after_seq: int) -> Iterator["JsonValue"]:
    stream = target.path("events/stream")
    for each in follow(target.client, stream, pause=time.sleep, query={"after_seq": after_seq}):
        yield envelope_of(each)["payload"]


def _noting_holds(events: Iterator["JsonValue"], told_held: ToldHeld) -> Iterator["JsonValue"]:
    """Pass events on; what holds the message up while somebody waits is told once."""
    told: set[tuple[str, str]] = set()
    for event in events:
        why, until = _HOLDS.get(str(event.get("kind"))), str(event.get("until"))
        if why is not None and (why, until) not in told:
            told.add((why, until))
            told_held(until, why)
        yield event


class _Watch:
    """What is known of one message so far."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._turn_id: str | None = None  # the running turn it entered

    def end_of(self, event: "JsonValue") -> str | None:
        """Return how the message ended, if this event is its end."""
        kind = event.get("kind")
        if self._turn_id is not None:
            is_over = kind == "turn_terminal" and event.get("turn_id") == self._turn_id
            return "processed" if is_over else None
        if event.get("message_id") != self._message_id:
            return None
        if kind == "operator_interjection_admitted":
            self._turn_id = event.get("turn_id")
        return _ENDS.get(str(kind))

    def is_answered_by(self, brief: "JsonValue") -> bool:
        """Whether this brief answers the message."""
        if self._turn_id is not None:
            return bool(brief.get("turn_id") == self._turn_id)
        return bool(brief.get("related_message_id") == self._message_id)
