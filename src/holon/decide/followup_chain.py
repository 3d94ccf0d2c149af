"""How far an agent may go on by itself: the chain of follow-ups one message leads to.

Owns:  where a new follow-up stands in its chain, and when there have been enough.
Rule 1: a chain begins with a message that is no follow-up and counts every follow-up since, also
        when a turn leaves itself several. Only the runtime counts; a model's words do not matter.
Rule 2: a follow-up beyond the limit is refused. Work that goes on by itself belongs into a work
        item, which the scheduler offers again and watches for progress.
Rule 3: an operator who speaks up during a turn begins a new chain.
"""

from typing import TypeAlias

from holon.model.ids import MessageId
from holon.model.limits import FOLLOWUPS_PER_CHAIN_COUNT_MAX
from holon.model.message import FollowupChain, MessageEnvelope
from holon.model.record import Record


class FollowupFacts(Record, frozen=True, kw_only=True):
    """The message a turn answers, and how many follow-ups its chain is known to have."""

    cause: MessageEnvelope
    known_count: int


class ChainUsedUp(Record, tag=True, frozen=True, kw_only=True):
    """There have been enough."""

    count: int


FollowupDecision: TypeAlias = FollowupChain | ChainUsedUp


def root_of(cause: MessageEnvelope) -> MessageId:
    """Return the message a follow-up of this one would go back to."""
    return cause.id if cause.followup is None else cause.followup.root_id


def next_in_chain(facts: FollowupFacts) -> FollowupDecision:
    """Say where the next follow-up stands, or that there is none.

    Old follow-ups may have been forgotten, so what the message itself carries counts as well.
    """
    carried = 0 if facts.cause.followup is None else facts.cause.followup.number
    count = max(carried, facts.known_count)
    if count >= FOLLOWUPS_PER_CHAIN_COUNT_MAX:
        return ChainUsedUp(count=count)
    return FollowupChain(root_id=root_of(facts.cause), number=count + 1)
