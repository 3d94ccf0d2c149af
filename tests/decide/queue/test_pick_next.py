"""Urgent first, oldest first within a band, and nobody waits for ever."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.queue.next_message import Pick, pick_next
from holon.model.events.reads import QueueHead
from holon.model.limits import CLAIMS_PASSED_OVER_COUNT_MAX
from holon.model.queue import Priority
from holon.model.values import MessageId

PRIORITIES = st.sampled_from(Priority)


def head(seq: int, priority: Priority) -> QueueHead:
    return QueueHead(seq=seq, message_id=MessageId(f"msg_{seq}"), priority=priority)


class Queue:
    """A queue as the store keeps it: it shows only the oldest message of each band."""

    def __init__(self, priorities: Sequence[Priority] = ()) -> None:
        self._waiting: list[QueueHead] = []
        self._next_seq = 1
        self.passed_over = 0
        for priority in priorities:
            self.admit(priority)

    def admit(self, priority: Priority) -> QueueHead:
        message = head(self._next_seq, priority)
        self._waiting.append(message)
        self._next_seq += 1
        return message

    def heads(self) -> list[QueueHead]:
        firsts: dict[Priority, QueueHead] = {}
        for message in self._waiting:
            firsts.setdefault(message.priority, message)
        return list(firsts.values())

    def claim(self) -> QueueHead | None:
        pick = pick_next(self.heads(), passed_over=self.passed_over)
        if pick is None:
            return None
        self.passed_over = pick.passed_over
        (claimed,) = (m for m in self._waiting if m.message_id == pick.message_id)
        self._waiting.remove(claimed)
        return claimed

    def drain(self) -> list[QueueHead]:
        claims = []
        while (claimed := self.claim()) is not None:
            claims.append(claimed)
        return claims


def test_an_empty_queue_has_nothing_to_pick() -> None:
    assert pick_next([], passed_over=CLAIMS_PASSED_OVER_COUNT_MAX) is None


URGENT, LOW = head(9, Priority.INTERJECT), head(1, Priority.BACKGROUND)


@pytest.mark.parametrize(
    ("heads", "passed_over", "expected"),
    [
        pytest.param([LOW], 0, Pick(message_id=LOW.message_id, passed_over=0), id="only one"),
        pytest.param(
            [LOW, URGENT],
            0,
            Pick(message_id=URGENT.message_id, passed_over=1),
            id="a younger but more urgent one is served and the older one counted",
        ),
        pytest.param(
            [URGENT, LOW],
            CLAIMS_PASSED_OVER_COUNT_MAX - 1,
            Pick(message_id=URGENT.message_id, passed_over=CLAIMS_PASSED_OVER_COUNT_MAX),
            id="once more before the limit",
        ),
        pytest.param(
            [URGENT, LOW],
            CLAIMS_PASSED_OVER_COUNT_MAX,
            Pick(message_id=LOW.message_id, passed_over=0),
            id="at the limit the oldest is served",
        ),
        pytest.param(
            [LOW, head(3, Priority.NEXT), head(2, Priority.NEXT)],
            0,
            Pick(message_id=MessageId("msg_2"), passed_over=1),
            id="the older of two in a band, should both be shown",
        ),
        pytest.param(
            [head(1, Priority.NEXT), head(2, Priority.NORMAL)],
            7,
            Pick(message_id=MessageId("msg_1"), passed_over=0),
            id="serving the oldest starts the count afresh",
        ),
    ],
)
def test_which_message_comes_next(heads: list[QueueHead], passed_over: int, expected: Pick) -> None:
    assert pick_next(heads, passed_over=passed_over) == expected


@pytest.mark.requirement("scheduling:bands-in-order")
def test_bands_are_served_most_urgent_first() -> None:
    assert [m.priority for m in Queue(list(reversed(Priority))).drain()] == [
        Priority.INTERJECT,
        Priority.NEXT,
        Priority.NORMAL,
        Priority.BACKGROUND,
    ]


@pytest.mark.requirement("scheduling:interject-goes-first")
@given(st.lists(PRIORITIES, max_size=30), st.integers(0, CLAIMS_PASSED_OVER_COUNT_MAX - 1))
def test_an_interjection_goes_first_until_the_limit(
    priorities: list[Priority], passed_over: int
) -> None:
    queue = Queue([*priorities, Priority.INTERJECT])
    queue.passed_over = passed_over
    claimed = queue.claim()
    assert claimed is not None
    assert claimed.priority is Priority.INTERJECT


@pytest.mark.requirement("scheduling:stable-within-a-band")
@given(st.lists(PRIORITIES | st.none(), max_size=120))
def test_within_a_band_messages_leave_in_the_order_they_came(
    script: list[Priority | None],
) -> None:
    queue, claims = Queue(), []
    for step in script:  # a priority arrives, or nothing arrives and one message is claimed
        if step is not None:
            queue.admit(step)
        elif (claimed := queue.claim()) is not None:
            claims.append(claimed)
    claims.extend(queue.drain())
    assert len(claims) == sum(step is not None for step in script)
    for priority in Priority:
        band = [message.seq for message in claims if message.priority is priority]
        assert band == sorted(band)


@given(st.lists(PRIORITIES, min_size=1, max_size=CLAIMS_PASSED_OVER_COUNT_MAX))
def test_a_short_queue_is_served_strictly_by_band_and_age(priorities: list[Priority]) -> None:
    claims = [(message.priority.band, message.seq) for message in Queue(priorities).drain()]
    assert claims == sorted(claims)


@pytest.mark.requirement("scheduling:background-is-deferred-not-starved")
@given(
    older=st.lists(PRIORITIES, max_size=6),
    flood=st.lists(st.lists(PRIORITIES, max_size=3), max_size=200),
    passed_over=st.integers(0, CLAIMS_PASSED_OVER_COUNT_MAX),
)
def test_nothing_waits_longer_than_the_bound_however_much_arrives(
    older: list[Priority], flood: list[list[Priority]], passed_over: int
) -> None:
    queue = Queue(older)
    queue.passed_over = passed_over
    patient = queue.admit(Priority.BACKGROUND)
    bound = (len(older) + 1) * (CLAIMS_PASSED_OVER_COUNT_MAX + 1)
    for turn in range(bound):
        arrivals = flood[turn] if turn < len(flood) else [Priority.INTERJECT]
        for priority in arrivals:
            queue.admit(priority)
        if queue.claim() == patient:
            return
    pytest.fail(f"message still waits after {bound} claims")


@pytest.mark.parametrize("flooding", [p for p in Priority if p is not Priority.BACKGROUND])
def test_the_bound_is_reached_under_a_steady_flood(flooding: Priority) -> None:
    queue = Queue([Priority.BACKGROUND])
    claims = []
    for _ in range(CLAIMS_PASSED_OVER_COUNT_MAX + 1):
        queue.admit(flooding)
        claimed = queue.claim()
        assert claimed is not None
        claims.append(claimed.priority)
    assert claims == [flooding] * CLAIMS_PASSED_OVER_COUNT_MAX + [Priority.BACKGROUND]
