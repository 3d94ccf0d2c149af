"""Whose words a turn was shown, and what that makes of what it does.

Owns:  the one rule by which labels, memory and guards say what a turn is worth.
Rule 1: a turn is worth the least of the messages it was shown. What a message of the runtime only
        carries, the words of a trigger or the output of a task, is evidence.
Rule 2: a turn that the runtime starts by itself goes on with the turn before it, and a follow-up
        with the message its chain began with: neither is worth more.
Rule 3: what a turn reads by its own calls does not count: whoever started it asked for that.
"""

from collections.abc import Iterable
from typing import Final

from holon.decide.authority import lowest
from holon.decide.message_view import authority_shown
from holon.model.message import MessageEnvelope, MessageKind
from holon.model.provenance import AuthorityClass
from holon.model.transcript import IncomingMessage, TurnLog

INSTRUCTIONS: Final = frozenset(
    {AuthorityClass.OPERATOR_INSTRUCTION, AuthorityClass.RUNTIME_INSTRUCTION}
)


def worth_of(messages: Iterable[MessageEnvelope]) -> AuthorityClass:
    """Return the weakest of some messages; nothing known is worth nothing."""
    worth = [_worth(message) for message in messages]
    return lowest(worth) if worth else AuthorityClass.EXTERNAL_EVIDENCE


def authority_of(log: TurnLog) -> AuthorityClass:
    """Return the weakest of what a turn itself was shown."""
    return worth_of(
        message
        for entry in log.entries
        if isinstance(entry.data, IncomingMessage)
        for message in (entry.data.message, *entry.data.unseen)
    )


def turn_authority(
    log: TurnLog, *, before: AuthorityClass, root: MessageEnvelope | None = None
) -> AuthorityClass:
    """Return what a turn is worth; `before` is the turn before it, `root` the start of its chain.

    A chain's start that is not known any more is left out: the turn before stands for it.
    """
    own = authority_of(log)
    if own is not AuthorityClass.RUNTIME_INSTRUCTION:
        return own
    return lowest((own, before, *(() if root is None else (worth_of((root,)),))))


def is_tainted(authority: AuthorityClass) -> bool:
    """Whether somebody from outside had a word in what is worth this."""
    return authority not in INSTRUCTIONS


def _worth(message: MessageEnvelope) -> AuthorityClass:
    if message.kind is MessageKind.TASK_RESULT:
        return AuthorityClass.EXTERNAL_EVIDENCE
    return authority_shown(message)
