"""The skills agents use: each once, by all its reasons, and what the end of a turn leaves."""

import pytest

from holon.model.guidance import (
    ActivateSkill,
    ActivationSource,
    ActivationState,
    LoadReason,
    RestoreSkills,
)
from holon.model.turns.turn import TerminalKind
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, ended, make, open_turn, settled, with_
from tests.support.builders import MAIN, a_skill_activation, moment


async def test_a_skill_that_has_several_reasons_is_listed_once(store: Store) -> None:
    turn = await open_turn(store, 1)
    read = a_skill_activation(turn)
    ran = with_(
        read,
        load_reason=LoadReason.RUN_SKILL_SCRIPT,
        path="/skills/roofs/run.sh",
        activated_at=moment(1),
    )
    other = with_(a_skill_activation(turn, folder="/skills/boats"), activated_at=moment(2))
    await make(store, *(ActivateSkill(activation=each) for each in (read, ran, other)))
    active = await store.reads.guidance.active_skills(MAIN)
    assert [each.entrypoint_path for each in active] == [read.entrypoint_path, other.path]
    reasons = await store.reads.guidance.activations_of(MAIN, read.entrypoint_path)
    assert {each.load_reason: each for each in reasons} == {
        read.load_reason: read,
        ran.load_reason: ran,
    }
    assert await store.reads.guidance.activations_of(OTHER, read.entrypoint_path) == []
    assert await store.reads.guidance.active_skills(OTHER) == []


@pytest.mark.parametrize(
    ("kind", "left"),
    [(TerminalKind.COMPLETED, ActivationState.SESSION_ACTIVE), (TerminalKind.ABORTED, None)],
)
async def test_a_completed_turn_keeps_what_it_made_active_and_another_drops_it(
    store: Store, kind: TerminalKind, left: ActivationState | None
) -> None:
    turn = await open_turn(store, 1)
    await make(store, ActivateSkill(activation=a_skill_activation(turn)))
    end = ended(turn)
    await make(store, with_(end, terminal=with_(end.terminal, kind=kind)), settled("msg_1"))
    found = [each.state for each in await store.reads.guidance.active_skills(MAIN)]
    assert found == ([] if left is None else [left])
    assert await store.reads.guidance.has_skills_to_restore() is (left is not None)


async def test_a_restored_skill_is_restored_once(store: Store) -> None:
    turn = await open_turn(store, 1)
    activate = ActivateSkill(activation=a_skill_activation(turn))
    await make(store, activate, ended(turn), settled("msg_1"))
    await make(store, RestoreSkills())
    assert not await store.reads.guidance.has_skills_to_restore()
    (restored,) = await store.reads.guidance.active_skills(MAIN)
    assert restored.source is ActivationSource.RESTORED
