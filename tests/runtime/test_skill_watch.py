"""Skills over the life of turns and hosts: used, kept, dropped, restored."""

from typing import Any

import pytest

from holon.decide.events.audit import audited
from holon.decide.guidance.skills import SkillUse, TurnOfUse, activation_of
from holon.http.table import ROUTES
from holon.model.commits import Applied, ConstraintRefused
from holon.model.guidance import (
    ActivationSource,
    ActivationState,
    LoadReason,
    SkillActivated,
    SkillActivation,
    SkillCatalog,
    SkillEntry,
    SkillScope,
)
from holon.model.values import AgentId, TurnId
from holon.ports.guidance import NoSkills
from holon.tools.registry import local_tools
from tests.adapters.sqlite.raw_rows import a_writer
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.shellwork import shell_setup
from tests.support.builders import MAIN, START, a_commit, an_agent
from tests.support.scripted_provider import ScriptedCall, ScriptedRound, ScriptedRule
from tests.support.scripted_shell import CommandScript

ROOFS = "/home/agents/main/skills/roofs"
TILES = "/home/agents/main/skills/tiles"
READ, RUN = f"cat {ROOFS}/SKILL.md", f"{ROOFS}/scripts/mend.sh --all"
READ_TILES = f"cat {TILES}/SKILL.md"
COMMANDS = {
    READ: CommandScript(stdout=b"# Roofs"),
    RUN: CommandScript(),
    READ_TILES: CommandScript(),
    "broken": CommandScript(exit_status=1),
    f"{READ}; false": CommandScript(exit_status=1),
    "quick": CommandScript(after_ms=50),
}


class TwoSkills(NoSkills):
    """A catalog that notes who asked for it, and how."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    async def catalog(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> SkillCatalog:
        """Two skills, whoever asks."""
        self.asked.append(with_user_scope)
        entries = tuple(
            SkillEntry(
                name=folder.rpartition("/")[2],
                description="How to mend it.",
                scope=SkillScope.AGENT,
                path=f"{folder}/SKILL.md",
            )
            for folder in (ROOFS, TILES)
        )
        return SkillCatalog(entries=entries, user_home="/root")


def skilled(**other: Any) -> Setup:
    return shell_setup(commands=COMMANDS, skills=TwoSkills(), **other)


def runs(*commands: str) -> list[ScriptedRound]:
    return [calls("ExecCommand", cmd=cmd) for cmd in commands]


async def activated(house: House) -> list[tuple[str, str, str, bool]]:
    return [
        (event.skill_name, event.load_reason, event.path, event.was_session_active)
        for event in await house.events()
        if isinstance(event, SkillActivated)
    ]


async def active(house: House) -> list[SkillActivation]:
    return list(await house.store.reads.guidance.active_skills(AgentId(MAIN)))


def states(found: list[SkillActivation]) -> list[tuple[str, ActivationState, ActivationSource]]:
    return [(each.skill_name, each.state, each.source) for each in found]


TURN, SESSION = ActivationState.TURN_ACTIVE, ActivationState.SESSION_ACTIVE
IMPLICIT, RESTORED = ActivationSource.IMPLICIT_FROM_CATALOG, ActivationSource.RESTORED


@pytest.mark.requirement(
    "skills:reading-activates", "skills:script-activates", "skills:promoted-in-silence"
)
def test_a_turn_that_uses_a_skill_makes_it_active_and_its_good_end_keeps_it() -> None:
    seen: list[list[SkillActivation]] = []

    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(200)  # in the middle of the last round
        seen.append(await active(house))
        await house.rest(60_000)
        seen.append(await active(house))
        assert await activated(house) == [
            ("roofs", "read_skill_md", f"{ROOFS}/SKILL.md", False),
            ("roofs", "run_skill_script", f"{ROOFS}/scripts/mend.sh", False),
        ]

    script = rule("begin", *runs(READ, RUN, READ), says("done", after_ms=1_000))
    run_house(story, script=[script], setup=skilled())
    during, after = seen
    assert states(during) == [("roofs", TURN, IMPLICIT)]
    assert states(after) == [("roofs", SESSION, IMPLICIT)]
    assert after[0].entrypoint_path == f"{ROOFS}/SKILL.md"
    assert after[0].turn_index == 1


@pytest.mark.requirement("skills:discovery-alone")
def test_discovery_alone_and_commands_beside_it_activate_nothing() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(60_000)
        assert await activated(house) == []
        assert await active(house) == []

    setup = skilled()
    script = rule("begin", *runs("quick", f"{READ}; false"), says("done"))
    house = run_house(story, script=[script], setup=setup)
    assert isinstance(setup.skills, TwoSkills)
    assert setup.skills.asked == [False]  # for the prompt of a named agent; no command asked
    assert "roofs" in repr(house.model.requests[0].frame)


@pytest.mark.requirement("skills:metadata-only", "skills:usage-guidance")
def test_a_prompt_shows_metadata_and_says_how_skills_are_used() -> None:
    async def story(house: House) -> None:
        for _ in range(2):
            await house.prompt("begin")
            await house.rest(60_000)

    house = run_house(story, script=[rule("begin", *runs(READ), says("done"))], setup=skilled())
    first, last = (repr(house.model.requests[place].frame) for place in (0, -1))
    for prompt in (first, last):
        assert "read its SKILL.md before you follow its workflow" in prompt
        assert f"How to mend it. [{ROOFS}/SKILL.md]" in prompt
        assert "# Roofs" not in prompt  # which the command has shown
    assert "Skills in use" not in first
    assert f"roofs (session_active): {ROOFS}/SKILL.md" in last


@pytest.mark.requirement("skills:prompt-injection-is-reserved", "skills:no-activation-control")
def test_nothing_but_use_activates_a_skill() -> None:
    paths = {route.path for route in ROUTES if "skill" in route.path}
    assert paths == {
        "/agents/{agent_id}/skills",
        "/control/agents/{agent_id}/skills/install",
        "/control/agents/{agent_id}/skills/uninstall",
    }
    assert not [tool.spec.name for tool in local_tools() if "skill" in tool.spec.name.lower()]
    reason = LoadReason("prompt_injection")
    entry = SkillEntry(name="s", description="d", scope=SkillScope.USER, path="/s/SKILL.md")
    use = SkillUse(entry=entry, load_reason=reason, path="/s/SKILL.md")
    turn = TurnOfUse(agent_id=AgentId(MAIN), turn_id=TurnId("turn_1"), turn_index=1)
    change = activation_of(use, (), turn, now=START)
    assert change is not None
    _, writer = a_writer()
    (agent, refused) = writer.apply_group(
        [audited(a_commit("a", an_agent())), audited(a_commit("b", change))]
    ).results
    assert agent == Applied()
    assert refused == ConstraintRefused(constraint="skill_activations_reason_is_known")


@pytest.mark.requirement("skills:batch-activates")
def test_a_batch_activates_by_its_items() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(60_000)
        assert [name for name, *_ in await activated(house)] == ["tiles"]

    items = [{"cmd": f"{READ}; false"}, {"cmd": READ_TILES}]
    batch = ScriptedRound(calls=(ScriptedCall(name="ExecCommandBatch", input={"items": items}),))
    run_house(story, script=[rule("begin", batch, says("done"))], setup=skilled())


@pytest.mark.requirement("skills:dropped-otherwise")
def test_a_turn_that_fails_drops_what_it_made_active_and_keeps_what_was() -> None:
    async def story(house: House) -> None:
        await house.prompt("first")
        await house.rest(60_000)
        assert states(await active(house)) == [("roofs", SESSION, IMPLICIT)]
        await house.prompt("second")
        await house.rest(3_000)
        assert states(await active(house)) == [
            ("roofs", TURN, IMPLICIT),
            ("tiles", TURN, IMPLICIT),
        ]
        await house.host.control.abort_run(AgentId(MAIN))
        await house.rest(60_000)
        assert states(await active(house)) == [("roofs", SESSION, IMPLICIT)]
        told = [(name, again) for name, _, _, again in await activated(house)]
        assert told == [("roofs", False), ("roofs", True), ("tiles", False)]

    script = [
        rule("first", *runs(READ), says("done")),
        rule("second", *runs(READ, READ_TILES), says("never", after_ms=600_000)),
    ]
    run_house(story, script=script, setup=skilled())


@pytest.mark.requirement("skills:restored")
def test_a_new_process_restores_what_was_kept() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(60_000)
        told = await activated(house)
        await house.restart()
        assert states(await active(house)) == [("roofs", SESSION, RESTORED)]
        assert await activated(house) == told
        await house.prompt("begin")
        await house.rest(60_000)
        assert states(await active(house)) == [("roofs", SESSION, IMPLICIT)]

    house = run_house(story, script=[rule("begin", *runs(READ), says("done"))], setup=skilled())
    assert "Skills in use" in repr(house.model.requests[-1].frame)


@pytest.mark.requirement("skills:once-per-turn")
def test_a_turn_that_is_taken_up_again_tells_of_a_skill_once() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(500)
        assert states(await active(house)) == [("roofs", TURN, IMPLICIT)]
        await house.restart()
        await house.rest(60_000)
        assert [reason for _, reason, *_ in await activated(house)] == ["read_skill_md"]
        assert states(await active(house)) == [("roofs", SESSION, IMPLICIT)]

    rounds: list[ScriptedRound] = [*runs(READ), calls("ExecCommand", cmd=READ, after_ms=1_000)]
    script: list[ScriptedRule] = [rule("begin", *rounds, says("done"))]
    run_house(story, script=script, setup=skilled())
