"""Messages: who is served next, who goes first, and what is known of those that were settled."""

import pytest

from holon.decide.events.audit import audited
from holon.model.commits import (
    Applied,
    ArchiveAgent,
    ConstraintRefused,
    KeyAlreadyUsed,
    MarkSeen,
    QueueMessage,
)
from holon.model.events.reads import KeyedMessage
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    FollowupChain,
    MessageKind,
    MessageState,
    Priority,
    TaskOrigin,
    TrustLevel,
    WebhookOrigin,
)
from holon.model.values import MessageId, TaskId
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, claimed, make, queued, settled, state_of, with_
from tests.support.builders import (
    MAIN,
    START,
    a_commit,
    a_message,
    a_tick,
    an_admission,
    an_agent,
)


async def test_an_agent_never_has_two_claimed_messages(store: Store) -> None:
    for name in ("msg_1", "msg_2"):
        await store.apply(audited(an_admission(a_message(name))))
    assert await store.apply(audited(a_commit("first", claimed("msg_1")))) == Applied()
    outcome = await store.apply(audited(a_commit("second", claimed("msg_2", generation=2))))
    assert outcome == ConstraintRefused(constraint="messages_one_claim_per_agent")


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
        await store.apply(audited(a_commit(f"settle:{served[-1]}", settled(served[-1]))))
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
    await store.apply(audited(a_commit("claim", claimed("msg_1"))))
    await store.apply(audited(a_commit("settle", settled("msg_1"))))
    entry = await store.reads.queue.message(MessageId("msg_1"))
    assert entry is not None
    assert entry.message == message


@pytest.mark.requirement("store:processed-messages-remain-auditable")
async def test_a_processed_message_can_still_be_read_with_how_it_ended(store: Store) -> None:
    await store.apply(audited(an_admission(a_message())))
    await store.apply(audited(a_commit("settle", settled("msg_1"))))
    entry = await store.reads.queue.message(MessageId("msg_1"))
    assert entry is not None
    assert (entry.state, entry.settled_reason) == (MessageState.PROCESSED, "turn_completed")


async def test_messages_are_found_by_id_in_the_order_asked(store: Store) -> None:
    await make(store, an_agent(OTHER))
    await make(store, *(QueueMessage(message=a_message(f"msg_{n}")) for n in range(3)))
    asked = [MessageId(text) for text in ("msg_2", "msg_9", "msg_0")]
    assert [entry.message.id for entry in await store.reads.queue.messages(MAIN, asked)] == [
        "msg_2",
        "msg_0",
    ]
    assert await store.reads.queue.messages(OTHER, asked) == []


async def test_unseen_messages_are_listed_until_they_are_shown(store: Store) -> None:
    for n in range(3):
        await make(store, queued(f"msg_{n}"))
        await make(store, settled(f"msg_{n}", unseen=n != 1))
    assert [m.id for m in await store.reads.queue.unseen(MAIN, limit=9)] == ["msg_0", "msg_2"]
    await make(store, MarkSeen(agent_id=MAIN, message_ids=(MessageId("msg_0"),)))
    assert [m.id for m in await store.reads.queue.unseen(MAIN, limit=9)] == ["msg_2"]


async def test_the_oldest_beyond_the_newest_go_first_but_no_result_of_a_task(store: Store) -> None:
    origin = TaskOrigin(task_id=TaskId("task_1"))
    result = a_tick("msg_0", kind=MessageKind.TASK_RESULT, origin=origin)
    for message in (result, *(a_message(f"msg_{n}") for n in range(1, 6))):
        await make(store, QueueMessage(message=message), settled(message.id, unseen=True))
    assert await store.reads.queue.crowded(kept=6) == []
    assert await store.reads.queue.crowded(kept=5) == [MAIN]
    assert await store.reads.queue.oldest_unseen(MAIN, kept=6, limit=9) == []
    assert await store.reads.queue.oldest_unseen(MAIN, kept=2, limit=9) == [
        "msg_1",
        "msg_2",
        "msg_3",
    ]
    assert await store.reads.queue.oldest_unseen(MAIN, kept=2, limit=1) == ["msg_1"]
    await make(store, ArchiveAgent(agent_id=MAIN, reason="over"))
    assert await store.reads.queue.crowded(kept=5) == [], (
        "it goes with the rest of an archived agent"
    )


async def test_a_key_finds_its_message_and_the_digest_of_what_it_asked(store: Store) -> None:
    await store.apply(audited(an_admission(a_message("msg_1"), key="k", digest="d1")))
    surface = a_message().delivery_surface
    found = await store.reads.queue.keyed(MAIN, surface, "k")
    assert found == KeyedMessage(message_id=MessageId("msg_1"), body_digest="d1")
    assert await store.reads.queue.keyed(MAIN, surface, "another") is None
    assert await store.reads.queue.keyed(MAIN, DeliverySurface.CLI_PROMPT, "k") is None
    assert await store.reads.queue.keyed(OTHER, surface, "k") is None


async def test_the_follow_ups_of_one_chain_are_counted(store: Store) -> None:
    root = MessageId("msg_1")
    for n, chain in enumerate((root, root, MessageId("msg_9"))):
        followup = a_tick(f"msg_f{n}", kind=MessageKind.INTERNAL_FOLLOWUP)
        link = FollowupChain(root_id=chain, number=n + 1)
        await make(store, QueueMessage(message=with_(followup, followup=link)))
    assert await store.reads.queue.followup_count(root) == 2
    assert await store.reads.queue.followup_count(MessageId("msg_2")) == 0


async def test_only_prompts_of_the_operator_that_wait_may_interject(store: Store) -> None:
    await make(store, queued("msg_1", Priority.INTERJECT), queued("msg_2", Priority.NORMAL))
    await make(store, QueueMessage(message=a_tick("msg_3", priority=Priority.INTERJECT)))
    await make(store, queued("msg_4", Priority.INTERJECT), queued("msg_5", Priority.INTERJECT))
    await make(store, claimed("msg_4"))
    found = await store.reads.queue.interjections(MAIN, limit=9)
    assert [message.id for message in found] == ["msg_1", "msg_5"]
    assert len(await store.reads.queue.interjections(MAIN, limit=1)) == 1
