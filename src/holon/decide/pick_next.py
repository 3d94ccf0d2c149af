"""Which queued message an agent takes next.

Owns:  the order of service between bands and the bound on how long a band may be passed over.
Rule 1: the most urgent band is served first; within a band, the oldest message.
Rule 2: after CLAIMS_PASSED_OVER_COUNT_MAX picks in a row that passed over the oldest message, that
        message is served whatever its band. So a message with k older ones before it is served
        after at most (k + 1) × (CLAIMS_PASSED_OVER_COUNT_MAX + 1) picks, however many urgent ones
        keep arriving. A pick counts whether or not it starts a turn: whoever may write to an agent
        that waits for its operator would otherwise keep the operator's answer waiting as well.
"""

from collections.abc import Sequence

from holon.model.ids import MessageId
from holon.model.limits import CLAIMS_PASSED_OVER_COUNT_MAX
from holon.model.record import Record
from holon.model.snapshot import QueueHead


class Pick(Record, frozen=True, kw_only=True):
    """The message to serve, and how often in a row the oldest one has been passed over by then."""

    message_id: MessageId
    passed_over: int


def pick_next(heads: Sequence[QueueHead], *, passed_over: int) -> Pick | None:
    """Return the next message to serve, or nothing when the queue is empty."""
    if not heads:
        return None
    oldest = min(heads, key=_age)
    if passed_over >= CLAIMS_PASSED_OVER_COUNT_MAX:
        return Pick(message_id=oldest.message_id, passed_over=0)
    first = min(heads, key=_urgency)
    if first is oldest:
        return Pick(message_id=oldest.message_id, passed_over=0)
    return Pick(message_id=first.message_id, passed_over=passed_over + 1)


def _age(head: QueueHead) -> int:
    return head.seq


def _urgency(head: QueueHead) -> tuple[int, int]:
    return head.priority.band, head.seq
