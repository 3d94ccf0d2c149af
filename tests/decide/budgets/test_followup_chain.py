"""An agent goes on by itself only so far."""

import msgspec
import pytest

from holon.decide.budgets.no_progress import ChainUsedUp, FollowupFacts, next_in_chain, root_of
from holon.model.limits import FOLLOWUPS_PER_CHAIN_COUNT_MAX
from holon.model.queue import FollowupChain, MessageEnvelope
from holon.model.values import MessageId
from tests.decide.turn_rows import prompt

ROOT = MessageId("msg_root")


def followup(number: int) -> MessageEnvelope:
    """A follow-up in the middle of a chain."""
    chained: MessageEnvelope = msgspec.structs.replace(
        prompt(), id=MessageId("msg_9"), followup=FollowupChain(root_id=ROOT, number=number)
    )
    return chained


def test_a_chain_begins_with_the_message_that_is_no_follow_up() -> None:
    cause = prompt()
    first = next_in_chain(FollowupFacts(cause=cause, known_count=0))
    assert first == FollowupChain(root_id=cause.id, number=1)
    second = next_in_chain(FollowupFacts(cause=followup(1), known_count=1))
    assert second == FollowupChain(root_id=ROOT, number=2)
    assert root_of(followup(7)) == ROOT


@pytest.mark.requirement("turn-complete:followup-chain-is-bounded")
@pytest.mark.parametrize(
    ("carried", "known", "number"),
    [
        (3, 3, 4),
        (3, 9, 10),  # the turns before left several each
        (9, 2, 10),  # old ones were forgotten
        (FOLLOWUPS_PER_CHAIN_COUNT_MAX - 1, 0, FOLLOWUPS_PER_CHAIN_COUNT_MAX),
        (FOLLOWUPS_PER_CHAIN_COUNT_MAX, 0, None),
        (1, FOLLOWUPS_PER_CHAIN_COUNT_MAX, None),
    ],
)
def test_every_follow_up_counts_and_there_is_a_last_one(
    carried: int, known: int, number: int | None
) -> None:
    found = next_in_chain(FollowupFacts(cause=followup(carried), known_count=known))
    if number is None:
        assert found == ChainUsedUp(count=FOLLOWUPS_PER_CHAIN_COUNT_MAX)
    else:
        assert found == FollowupChain(root_id=ROOT, number=number)
