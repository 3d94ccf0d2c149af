"""The skills a template names, looked at before anybody is made from it.

Owns:  finding out which of them cannot be had, as far as this machine knows.
Rule 1: what is wrong is said by the installer itself, so a template is refused in the words in
        which an agent made from it would be.
Rule 2: nobody is asked: a skill on GitHub is judged by its name alone.
"""

from collections.abc import Sequence
from pathlib import Path

from holon.adapters.files.builtin_templates import builtin_skill
from holon.adapters.files.skill_install import name_of
from holon.model.record import Record
from holon.model.skill_ref import BadSkillRefError, BuiltinSkillRef, GithubSkillRef, SkillRef
from holon.ports.skill_installer import SkillInstaller


class UnusableSkill(Record, frozen=True, kw_only=True):
    """A skill that no agent can be given, and why."""

    ref: SkillRef
    problem: str
    hint: str | None = None


async def unusable_skills(
    refs: Sequence[SkillRef], installer: SkillInstaller
) -> tuple[UnusableSkill, ...]:
    """Return those of a template's skills that cannot be had, in its order."""
    import tempfile  # only for those who look at templates

    found: list[UnusableSkill] = []
    names: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="holon-template-") as folder:
        for ref in refs:
            try:
                await _try(ref, names, installer, Path(folder))
            except BadSkillRefError as error:
                found.append(UnusableSkill(ref=ref, problem=error.message, hint=error.hint))
    return tuple(found)


async def _try(ref: SkillRef, names: set[str], installer: SkillInstaller, folder: Path) -> None:
    name = name_of(ref)
    if name in names:
        raise BadSkillRefError(f"the template names two skills {name}", hint="leave one out")
    names.add(name)
    if isinstance(ref, GithubSkillRef):
        return
    if isinstance(ref, BuiltinSkillRef) and builtin_skill(ref.name) is not None:
        return  # it need not be copied to be known
    await installer.install(ref, str(folder))
