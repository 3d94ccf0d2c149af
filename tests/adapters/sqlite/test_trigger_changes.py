"""What deliveries leave behind: the fold in SQL and the fold of the rules are one."""

from typing import Final

import msgspec
import pytest

from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.decide.wake.hints import Coalesce, decide_wake
from holon.model.agents import AgentStatus
from holon.model.commits import CreateTrigger, DeliverTrigger
from holon.model.values import JsonValue, WaitId, later
from holon.model.wake import TriggerDeliveryMode, WakeDisposition, WakeHint
from holon.wire.codec import decode
from tests.adapters.sqlite.raw_rows import apply
from tests.support.builders import MAIN, START, a_trigger, an_agent
from tests.support.memory_store import memory_connection

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


def kept_of(*hints: WakeHint) -> WakeHint:
    """What the table keeps of deliveries that came one after the other."""
    connection = memory_connection()
    writer = CommitWriter(connection)
    apply(writer, "birth", an_agent(), CreateTrigger(trigger=a_trigger()))
    for number, hint in enumerate(hints):
        delivery = DeliverTrigger(
            hint=hint,
            external_trigger_id=a_trigger().external_trigger_id,
            epoch=1,
            disposition=WakeDisposition.COALESCED,
        )
        apply(writer, f"deliver:{number}", delivery)
    ((record, revision),) = connection.execute("select record, revision from wake_hints").fetchall()
    kept = decode(str(record).encode(), WakeHint)
    assert kept.revision == revision
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
@pytest.mark.parametrize("second", HINTS)
@pytest.mark.parametrize("first", HINTS)
def test_a_delivery_folds_in_the_table_as_the_rules_fold_it(first: str, second: str) -> None:
    pair = at_moments(HINTS[first], HINTS[second])
    assert kept_of(*pair) == folded(*pair)


@pytest.mark.requirement("triggers:coalesce")
def test_a_long_burst_folds_in_the_table_as_the_rules_fold_it() -> None:
    burst = at_moments(*HINTS.values(), *reversed(HINTS.values()))
    assert kept_of(*burst) == folded(*burst)


@pytest.mark.parametrize("body", EMPTY, ids=repr)
def test_an_empty_body_replaces_another_in_the_table_too(body: JsonValue) -> None:
    pair = at_moments(HINTS["JSON"], vary(BARE, body=body))
    kept = kept_of(*pair)
    assert (kept.body, kept.content_type) == (body, None)
    assert kept == folded(*pair)
