"""Skill watch: detect which skills a tool call used.

Owns:  matching a call's commands against the skill catalog, and adding the activations to its
       changes.
Rule 1: an activation is made durable by the commit that records the call's result.
Rule 2: a call whose text names no part of a skill costs one scan of that text, and no read.
"""

import msgspec

from holon.decide.guidance.command_words import Surroundings
from holon.decide.guidance.skills import (
    RanCommand,
    SkillUse,
    TurnOfUse,
    activation_of,
    commands_of,
    uses_of,
)
from holon.model.agents import AgentKind, AgentState
from holon.model.guidance import ActivateSkill
from holon.model.turns.tools import ToolCallRecord, ToolOk
from holon.model.workspaces import AGENT_HOME
from holon.ports.guidance import SkillCatalogs
from holon.ports.reads import StoreReads
from holon.tools.tool import ToolExecution, ToolScene


class SkillWatch:
    """Detects skill use in the tool calls of one host."""

    def __init__(
        self,
        reads: StoreReads,
        skills: SkillCatalogs,
    ) -> None:
        self._reads = reads
        self._skills = skills

    async def noticed(
        self, call: ToolCallRecord, scene: ToolScene, execution: ToolExecution
    ) -> ToolExecution:
        """Return the execution with the activations of the skills it used."""
        if not isinstance(execution.outcome, ToolOk):
            return execution
        commands = commands_of(call.name, call.input, execution.outcome.result)
        if not commands:
            return execution
        activations = await self._activations(commands, scene)
        if not activations:
            return execution
        return msgspec.structs.replace(execution, changes=(*execution.changes, *activations))

    async def _activations(
        self, commands: tuple[RanCommand, ...], scene: ToolScene
    ) -> tuple[ActivateSkill, ...]:
        agent = await self._reads.agents.agent(scene.agent_id)
        if agent is None:
            return ()
        uses = await self._uses(commands, scene, agent)
        turn = TurnOfUse(
            agent_id=scene.agent_id,
            turn_id=scene.turn_id,
            turn_index=agent.totals.turn_index + 1,  # a turn is counted when it ends
        )
        activations = []
        for use in uses:
            known = await self._reads.guidance.activations_of(scene.agent_id, use.entry.path)
            activations.append(activation_of(use, known, turn, now=scene.now))
        return tuple(each for each in activations if each is not None)

    async def _uses(
        self, commands: tuple[RanCommand, ...], scene: ToolScene, agent: AgentState
    ) -> tuple[SkillUse, ...]:
        place = scene.workspace
        is_home = place is None or place.workspace_id == AGENT_HOME
        catalog = await self._skills.catalog(
            agent_home=scene.agent_home,
            workspace_anchor=None if place is None or is_home else place.workspace_anchor,
            with_user_scope=agent.identity.kind is AgentKind.DEFAULT,
        )
        variables = {"HOLON_AGENT_HOME": scene.agent_home}
        if catalog.user_home is not None:
            variables["HOME"] = catalog.user_home
        around = Surroundings(cwd=scene.cwd, variables=variables)
        return uses_of(commands, catalog, around)
