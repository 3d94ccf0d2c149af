"""Decide, commit, and decide again when the rows moved meanwhile."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random

import pytest

from holon.model.commits import Applied, AuditedCommit, Commit, CommitOutcome, ConstraintRefused
from holon.model.errors import (
    Refusal,
    RefusalCode,
    RefusedError,
    StoreBrokenError,
    StoreBusyError,
    StoreFullError,
)
from holon.model.limits import STORE_RETRY_MS_MAX, STORE_RETRY_MS_MIN
from holon.ports.store import Store
from holon.runtime.commits import DECISIONS_COUNT_MAX, apply_patiently, commit_decided, patiently
from tests.support.builders import a_commit
from tests.support.manual_clock import DAWN, ManualClock
from tests.support.sim_loop import SimLoop

MOVED = ConstraintRefused(constraint="something")


class _ScriptedStore:
    """Answers commits from a list."""

    def __init__(self, answers: Sequence[CommitOutcome | Exception]) -> None:
        self._answers = list(answers)
        self.applied: list[AuditedCommit] = []

    async def apply(self, commit: AuditedCommit) -> CommitOutcome:
        self.applied.append(commit)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(scene: Callable[[ManualClock], Awaitable[None]]) -> None:
    """Run a scene on virtual time."""
    clock = ManualClock()

    async def play() -> None:
        await scene(clock)

    SimLoop(clock, Random(0)).run_life(play())


def _store(*answers: CommitOutcome | Exception) -> tuple[Store, _ScriptedStore]:
    scripted = _ScriptedStore(answers)
    return scripted, scripted  # type: ignore[return-value]  # only `apply` is ever called


def test_a_refused_commit_leads_to_a_fresh_decision() -> None:
    async def scene(clock: ManualClock) -> None:
        store, seen = _store(MOVED, MOVED, Applied())
        made = iter(a_commit(f"control:{n}") for n in range(9))

        async def decide() -> Commit:
            return next(made)

        applied = await commit_decided(store, decide)
        assert applied == seen.applied[-1].commit
        assert [c.commit_id for c in seen.applied] == ["control:0", "control:1", "control:2"]

    run(scene)


def test_rows_that_never_hold_still_end_in_a_refusal() -> None:
    async def scene(clock: ManualClock) -> None:
        store, seen = _store(*[MOVED] * DECISIONS_COUNT_MAX)

        async def decide() -> Commit:
            return a_commit("control:1")

        with pytest.raises(RefusedError) as caught:
            await commit_decided(store, decide)
        assert caught.value.refusal.code is RefusalCode.BUSY
        assert len(seen.applied) == DECISIONS_COUNT_MAX

    run(scene)


@pytest.mark.parametrize("verdict", [None, Refusal(code=RefusalCode.BUSY, message="no")])
def test_nothing_is_committed_when_there_is_nothing_to_do(verdict: Refusal | None) -> None:
    async def scene(clock: ManualClock) -> None:
        store, seen = _store()

        async def decide() -> Refusal | None:
            return verdict

        if verdict is None:
            assert await commit_decided(store, decide) is None
        else:
            with pytest.raises(RefusedError):
                await commit_decided(store, decide)
        assert seen.applied == []

    run(scene)


@pytest.mark.requirement("hostile:no-busy-loop")
def test_a_full_disk_is_waited_out_with_growing_pauses() -> None:
    async def scene(clock: ManualClock) -> None:
        fulls = [StoreFullError("full"), StoreBusyError("busy")] * 6
        store, seen = _store(*fulls, Applied())
        outcome = await apply_patiently(store, a_commit("settle:1"), clock=clock)
        assert outcome == Applied()
        assert {c.commit_id for c in seen.applied} == {"settle:1"}
        pauses = [min(STORE_RETRY_MS_MIN << n, STORE_RETRY_MS_MAX) for n in range(len(fulls))]
        assert (clock.now() - DAWN).total_seconds() * 1_000 == sum(pauses)

    run(scene)


def test_a_broken_disk_is_never_waited_out() -> None:
    async def scene(clock: ManualClock) -> None:
        store, seen = _store(StoreBrokenError("broken"))
        with pytest.raises(StoreBrokenError):
            await apply_patiently(store, a_commit("settle:1"), clock=clock)
        assert len(seen.applied) == 1

    run(scene)


def test_a_refused_outcome_is_handed_back_not_retried() -> None:
    async def scene(clock: ManualClock) -> None:
        store, seen = _store(MOVED)
        assert await apply_patiently(store, a_commit("settle:1"), clock=clock) == MOVED
        assert await patiently(_answer, clock=clock) == 42
        assert len(seen.applied) == 1

    run(scene)


async def _answer() -> int:
    return 42
