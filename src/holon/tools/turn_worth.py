"""What the running turn is worth, read off its rows.

Owns:  gathering what decide/shown_authority decides on.
Rule 1: a turn nobody knows is worth nothing.
"""

from holon.decide.followup_chain import root_of
from holon.decide.shown_authority import turn_authority
from holon.model.ids import AgentId, TurnId
from holon.model.message import MessageEnvelope
from holon.model.provenance import AuthorityClass
from holon.model.transcript import IncomingMessage, TurnLog
from holon.ports.store_reads import StoreReads


async def turn_worth(reads: StoreReads, agent_id: AgentId, turn_id: TurnId) -> AuthorityClass:
    """Return the authority of the least that had a word in a turn."""
    log = await reads.turn_log(turn_id)
    if log is None:
        return AuthorityClass.EXTERNAL_EVIDENCE
    remembered = await reads.remembered(agent_id)
    root = await _root(log, reads)
    return turn_authority(log, before=remembered.state.authority_class, root=root)


async def _root(log: TurnLog, reads: StoreReads) -> MessageEnvelope | None:
    """The message with which the chain of follow-ups began that led to this turn."""
    shown = (entry.data for entry in log.entries)
    message = next((data.message for data in shown if isinstance(data, IncomingMessage)), None)
    if message is None or message.followup is None:
        return None
    entry = await reads.message(root_of(message))
    return None if entry is None else entry.message
