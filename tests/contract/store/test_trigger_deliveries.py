"""What deliveries leave behind: a store folds hints exactly as the rules fold them."""

from typing import Final

import msgspec
import pytest

from holon.decide.wake.hints import Coalesce, decide_wake
from holon.model.agents import AgentStatus
from holon.model.commits import (
    ConstraintRefused,
    CreateTrigger,
    DeliverTrigger,
    MoveTrigger,
    TakeWakeHints,
)
from holon.model.values import JsonValue, WaitId, later
from holon.model.wake import (
    EarlierDelivery,
    TriggerDeliveryMode,
    TriggerStatus,
    TriggerTarget,
    WakeDisposition,
    WakeHint,
)
from holon.ports.store import Store
from tests.contract.store.steps import make, offer, queued
from tests.support.builders import MAIN, START, a_trigger, moment

vary = msgspec.structs.replace


BARE: Final = WakeHint(
    agent_id=MAIN,
    source_key="trigger:trig_1",
    reason="external_trigger",
    created_at=START,
    updated_at=START,
)


HINTS: Final[dict[str, WakeHint]] = {
    "nothing": BARE,
    "JSON": vary(BARE, body='{"a":1}', content_type="application/json"),
    "plain words": vary(BARE, body="plain words"),
    "a type without a body": vary(BARE, content_type="text/plain"),
    "an object": vary(BARE, body={"base64": "AAAA", "gone": None}, content_type="image/png"),
    "another object": vary(BARE, body={"kept": {"null": None}}),
    "words with a NUL": vary(BARE, body="a\x00b", content_type="text/plain"),
    "an older address": vary(
        BARE,
        delivery_mode=TriggerDeliveryMode.WAKE_HINT,
        descriptor_delivery_mode=TriggerDeliveryMode.ENQUEUE_MESSAGE,
    ),
    "labels": vary(
        BARE,
        reason="another",
        description="the build",
        source="ci",
        resource="run/7",
        external_trigger_id=a_trigger().external_trigger_id,
        delivery_mode=TriggerDeliveryMode.WAKE_HINT,
        wait_id=WaitId("wait_1"),
        correlation_id="c1",
        causation_id="d1",
    ),
    "other labels": vary(BARE, source="mail", correlation_id="c2"),
}


EMPTY: Final[tuple[JsonValue, ...]] = (0, False, "", [], {})


async def kept_of(store: Store, *hints: WakeHint) -> WakeHint:
    """What a store keeps of deliveries that came one after the other, once it was taken."""
    for hint in hints:
        await make(
            store,
            DeliverTrigger(
                hint=hint,
                external_trigger_id=a_trigger().external_trigger_id,
                epoch=1,
                disposition=WakeDisposition.COALESCED,
            ),
        )
    snapshot = await store.reads.agents.snapshot(MAIN, now=START)
    assert snapshot is not None
    (kept,) = snapshot.hints
    await make(store, TakeWakeHints(agent_id=MAIN, source_keys=(kept.source_key,)))
    return kept


def folded(first: WakeHint, *rest: WakeHint) -> WakeHint:
    """What the rules make of the same deliveries."""
    for hint in rest:
        decision = decide_wake(
            AgentStatus.AWAKE_RUNNING, busy=True, parked=first, parked_count=1, incoming=hint
        )
        assert isinstance(decision, Coalesce)
        first = decision.hint
    return first


def at_moments(*hints: WakeHint) -> tuple[WakeHint, ...]:
    moments = [later(START, by_ms=1_000 * number) for number in range(len(hints))]
    return tuple(
        vary(hint, created_at=moment, updated_at=moment)
        for hint, moment in zip(hints, moments, strict=True)
    )


@pytest.mark.requirement("triggers:coalesce")
@pytest.mark.parametrize("first", HINTS)
async def test_a_delivery_folds_in_a_store_as_the_rules_fold_it(store: Store, first: str) -> None:
    await make(store, CreateTrigger(trigger=a_trigger()))
    for second in HINTS:
        pair = at_moments(HINTS[first], HINTS[second])
        assert await kept_of(store, *pair) == folded(*pair), second


@pytest.mark.requirement("triggers:coalesce")
async def test_a_long_burst_folds_in_a_store_as_the_rules_fold_it(store: Store) -> None:
    await make(store, CreateTrigger(trigger=a_trigger()))
    burst = at_moments(*HINTS.values(), *reversed(HINTS.values()))
    assert await kept_of(store, *burst) == folded(*burst)


@pytest.mark.parametrize("body", EMPTY, ids=repr)
async def test_an_empty_body_replaces_another_in_a_store_too(store: Store, body: JsonValue) -> None:
    await make(store, CreateTrigger(trigger=a_trigger()))
    pair = at_moments(HINTS["JSON"], vary(BARE, body=body))
    kept = await kept_of(store, *pair)
    assert (kept.body, kept.content_type) == (body, None)
    assert kept == folded(*pair)


def delivered(key: str | None, *, content: str = "1") -> DeliverTrigger:
    return DeliverTrigger(
        hint=BARE,
        external_trigger_id=a_trigger().external_trigger_id,
        epoch=1,
        disposition=WakeDisposition.TRIGGERED,
        delivery_key=key,
        content_digest=None if key is None else content * 64,
    )


async def test_a_target_is_what_one_delivery_needs_of_a_trigger_and_its_agent(
    store: Store,
) -> None:
    key = "a" * 64
    trigger_id = a_trigger().external_trigger_id
    assert (
        await store.reads.wake.trigger_target(
            trigger_id, source_key=BARE.source_key, delivery_key=key
        )
        is None
    )
    await make(store, CreateTrigger(trigger=a_trigger()), queued("msg_1"))
    await make(store, delivered(key), at=moment(5))
    target = await store.reads.wake.trigger_target(
        trigger_id, source_key=BARE.source_key, delivery_key=key
    )
    assert target == TriggerTarget(
        trigger=vary(a_trigger(), delivery_count=1, last_delivered_at=moment(5)),
        agent_status=AgentStatus.ASLEEP,
        queued_count=1,
        parked_count=1,
        is_parked=True,
        earlier=EarlierDelivery(disposition=WakeDisposition.TRIGGERED, content_digest="1" * 64),
    )
    other = await store.reads.wake.trigger_target(
        trigger_id, source_key="another", delivery_key="b" * 64
    )
    assert other is not None
    assert (other.is_parked, other.parked_count, other.earlier) == (False, 1, None)


async def test_a_second_delivery_under_one_key_is_refused_and_counts_nothing(store: Store) -> None:
    await make(store, CreateTrigger(trigger=a_trigger()), delivered("a" * 64))
    assert isinstance(await offer(store, delivered("a" * 64, content="2")), ConstraintRefused)
    await make(store, delivered("b" * 64))
    await make(store, delivered(None))
    found = await store.reads.wake.trigger_of(MAIN)
    assert found is not None
    assert found.delivery_count == 3


async def test_a_trigger_that_was_moved_meanwhile_is_neither_moved_nor_delivered_to(
    store: Store,
) -> None:
    rotate = MoveTrigger(
        agent_id=MAIN,
        external_trigger_id=a_trigger().external_trigger_id,
        from_epoch=1,
        epoch=2,
        status=TriggerStatus.ACTIVE,
    )
    await make(store, CreateTrigger(trigger=a_trigger()))
    await make(store, rotate)
    assert isinstance(await offer(store, vary(rotate, epoch=3)), ConstraintRefused)
    assert isinstance(await offer(store, delivered("a" * 64)), ConstraintRefused)
    revoke = vary(rotate, from_epoch=2, epoch=2, status=TriggerStatus.REVOKED)
    await make(store, revoke, at=moment(9))
    found = await store.reads.wake.trigger_of(MAIN)
    assert found == vary(a_trigger(), epoch=2, status=TriggerStatus.REVOKED, revoked_at=moment(9))
