"""The door: what comes in is durable, what is refused leaves no trace."""

from typing import Any

import msgspec
import pytest

from holon.model.errors import BadIdError, RefusalCode, RefusedError
from holon.model.limits import MESSAGE_BODY_BYTES_MAX
from holon.model.queue import (
    AdmissionContext,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    Priority,
    SystemOrigin,
    TextBody,
    WebhookOrigin,
)
from holon.model.values import AgentId
from tests.runtime.cast import prompt_for, rule, says, webhook_for
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import kept_messages
from tests.runtime.telling import LifeLostError
from tests.support.builders import MAIN
from tests.support.crash_store import CrashPlan, CrashStore, Side
from tests.support.database_oracle import whole_database

HELLO = prompt_for("hello")


async def refused(house: House, request: IngressRequest) -> RefusalCode:
    """Send a request that must be refused, and see that it left nothing behind."""
    before = whole_database(house.connection)
    with pytest.raises(RefusedError) as caught:
        await house.host.admit(request)
    assert whole_database(house.connection) == before
    return caught.value.refusal.code


@pytest.mark.requirement("runtime:refused-requests-leave-no-trace")
@pytest.mark.parametrize(
    ("request_", "code"),
    [
        pytest.param(
            prompt_for("hello", agent="nobody"), RefusalCode.AGENT_NOT_FOUND, id="unknown agent"
        ),
        pytest.param(
            msgspec.structs.replace(HELLO, origin=WebhookOrigin(source="forge")),
            RefusalCode.KIND_ORIGIN_MISMATCH,
            id="a prompt that is not the operator's",
        ),
        pytest.param(
            msgspec.structs.replace(
                HELLO, kind=MessageKind.SYSTEM_TICK, origin=SystemOrigin(subsystem="me")
            ),
            RefusalCode.ADMISSION_MISMATCH,
            id="a tick from outside",
        ),
        pytest.param(
            msgspec.structs.replace(HELLO, admission=AdmissionContext.PUBLIC_UNAUTHENTICATED),
            RefusalCode.ADMISSION_MISMATCH,
            id="an operator nobody knows",
        ),
        pytest.param(
            msgspec.structs.replace(webhook_for("hello"), priority=Priority.INTERJECT),
            RefusalCode.PUBLIC_CEILING,
            id="a stranger who interrupts",
        ),
        pytest.param(
            prompt_for("x" * (MESSAGE_BODY_BYTES_MAX + 1)),
            RefusalCode.BODY_TOO_LARGE,
            id="oversized body",
        ),
        pytest.param(
            prompt_for("hello", key="k" * 10_000),
            RefusalCode.BAD_IDEMPOTENCY_KEY,
            id="oversized key",
        ),
    ],
)
def test_a_refused_request_changes_nothing(request_: IngressRequest, code: RefusalCode) -> None:
    async def story(house: House) -> None:
        assert await refused(house, request_) is code

    run_house(story)


@pytest.mark.parametrize("agent", ["../x", "", "x" * 10_000, "Main", "a b"])
def test_a_malformed_agent_id_is_refused_and_changes_nothing(agent: str) -> None:
    async def story(house: House) -> None:
        before = whole_database(house.connection)
        with pytest.raises(BadIdError):
            await house.prompt("hello", agent=agent)
        assert whole_database(house.connection) == before

    run_house(story)


@pytest.mark.requirement("runtime:stopped-agent-says-how-to-resume")
@pytest.mark.parametrize("request_", [HELLO, webhook_for("ping")], ids=["prompt", "webhook"])
def test_a_stopped_agent_refuses_with_the_way_to_resume_it(request_: IngressRequest) -> None:
    async def story(house: House) -> None:
        await house.host.control.stop(MAIN)
        before = whole_database(house.connection)
        with pytest.raises(RefusedError) as caught:
            await house.host.admit(request_)
        refusal = caught.value.refusal
        assert refusal.code is RefusalCode.AGENT_STOPPED
        assert refusal.resume_path == "/control/agents/main/resume"
        assert "resume" in (refusal.hint or "")
        assert whole_database(house.connection) == before

    run_house(story)


@pytest.mark.requirement("runtime:admitted-means-durable")
def test_an_acknowledged_message_survives_a_crash_right_after_the_answer() -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("hello")
        await house.restart()
        await house.rest(1_000)
        [brief] = await house.briefs()
        assert brief.related_message_id == message_id

    run_house(story)


@pytest.mark.requirement("runtime:admitted-means-durable")
def test_what_waits_behind_a_long_turn_survives_a_crash() -> None:
    async def story(house: House) -> None:
        sent = [await house.prompt("slow")]
        await house.rest(100)
        sent += [await house.prompt(f"n {number}") for number in range(9)]
        await house.restart()
        await house.rest(60_000)
        assert [brief.related_message_id for brief in await house.briefs()] == sent

    run_house(story, script=[rule("slow", says("done", after_ms=1_000))])


@pytest.mark.requirement("runtime:same-key-same-message")
def test_the_same_key_and_body_give_the_same_message_again() -> None:
    async def story(house: House) -> None:
        first = await house.prompt("hello", key="k")
        await house.rest(1_000)
        again = await house.host.admit(prompt_for("hello", key="k"))
        assert (again.message_id, again.duplicate) == (first, True)
        await house.rest(1_000)
        assert len(await house.briefs()) == 1

    run_house(story)


@pytest.mark.requirement("runtime:same-key-same-message")
def test_a_repeat_finds_its_message_although_the_agent_was_stopped_meanwhile() -> None:
    async def story(house: House) -> None:
        first = await house.prompt("hello", key="k")
        await house.rest(1_000)
        await house.host.control.stop(MAIN)
        again = await house.host.admit(prompt_for("hello", key="k"))
        assert (again.message_id, again.duplicate) == (first, True)
        assert await refused(house, prompt_for("other", key="k")) is RefusalCode.AGENT_STOPPED

    run_house(story)


@pytest.mark.parametrize("stop", [False, True], ids=["up", "stopped meanwhile"])
def test_a_sender_who_lost_the_answer_to_a_crash_asks_again_and_gets_it(stop: bool) -> None:
    plan = CrashPlan("admit:", Side.AFTER)

    async def story(house: House) -> None:
        with pytest.raises(LifeLostError):
            await house.prompt("hello", key="k")
        if stop:
            await house.host.control.stop(MAIN)
        again = await house.host.admit(prompt_for("hello", key="k"))
        assert again.duplicate
        assert len(kept_messages(house)) == 1

    run_house(story, setup=Setup(wrap=lambda store: CrashStore(store, plan)))


def test_the_same_key_with_another_body_is_a_conflict() -> None:
    async def story(house: House) -> None:
        first = await house.prompt("hello", key="k")
        await house.rest(1_000)
        assert await refused(house, prompt_for("other", key="k")) is (
            RefusalCode.IDEMPOTENCY_CONFLICT
        )
        with pytest.raises(RefusedError, match=first):
            await house.prompt("other", key="k")

    run_house(story)


def test_a_key_belongs_to_one_agent_and_one_surface() -> None:
    async def story(house: House) -> None:
        first = await house.prompt("hello", key="k")
        other = msgspec.structs.replace(
            prompt_for("other", key="k"), surface=DeliverySurface.HTTP_CONTROL_PROMPT
        )
        assert (await house.host.admit(other)).message_id != first

    run_house(story)


def test_a_message_that_races_with_a_stop_is_either_queued_or_refused_never_both() -> None:
    """The door reads first and commits later; what it read may be over by then."""

    async def story(house: House) -> None:
        honest = house.store.reads.queue.admission_target

        async def look_then_stop(agent_id: AgentId) -> Any:
            seen = await honest(agent_id)
            house.store.reads.queue.admission_target = honest  # type: ignore[method-assign]
            await house.host.control.stop(agent_id)
            return seen

        house.store.reads.queue.admission_target = look_then_stop  # type: ignore[method-assign]
        with pytest.raises(RefusedError) as caught:
            await house.prompt("hello")
        assert caught.value.refusal.code is RefusalCode.AGENT_STOPPED
        assert kept_messages(house) == []

    run_house(story)


def test_an_agent_that_never_holds_still_is_busy_and_the_sender_may_try_again() -> None:
    """What the door reads is out of date every time it commits."""

    async def story(house: House) -> None:
        reads = house.store.reads
        honest = reads.queue.admission_target
        awake = await honest(MAIN)

        async def outdated(agent_id: AgentId) -> Any:
            return awake

        await house.host.control.stop(MAIN)
        reads.queue.admission_target = outdated  # type: ignore[method-assign]
        assert await refused(house, HELLO) is RefusalCode.BUSY
        reads.queue.admission_target = honest  # type: ignore[method-assign]

    run_house(story)


def test_a_full_queue_refuses_until_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holon.decide.queue.admission.QUEUED_PER_AGENT_COUNT_MAX", 2)

    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        await house.prompt("one")
        await house.prompt("two")
        assert await refused(house, HELLO) is RefusalCode.QUEUE_FULL
        await house.host.control.resume(MAIN)
        await house.rest(1_000)
        await house.prompt("three")

    run_house(story)


@pytest.mark.requirement("runtime:log-answers-what-woke-the-agent")
def test_the_log_tells_where_a_message_came_from_and_that_it_woke_the_agent() -> None:
    async def story(house: House) -> None:
        message_id = await house.webhook("ping")
        await house.rest(1_000)
        told = [msgspec.to_builtins(event) for event in await house.events()]
        admitted = next(event for event in told if event["kind"] == "message_admitted")
        assert admitted["message_id"] == message_id
        assert admitted["origin"] == {"kind": "webhook", "source": "forge"}
        assert admitted["trust"] == "untrusted_external"
        assert admitted["priority"] == "normal"
        started = next(e for e in told if e["kind"] == "message_processing_started")
        assert started["message_id"] == message_id
        assert (await house.agent()).posture.last_wake_reason == "webhook_event"

    run_house(story)


def test_bodies_reach_the_model_as_they_came() -> None:
    async def story(house: House) -> None:
        await house.host.admit(msgspec.structs.replace(HELLO, body=TextBody(text="  spaced \n")))
        await house.rest(1_000)
        assert "  spaced " in house.model.said()

    run_house(story)
