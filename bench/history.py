"""Agents with a past: many settled turns, written by the commits that write turns.

Owns:  the shape of a made-up past. Every turn has its message, its claim, a round, an end and a
       brief, as a host would have left them; only the clock and the model are missing.
How much each turn says, and how many events beside its own it leaves, can be chosen.
"""

from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from holon.adapters.sqlite.database.checkpoints import truncate_log
from holon.adapters.sqlite.database.connection import Synchronous, open_writer
from holon.adapters.sqlite.database.home_lock import database_path, prepare_home
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.adapters.system.clock import SystemClock
from holon.decide.events.audit import audited
from holon.model.commits import (
    AppendBrief,
    AppendTranscript,
    Applied,
    ClaimMessage,
    Commit,
    OpenTurn,
    QueueMessage,
    RecordEvent,
    SettleMessage,
    SettleTurn,
)
from holon.model.events.event import ProviderRoundCompleted
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import MessageState, TextBody
from holon.model.turns.transcript import IncomingMessage
from holon.model.turns.turn import TurnRecord
from tests.support.builders import (
    MAIN,
    a_brief,
    a_commit,
    a_message,
    a_round,
    a_terminal,
    a_turn,
    an_agent,
    an_entry,
)

GROUP_COUNT: Final = 500


class Past(NamedTuple):
    """What every turn of a past is like."""

    text: str = "hello"
    rounds_told_count: int = 0  # events of provider rounds, beside those its own changes leave


_SHORT: Final = Past()


def make_history(home: Path, *, turns_count: int, past: Past = _SHORT) -> None:
    """Make a home whose one agent has had so many turns."""
    prepare_home(home)
    # Nothing here has to survive a power cut, and syncing would take most of the time.
    connection = open_writer(database_path(home), synchronous=Synchronous.OFF)
    migrate(connection)
    writer = CommitWriter(connection)
    writer.apply_group([audited(a_commit("create", an_agent()))])
    at = SystemClock().now()  # a past that is not old enough for retention
    for begin in range(1, turns_count + 1, GROUP_COUNT):
        numbers = range(begin, min(begin + GROUP_COUNT, turns_count + 1))
        results = writer.apply_group(
            [audited(_past_turn(number, past, at=at)) for number in numbers]
        ).results
        assert all(result == Applied() for result in results), results[0]
        truncate_log(connection)
    connection.close()


def _past_turn(number: int, past: Past, *, at: datetime) -> Commit:
    message = a_message(f"msg_past_{number:07}", created_at=at, body=TextBody(text=past.text))
    turn = a_turn(f"turn_past_{number:07}", message_id=message.id, index=number)
    return a_commit(
        f"past:{number}",
        QueueMessage(message=message),
        ClaimMessage(agent_id=MAIN, message_id=message.id, generation=number, passed_over=0),
        OpenTurn(turn=turn),
        AppendTranscript(entry=an_entry(turn, position=0, data=IncomingMessage(message=message))),
        AppendTranscript(entry=an_entry(turn, position=1, data=a_round())),
        *(_round_told(turn, number, at=at) for number in range(past.rounds_told_count)),
        SettleTurn(
            agent_id=MAIN,
            turn_id=turn.turn_id,
            terminal=a_terminal(turn, completed_at=at),
            usage=TokenUsage(input_tokens=10, output_tokens=3),
            round_count=1,
        ),
        SettleMessage(
            agent_id=MAIN,
            message_id=message.id,
            state=MessageState.PROCESSED,
            reason="turn_settled",
        ),
        AppendBrief(brief=a_brief(f"brief_past_{number:07}", turn_id=turn.turn_id)),
        at=at,
    )


def _round_told(turn: TurnRecord, number: int, *, at: datetime) -> RecordEvent:
    told = ProviderRoundCompleted(
        turn_id=turn.turn_id,
        round=number + 1,
        token_usage=TokenUsage(input_tokens=10, output_tokens=3),
        context_build_ms=1,
        provider_round_ms=20,
        provider_started_at=at,
        provider_completed_at=at,
    )
    return RecordEvent(agent_id=MAIN, event=told)
