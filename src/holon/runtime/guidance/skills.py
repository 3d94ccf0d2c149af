"""Skill control: an operator lists, installs and uninstalls an agent's skills.

Owns:  the skills in an agent's home, as control-plane mutations: files plus an event.
Rule 1: the files are authoritative. The event follows them; a crash in between loses only the
        event.
Rule 2: one installation at a time; a download has its own time limit.
"""

from typing import TypedDict

import anyio

from holon.decide.agents.lifecycle import refuse_archived, refuse_unknown
from holon.decide.guidance.skills import parse_skill_ref, refuse_not_installed
from holon.model.agents import AgentKind, AgentState, IdentityStatus
from holon.model.commits import Commit, RecordEvent
from holon.model.errors import RefusalCode, RefusedError
from holon.model.guidance import (
    InstalledSkill,
    SkillCatalog,
    SkillEvent,
    SkillFolder,
    SkillInstalled,
    SkillUninstalled,
)
from holon.model.values import AgentId, IdPrefix, parse_agent_id
from holon.model.workspaces import AGENT_HOME, ActiveWorkspace
from holon.ports.clock import Clock, IdSource
from holon.ports.guidance import SkillCatalogs, SkillFolders
from holon.ports.store import Store
from holon.projections.guidance import (
    AgentSkillsView,
    SkillsSummary,
    agent_skills_view,
    skills_summary,
)
from holon.runtime.commits import apply_patiently
from holon.runtime.workspaces.place import AgentPlaces

SKILLS_FOLDER = "skills"


class _Where(TypedDict):
    """The roots an agent's skills are searched in."""

    agent_home: str
    workspace_anchor: str | None
    with_user_scope: bool


class SkillService:
    """Lists, installs and uninstalls the skills of one host's agents."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        agent_places: AgentPlaces,
        skills: SkillCatalogs,
        skill_folders: SkillFolders,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._agent_places = agent_places
        self._skills = skills
        self._skill_folders = skill_folders
        self._one_at_a_time = anyio.Lock()

    async def look(self, agent_id: AgentId) -> AgentSkillsView:
        """Return an agent's discoverable, active and installed skills."""
        agent = await self._known(agent_id)
        place = await self._agent_places.current(agent_id)
        catalog = await self._catalog(agent, place)
        passed_over = await self._skills.passed_over(**self._where(agent, place))
        active = await self._store.reads.guidance.active_skills(agent_id)
        installed = await self._skill_folders.installed(self._folder(agent_id))
        return agent_skills_view(agent_id, catalog, active, installed, passed_over)

    async def summed(self, agent: AgentState, place: ActiveWorkspace) -> SkillsSummary:
        """Return the summary of an agent's skills, also for a stopped or archived one."""
        active = await self._store.reads.guidance.active_skills(agent.identity.agent_id)
        return skills_summary(await self._catalog(agent, place), active)

    async def _catalog(self, agent: AgentState, place: ActiveWorkspace) -> SkillCatalog:
        return await self._skills.catalog(**self._where(agent, place))

    def _where(self, agent: AgentState, place: ActiveWorkspace) -> _Where:
        return {
            "agent_home": self._agent_places.home_of(agent.identity.agent_id),
            "workspace_anchor": (
                None if place.workspace_id == AGENT_HOME else place.workspace_anchor
            ),
            "with_user_scope": agent.identity.kind is AgentKind.DEFAULT,
        }

    async def install(
        self, agent_id: AgentId, name: str, *, kind: str | None, copies: bool, force: bool
    ) -> InstalledSkill:
        """Install a skill into an agent's home."""
        await self._known(agent_id)
        ref = parse_skill_ref(name, kind=kind, copies=copies)
        async with self._one_at_a_time:
            installed = await self._skill_folders.install(ref, self._folder(agent_id), force=force)
            event = SkillInstalled(
                skill_name=installed.name,
                path=installed.path,
                source_kind=installed.kind,
                source=installed.source,
                sha256=installed.sha256,
            )
            await self._tell(agent_id, event)
        return installed

    async def uninstall(self, agent_id: AgentId, name: str, *, force: bool) -> SkillFolder:
        """Uninstall a skill; the refusal for one installed elsewhere names its owner."""
        agent, root = await self._known(agent_id), self._folder(agent_id)
        async with self._one_at_a_time:
            try:
                removed = await self._skill_folders.uninstall(name, root, force=force)
            except RefusedError as error:
                if error.refusal.code is not RefusalCode.SKILL_NOT_FOUND:
                    raise
                place = await self._agent_places.current(agent_id)
                catalog = await self._catalog(agent, place)
                refusal = refuse_not_installed(name, catalog, root=root)
                raise RefusedError(refusal or error.refusal) from error
            await self._tell(agent_id, SkillUninstalled(skill_name=removed.name, path=removed.path))
        return removed

    def _folder(self, agent_id: AgentId) -> str:
        return f"{self._agent_places.home_of(agent_id)}/{SKILLS_FOLDER}"

    async def _known(self, agent_id: AgentId) -> AgentState:
        agent = await self._store.reads.agents.agent(parse_agent_id(agent_id))
        if agent is None:
            raise RefusedError(refuse_unknown(agent_id))
        if agent.identity.status is IdentityStatus.ARCHIVED:
            raise RefusedError(refuse_archived(agent_id))
        return agent

    async def _tell(self, agent_id: AgentId, event: SkillEvent) -> None:
        commit = Commit(
            commit_id=f"control:{self._ids.fresh(IdPrefix.REQUEST)}",
            at=self._clock.now(),
            changes=(RecordEvent(agent_id=agent_id, event=event),),
        )
        await apply_patiently(self._store, commit, clock=self._clock)
