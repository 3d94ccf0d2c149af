"""Whose a skill is.

Owns:  what is said of a skill that somebody wants uninstalled and that nobody installed.
Rule 1: only what lies in an agent's own folder of skills is taken away. Of any other skill the
        agent may discover it is said whose it is and where, so that a person can decide.
"""

from typing import Final

from holon.model.refusal import Refusal, RefusalCode
from holon.model.skill import SkillCatalog, SkillScope

_NAME_CHARS_MAX: Final = 120
_WHOSE: Final = {
    SkillScope.USER: "one of the user's",
    SkillScope.AGENT: "one of the agent's that was put there by hand",
    SkillScope.WORKSPACE: "one of the workspace's",
}


def refuse_not_installed(name: str, catalog: SkillCatalog, *, root: str) -> Refusal | None:
    """Say whose a skill is that cannot be taken out of `root`; nothing if it is nobody else's."""
    for entry in catalog.entries:
        folder = entry.path.rpartition("/")[0]
        above, _, folder_name = folder.rpartition("/")
        if above != root and name in (entry.name, folder_name):
            return Refusal(
                code=RefusalCode.SKILL_NOT_FOUND,
                message=(
                    f"the skill {name[:_NAME_CHARS_MAX]!r} is not installed for this agent:"
                    f" it is {_WHOSE[entry.scope]}, at {entry.path}"
                ),
                hint=f"if nobody needs it any more, remove {folder}",
                field="name",
            )
    return None
