"""Where a repository keeps a skill.

Owns:  finding the directory of a named skill in a repository's archive.
Rule 1: a skill goes by the name of its directory; where no directory has it, by the name its front
        matter gives it; and one that is the whole repository also by that of the repository.
Rule 2: a usual place wins over any other. Two skills that fit equally are an error that names them.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from holon.adapters.files.new_tree import BadTreeError
from holon.adapters.files.safe_archive import file_heads, list_archive
from holon.adapters.files.skill_front_matter import BadFrontMatterError, read_front_matter
from holon.model.limits import SKILL_HEAD_BYTES_MAX
from holon.model.skill import SKILL_FILES
from holon.model.skill_ref import GithubSkillRef

_USUAL: Final = ("skills/", "", ".agents/skills/", ".codex/skills/", ".claude/skills/")
_SHOWN_COUNT_MAX: Final = 8


def skill_folder(archive: Path, ref: GithubSkillRef) -> str:
    """Return the directory of a skill below the top, or raise BadTreeError."""
    files = {each for each in list_archive(archive).files if _name(each) in SKILL_FILES}
    folders = {_folder(each) for each in files}
    for root in _USUAL:
        if f"{root}{ref.skill}" in folders:
            return f"{root}{ref.skill}"
    by_folder = {each for each in folders if _name(each) == ref.skill}
    found = by_folder or _called(archive, files, ref.skill)
    if not found and "" in folders and ref.skill.lower() == ref.repo.lower():
        return ""
    if len(found) == 1:
        return found.pop()
    if found:
        raise BadTreeError(
            f"{ref.owner}/{ref.repo} has several skills named {ref.skill}: {_shown(found)}"
        )
    others = {_name(each) or ref.repo for each in folders}
    known = f"it has {_shown(others)}" if others else "it has none at all"
    raise BadTreeError(f"{ref.owner}/{ref.repo} has no skill named {ref.skill}; {known}")


def _called(archive: Path, files: set[str], name: str) -> set[str]:
    """Return the directories whose front matter gives this name."""
    found = set()
    for path, head in file_heads(archive, files, bytes_max=SKILL_HEAD_BYTES_MAX + 1):
        try:
            if read_front_matter(head).name == name:
                found.add(_folder(path))
        except BadFrontMatterError:
            continue  # nobody asked for this one
    return found


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _shown(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _SHOWN_COUNT_MAX
    told = ", ".join(ordered[:_SHOWN_COUNT_MAX])
    return f"{told} and {more} more" if more > 0 else told
