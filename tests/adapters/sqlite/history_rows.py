"""A database with a past, for tests of what retention makes of it."""

from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from holon.adapters.sqlite.database.checkpoints import Checkpoints
from holon.adapters.sqlite.database.connection import Synchronous, open_writer
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.retention import Retention
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.decide.events.audit import audited
from holon.model.commits import (
    AppendBrief,
    AppendTranscript,
    Applied,
    ArchiveAgent,
    Change,
    ClaimMessage,
    OpenTurn,
    QueueMessage,
    SettleMessage,
    SettleTurn,
    StartToolCall,
)
from holon.model.events.retention import PruneReport, RetentionPolicy
from holon.model.limits import DAY_MS
from holon.model.memory.records import ArchiveEpisode
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import MessageEnvelope, MessageState, TextBody
from holon.model.values import AgentId, EpisodeId
from tests.decide.memory_rows import an_episode
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_commit,
    a_message,
    a_round,
    a_terminal,
    a_tool_call,
    a_turn,
    an_agent,
    an_entry,
    moment,
)

LATER = moment(200 * DAY_MS)


def settled(message: MessageEnvelope, *, unseen: bool = False) -> SettleMessage:
    """The change that ends a message, seen by the model or not."""
    return SettleMessage(
        agent_id=message.agent_id,
        message_id=message.id,
        state=MessageState.PROCESSED,
        reason="r",
        unseen=unseen,
    )


class History:
    """A database on a real file that turns are added to."""

    def __init__(self, path: Path) -> None:
        self.connection = open_writer(path, synchronous=Synchronous.OFF)
        migrate(self.connection)
        self.writer = CommitWriter(self.connection)
        self.checkpoints = Checkpoints(self.connection)
        self.retention = Retention(self.connection)
        self.make("birth", an_agent())

    def make(self, commit_id: str, *changes: Change, at: datetime = START) -> None:
        commit = a_commit(commit_id, *changes, at=at)
        assert self.writer.apply_group([audited(commit)]).results == [Applied()]

    def add_turn(self, n: int, *, at: datetime, key: str | None = None) -> None:
        """Add one settled turn with all that belongs to it."""
        message = a_message(f"msg_{n}", created_at=at, body=TextBody(text="x" * 800))
        turn = a_turn(f"turn_{n}", message_id=message.id, index=n)
        self.make(
            f"open:{n}",
            QueueMessage(message=message, idempotency_key=key, body_digest=key),
            ClaimMessage(agent_id=MAIN, message_id=message.id, generation=n, passed_over=0),
            OpenTurn(turn=turn),
            AppendTranscript(entry=an_entry(turn, position=0, data=a_round(text="y" * 1_500))),
            StartToolCall(call=a_tool_call(turn)),
            at=at,
        )
        self.make(
            f"settle:{n}",
            SettleTurn(
                agent_id=MAIN,
                turn_id=turn.turn_id,
                terminal=a_terminal(turn, completed_at=at),
                usage=TokenUsage(),
                round_count=1,
            ),
            settled(message),
            AppendBrief(brief=a_brief(f"brief_{n}", turn_id=turn.turn_id)),
            at=at,
        )

    def add_run(self, n: int, *, at: datetime) -> None:
        """Add an agent that took one turn, without calls, and was archived then."""
        agent_id = AgentId(f"run_{n}")
        text = TextBody(text="x" * 4_000)
        message = a_message(f"msg_{n}", agent_id=agent_id, created_at=at, body=text)
        turn = replace(a_turn(f"turn_{n}", message_id=message.id), agent_id=agent_id)
        self.make(
            f"open:{n}",
            an_agent(agent_id),
            QueueMessage(message=message),
            ClaimMessage(agent_id=agent_id, message_id=message.id, generation=1, passed_over=0),
            OpenTurn(turn=turn),
            at=at,
        )
        self.make(
            f"settle:{n}",
            SettleTurn(
                agent_id=agent_id,
                turn_id=turn.turn_id,
                terminal=a_terminal(turn, completed_at=at),
                usage=TokenUsage(),
                round_count=1,
            ),
            settled(message),
            ArchiveEpisode(
                episode=replace(
                    an_episode(1, finalized_at=at), id=EpisodeId(f"ep_{n}"), agent_id=agent_id
                )
            ),
            ArchiveAgent(agent_id=agent_id, reason="over"),
            at=at,
        )

    def prune(self, policy: RetentionPolicy, *, now: datetime = LATER) -> list[PruneReport]:
        """Run steps until there is nothing more to do."""
        reports = [self.retention.step(policy, now=now)]
        while reports[-1].more:
            reports.append(self.retention.step(policy, now=now))
        return reports

    def count(self, table: str) -> int:
        ((number,),) = self.connection.execute(f"select count(*) from {table}").fetchall()
        assert isinstance(number, int)
        return number
