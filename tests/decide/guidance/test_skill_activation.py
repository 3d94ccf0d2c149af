"""Which commands use a skill, and what that makes active."""

import msgspec
import pytest

from holon.decide.guidance.command_words import Surroundings, named_paths
from holon.decide.guidance.skills import SkillUse, TurnOfUse, activation_of, commands_of, uses_of
from holon.model import limits
from holon.model.guidance import (
    ActivationSource,
    ActivationState,
    LoadReason,
    SkillCatalog,
    SkillEntry,
    SkillScope,
)
from holon.model.values import AgentId, JsonValue, TurnId
from tests.support.builders import START

READ, RUN = LoadReason.READ_SKILL_MD, LoadReason.RUN_SKILL_SCRIPT
ROOFS = "/home/ann/.agents/skills/roofs"
TILES = "/w/.claude/skills/my tiles"
CATALOG = SkillCatalog(
    entries=tuple(
        SkillEntry(name=name, description="…", scope=SkillScope.USER, path=f"{folder}/SKILL.md")
        for name, folder in (("roofs", ROOFS), ("tiles", TILES))
    ),
    user_home="/home/ann",
)
AROUND = Surroundings(cwd="/w", variables={"HOME": "/home/ann", "HOLON_AGENT_HOME": "/h/main"})
TURN = TurnOfUse(agent_id=AgentId("main"), turn_id=TurnId("turn_7"), turn_index=7)


def completed(cmd: str, workdir: str | None = None) -> tuple[SkillUse, ...]:
    asked: dict[str, JsonValue] = {"cmd": cmd, "workdir": workdir}
    result: JsonValue = {"disposition": "completed", "exit_status": 0}
    return uses_of(commands_of("ExecCommand", asked, result), CATALOG, AROUND)


def told(uses: tuple[SkillUse, ...]) -> list[tuple[str, LoadReason, str]]:
    return [(use.entry.name, use.load_reason, use.path) for use in uses]


@pytest.mark.requirement("skills:reading-activates", "skills:path-is-the-trigger")
@pytest.mark.parametrize(
    "cmd",
    [
        f"cat {ROOFS}/SKILL.md",
        f"cat '{ROOFS}/SKILL.md'",
        f'sed -n 1,80p "{ROOFS}/SKILL.md" | head',
        "cat ~/.agents/skills/roofs/SKILL.md",
        'cat "$HOME/.agents/skills/roofs/SKILL.md"',
        "cat ${HOME}/.agents/skills/roofs/./SKILL.md",
        f"cd {ROOFS} && cat SKILL.md",
        f"cd {ROOFS}; cat ./SKILL.md",
        f"cd {ROOFS}/scripts && cat ../SKILL.md",
        "cd && cat .agents/skills/roofs/SKILL.md",
        "cat ../home/ann/.agents/skills/roofs/SKILL.md",
        f"(cd {ROOFS} && cat SKILL.md)",
        f"bash -lc 'cat {ROOFS}/SKILL.md'",
        f'bash -c "cd {ROOFS} && cat SKILL.md"',
        f"python3 -c \"print(open('{ROOFS}/SKILL.md').read())\"",
        f"head -50 < {ROOFS}/SKILL.md",
        f"awk 1 --file={ROOFS}/SKILL.md",
        f"ls # nothing\ncat {ROOFS}/SKILL.md",
        f"echo $(cat {ROOFS}/SKILL.md)",
        f"cat \\\n {ROOFS}/SKILL.md",
        f"cat it\\'s {ROOFS}/SKILL.md",
    ],
)
def test_a_command_that_names_a_discovered_skill_file_reads_it(cmd: str) -> None:
    assert told(completed(cmd)) == [("roofs", READ, f"{ROOFS}/SKILL.md")]


@pytest.mark.requirement("skills:reading-activates")
@pytest.mark.parametrize(
    ("named", "read", "counts"),
    [
        ("skill.md", "skill.md", True),
        ("Skill.md", "Skill.md", True),
        ("SKILL.md", "skill.md", False),
        ("skill.md", "SKILL.md", False),
    ],
)
def test_a_skill_file_in_another_case_is_read_by_the_name_it_has(
    named: str, read: str, counts: bool
) -> None:
    entry = SkillEntry(
        name="roofs", description="…", scope=SkillScope.USER, path=f"{ROOFS}/{named}"
    )
    asked: dict[str, JsonValue] = {"cmd": f"cat {ROOFS}/{read}"}
    ran = commands_of("ExecCommand", asked, {"disposition": "completed", "exit_status": 0})
    uses = uses_of(ran, SkillCatalog(entries=(entry,)), AROUND)
    assert told(uses) == ([("roofs", READ, f"{ROOFS}/{read}")] if counts else [])


@pytest.mark.requirement("skills:script-activates", "skills:path-is-the-trigger")
@pytest.mark.parametrize(
    ("cmd", "path"),
    [
        (f"{ROOFS}/scripts/mend.sh --all", f"{ROOFS}/scripts/mend.sh"),
        (f"cd {ROOFS} && ./scripts/mend.sh", f"{ROOFS}/scripts/mend.sh"),
        (f"cd {ROOFS}/scripts && ./deep/mend.sh", f"{ROOFS}/scripts/deep/mend.sh"),
        ("python ~/.agents/skills/roofs/scripts/mend.py", f"{ROOFS}/scripts/mend.py"),
        (f"cd {ROOFS}/scripts && python mend.py --all", f"{ROOFS}/scripts/mend.py"),
        (f"env A=1 bash {ROOFS}/scripts/a.sh {ROOFS}/scripts/b.sh", f"{ROOFS}/scripts/a.sh"),
        (f"PATH={ROOFS}/scripts/bin mend", f"{ROOFS}/scripts/bin"),
    ],
)
def test_a_command_that_names_a_script_of_a_discovered_skill_runs_it(cmd: str, path: str) -> None:
    assert told(completed(cmd)) == [("roofs", RUN, path)]


def test_a_skill_in_a_folder_with_a_space_is_found_through_quotes_and_escapes() -> None:
    expected = [("tiles", READ, f"{TILES}/SKILL.md")]
    for cmd in (
        "cat '.claude/skills/my tiles/SKILL.md'",
        'cat ".claude/skills/my tiles/SKILL.md"',
        "cat .claude/skills/my\\ tiles/SKILL.md",
        "cat .claude/skills/'my tiles'/SKILL.md",
    ):
        assert told(completed(cmd)) == expected
    assert told(completed("cat SKILL.md", workdir=".claude/skills/my tiles")) == expected
    assert told(completed("cat SKILL.md", workdir=TILES)) == expected


@pytest.mark.requirement("skills:reading-activates", "skills:script-activates")
@pytest.mark.parametrize(
    ("cmd", "expected"),
    [
        ("cat ~/.agents/skills/*/SKILL.md", ("roofs", READ, f"{ROOFS}/SKILL.md")),
        ("head -5 ~/.agents/skills/r?[n-p]*/SKILL.md", ("roofs", READ, f"{ROOFS}/SKILL.md")),
        ("cd ~/.agents/skills && cat */SKILL.md", ("roofs", READ, f"{ROOFS}/SKILL.md")),
        ("bash -c 'cat ~/.agents/skills/*/SKILL.md'", ("roofs", READ, f"{ROOFS}/SKILL.md")),
        ("cat .claude/skills/my*/SKILL.md", ("tiles", READ, f"{TILES}/SKILL.md")),
        ("sh ~/.agents/skills/*/scripts/mend.sh", ("roofs", RUN, f"{ROOFS}/scripts/mend.sh")),
    ],
)
def test_a_pattern_names_the_skills_it_fits(
    cmd: str, expected: tuple[str, LoadReason, str]
) -> None:
    assert told(completed(cmd)) == [expected]


@pytest.mark.requirement("skills:reading-activates", "skills:path-is-the-trigger")
def test_a_linked_skill_is_also_used_by_its_real_path() -> None:
    (roofs, _) = CATALOG.entries
    linked = msgspec.structs.replace(roofs, real_path="/src/roofs/SKILL.md")
    done: JsonValue = {"disposition": "completed", "exit_status": 0}
    for cmd, expected in (
        ("cat /src/roofs/SKILL.md", ("roofs", READ, "/src/roofs/SKILL.md")),
        ("cat /src/*/SKILL.md", ("roofs", READ, "/src/roofs/SKILL.md")),
        ("/src/roofs/scripts/mend.sh", ("roofs", RUN, "/src/roofs/scripts/mend.sh")),
        (f"cat {ROOFS}/SKILL.md", ("roofs", READ, f"{ROOFS}/SKILL.md")),
        (f"cat {ROOFS}/SKILL.md /src/roofs/SKILL.md", ("roofs", READ, f"{ROOFS}/SKILL.md")),
    ):
        ran = commands_of("ExecCommand", {"cmd": cmd}, done)
        (use,) = uses_of(ran, SkillCatalog(entries=(linked,)), AROUND)
        assert (use.entry.name, use.load_reason, use.path) == expected
        assert use.entry.path == f"{ROOFS}/SKILL.md"


def test_what_one_call_brings_into_use_is_bounded() -> None:
    entries = tuple(
        SkillEntry(name=f"s{n}", description="…", scope=SkillScope.USER, path=f"/s/{n}/SKILL.md")
        for n in range(300)
    )
    ran = commands_of(
        "ExecCommand", {"cmd": "cat /s/*/SKILL.md"}, {"disposition": "completed", "exit_status": 0}
    )
    uses = uses_of(ran, SkillCatalog(entries=entries), AROUND)
    assert len(uses) == limits.SKILL_ACTIVATIONS_READ_COUNT_MAX


def test_one_command_may_read_a_skill_and_run_its_script() -> None:
    uses = completed(f"cat {ROOFS}/SKILL.md && {ROOFS}/scripts/mend.sh; cat {ROOFS}/SKILL.md")
    assert [(name, reason) for name, reason, _ in told(uses)] == [("roofs", READ), ("roofs", RUN)]


@pytest.mark.parametrize(
    "cmd",
    [
        "ls ~/.agents/skills",
        f"ls {ROOFS}",
        f"ls {ROOFS}/scripts",
        f"cat {ROOFS}/README.md",
        f"cat {ROOFS}/SKILL.md.bak",
        f"cat {ROOFS}x/SKILL.md",
        "cat SKILL.md",
        "cat /elsewhere/skills/roofs/SKILL.md",
        "cat ~bob/.agents/skills/roofs/SKILL.md",
        "cat $WHO_KNOWS/.agents/skills/roofs/SKILL.md",
        "cd $WHO_KNOWS && cat .agents/skills/roofs/SKILL.md",
        "find ~/.agents/skills -path '*/SKILL.md'",
        "cat ~/.agents/*/SKILL.md",
        "cat ~/*/skills/roofs/SKILL.md",
        "cat ~/.agents/skills/t*/SKILL.md",
        "ls ~/.agents/skills/*/*",
        "ls ~/.agents/skills/*/scripts",
        f"(cd {ROOFS}); cat SKILL.md",
        f"true # cat {ROOFS}/SKILL.md",
        f"cd {ROOFS}/scripts && ls -la && echo done",
        "scripts/build.sh",
        "",
    ],
)
def test_other_commands_use_no_skill(cmd: str) -> None:
    assert completed(cmd) == ()


@pytest.mark.requirement("skills:failed-activates-nothing")
@pytest.mark.parametrize(
    "result",
    [
        {"disposition": "completed", "exit_status": 1},
        {"disposition": "completed", "exit_status": None, "signal": 9},
        {"disposition": "promoted_to_task"},
        {"disposition": "already_running"},
        {},
        None,
    ],
)
def test_a_command_that_did_not_end_well_uses_no_skill(result: JsonValue) -> None:
    assert commands_of("ExecCommand", {"cmd": f"cat {ROOFS}/SKILL.md"}, result) == ()


@pytest.mark.requirement("skills:batch-activates", "skills:failed-activates-nothing")
def test_of_a_batch_the_items_that_ended_well_count() -> None:
    read, run = "cat SKILL.md", f"{ROOFS}/scripts/mend.sh"
    asked: JsonValue = {"items": [{"cmd": run}, {"cmd": read, "workdir": ROOFS}, {"cmd": run}]}
    result: JsonValue = {
        "items": [
            {"index": 0, "cmd": run, "status": "failed"},
            {"index": 1, "cmd": read, "status": "completed"},
            {"index": 2, "cmd": run, "status": "skipped"},
        ]
    }
    uses = uses_of(commands_of("ExecCommandBatch", asked, result), CATALOG, AROUND)
    assert told(uses) == [("roofs", READ, f"{ROOFS}/SKILL.md")]


@pytest.mark.parametrize(
    ("name", "asked", "result"),
    [
        ("ApplyPatch", {"cmd": f"cat {ROOFS}/SKILL.md"}, {"disposition": "completed"}),
        ("ExecCommand", "cat SKILL.md", {"disposition": "completed", "exit_status": 0}),
        ("ExecCommand", {"cmd": 7}, {"disposition": "completed", "exit_status": 0}),
        ("ExecCommandBatch", {"items": "x"}, {"items": []}),
        ("ExecCommandBatch", {"items": ["x"]}, {"items": ["y"]}),
    ],
)
def test_calls_of_other_shapes_use_nothing(name: str, asked: JsonValue, result: JsonValue) -> None:
    assert commands_of(name, asked, result) == ()


def test_words_a_model_gets_nearly_right_are_read_as_the_tool_reads_them() -> None:
    done: JsonValue = {"disposition": "completed", "exit_status": 0}
    (ran,) = commands_of("ExecCommand", {"command": "cat SKILL.md", "cwd": ROOFS}, done)
    assert told(uses_of((ran,), CATALOG, AROUND)) == [("roofs", READ, f"{ROOFS}/SKILL.md")]


@pytest.mark.parametrize(
    "cmd",
    ["'", '"', "cat 'SKILL.md", "`", "$(", ")))", "\\", "a\0b SKILL.md", "((" * 400 + "SKILL.md"],
)
def test_any_text_can_be_looked_through(cmd: str) -> None:
    assert all(named.path.startswith("/") for named in named_paths(cmd, AROUND))


@pytest.mark.requirement("skills:once-per-turn")
def test_a_turn_activates_a_skill_once_for_each_reason() -> None:
    (read,) = completed(f"cat {ROOFS}/SKILL.md")
    (run,) = completed(f"{ROOFS}/scripts/mend.sh")
    first = activation_of(read, (), TURN, now=START)
    assert first is not None
    activation = first.activation
    assert (activation.skill_name, activation.turn_index) == ("roofs", 7)
    assert activation.state is ActivationState.TURN_ACTIVE
    assert activation.source is ActivationSource.IMPLICIT_FROM_CATALOG
    assert not activation.is_lasting
    assert activation_of(read, (activation,), TURN, now=START) is None
    assert activation_of(run, (activation,), TURN, now=START) is not None


@pytest.mark.requirement("skills:once-per-turn")
def test_a_later_turn_activates_it_again_and_it_lasts() -> None:
    (read,) = completed(f"cat {ROOFS}/SKILL.md")
    first = activation_of(read, (), TURN, now=START)
    assert first is not None
    later = msgspec.structs.replace(TURN, turn_id=TurnId("turn_8"), turn_index=8)
    again = activation_of(read, (first.activation,), later, now=START)
    assert again is not None
    assert again.activation.is_lasting
    assert again.activation.entrypoint_path == f"{ROOFS}/SKILL.md"
