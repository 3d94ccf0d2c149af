"""Of a skill that cannot be uninstalled it is said whose it is."""

import pytest

from holon.decide.guidance.skills import refuse_not_installed
from holon.model.guidance import SkillCatalog, SkillEntry, SkillScope

ROOT = "/h/agents/main/skills"
CATALOG = SkillCatalog(
    entries=tuple(
        SkillEntry(name=name, description="d", scope=scope, path=f"{folder}/SKILL.md")
        for name, scope, folder in (
            ("own", SkillScope.USER, "/home/ann/.agents/skills/theirs"),
            ("mend", SkillScope.AGENT, f"{ROOT}/group/mend"),
            ("here", SkillScope.AGENT, f"{ROOT}/here"),
            ("shared", SkillScope.WORKSPACE, "/w/.claude/skills/shared"),
        )
    )
)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own", "one of the user's, at /home/ann/.agents/skills/theirs/SKILL.md"),
        ("theirs", "one of the user's, at /home/ann"),
        ("mend", f"by hand, at {ROOT}/group/mend/SKILL.md"),
        ("shared", "one of the workspace's, at /w/.claude/skills/shared/SKILL.md"),
    ],
)
def test_a_skill_of_somebody_else_is_told_with_its_place(name: str, said: str) -> None:
    refusal = refuse_not_installed(name, CATALOG, root=ROOT)
    assert refusal is not None
    assert said in refusal.message


@pytest.mark.parametrize("name", ["here", "nothing", ""])
def test_nothing_is_said_of_what_is_in_the_folder_or_nowhere(name: str) -> None:
    assert refuse_not_installed(name, CATALOG, root=ROOT) is None
