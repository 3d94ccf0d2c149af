"""What a bug about one agent costs: its turn, or else its lane, and nobody else anything."""

from collections.abc import Callable
from typing import Any

import pytest

from holon.model.brief import BriefKind
from holon.model.errors import StoreBrokenError
from holon.model.ids import AgentId
from holon.model.limits import BACKSTOP_INTERVAL_MS, HOUR_MS, TURN_RESUMES_COUNT_MAX
from holon.ports.journal import LogLevel
from holon.runtime.bug_boundary import raise_unless_bug
from holon.runtime.turn_writer import LaneFencedError
from holon.testing.builders import an_identity
from tests.runtime.cast import rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.notes import Notes

BOB = AgentId("bob")
SLOW = rule("slow", says("done", after_ms=1_000))
SETTLED_PLAINLY = frozenset({"settlement_crashed"})
LEFT_DOWN = frozenset({"agent_left_down"})


def plant(monkeypatch: pytest.MonkeyPatch, where: str, about: Callable[..., str]) -> None:
    """Make a function of the runtime fail whenever it is about bob."""
    module, name = where.rsplit(".", 1)
    honest = getattr(pytest.importorskip(module), name)

    def broken(*args: Any, **how: Any) -> Any:
        if about(*args) == BOB:
            raise KeyError("a bug that only bob's rows show")
        return honest(*args, **how)

    monkeypatch.setattr(where, broken)


def plant_in_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants to know what bob should do next meets a bug."""
    for module in ("lane", "scheduler"):
        where = f"holon.runtime.{module}.decide_activation"
        plant(monkeypatch, where, lambda snapshot: snapshot.agent.identity.agent_id)


def plant_in_settlements(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn of bob's can be settled, plainly neither."""
    where = "holon.runtime.settler.settle_turn"
    plant(monkeypatch, where, lambda facts: facts.turn.agent_id)


def plant_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be remembered of bob's turns."""
    where = "holon.runtime.settler.with_memory"
    plant(monkeypatch, where, lambda commit, facts: facts.message.agent_id)


async def asked_by_bob(house: House) -> int:
    return sum(request.agent_id == BOB for request in house.model.requests)


@pytest.mark.parametrize("error", [StoreBrokenError("gone"), LaneFencedError("taken")])
def test_what_is_no_bug_goes_through_however_it_is_wrapped(error: Exception) -> None:
    with pytest.raises(type(error)):
        raise_unless_bug(error)
    with pytest.raises(type(error)):
        raise_unless_bug(ExceptionGroup("outer", [ExceptionGroup("inner", [KeyError(), error])]))
    raise_unless_bug(ExceptionGroup("outer", [KeyError()]))


def test_a_store_that_broke_is_told_before_a_fence() -> None:
    with pytest.raises(StoreBrokenError):
        raise_unless_bug(ExceptionGroup("", [LaneFencedError("taken"), StoreBrokenError("gone")]))


@pytest.mark.requirement("runtime:a-bug-fails-one-turn")
def test_a_bug_in_settling_fails_the_turn_and_neither_the_agent_nor_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        plant_in_memory(monkeypatch)
        await house.prompt("hello", agent=BOB)
        await house.prompt("hello")
        await house.rest(1_000)
        [failed] = await house.briefs(BOB)
        assert failed.kind is BriefKind.FAILURE
        assert "KeyError" in failed.text
        [(turn_id,)] = house.rows("select turn_id from turns where agent_id = 'bob'")
        [note] = notes.of("settlement_crashed")
        assert (note.level, note.about) == (LogLevel.ERROR, {"agent_id": BOB, "turn_id": turn_id})
        assert isinstance(note.error, KeyError)
        monkeypatch.undo()
        await house.prompt("hello", agent=BOB)
        await house.rest(1_000)
        assert [brief.kind for brief in await house.briefs(BOB)][1:] == [BriefKind.RESULT]
        assert [brief.kind for brief in await house.briefs()] == [BriefKind.RESULT]
        assert await asked_by_bob(house) == 2
        assert house.deaths == []

    run_house(story, setup=Setup(journal=notes, bugs=SETTLED_PLAINLY))


def test_a_plain_settlement_keeps_what_the_turn_had_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        await house.prompt("hello", agent=BOB)
        await house.rest(1_000)
        plant_in_memory(monkeypatch)
        await house.prompt("hello", agent=BOB)
        await house.rest(1_000)
        totals = (await house.agent(BOB)).totals
        assert (totals.model_round_count, totals.input_tokens) == (2, 20)

    run_house(story, setup=Setup(bugs=SETTLED_PLAINLY))


def test_an_agent_whose_turn_cannot_be_settled_at_all_is_left_down_until_there_is_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        plant_in_settlements(monkeypatch)
        await house.prompt("hello", agent=BOB)
        await house.rest(BACKSTOP_INTERVAL_MS // 2)
        [note] = notes.of("agent_left_down")
        assert (note.level, note.about) == (LogLevel.ERROR, {"agent_id": BOB})
        assert await asked_by_bob(house) == 1
        await house.prompt("hello")
        await house.rest(HOUR_MS)
        assert [brief.kind for brief in await house.briefs()] == [BriefKind.RESULT]
        assert await asked_by_bob(house) == 2, "its own claim was news, and is heard once"
        assert await house.briefs(BOB) == []
        monkeypatch.undo()
        await house.prompt("are you there", agent=BOB)
        await house.rest(1_000)
        assert [brief.kind for brief in await house.briefs(BOB)] == [BriefKind.RESULT] * 2
        assert house.deaths == []

    bugs = SETTLED_PLAINLY | LEFT_DOWN
    run_house(story, setup=Setup(journal=notes, bugs=bugs))


def test_an_agent_that_cannot_be_looked_at_is_left_down_and_tried_at_each_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        await house.rest(100)
        plant_in_looks(monkeypatch)
        await house.prompt("hello", agent=BOB)
        await house.rest(HOUR_MS)
        assert len(notes.of("agent_left_down")) == 1
        await house.prompt("hello again", agent=BOB)
        await house.rest(HOUR_MS)
        assert len(notes.of("agent_left_down")) == 2
        await house.prompt("hello")
        await house.rest(1_000)
        assert len(await house.briefs()) == 1
        monkeypatch.undo()
        await house.restart()
        await house.rest(1_000)
        assert [brief.kind for brief in await house.briefs(BOB)] == [BriefKind.RESULT] * 2

    run_house(story, setup=Setup(journal=notes, bugs=LEFT_DOWN))


def test_the_work_of_an_agent_that_is_left_down_is_no_news_at_every_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The wheel finds it due each time somebody else's commit makes it look."""
    notes = Notes()

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        item = await house.host.work.create(BOB, objective="held back for a while")
        await house.host.work.focus(item.id)
        await house.rest(100)
        plant_in_looks(monkeypatch)
        for _ in range(20):
            await house.prompt("hello")
            await house.rest(BACKSTOP_INTERVAL_MS // 10)
        assert 1 <= len(notes.of("agent_left_down")) <= 4
        monkeypatch.undo()
        await house.rest(HOUR_MS)

    run_house(story, setup=Setup(journal=notes, bugs=LEFT_DOWN))


def test_a_bug_that_only_the_backstop_meets_does_not_end_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        deaf = house.host._scheduler
        hear = deaf.commit_applied
        deaf.commit_applied = lambda touched: None  # type: ignore[method-assign]  # the other bug
        await house.prompt("hello", agent=BOB)
        deaf.commit_applied = hear  # type: ignore[method-assign]
        plant_in_looks(monkeypatch)
        await house.rest(2 * BACKSTOP_INTERVAL_MS)
        monkeypatch.undo()
        await house.prompt("hello again", agent=BOB)
        await house.rest(1_000)
        assert len(await house.briefs(BOB)) == 2
        assert house.deaths == []

    run_house(story, setup=Setup(bugs=LEFT_DOWN))


def test_a_start_that_cannot_take_up_one_agent_takes_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        await house.prompt("slow", agent=BOB)
        await house.prompt("slow")
        await house.rest(100)
        plant(monkeypatch, "holon.runtime.recovery.plan_turn", lambda log: log.turn.agent_id)
        await house.restart()
        await house.rest(HOUR_MS)
        [note] = notes.of("recovery_crashed")
        assert (note.level, note.about) == (LogLevel.ERROR, {"agent_id": BOB})
        assert [brief.text for brief in await house.briefs()] == ["done"]
        assert await house.briefs(BOB) == [], "it stays as it is"
        assert await asked_by_bob(house) == 1
        monkeypatch.undo()
        await house.prompt("are you there", agent=BOB)
        await house.rest(60_000)
        assert len(await house.briefs(BOB)) == 2
        assert len(house.deaths) == 1, "the crash alone"

    setup = Setup(journal=notes, bugs=frozenset({"recovery_crashed"}))
    run_house(story, script=[rule("there", says("yes")), SLOW], setup=setup)


@pytest.mark.requirement("runtime:poison-turn-is-given-up")
def test_a_poison_turn_is_given_up_although_it_cannot_be_settled_as_it_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        plant_in_memory(monkeypatch)
        await house.prompt("poison", agent=BOB)
        for _ in range(TURN_RESUMES_COUNT_MAX + 1):
            await house.rest(1_000)
            await house.restart()
        await house.rest(1_000)
        [brief] = await house.briefs(BOB)
        assert brief.failure is not None
        assert brief.failure.kind == "poison_turn"
        assert house.rows("select state from messages") == [("aborted",)]

    script = [rule("poison", says("never said", after_ms=60_000))]
    run_house(story, script=script, setup=Setup(bugs=SETTLED_PLAINLY))
