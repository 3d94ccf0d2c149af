"""A turn that cannot be settled as it ended: nobody pays for it twice, and it can be stopped."""

from typing import Any, NoReturn

import pytest

from holon.model.agents import AgentStatus
from holon.model.commits import AppendTranscript, AuditedCommit, ConstraintRefused
from holon.model.events.briefs import BriefKind
from holon.model.limits import HOUR_MS
from holon.model.turns.transcript import RuntimeFailure
from tests.runtime.cast import rule, says
from tests.runtime.house import House, Setup, run_house
from tests.support.builders import MAIN

SLOW = rule("slow", says("done", after_ms=20_000))


class RefusedTicket:
    """The answer to a commit whose rows would contradict others."""

    async def outcome(self) -> ConstraintRefused:
        return ConstraintRefused(constraint="some_constraint")


class Refusing:
    """A store that refuses settlements with a success, or all of them."""

    def __init__(self, inner: Any, *, plain_too: bool = False) -> None:
        self._inner = inner
        self._plain_too = plain_too

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def submit(self, commit: AuditedCommit) -> Any:
        is_settlement = commit.commit_id.startswith("settle:")
        is_plain = any(
            isinstance(change, AppendTranscript) and isinstance(change.entry.data, RuntimeFailure)
            for change in commit.commit.changes
        )
        if is_settlement and (self._plain_too or not is_plain):
            return RefusedTicket()
        return self._inner.submit(commit)


def crashes(*_: object, **__: object) -> NoReturn:
    raise KeyError("a bug in remembering")


def test_a_settlement_that_is_refused_each_time_is_settled_plainly() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(HOUR_MS)
        assert len(house.model.requests) == 1
        assert [brief.kind for brief in await house.briefs()] == [BriefKind.FAILURE]
        assert house.host.rescue_count == 0

    setup = Setup(wrap=Refusing, bugs=frozenset({"settlement_crashed"}))
    run_house(story, script=[SLOW], setup=setup)


def test_where_even_that_is_refused_the_agent_is_left_down() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(HOUR_MS)
        assert len(house.model.requests) <= 2, "once more at its own news, not for ever"
        assert house.host.rescue_count == 0

    setup = Setup(
        wrap=lambda inner: Refusing(inner, plain_too=True),
        bugs=frozenset({"settlement_crashed", "agent_left_down"}),
    )
    run_house(story, script=[SLOW], setup=setup)


@pytest.mark.parametrize("verb", ["abort_run", "pause", "stop"])
def test_an_operator_can_stop_a_turn_that_cannot_be_settled_as_it_is(
    monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr("holon.runtime.turns.settler.with_memory", crashes)

    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(1_000)
        assert (await house.agent()).posture.status is AgentStatus.AWAKE_RUNNING
        await getattr(house.host.control, verb)(MAIN)
        agent = await house.agent()
        assert agent.posture.status is not AgentStatus.AWAKE_RUNNING
        assert agent.focus.open_turn_id is None
        [brief] = await house.briefs()
        assert brief.failure is not None
        assert brief.failure.kind == "operator_abort"

    setup = Setup(bugs=frozenset({"settlement_crashed"}))
    run_house(story, script=[SLOW], setup=setup)
