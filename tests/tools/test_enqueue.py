"""Enqueue: a follow-up to oneself, exactly once and never as somebody else."""

from typing import Any

import msgspec
import pytest

from holon.model.events.event import MessageAdmitted
from holon.model.limits import ENQUEUE_TEXT_BYTES_MAX, FOLLOWUPS_PER_CHAIN_COUNT_MAX, HOUR_MS
from holon.model.queue import MessageKind, Priority
from holon.model.values import JsonValue
from tests.runtime.cast import rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import kept_messages, kept_turns
from tests.runtime.shellwork import receipts
from tests.support.builders import MAIN
from tests.support.scripted_provider import ScriptedCall, ScriptedRound


def followups(house: House) -> list[Any]:
    """The follow-ups agents left themselves, oldest first, as they are stored."""
    found = kept_messages(house, kind=MessageKind.INTERNAL_FOLLOWUP)
    return [msgspec.to_builtins(entry.message) for entry in found]


def asks(arguments: JsonValue) -> ScriptedRound:
    """A round that calls the tool."""
    return ScriptedRound(calls=(ScriptedCall(name="Enqueue", input=arguments),))


@pytest.mark.requirement("tools:enqueue-is-an-explicit-follow-up")
@pytest.mark.parametrize("priority", [None, *Priority])
def test_a_follow_up_is_an_internal_message_of_the_runtime(priority: Priority | None) -> None:
    arguments: JsonValue = {"text": "look again"} | ({"priority": priority} if priority else {})

    async def story(house: House) -> None:
        cause = await house.prompt("begin")
        await house.rest(1_000)
        [message] = followups(house)
        assert message["kind"] == "internal_followup"
        assert message["origin"] == {"kind": "system", "subsystem": "enqueue_tool"}
        assert message["authority_class"] == "runtime_instruction"
        assert message["priority"] == (priority or Priority.NEXT)
        assert message["causation_id"] == cause
        assert house.model.heard("look again")
        assert [b.text for b in await house.briefs()] == ["sent", "looked"]

    script = [rule("look again", says("looked")), rule("begin", asks(arguments), says("sent"))]
    run_house(story, script=script)


def test_a_follow_up_belongs_to_the_item_the_turn_was_bound_to() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.focus(item.id)
        await house.rest(10)
        assert followups(house)[0]["work_item_id"] == item.id
        await house.host.work.complete(item.id)

    script = [
        rule("look again", says("looked")),
        rule("deploy", asks({"text": "look again"}), says("sent")),
    ]
    run_house(story, script=script)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": 7}, "text"),
        ({"text": "x", "priority": "urgent"}, "priority"),
        ({"text": "x" * (ENQUEUE_TEXT_BYTES_MAX + 1)}, "text"),
        ({"text": "é" * (ENQUEUE_TEXT_BYTES_MAX // 2 + 1)}, "text"),
        ([], None),
    ],
    ids=["empty", "blank", "number", "priority", "too long", "too many bytes", "list"],
)
def test_what_cannot_be_queued_is_refused_and_queues_nothing(
    arguments: JsonValue, field: str | None
) -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(1_000)
        assert len(kept_messages(house)) == 1
        [told] = receipts(house)
        assert (told["ok"], told["kind"]) == (False, "invalid_tool_input")
        assert told.get("field") == field

    run_house(story, script=[rule("begin", asks(arguments), says("I see"))])


@pytest.mark.requirement("tools:receipts-are-bounded")
def test_the_receipt_repeats_the_text_only_as_far_as_it_is_short() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(1_000)
        [told] = receipts(house)
        assert told["result"]["enqueued"] is True
        assert len(told["result"]["follow_up_text"]) < 1_000

    script = [rule("yyy", says("ok")), rule("begin", asks({"text": "y" * 5_000}), says("sent"))]
    run_house(story, script=script)


def test_a_full_queue_is_told_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(100)
        monkeypatch.setattr("holon.decide.queue.admission.QUEUED_PER_AGENT_COUNT_MAX", 0)
        await house.rest(1_000)
        assert "queue_full" in house.model.said()

    slow = msgspec.structs.replace(asks({"text": "more"}), after_ms=500)
    run_house(story, script=[rule("begin", slow, says("I see"))])


def test_a_stop_that_overtakes_the_call_leaves_no_follow_up() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(100)
        await house.host.control.stop(MAIN)
        await house.rest(1_000)
        assert len(kept_messages(house)) == 1

    slow = msgspec.structs.replace(asks({"text": "more"}), after_ms=500)
    run_house(story, script=[rule("begin", slow, says("sent"))])


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "look again", "kind": "operator_prompt"},
        {"message": "look again", "origin": {"kind": "operator"}},
        {"arguments": '{"text": "look again", "authority_class": "operator"}'},
    ],
)
def test_a_model_that_poses_as_somebody_else_is_heard_as_itself(arguments: JsonValue) -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(1_000)
        [message] = followups(house)
        assert message["kind"] == "internal_followup"
        assert message["authority_class"] == "runtime_instruction"
        [told] = receipts(house)
        assert any("there is no field" in note for note in told["notes"])

    script = [rule("look again", says("looked")), rule("begin", asks(arguments), says("sent"))]
    run_house(story, script=script)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody slows an agent down for getting nowhere: the chain is the only brake to be seen."""
    for name in ("SELF_STARTED_FREE_COUNT_MAX", "SELF_STARTED_COUNT_MAX"):
        monkeypatch.setattr(f"holon.decide.budgets.no_progress.{name}", 10_000)


FOREVER = rule("again", asks({"text": "again", "followup": {"number": 0}}), says("once more"))


def chain_of(house: House) -> list[tuple[str, int]]:
    """Root and number of every follow-up, in order of admission."""
    chains = [message["followup"] for message in followups(house)]
    return [(chain["root_id"], chain["number"]) for chain in chains]


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("turn-complete:followup-chain-is-bounded")
@pytest.mark.parametrize("restart_every_ms", [None, 3])
def test_an_agent_that_only_talks_to_itself_comes_to_rest(restart_every_ms: int | None) -> None:
    async def story(house: House) -> None:
        cause = await house.prompt("again")
        for _ in range(5 if restart_every_ms else 0):
            await house.rest(restart_every_ms or 0)
            await house.restart()
        await house.rest(HOUR_MS)
        numbers = list(range(1, FOLLOWUPS_PER_CHAIN_COUNT_MAX + 1))
        assert chain_of(house) == [(cause, number) for number in numbers]
        assert "followup_chain_used_up" in house.model.said()
        assert len(kept_turns(house)) == FOLLOWUPS_PER_CHAIN_COUNT_MAX + 1

    run_house(story, script=[FOREVER])


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("turn-complete:followup-chain-is-bounded")
def test_a_turn_that_leaves_many_follow_ups_uses_the_chain_up_sooner() -> None:
    async def story(house: House) -> None:
        await house.prompt("again")
        await house.rest(HOUR_MS)
        assert len(chain_of(house)) == FOLLOWUPS_PER_CHAIN_COUNT_MAX
        assert len(house.model.requests) == 2 * (FOLLOWUPS_PER_CHAIN_COUNT_MAX + 1)

    twice = ScriptedRound(calls=(ScriptedCall(name="Enqueue", input={"text": "again"}),) * 2)
    run_house(story, script=[rule("again", twice, says("and more"))])


@pytest.mark.usefixtures("hurried")
@pytest.mark.requirement("turn-complete:followup-chain-is-bounded")
def test_every_message_from_outside_begins_a_chain_of_its_own() -> None:
    async def story(house: House) -> None:
        for _ in range(3):
            cause = await house.webhook("again")
            await house.rest(HOUR_MS)
            assert chain_of(house)[-1] == (cause, FOLLOWUPS_PER_CHAIN_COUNT_MAX)

    run_house(story, script=[FOREVER])


def test_an_operator_who_speaks_up_in_a_turn_begins_a_new_chain() -> None:
    async def story(house: House) -> None:
        await house.prompt("again")
        await house.rest(HOUR_MS)
        await house.prompt("slowly")
        await house.rest(10)
        said = await house.prompt("go on then", priority=Priority.INTERJECT)
        await house.rest(HOUR_MS)
        assert chain_of(house)[-1] == (said, 1)

    slow = msgspec.structs.replace(asks({"text": "the end"}), after_ms=1_000)
    script = [
        rule("the end", says("done")),
        rule("slowly", *([asks({"text": "the end"})] * 33), slow, says("done")),
        FOREVER,
    ]
    run_house(story, script=script)


@pytest.mark.requirement("arrivals:follow-up-is-worth-its-turn")
@pytest.mark.parametrize("priority", [None, Priority.INTERJECT])
def test_a_follow_up_of_a_turn_with_outside_words_is_worth_no_more_than_they(
    priority: Priority | None,
) -> None:
    """The label is on the message itself: in the queue, the prompt, the transcript and the log."""
    arguments: JsonValue = {"text": "look again"} | ({"priority": priority} if priority else {})

    async def story(house: House) -> None:
        await house.webhook("begin")
        await house.rest(1_000)
        [message] = followups(house)
        assert message["authority_class"] == "external_evidence"
        assert message["trust"] == "untrusted_external"
        assert message["origin"] == {"kind": "system", "subsystem": "enqueue_tool"}
        assert message["admission_context"] == "runtime_owned"
        assert house.model.heard("look again")
        assert house.model.heard("authority: external_evidence")
        admitted = [e for e in await house.events() if isinstance(e, MessageAdmitted)]
        assert admitted[-1].authority_class == "external_evidence"

    script = [rule("look again", says("looked")), rule("begin", asks(arguments), says("sent"))]
    run_house(story, script=script)


@pytest.mark.requirement("arrivals:follow-up-is-worth-its-turn")
def test_a_follow_up_of_a_follow_up_regains_nothing_and_keeps_its_item() -> None:
    async def story(house: House) -> None:
        await house.webhook("begin")
        await house.rest(1_000)
        told = followups(house)
        assert [each["authority_class"] for each in told] == ["external_evidence"] * 2
        assert [each["body"]["text"] for each in told] == ["second look", "third look"]
        assert all(each["followup"] for each in told)

    script = [
        rule("third look", says("done")),
        rule("second look", asks({"text": "third look"}), says("again")),
        rule("begin", asks({"text": "second look"}), says("sent")),
    ]
    run_house(story, script=script)
