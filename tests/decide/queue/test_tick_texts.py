"""What ticks say: enough to act on, bounded, and nothing at all for a plain hint."""

import msgspec
import pytest

from holon.decide.queue.message_view import (
    continue_text,
    expired_text,
    hint_refs,
    hint_tick_body,
    offer_text,
    question_text,
    recheck_text,
    timer_text,
)
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.queue import JsonBody, TextBody, is_contentful
from holon.model.values import TimerId
from holon.model.wake import OneShot, TimerRecord, WaitKind
from tests.decide.sample_rows import AGENT_ID, HINT, NOW, wait_of, weighed

TIMER = TimerRecord(
    id=TimerId("timer_1"),
    agent_id=AGENT_ID,
    created_at=NOW,
    anchor_at=NOW,
    schedule=OneShot(),
    summary="tea",
)
LONG = "x" * 10_000


@pytest.mark.parametrize("value", [None, "", " \n\t"])
def test_hints_that_bring_nothing_make_a_blank_tick(value: str | None) -> None:
    body = hint_tick_body((HINT, msgspec.structs.replace(HINT, source_key="mail", body=value)))
    assert body == TextBody(text="")
    assert not is_contentful(body)


@pytest.mark.parametrize("value", ["news", {"a": [1, None]}, 0, False, [], {}])
def test_one_body_is_enough_to_tell_all_hints(value: object) -> None:
    body = hint_tick_body((HINT, msgspec.structs.replace(HINT, source_key="mail", body=value)))
    assert isinstance(body, JsonBody)
    assert is_contentful(body)
    told = body.value["wake_hints"]
    assert [hint["source_key"] for hint in told] == ["ci", "mail"]
    assert told[1]["body"] == value


def test_the_triggers_behind_hints_are_named_once_each() -> None:
    one, other = (
        msgspec.structs.replace(HINT, source_key=name, external_trigger_id=name)
        for name in ("trig_1", "trig_2")
    )
    assert hint_refs((HINT,)) == {}
    assert hint_refs((one, HINT, one, other)) == {"external_trigger_id": "trig_1,trig_2"}


def test_a_work_tick_names_its_item_and_its_objective() -> None:
    for text in (continue_text(weighed()), offer_text(weighed()), question_text(weighed())):
        assert "work_1" in text
        assert "mend the roof" in text


def test_an_offer_does_not_claim_that_the_item_is_in_focus() -> None:
    assert "nothing in focus can go on" in offer_text(weighed())
    assert "Continue the current" in continue_text(weighed())


def test_a_recheck_lists_every_blocker() -> None:
    text = recheck_text((weighed("work_1", blocked=True), weighed("work_2", blocked=True)))
    assert "- work_1: blocked by the weather" in text
    assert "- work_2: blocked by the weather" in text


def test_time_based_ticks_name_what_came_due() -> None:
    assert timer_text(TIMER) == "Timer timer_1 came due: tea"
    assert "no summary" in timer_text(msgspec.structs.replace(TIMER, summary=None))
    assert "wait_task" in expired_text(wait_of(WaitKind.TASK))


def test_long_words_of_others_are_cut() -> None:
    item = msgspec.structs.replace(weighed().item, objective=LONG, blocked_by=LONG)
    long = msgspec.structs.replace(weighed(), item=item)
    wait = msgspec.structs.replace(wait_of(WaitKind.TASK), waiting_for=LONG)
    texts = (
        continue_text(long),
        offer_text(long),
        question_text(long),
        recheck_text((long,)),
        expired_text(wait),
        timer_text(msgspec.structs.replace(TIMER, summary=LONG)),
    )
    assert all(len(text) < EVENT_TEXT_CHARS_MAX + 200 for text in texts)
    assert all("…" in text for text in texts)
