"""Finding skills: where, in which order, and what stands in the way."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from holon.adapters.files import openat, skill_scan
from holon.adapters.files.skill_scan import SkillScan
from holon.model import limits
from holon.model.guidance import SkillCatalog, SkillScope

USER, AGENT, WORKSPACE = SkillScope.USER, SkillScope.AGENT, SkillScope.WORKSPACE


class Machine:
    """A user's home, an agent's home and a workspace."""

    def __init__(self, root: Path) -> None:
        self.user, self.agent, self.work = (root / name for name in ("ann", "home", "work"))
        for place in (self.user, self.agent, self.work):
            place.mkdir()
        self.scan = SkillScan(self.user)

    async def catalog(self, *, with_user_scope: bool = True) -> SkillCatalog:
        return await self.scan.catalog(
            agent_home=str(self.agent),
            workspace_anchor=str(self.work),
            with_user_scope=with_user_scope,
        )

    async def names(self, *, with_user_scope: bool = True) -> list[tuple[SkillScope, str]]:
        found = await self.catalog(with_user_scope=with_user_scope)
        return [(entry.scope, entry.name) for entry in found.entries]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def put(root: Path, name: str, head: str | bytes | None = None) -> Path:
    """Make a skill; without a head it is a good one."""
    folder = root / name
    folder.mkdir(parents=True)
    text = head if head is not None else f"name: {name}\ndescription: How to {name}.\n"
    content = text if isinstance(text, bytes) else f"---\n{text}---\n# Body\n".encode()
    (folder / "SKILL.md").write_bytes(content)
    return folder / "SKILL.md"


@pytest.mark.requirement("skills:passed-over-roots-are-shown")
async def test_a_root_behind_the_first_is_named_with_the_skills_it_hides(machine: Machine) -> None:
    put(machine.user / ".agents/skills", "mend")
    for name in ("mend", "saw", "turn"):
        put(machine.user / ".claude/skills", name)
    put(machine.agent / "skills", "own")
    (machine.agent / ".claude").mkdir()
    (machine.agent / ".claude/skills").symlink_to(machine.agent / "skills")
    put(machine.work / ".codex/skills", "plane")
    where = {"agent_home": str(machine.agent), "workspace_anchor": str(machine.work)}
    [found] = await machine.scan.passed_over(**where, with_user_scope=True)
    assert (found.scope, found.path) == (USER, str(machine.user / ".claude/skills"))
    assert found.used_path == str(machine.user / ".agents/skills")
    assert (found.hidden_skills, found.hidden_count) == (("saw", "turn"), 2)
    assert await machine.scan.passed_over(**where, with_user_scope=False) == ()
    assert (USER, "saw") not in await machine.names()


ORDERS = [
    (USER, "user", [".agents/skills", ".codex/skills", ".claude/skills"]),
    (AGENT, "agent", ["skills", ".agents/skills", ".codex/skills", ".claude/skills"]),
    (WORKSPACE, "work", [".agents/skills", ".codex/skills", ".claude/skills"]),
]


@pytest.mark.requirement("skills:scopes-and-roots", "skills:first-root-only")
@pytest.mark.parametrize(("scope", "place", "roots"), ORDERS, ids=[row[1] for row in ORDERS])
async def test_of_each_scope_the_first_root_that_exists_counts_alone(
    machine: Machine, scope: SkillScope, place: str, roots: list[str]
) -> None:
    for root in reversed(roots):  # the last first: each one before it hides it
        name = root.strip(".").replace("/", "-")
        path = put(getattr(machine, place) / root, name)
        found = await machine.catalog()
        assert [(e.scope, e.name, e.path) for e in found.entries] == [(scope, name, str(path))]


@pytest.mark.requirement("skills:first-root-only")
async def test_an_empty_first_root_still_hides_the_others(machine: Machine) -> None:
    put(machine.agent / ".claude/skills", "roofs")
    (machine.agent / "skills").mkdir()
    assert await machine.names() == []


@pytest.mark.requirement("skills:visibility")
async def test_only_the_default_agent_sees_the_users_skills(machine: Machine) -> None:
    put(machine.user / ".agents/skills", "own")
    put(machine.agent / "skills", "taught")
    put(machine.work / ".claude/skills", "shared")
    everything = [(USER, "own"), (AGENT, "taught"), (WORKSPACE, "shared")]
    assert await machine.names() == everything
    assert await machine.names(with_user_scope=False) == everything[1:]


async def test_an_agent_at_home_has_no_workspace_scope(machine: Machine) -> None:
    put(machine.agent / ".claude/skills", "taught")
    found = await machine.scan.catalog(
        agent_home=str(machine.agent), workspace_anchor=str(machine.agent), with_user_scope=False
    )
    assert [(e.scope, e.name) for e in found.entries] == [(AGENT, "taught")]


@pytest.mark.requirement("skills:metadata-only")
async def test_a_catalog_holds_no_body(machine: Machine) -> None:
    put(machine.agent / "skills", "roofs")
    assert "Body" not in repr(await machine.catalog())


async def test_a_skill_may_lie_in_a_folder_of_related_ones(machine: Machine) -> None:
    put(machine.agent / "skills/house", "roofs")
    put(machine.agent / "skills/house/.system", "cellar")
    put(machine.agent / "skills/roofs-too/", "sub")
    put(machine.agent / "skills/town/plugins/walls/skills", "bricks")
    put(machine.agent / "skills/town/.git/walls", "history")
    put(machine.agent / "skills/a/b/c/d/e/f", "too-deep")
    put(machine.agent / "skills/.holon-new-0011", "half-made")
    assert [name for _, name in await machine.names()] == ["cellar", "roofs", "sub", "bricks"]


@pytest.mark.parametrize("name", ["SKILL.md", "skill.md", "Skill.md"])
async def test_a_skill_file_may_be_written_in_another_case(machine: Machine, name: str) -> None:
    path = put(machine.agent / "skills", "roofs")
    path.rename(path.with_name(name))
    found = await machine.catalog()
    assert [entry.path for entry in found.entries] == [str(path.with_name(name))]
    assert found.problems == ()


async def test_of_two_skill_files_in_a_folder_the_usual_one_counts(machine: Machine) -> None:
    path = put(machine.agent / "skills", "roofs")
    path.with_name("skill.md").write_text("---\nname: other\ndescription: d\n---\n")
    assert [entry.path for entry in (await machine.catalog()).entries] == [str(path)]


@pytest.mark.requirement("skills:problems-are-told")
@pytest.mark.parametrize(
    ("head", "name", "said"),
    [
        ("name: Tidy Roofs\ndescription: d\n", "Tidy Roofs", "its folder roofs; give both one"),
        ("description: d\n", "roofs", "add a line name:"),
        (f"name: {'r' * 70}\ndescription: d\n", "roofs", "shorten it"),
        (f"name: roofs\ndescription: {'d ' * 900}\n", "roofs", "only the first 1024"),
    ],
)
async def test_what_could_be_better_is_told_and_the_skill_loads(
    machine: Machine, head: str, name: str, said: str
) -> None:
    put(machine.agent / "skills", "roofs", head)
    found = await machine.catalog()
    assert [entry.name for entry in found.entries] == [name]
    assert len(found.problems) == 1
    assert said in found.problems[0]
    assert "not used" not in found.problems[0]


@pytest.mark.requirement("skills:problems-are-told")
async def test_what_is_wrong_with_one_skill_does_not_keep_others_from_loading(
    machine: Machine,
) -> None:
    root = machine.agent / "skills"
    put(root, "a-good")
    put(root, "b-bare", b"# Only a body\n")
    put(root, "c-endless", "x: " + "y" * 1_000_000 + "\n")
    put(root, "d-other", "name: a-good\ndescription: Of the same name.\n")
    put(root, "e-latin", b"---\nname: e-latin\ndescription: caf\xe9\n---\n")
    put(root, "f-renamed", "name: something-else\ndescription: d\n")
    put(root, "g-mute", "name: g-mute\n")
    (root / "h-folder/SKILL.md").mkdir(parents=True)
    os.mkfifo(put(root, "i-pipe").parent / "pipe")
    (root / "i-pipe/SKILL.md").unlink()
    (root / "i-pipe/pipe").rename(root / "i-pipe/SKILL.md")
    (root / "j-loop").symlink_to(root / "k-loop")
    (root / "k-loop").symlink_to(root / "j-loop")
    (root / "l-gone").mkdir()
    (root / "l-gone/SKILL.md").symlink_to("nowhere")
    put(root, "m-open", b"---\nname: m-open\ndescription: d\n")
    put(root, "z-good")
    found = await machine.catalog()
    assert [entry.name for entry in found.entries] == ["a-good", "something-else", "z-good"]
    told = {problem.split(str(root))[1].split("/")[1].split(" ")[0] for problem in found.problems}
    assert {name[0] for name in told} == set("bcdefghijklm")
    assert all(len(problem) < 500 for problem in found.problems)


@pytest.mark.requirement("skills:problems-are-told")
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_an_unreadable_root_is_a_problem(machine: Machine) -> None:
    put(machine.agent / "skills", "roofs")
    (machine.agent / "skills").chmod(0)
    try:
        found = await machine.catalog()
    finally:
        (machine.agent / "skills").chmod(0o700)
    assert found.entries == ()
    assert len(found.problems) == 1


@pytest.mark.requirement("skills:problems-are-told")
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_a_root_nobody_may_look_for_is_a_problem(machine: Machine) -> None:
    put(machine.work / ".agents/skills", "roofs")
    put(machine.work / ".claude/skills", "near")
    (machine.work / ".agents").chmod(0)
    try:
        found = await machine.catalog()
    finally:
        (machine.work / ".agents").chmod(0o700)
    assert found.entries == ()
    assert "Permission denied" in found.problems[0]


@pytest.mark.requirement("skills:problems-are-told")
async def test_a_path_that_cannot_be_shown_is_in_no_catalog(machine: Machine) -> None:
    put(machine.agent / "skills", "ok")
    for name in (b"latin-\xe9", b"two\nlines"):
        put(machine.agent / "skills", os.fsdecode(name), "name: odd\ndescription: d\n")
    found = await machine.catalog()
    assert [entry.name for entry in found.entries] == ["ok"]
    assert len(found.problems) == 2
    assert all(problem.isprintable() for problem in found.problems)


async def test_a_link_out_of_a_workspace_is_not_followed(machine: Machine, tmp_path: Path) -> None:
    outside = put(tmp_path / "elsewhere", "secret")
    root = machine.work / ".agents/skills"
    put(root, "near")
    (root / "far").symlink_to(outside.parent)
    (root / "sly").mkdir()
    (root / "sly/SKILL.md").symlink_to(outside)
    (machine.work / "docs").mkdir()
    put(machine.work / "docs", "linked")
    (root / "linked").symlink_to("../../docs/linked")
    found = await machine.catalog()
    assert [entry.name for entry in found.entries] == ["linked", "near"]
    assert len(found.problems) >= 2


FLAWS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a file": (lambda root, _: root.write_text("x"), "it is not a folder"),
    "a link to itself": (lambda root, _: root.symlink_to(root.name), "in a circle"),
    "a link to nowhere": (lambda root, _: root.symlink_to("gone"), "No such file"),
    "a way out": (lambda root, elsewhere: root.symlink_to(elsewhere), "it leads out of"),
}


@pytest.mark.requirement("skills:first-root-only", "skills:problems-are-told")
@pytest.mark.parametrize(("make", "said"), FLAWS.values(), ids=FLAWS.keys())
async def test_a_first_root_that_cannot_be_used_is_told_and_hides_the_others(
    machine: Machine, tmp_path: Path, make: Callable[[Path, Path], object], said: str
) -> None:
    put(tmp_path / "elsewhere", "secret")
    (machine.work / ".agents").mkdir()
    make(machine.work / ".agents/skills", tmp_path / "elsewhere")
    put(machine.work / ".claude/skills", "near")
    found = await machine.catalog()
    assert found.entries == ()
    assert len(found.problems) == 1
    assert found.problems[0].startswith(f"{machine.work}/.agents/skills is not used: ")
    assert said in found.problems[0]


@pytest.mark.requirement("skills:first-root-only")
async def test_where_no_root_can_be_the_next_is_used(machine: Machine) -> None:
    (machine.work / ".agents").write_text("a file of somebody's")
    put(machine.work / ".claude/skills", "near")
    assert await machine.names() == [(WORKSPACE, "near")]
    assert (await machine.catalog()).problems == ()


@pytest.mark.requirement("skills:problems-are-told")
@pytest.mark.parametrize("up", ["..", "../..", "../../..", "."])
async def test_a_link_to_where_one_came_from_shows_nothing_twice(machine: Machine, up: str) -> None:
    root = machine.agent / "skills"
    zed = put(root, "zed")
    (root / "a-group").mkdir()
    (root / "a-group/up").symlink_to(up)
    found = await machine.catalog()
    assert [entry.path for entry in found.entries] == [str(zed)]
    assert found.problems == (f"{root}/a-group/up is not used: its links lead in a circle",)


async def test_a_folder_goes_by_its_own_name_and_not_by_that_of_a_link(machine: Machine) -> None:
    root = machine.agent / "skills"
    zed = put(root / "group", "zed")
    (root / "a-link").symlink_to("group/zed")
    (root / "b-link").symlink_to("group")
    found = await machine.catalog()
    assert [entry.path for entry in found.entries] == [str(zed)]
    assert found.problems == ()


async def test_a_user_and_an_operator_may_link_skills_from_anywhere(
    machine: Machine, tmp_path: Path
) -> None:
    source = put(tmp_path / "src", "roofs").parent
    for root in (machine.user / ".claude/skills", machine.agent / "skills"):
        root.mkdir(parents=True)
        (root / "roofs").symlink_to(source)
    assert await machine.names() == [(USER, "roofs"), (AGENT, "roofs")]
    real = {entry.real_path for entry in (await machine.catalog()).entries}
    assert real == {str(source / "SKILL.md")}


async def test_what_is_known_and_unchanged_is_not_read_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openat, "TICK_NS", -1)  # what was written just now counts as well
    paths = [put(machine.agent / "skills", f"s{number:03}") for number in range(200)]
    first = await machine.catalog()
    read: list[str] = []
    once = skill_scan._read

    def noted(path: str) -> object:
        read.append(path)
        return once(path)

    monkeypatch.setattr(skill_scan, "_read", noted)
    assert await machine.catalog() == first
    assert read == []
    paths[7].write_text("---\nname: s007\ndescription: Another one.\n---\n")
    changed = await machine.catalog()
    assert read == [str(paths[7])]
    assert changed.entries[7].description == "Another one."
    paths[7].unlink()
    assert len((await machine.catalog()).entries) == 199


async def test_only_a_look_that_was_short_before_is_taken_on_the_callers_thread(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_on: list[threading.Thread] = []
    plain = SkillScan._scan

    def noted(self: SkillScan, roots: list[skill_scan._Root]) -> SkillCatalog:
        looked_on.append(threading.current_thread())
        return plain(self, roots)

    monkeypatch.setattr(SkillScan, "_scan", noted)
    put(machine.agent / "skills", "one")
    for _ in range(2):
        await machine.catalog()
    for number in range(30):
        (machine.agent / "skills" / f"note{number}").touch()
    for _ in range(2):
        await machine.catalog()
    here = threading.current_thread()
    assert [each is here for each in looked_on] == [False, True, True, False]


async def test_skills_and_problems_are_bounded(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SKILLS_PER_ROOT_COUNT_MAX", 5)
    monkeypatch.setattr(limits, "SKILL_PROBLEMS_COUNT_MAX", 2)
    for number in range(8):
        put(machine.agent / "skills", f"good{number}")
        put(machine.work / ".agents/skills", f"bad{number}", b"nothing")
    found = await machine.catalog()
    assert len(found.entries) == 5
    assert len(found.problems) == 3
    assert "and 5 more problems" in found.problems[-1]
    assert found.problems_count == 7


@pytest.mark.requirement("skills:problems-are-told")
async def test_a_name_in_two_scopes_is_told_and_both_are_used(machine: Machine) -> None:
    own = put(machine.agent / "skills", "roofs")
    shared = put(machine.work / ".agents/skills", "roofs")
    found = await machine.catalog()
    assert [entry.path for entry in found.entries] == [str(own), str(shared)]
    (told,) = found.problems
    assert told.startswith(f"{shared}: a skill of the agent scope has the same name, roofs: {own}")


async def test_a_machine_without_a_user_has_no_user_scope(machine: Machine) -> None:
    put(machine.user / ".agents/skills", "own")
    found = await SkillScan(None).catalog(
        agent_home=str(machine.agent), workspace_anchor=None, with_user_scope=True
    )
    assert found == SkillCatalog()
