"""The short of an agent's skills is bounded, and says so."""

import msgspec
import pytest

from holon.model.guidance import ActivationState, SkillCatalog, SkillEntry, SkillScope
from holon.model.limits import AGENT_ROWS_SHOWN_COUNT_MAX, SUMMARY_CHARS_MAX
from holon.projections.guidance import SkillsSummary, skills_summary
from tests.support.builders import a_skill_activation, a_turn

MANY = AGENT_ROWS_SHOWN_COUNT_MAX + 5


def entry(number: int, description: str = "Mends.") -> SkillEntry:
    path = f"/skills/s{number}/SKILL.md"
    return SkillEntry(name=f"s{number}", description=description, scope=SkillScope.AGENT, path=path)


@pytest.mark.requirement("skills:in-the-summary")
def test_the_first_skills_are_shown_and_all_are_counted() -> None:
    catalog = SkillCatalog(entries=tuple(entry(n, "word\n" * 500) for n in range(MANY)))
    active = [a_skill_activation(a_turn(), folder=f"/skills/s{n}") for n in range(MANY)]
    short = skills_summary(catalog, active)
    assert (short.discoverable_count, short.active_count) == (MANY, MANY)
    shown = short.discoverable_skills
    assert [each.name for each in shown] == [f"s{n}" for n in range(AGENT_ROWS_SHOWN_COUNT_MAX)]
    assert {each.state for each in shown} == {ActivationState.TURN_ACTIVE}
    assert all(len(each.description) <= SUMMARY_CHARS_MAX for each in shown)
    assert len(short.active_skills) == AGENT_ROWS_SHOWN_COUNT_MAX


def test_an_agent_without_skills_says_so() -> None:
    assert msgspec.to_builtins(skills_summary(SkillCatalog(), ())) == {
        "discoverable_count": 0,
        "active_count": 0,
        "discoverable_skills": (),
        "active_skills": (),
    }
    assert skills_summary(SkillCatalog(), ()) == SkillsSummary()
