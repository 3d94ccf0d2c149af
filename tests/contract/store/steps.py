"""Steps many tests of the store contract are made of: changes, and commits that make them."""

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from typing import Final, TypeVar

import msgspec

from holon.decide.events.audit import audited
from holon.model.agents import AgentIdentity, AgentStatus
from holon.model.budgets import HoldMessage
from holon.model.commits import (
    AppendTranscript,
    Applied,
    Change,
    ClaimMessage,
    Commit,
    CommitOutcome,
    CreateAgent,
    Expect,
    OpenTurn,
    QueueMessage,
    RecordEvent,
    SetAgentStatus,
    SettleMessage,
    SettleTurn,
)
from holon.model.events.event import ControlApplied
from holon.model.events.retention import PruneReport, RetentionPolicy
from holon.model.limits import HOUR_MS
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import MessageState, Priority
from holon.model.turns.turn import TurnRecord
from holon.model.values import AgentId, MessageId
from holon.ports.store import Store
from tests.support.builders import (
    MAIN,
    START,
    a_commit,
    a_message,
    a_round,
    a_terminal,
    a_turn,
    an_entry,
    an_identity,
    moment,
)

T = TypeVar("T", bound=msgspec.Struct)
OTHER: Final = AgentId("other")
HOUR: Final = moment(HOUR_MS)
_numbers = count()


async def offer(
    store: Store, *changes: Change, expects: tuple[Expect, ...] = (), at: datetime = START
) -> CommitOutcome:
    """Apply changes as a commit of their own, which may be refused."""
    commit = a_commit(f"step:{next(_numbers)}", *changes, expects=expects, at=at)
    return await store.apply(audited(commit))


async def make(store: Store, *changes: Change, at: datetime = START) -> None:
    """Apply changes that must be accepted."""
    assert await offer(store, *changes, at=at) == Applied()


async def submit_all(store: Store, commits: Sequence[Commit]) -> list[CommitOutcome]:
    """Submit commits before the outcome of the first is known."""
    tickets = [store.submit(audited(commit)) for commit in commits]
    return [await ticket.outcome() for ticket in tickets]


async def prune_all(store: Store, policy: RetentionPolicy, *, now: datetime) -> list[PruneReport]:
    """Prune until there is nothing more to remove."""
    reports = [await store.prune(policy, now=now)]
    while reports[-1].more:
        reports.append(await store.prune(policy, now=now))
    return reports


def with_(record: T, **fields: object) -> T:
    """A record that differs in these fields."""
    return msgspec.structs.replace(record, **fields)


def born(agent_id: str, **fields: object) -> CreateAgent:
    """The birth of an agent with such an identity."""
    identity: AgentIdentity = with_(an_identity(agent_id), **fields)
    return CreateAgent(identity=identity, status=AgentStatus.ASLEEP)


def in_status(status: AgentStatus) -> SetAgentStatus:
    """A move of the agent's posture."""
    return SetAgentStatus(agent_id=MAIN, status=status, reason="test")


def queued(message_id: str, priority: Priority = Priority.NORMAL) -> QueueMessage:
    """A prompt that comes in."""
    return QueueMessage(message=a_message(message_id, priority=priority))


def claimed(
    message_id: str, *, agent_id: AgentId = MAIN, generation: int = 1, passed_over: int = 0
) -> ClaimMessage:
    """The claim of a queued message."""
    return ClaimMessage(
        agent_id=agent_id,
        message_id=MessageId(message_id),
        generation=generation,
        passed_over=passed_over,
    )


def settled(
    message_id: str,
    *,
    agent_id: AgentId = MAIN,
    unseen: bool = False,
    reason: str = "turn_completed",
) -> SettleMessage:
    """The good end of a message, seen by the model or not."""
    return SettleMessage(
        agent_id=agent_id,
        message_id=MessageId(message_id),
        state=MessageState.PROCESSED,
        reason=reason,
        unseen=unseen,
    )


def held(message_id: str = "msg_1", *, agent_id: AgentId = MAIN, until_ms: int) -> HoldMessage:
    """The hold of a queued message until a moment."""
    return HoldMessage(agent_id=agent_id, message_id=MessageId(message_id), until=moment(until_ms))


def ended(turn: TurnRecord, *, at: datetime = START) -> SettleTurn:
    """The good end of a turn, after one round."""
    return SettleTurn(
        agent_id=turn.agent_id,
        turn_id=turn.turn_id,
        terminal=a_terminal(turn, completed_at=at),
        usage=TokenUsage(),
        round_count=1,
    )


def noted(agent_id: AgentId = MAIN, n: int = 1) -> RecordEvent:
    """An event that moves no row."""
    return RecordEvent(
        agent_id=agent_id, event=ControlApplied(action="noted", request_id=f"req_{n}")
    )


async def open_turn(store: Store, n: int, *, at: datetime = START) -> TurnRecord:
    """Have the agent begin its turn of a number, for a message of its own, with one round."""
    turn = a_turn(f"turn_{n}", message_id=f"msg_{n}", index=n)
    await make(
        store,
        QueueMessage(message=a_message(f"msg_{n}", created_at=at)),
        claimed(f"msg_{n}", generation=n),
        OpenTurn(turn=turn),
        AppendTranscript(entry=an_entry(turn, position=0, data=a_round())),
        at=at,
    )
    return turn


async def make_turn(store: Store, n: int, *changes: Change, at: datetime = START) -> TurnRecord:
    """Have the agent's turn of a number happen, from its message to its end with the changes."""
    turn = await open_turn(store, n, at=at)
    await make(store, ended(turn, at=at), settled(f"msg_{n}"), *changes, at=at)
    return turn


async def state_of(store: Store, message_id: str) -> MessageState | None:
    """Where a message stands."""
    entry = await store.reads.queue.message(MessageId(message_id))
    return None if entry is None else entry.state
