"""The contract of ports/store.py, run against every implementation."""

from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path

import msgspec
import pytest

from holon.adapters.sqlite.database.connection import open_memory
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.store import open_connection_store, open_store
from holon.decide.events.audit import audited
from holon.model.commits import (
    AgentGeneration,
    AppendTranscript,
    Applied,
    ClaimMessage,
    ConstraintRefused,
    ExpectationFailed,
    KeyAlreadyUsed,
    LoggedEvent,
    OpenTurn,
    QueueMessage,
    RecordEvent,
    SetAgentStatus,
    SettleMessage,
)
from holon.model.events.event import ControlApplied, MessageAdmitted, MessageProcessed
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageKind,
    MessageState,
    Priority,
    TaskOrigin,
    TrustLevel,
    WebhookOrigin,
)
from holon.model.values import AgentId, MessageId, TaskId, TurnId
from holon.ports.store import Store
from tests.support.builders import (
    MAIN,
    START,
    a_commit,
    a_message,
    a_round,
    a_turn,
    an_admission,
    an_agent,
    an_entry,
    moment,
)
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock

Opener = Callable[[], Store]


@pytest.fixture(params=["sqlite with a writer thread", "sqlite in memory, inline"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Open the same home as often as called, one after the other."""
    if request.param == "sqlite with a writer thread":
        return lambda: open_store(tmp_path)
    connection = open_memory()
    migrate(connection)
    return lambda: open_connection_store(
        connection, lambda shared: InlineWriter(shared, ManualClock(START), NoFaults())
    )


@pytest.fixture
async def store(opener: Opener) -> AsyncIterator[Store]:
    """A store with one agent in it."""
    opened = opener()
    await opened.apply(audited(a_commit("birth", an_agent())))
    yield opened
    await opened.close()


def a_claim(message_id: str, *, generation: int = 1) -> ClaimMessage:
    return ClaimMessage(
        agent_id=MAIN, message_id=MessageId(message_id), generation=generation, passed_over=0
    )


def processed(message_id: str) -> SettleMessage:
    return SettleMessage(
        agent_id=MAIN,
        message_id=MessageId(message_id),
        state=MessageState.PROCESSED,
        reason="turn_completed",
    )


def noted(text: str) -> RecordEvent:
    return RecordEvent(agent_id=MAIN, event=ControlApplied(action=text, request_id="req_1"))


async def state_of(store: Store, message_id: str) -> MessageState | None:
    entry = await store.reads.queue.message(MessageId(message_id))
    return None if entry is None else entry.state


async def test_commits_are_applied_in_the_order_they_were_submitted(store: Store) -> None:
    tickets = [store.submit(audited(an_admission(a_message(f"msg_{n}")))) for n in range(50)]
    assert [await ticket.outcome() for ticket in tickets] == [Applied()] * 50
    entries = [await store.reads.queue.message(MessageId(f"msg_{n}")) for n in range(50)]
    seqs = [entry.seq for entry in entries if entry is not None]
    assert seqs == sorted(seqs)
    assert len(seqs) == 50


async def test_a_commit_applied_twice_counts_once(store: Store) -> None:
    commit = an_admission(a_message())
    assert await store.apply(audited(commit)) == Applied()
    bounds = await store.reads.events.event_bounds(MAIN)
    assert await store.apply(audited(commit)) == Applied(replayed=True)
    assert await store.reads.events.event_bounds(MAIN) == bounds
    target = await store.reads.queue.admission_target(MAIN)
    assert target is not None
    assert target.queued_count == 1


async def test_a_refused_commit_changed_nothing(store: Store) -> None:
    before = await store.reads.events.event_bounds(MAIN)
    half_good = a_commit("bad", QueueMessage(message=a_message()), a_claim("msg_unknown"))
    outcome = await store.apply(audited(half_good))
    assert outcome == ConstraintRefused(constraint="messages_row_missing")
    assert await state_of(store, "msg_1") is None
    assert await store.reads.events.event_bounds(MAIN) == before


async def test_a_refused_commit_may_be_submitted_again_under_the_same_id(store: Store) -> None:
    early = a_commit("claim", a_claim("msg_1"))
    assert isinstance(await store.apply(audited(early)), ConstraintRefused)
    await store.apply(audited(an_admission(a_message())))
    assert await store.apply(audited(early)) == Applied()


async def test_a_refused_commit_does_not_disturb_the_others_of_its_group(store: Store) -> None:
    good, bad, also_good = (
        store.submit(audited(an_admission(a_message("msg_1")))),
        store.submit(audited(an_admission(a_message("msg_2", agent_id=AgentId("nobody"))))),
        store.submit(audited(an_admission(a_message("msg_3")))),
    )
    assert await good.outcome() == Applied()
    assert await bad.outcome() == ConstraintRefused(constraint="row_refers_to_nothing")
    assert await also_good.outcome() == Applied()


async def test_a_stale_lane_cannot_write(store: Store) -> None:
    await store.apply(audited(an_admission(a_message())))
    await store.apply(audited(a_commit("claim", a_claim("msg_1", generation=3))))
    fence = AgentGeneration(agent_id=MAIN, generation=2)
    outcome = await store.apply(audited(a_commit("stale", processed("msg_1"), expects=(fence,))))
    assert outcome == ExpectationFailed(expect=fence, found="generation 3")
    assert await state_of(store, "msg_1") is MessageState.CLAIMED


async def test_an_agent_never_has_two_claimed_messages(store: Store) -> None:
    for name in ("msg_1", "msg_2"):
        await store.apply(audited(an_admission(a_message(name))))
    assert await store.apply(audited(a_commit("first", a_claim("msg_1")))) == Applied()
    outcome = await store.apply(audited(a_commit("second", a_claim("msg_2", generation=2))))
    assert outcome == ConstraintRefused(constraint="messages_one_claim_per_agent")


async def test_an_agent_never_has_two_open_turns(store: Store) -> None:
    for name in ("msg_1", "msg_2"):
        await store.apply(audited(an_admission(a_message(name))))
    assert await store.apply(audited(a_commit("first", OpenTurn(turn=a_turn())))) == Applied()
    second = OpenTurn(turn=a_turn("turn_2", message_id="msg_2", index=2))
    outcome = await store.apply(audited(a_commit("second", second)))
    assert outcome == ConstraintRefused(constraint="turns_one_open_per_agent")


@pytest.mark.requirement("store:stable-within-a-band")
async def test_the_queue_is_stable_within_a_priority_band(store: Store) -> None:
    arrivals = [
        ("msg_1", Priority.BACKGROUND),
        ("msg_2", Priority.NORMAL),
        ("msg_3", Priority.INTERJECT),
        ("msg_4", Priority.NORMAL),
        ("msg_5", Priority.INTERJECT),
    ]
    for name, priority in arrivals:
        # Created at one moment: the order is that of admission, not of a clock.
        await store.apply(audited(an_admission(a_message(name, priority=priority))))
    served: list[str] = []
    while True:
        snapshot = await store.reads.agents.snapshot(MAIN, now=START)
        assert snapshot is not None
        if not snapshot.heads:
            break
        served.append(snapshot.heads[0].message_id)
        await store.apply(audited(a_commit(f"settle:{served[-1]}", processed(served[-1]))))
    assert served == ["msg_3", "msg_5", "msg_2", "msg_4", "msg_1"]


async def test_the_same_key_is_the_same_message(store: Store) -> None:
    await store.apply(audited(an_admission(a_message("msg_1"), key="k", digest="d1")))
    again = await store.apply(audited(an_admission(a_message("msg_2"), key="k", digest="d1")))
    other = await store.apply(audited(an_admission(a_message("msg_3"), key="k", digest="d2")))
    assert again == KeyAlreadyUsed(message_id=MessageId("msg_1"), same_body=True)
    assert other == KeyAlreadyUsed(message_id=MessageId("msg_1"), same_body=False)
    assert await state_of(store, "msg_2") is None


async def test_a_key_belongs_to_its_surface(store: Store) -> None:
    await store.apply(audited(an_admission(a_message("msg_1"), key="k")))
    elsewhere = a_message("msg_2", delivery_surface=DeliverySurface.CLI_PROMPT)
    assert await store.apply(audited(an_admission(elsewhere, key="k"))) == Applied()


async def test_event_numbers_have_no_gap_also_across_restarts(opener: Opener) -> None:
    for life in range(3):
        store = opener()
        if life == 0:
            await store.apply(audited(a_commit("birth", an_agent())))
        for n in range(4):
            await store.apply(audited(a_commit(f"note:{life}:{n}", noted("a"), noted("b"))))
        await store.apply(
            audited(a_commit(f"refused:{life}", noted("lost"), a_claim("msg_unknown")))
        )
        events = await store.reads.events.events_after(MAIN, 0, limit=100)
        assert [event.event_seq for event in events] == list(range(1, 2 + 8 * (life + 1)))
        assert await store.reads.events.event_bounds(MAIN) == (0, 1 + 8 * (life + 1))
        await store.close()


async def test_observers_are_told_once_which_agents_a_commit_touched(store: Store) -> None:
    told: list[Collection[AgentId]] = []
    store.observe(told.append)
    await store.apply(audited(a_commit("other", an_agent("other"))))
    assert [set(agents) for agents in told] == [{AgentId("other")}]
    await store.apply(audited(a_commit("other", an_agent("other"))))
    await store.apply(audited(a_commit("refused", a_claim("msg_unknown"))))
    assert len(told) == 1, "a replayed or refused commit touches nobody"


async def test_reads_see_every_commit_whose_outcome_is_known(store: Store) -> None:
    for n in range(20):
        await store.apply(audited(an_admission(a_message(f"msg_{n}"))))
        assert await state_of(store, f"msg_{n}") is MessageState.QUEUED


@pytest.mark.requirement("store:provenance-is-kept")
async def test_origin_trust_and_priority_stay_what_they_were_at_admission(store: Store) -> None:
    message = a_message(
        kind=MessageKind.WEBHOOK_EVENT,
        origin=WebhookOrigin(source="ci", event_type="push"),
        trust=TrustLevel.UNTRUSTED_EXTERNAL,
        authority_class=AuthorityClass.EXTERNAL_EVIDENCE,
        priority=Priority.BACKGROUND,
        delivery_surface=DeliverySurface.HTTP_WEBHOOK,
        admission_context=AdmissionContext.PUBLIC_UNAUTHENTICATED,
    )
    await store.apply(audited(an_admission(message)))
    await store.apply(audited(a_commit("claim", a_claim("msg_1"))))
    await store.apply(audited(a_commit("settle", processed("msg_1"))))
    entry = await store.reads.queue.message(MessageId("msg_1"))
    assert entry is not None
    assert entry.message == message


@pytest.mark.requirement("store:processed-messages-remain-auditable")
async def test_a_processed_message_can_still_be_read_with_how_it_ended(store: Store) -> None:
    await store.apply(audited(an_admission(a_message())))
    await store.apply(audited(a_commit("settle", processed("msg_1"))))
    entry = await store.reads.queue.message(MessageId("msg_1"))
    assert entry is not None
    assert (entry.state, entry.settled_reason) == (MessageState.PROCESSED, "turn_completed")


@pytest.mark.requirement("store:log-names-message-origin-trust-priority-task")
@pytest.mark.requirement("store:log-keeps-the-labels")
async def test_the_log_says_where_a_message_came_from(store: Store) -> None:
    message = a_message(
        kind=MessageKind.TASK_RESULT,
        origin=TaskOrigin(task_id=TaskId("task_9")),
        trust=TrustLevel.TRUSTED_SYSTEM,
        authority_class=AuthorityClass.RUNTIME_INSTRUCTION,
        priority=Priority.NEXT,
        delivery_surface=DeliverySurface.TASK_REJOIN,
        admission_context=AdmissionContext.RUNTIME_OWNED,
        task_id=TaskId("task_9"),
    )
    await store.apply(audited(an_admission(message)))
    newest = (await store.reads.events.events_after(MAIN, 0, limit=100))[-1].event
    assert isinstance(newest, MessageAdmitted)
    assert newest.message_id == "msg_1"
    assert newest.origin == message.origin
    assert newest.trust is TrustLevel.TRUSTED_SYSTEM
    assert newest.authority_class is AuthorityClass.RUNTIME_INSTRUCTION
    assert newest.delivery_surface is DeliverySurface.TASK_REJOIN
    assert newest.admission_context is AdmissionContext.RUNTIME_OWNED
    assert newest.priority is Priority.NEXT
    assert newest.task_id == "task_9"


@pytest.mark.requirement("store:log-keeps-state-transitions")
async def test_the_log_keeps_every_transition_in_order(store: Store) -> None:
    await store.apply(audited(an_admission(a_message())))
    await store.apply(audited(a_commit("claim", a_claim("msg_1"))))
    await store.apply(audited(a_commit("settle", processed("msg_1"), at=moment(5))))
    events = await store.reads.events.events_after(MAIN, 1, limit=100)
    assert [type(event.event).__name__ for event in events] == [
        "MessageAdmitted",
        "MessageProcessingStarted",
        "MessageProcessed",
    ]
    assert events[-1].event == MessageProcessed(
        message_id=MessageId("msg_1"), reason="turn_completed"
    )
    assert events[-1].created_at == moment(5)


async def test_a_turn_comes_back_as_it_was_written(store: Store) -> None:
    await store.apply(audited(an_admission(a_message())))
    turn = a_turn()
    entries = [an_entry(turn, position=n, data=a_round(n + 1)) for n in range(2)]
    await store.apply(
        audited(
            a_commit(
                "claim",
                a_claim("msg_1"),
                SetAgentStatus(agent_id=MAIN, status=an_agent().status, reason="turn 1"),
                OpenTurn(turn=turn),
                *(AppendTranscript(entry=entry) for entry in entries),
            )
        )
    )
    log = await store.reads.turns.turn_log(turn.turn_id)
    assert log is not None
    assert log.turn == turn
    assert list(log.entries) == entries
    state = await store.reads.agents.agent(MAIN)
    assert state is not None
    assert state.focus.open_turn_id == turn.turn_id


async def test_a_store_logs_the_events_it_is_handed_and_makes_up_none(store: Store) -> None:
    plain = audited(a_commit("note:handed", noted("as decided")))
    handed = LoggedEvent(
        agent_id=MAIN,
        event=ControlApplied(action="as handed over", request_id="req_9"),
        turn_id=TurnId("turn_9"),
    )
    (change,) = plain.changes
    silent = msgspec.structs.replace(change, events=())
    told = msgspec.structs.replace(change, events=(handed, handed))
    before = (await store.reads.events.event_bounds(MAIN))[1]
    await store.apply(msgspec.structs.replace(plain, changes=(silent, told)))
    found = await store.reads.events.events_after(MAIN, before, limit=10)
    assert [each.event for each in found] == [handed.event, handed.event]
    assert [each.event_seq for each in found] == [before + 1, before + 2]
    assert [each.turn_id for each in found] == ["turn_9", "turn_9"]
