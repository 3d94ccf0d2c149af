"""Which files tell an agent how to behave, and what two looks at them tell."""

import pytest

from holon.decide.guidance.instructions import (
    InstructionCheck,
    InstructionRoots,
    changes_between,
    is_instruction_source,
)
from holon.model.queue import AuthorityClass
from holon.model.values import TurnId

HOME, ANCHOR = "/h/agents/main", "/w"
NOTICED = InstructionCheck(
    turn_id=TurnId("turn_1"),
    effect_id="turn_1/1/0",
    authority_class=AuthorityClass.EXTERNAL_EVIDENCE,
    tainted=True,
)


@pytest.mark.parametrize(
    ("root", "path", "is_source"),
    [
        (HOME, "AGENTS.md", True),
        (HOME, "./AGENTS.md", True),
        (HOME, "notes/../AGENTS.md", True),
        (HOME, "agents.MD", True),
        (HOME, "memory/self.md", True),
        (HOME, "memory//operator.md", True),
        (HOME, "skills/roofs/SKILL.md", True),
        (HOME, "skills/roofs/scripts/mend.sh", True),
        (HOME, ".claude/skills/a/SKILL.md", True),
        (HOME, "notes/AGENTS.md", False),
        (HOME, "notes/today.md", False),
        (HOME, "skills.md", False),
        ("/h", "agents/main/AGENTS.md", True),
        ("/h", "agents/other/AGENTS.md", False),
        (ANCHOR, "AGENTS.md", True),
        (ANCHOR, "CLAUDE.md", True),
        (ANCHOR, ".agents/skills/a/SKILL.md", True),
        (ANCHOR, ".agents/AGENTS.md", True),
        (ANCHOR, ".agents/templates/reviewer/AGENTS.md", True),
        (ANCHOR, ".agents/templates/reviewer/skills.json", True),
        (ANCHOR, "skills/a/SKILL.md", False),
        (ANCHOR, "memory/self.md", False),
        (ANCHOR, "src/AGENTS.md", False),
    ],
)
def test_a_path_is_a_source_wherever_it_is_named_from(
    root: str, path: str, is_source: bool
) -> None:
    places = InstructionRoots(execution_root=root, agent_home=HOME, workspace_anchor=ANCHOR)
    assert is_instruction_source(path, places) is is_source


def test_without_a_workspace_only_the_home_instructs() -> None:
    places = InstructionRoots(execution_root="/w", agent_home=HOME)
    assert not is_instruction_source("AGENTS.md", places)


def test_two_looks_tell_what_came_went_and_changed() -> None:
    before = {"AGENTS.md": "1", "memory/self.md": "2", "skills/a/SKILL.md": "3"}
    after = {"AGENTS.md": "1", "memory/self.md": "4", "skills/b/SKILL.md": "5"}
    told = changes_between(before, after, NOTICED)
    assert [(each.path, each.old_sha256, each.new_sha256) for each in told] == [
        ("memory/self.md", "2", "4"),
        ("skills/a/SKILL.md", "3", None),
        ("skills/b/SKILL.md", None, "5"),
    ]
    assert all(each.tainted and each.effect_id == "turn_1/1/0" for each in told)
    assert changes_between(before, before, NOTICED) == ()
