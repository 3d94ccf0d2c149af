"""Where agents work: what they know, where they are, and who else is under a root."""

from typing import Final

from holon.decide.workspaces import attach_target_of
from holon.model.commits import ConstraintRefused
from holon.model.workspaces import (
    AccessMode,
    AttachWorkspace,
    DetachWorkspace,
    EnterWorkspace,
    ExitWorkspace,
    ResolvedDirectory,
    WorkspaceBindings,
    WorkspaceOccupancy,
)
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, make, offer, with_
from tests.support.builders import MAIN, START, an_agent, moment

SITE: Final = attach_target_of(ResolvedDirectory(path="/srv/site"), WorkspaceBindings(), now=START)
ATTACHED: Final = AttachWorkspace(agent_id=MAIN, entry=SITE.entry)
ENTERED: Final = EnterWorkspace(agent_id=MAIN, place=SITE.place, occupancy_id="occ_1")


async def test_an_agent_that_attached_nothing_is_at_home(store: Store) -> None:
    assert await store.reads.workspaces.active_workspace(MAIN) is None
    assert await store.reads.workspaces.workspace_bindings(MAIN) == WorkspaceBindings()
    assert list(await store.reads.workspaces.root_occupants("/srv/site", limit=9)) == []


async def test_an_agent_is_in_the_workspace_it_entered_until_it_exits(store: Store) -> None:
    await make(store, ATTACHED)
    await make(store, ENTERED, at=moment(3))
    active = await store.reads.workspaces.active_workspace(MAIN)
    assert active == with_(SITE.place, occupancy_id="occ_1")
    held = WorkspaceOccupancy(
        occupancy_id="occ_1",
        execution_root_id=SITE.place.execution_root_id,
        workspace_id=SITE.entry.workspace_id,
        holder_agent_id=MAIN,
        access_mode=SITE.place.access_mode,
        acquired_at=moment(3),
    )
    found = await store.reads.workspaces.workspace_bindings(MAIN)
    assert found == WorkspaceBindings(attached=(SITE.entry,), active=active, occupancy=held)
    root_id = held.execution_root_id
    assert list(await store.reads.workspaces.root_occupants(root_id, limit=9)) == [held]
    assert list(await store.reads.workspaces.root_occupants(root_id, limit=0)) == []
    await make(store, ExitWorkspace(agent_id=MAIN, workspace_id=SITE.entry.workspace_id))
    found = await store.reads.workspaces.workspace_bindings(MAIN)
    assert found == WorkspaceBindings(attached=(SITE.entry,))
    assert list(await store.reads.workspaces.root_occupants(root_id, limit=9)) == []


async def test_a_place_cannot_be_entered_left_or_forgotten_out_of_turn(store: Store) -> None:
    place = SITE.entry.workspace_id
    exits = ExitWorkspace(agent_id=MAIN, workspace_id=place)
    forgets = DetachWorkspace(agent_id=MAIN, workspace_id=place)
    for early in (ENTERED, exits, forgets):
        assert isinstance(await offer(store, early), ConstraintRefused), early
    await make(store, ATTACHED, ENTERED)
    for late in (ATTACHED, ENTERED, forgets):
        assert isinstance(await offer(store, late), ConstraintRefused), late


async def test_a_root_that_one_agent_has_alone_is_entered_by_no_other(store: Store) -> None:
    alone = with_(SITE.place, access_mode=AccessMode.EXCLUSIVE_WRITE)
    await make(store, an_agent(OTHER), ATTACHED, with_(ATTACHED, agent_id=OTHER))
    await make(store, with_(ENTERED, place=alone))
    second = with_(ENTERED, agent_id=OTHER, place=alone, occupancy_id="occ_2")
    assert isinstance(await offer(store, second), ConstraintRefused)
    assert await store.reads.workspaces.active_workspace(OTHER) is None
