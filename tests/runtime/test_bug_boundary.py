"""What a bug about one agent costs: its turn, or else its lane, and nobody else anything."""

from asyncio import CancelledError
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec
import pytest

from holon.decide.tasks.commands import is_terminal
from holon.model.errors import StoreBrokenError
from holon.model.events.briefs import BriefKind
from holon.model.limits import (
    BACKSTOP_INTERVAL_MS,
    HOUR_MS,
    TURN_RESUMES_COUNT_MAX,
    WAIT_DEADLINE_DEFAULT_MS,
)
from holon.model.queue import IngressRequest
from holon.model.tasks import TaskStatus
from holon.model.values import AgentId
from holon.model.wake import TimerFired
from holon.ports.journal import LogLevel
from holon.runtime.background import bug_noted, raise_unless_bug
from holon.runtime.tasks.supervisor import CommandTask
from holon.runtime.turns.log import LaneFencedError
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.notes import Notes
from tests.runtime.records import kept_turns, kept_waits, message_states
from tests.runtime.shellwork import shell_setup, task_results, tasks
from tests.support.builders import MAIN, a_task, an_identity
from tests.support.fault_store import DiskFault
from tests.support.scripted_shell import ScriptedProcess

BOB = AgentId("bob")
SLOW = rule("slow", says("done", after_ms=1_000))
ENDED = rule("make: ended", says("built"))
BUILD = rule("build", calls("ExecCommand", cmd="make"), says("it runs on"))
SERVE = rule("serve", calls("ExecCommand", cmd="server"), says("it serves"))
SETTLED_PLAINLY = frozenset({"settlement_crashed"})
LEFT_DOWN = frozenset({"agent_left_down"})
TICK_CRASHED = frozenset({"tick_crashed"})
TASK_CRASHED = frozenset({"task_crashed"})


def crashes(*_: object, **__: object) -> NoReturn:
    raise KeyError("a bug about one task")


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
    where = "holon.runtime.turns.settler.settle_turn"
    plant(monkeypatch, where, lambda facts: facts.turn.agent_id)


def plant_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be remembered of bob's turns."""
    where = "holon.runtime.turns.settler.with_memory"
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


def test_a_bug_where_no_lane_runs_is_noted_and_held_back() -> None:
    notes = Notes()
    for error in (KeyError(), LaneFencedError("taken"), ExceptionGroup("", [KeyError()])):
        with bug_noted(notes, "crashed", "it stays as it is", agent_id=BOB) as boundary:
            raise error
        assert boundary.met_bug
        assert notes.lines[-1] == (
            "crashed",
            "it stays as it is",
            LogLevel.ERROR,
            error,
            {"agent_id": BOB},
        )


def test_what_is_no_bug_is_neither_noted_nor_held_back() -> None:
    notes = Notes()
    broken = StoreBrokenError("gone")
    for error in (broken, ExceptionGroup("", [KeyError(), broken])):
        with pytest.raises(StoreBrokenError), bug_noted(notes, "crashed", "it stays as it is"):
            raise error
    with pytest.raises(CancelledError), bug_noted(notes, "crashed", "it stays as it is"):
        raise CancelledError
    with bug_noted(notes, "crashed", "it stays as it is") as boundary:
        pass
    assert not boundary.met_bug
    assert notes.lines == []


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
        turn_id = kept_turns(house, BOB)[0].turn_id
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
        plant(monkeypatch, "holon.runtime.turns.recovery.plan_turn", lambda log: log.turn.agent_id)
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


def test_a_timer_that_cannot_fire_is_left_alone_until_there_is_news_of_its_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()
    where = "holon.runtime.wake.dispatcher.decide_fire"

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        timer = await house.host.timers.create(BOB, after_ms=1_000, summary="bob's")
        await house.host.timers.create(MAIN, after_ms=1_000, every_ms=60_000)
        plant(monkeypatch, where, lambda due: due.timer.agent_id)
        await house.rest(HOUR_MS)
        [note] = notes.of("tick_crashed")
        assert (note.level, note.error.__class__) == (LogLevel.ERROR, KeyError)
        assert note.about == {"agent_id": BOB, "timer_id": timer.id, "wait_id": None}
        fired = [event for event in await house.events() if isinstance(event, TimerFired)]
        assert len(fired) == 60, "the others go on"
        await house.host.timers.create(BOB, after_ms=HOUR_MS)
        await house.rest(60_000)
        assert len(notes.of("tick_crashed")) == 2, "there was news, and it is tried once"
        monkeypatch.undo()
        await house.host.timers.create(BOB, after_ms=HOUR_MS)
        await house.rest(60_000)
        assert await asked_by_bob(house) == 1
        assert house.deaths == []

    run_house(story, setup=Setup(journal=notes, bugs=TICK_CRASHED))


def test_a_timer_that_could_not_fire_fires_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    where = "holon.runtime.wake.dispatcher.decide_fire"

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        await house.host.timers.create(BOB, after_ms=1_000)
        plant(monkeypatch, where, lambda due: due.timer.agent_id)
        await house.rest(HOUR_MS)
        monkeypatch.undo()
        await house.restart()
        await house.rest(1_000)
        assert await asked_by_bob(house) == 1

    run_house(story, setup=Setup(bugs=TICK_CRASHED))


def test_a_timer_whose_agent_was_touched_while_it_could_not_fire_is_tried_once_more() -> None:
    async def story(house: House) -> None:
        door = house.host._ingress
        tries = 0

        async def judge(request: IngressRequest) -> NoReturn:
            nonlocal tries
            tries += 1
            await house.clock.sleep_for(10)
            raise KeyError(request.agent_id)

        await house.host.timers.create(MAIN, after_ms=1_000)
        await house.rest(999)
        door.judge = judge  # type: ignore[method-assign]  # the bug
        await house.rest(5)
        await house.host.timers.create(MAIN, after_ms=2 * HOUR_MS)
        await house.rest(HOUR_MS)
        assert tries == 2

    run_house(story, setup=Setup(bugs=TICK_CRASHED))


def test_a_wait_that_cannot_run_out_ends_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        task = msgspec.structs.replace(a_task(), agent_id=BOB)
        await house.host.tasks.open(task)
        wait_id = await house.host.tasks.wait_for(task.id)
        plant(monkeypatch, "holon.decide.wake.ticks.expired_text", lambda wait: wait.agent_id)
        await house.rest(WAIT_DEADLINE_DEFAULT_MS + HOUR_MS)
        [note] = notes.of("tick_crashed")
        assert note.about == {"agent_id": BOB, "timer_id": None, "wait_id": wait_id}
        monkeypatch.undo()
        await house.host.timers.create(BOB, after_ms=HOUR_MS)
        await house.rest(1_000)
        assert [wait.state for wait in kept_waits(house)] == ["expired"]
        assert house.deaths == []

    run_house(story, setup=Setup(journal=notes, bugs=TICK_CRASHED))


def test_a_store_that_breaks_under_a_timer_still_ends_the_host() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000)
        await house.rest(500)
        house.disk.fault = DiskFault.BROKEN_AND_LOST
        await house.rest(60_000)
        assert len(house.deaths) == 1
        assert len(house.model.requests) == 1

    run_house(story)


def test_a_task_whose_end_cannot_be_told_stays_open_and_the_next_start_tells_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity(BOB))
        await house.prompt("build", agent=BOB)
        await house.prompt("build")
        await house.rest(20_000)
        plant(
            monkeypatch, "holon.runtime.tasks.supervisor.end_of_task", lambda task, _: task.agent_id
        )
        await house.rest(HOUR_MS)
        bobs = next(task for task in tasks(house) if task.agent_id == BOB)
        [note] = notes.of("task_crashed")
        assert (note.level, note.about) == (LogLevel.ERROR, {"agent_id": BOB, "task_id": bobs.id})
        assert house.deaths == [], "and the other one was told"
        assert len(await task_results(house)) == 1
        await house.restart()
        await house.rest(HOUR_MS)
        assert len(notes.of("task_crashed")) == 2, "a start goes on without it as well"
        monkeypatch.undo()
        await house.restart()
        await house.rest(1_000)
        assert [task.status for task in tasks(house)] == [TaskStatus.COMPLETED] * 2
        assert len(house.deaths) == 2, "the crashes alone"

    setup = shell_setup(journal=notes, bugs=TASK_CRASHED)
    run_house(story, script=[ENDED, BUILD], setup=setup)


def test_a_task_nobody_can_see_through_is_still_stopped_with_its_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(house: House) -> None:
        await house.prompt("serve")
        await house.rest(20_000)
        monkeypatch.setattr(ScriptedProcess, "wait", crashes)
        await house.restart()
        await house.rest(1_000)
        assert tasks(house)[0].status is TaskStatus.RUNNING
        await house.host.control.stop(MAIN)
        await house.rest(60_000)
        assert house.shell.running == []
        monkeypatch.undo()
        await house.restart()
        assert is_terminal(tasks(house)[0].status)

    run_house(story, script=[SERVE], setup=shell_setup(bugs=TASK_CRASHED))


@pytest.mark.parametrize(
    ("of", "name"), [(ScriptedProcess, "stop"), (CommandTask, "ask_end")], ids=["stop", "look"]
)
def test_a_bug_in_stopping_a_command_ends_no_host(
    monkeypatch: pytest.MonkeyPatch, of: type, name: str
) -> None:
    async def story(house: House) -> None:
        await house.prompt("serve")
        await house.rest(20_000)
        monkeypatch.setattr(of, name, crashes)
        await house.host.control.stop(MAIN)
        await house.rest(60_000)
        assert house.deaths == []
        monkeypatch.undo()
        await house.restart()
        await house.rest(1_000)
        assert house.shell.running == []
        assert tasks(house)[0].status is TaskStatus.INTERRUPTED

    run_house(story, script=[SERVE], setup=shell_setup(bugs=TASK_CRASHED))


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
        assert message_states(house) == ["aborted"]

    script = [rule("poison", says("never said", after_ms=60_000))]
    run_house(story, script=script, setup=Setup(bugs=SETTLED_PLAINLY))
