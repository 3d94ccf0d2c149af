"""The same key, the same record."""

import pytest

from holon.decide.queue.idempotency import key_conflict, keyed_id
from holon.model.errors import RefusalCode, RefusedError
from holon.model.values import AgentId, IdPrefix, parse_record_id

A, B = AgentId("a"), AgentId("b")


def test_a_key_stands_for_one_record_of_one_agent() -> None:
    first = keyed_id(IdPrefix.TIMER, A, "once")
    assert first == keyed_id(IdPrefix.TIMER, A, "once")
    others = {
        keyed_id(IdPrefix.TIMER, B, "once"),
        keyed_id(IdPrefix.TIMER, A, "twice"),
        keyed_id(IdPrefix.WORK_ITEM, A, "once"),
    }
    assert len(others | {first}) == 4
    assert parse_record_id(first, what="timer id").startswith("timer_")


@pytest.mark.parametrize("key", ["", "a b", "\n", "x" * 201, "ä"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(RefusedError) as refused:
        keyed_id(IdPrefix.TIMER, A, key)
    assert refused.value.refusal.code is RefusalCode.BAD_IDEMPOTENCY_KEY


def test_a_conflict_says_what_to_do() -> None:
    assert key_conflict("timer_1").hint
