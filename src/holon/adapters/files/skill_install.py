"""Putting a skill where an agent finds it.

Owns:  the three sources of a skill, and the directory or link each leaves behind.
Rule 1: a skill appears whole or not at all, and never in place of another.
Rule 2: its directory is named as the reference names it; what its front matter says is no path.
Rule 3: a skill of Holon's own and one from GitHub are copied; one on this machine is linked, so
        that its author goes on working on it where it is, unless a copy is asked for. A copy holds
        a record of where it came from (skill_record).
Rule 4: what no agent could use is not installed: its SKILL.md must say what skill it is.
"""

import hashlib
import os
from pathlib import Path
from typing import assert_never

import anyio.to_thread

from holon.adapters.files.builtin_templates import builtin_skill, builtin_skill_names
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.new_tree import BadTreeError, copy_tree
from holon.adapters.files.skill_record import write_record
from holon.adapters.files.skill_scan import PASSED_OVER
from holon.adapters.files.whole_folder import place, scratch_in
from holon.adapters.system.private_file import FileUnusableError, read_bounded
from holon.decide.template_selector import is_simple_name
from holon.model.limits import TREE_FILE_BYTES_MAX
from holon.model.skill import SKILL_FILES
from holon.model.skill_ref import (
    BadSkillRefError,
    BuiltinSkillRef,
    GithubSkillRef,
    InstalledSkill,
    LocalSkillRef,
    SkillRef,
)


class FolderSkillInstaller:
    """Installs skills into directories of this machine."""

    def __init__(self, github: GithubTrees) -> None:
        self._github = github

    async def install(self, ref: SkillRef, into: str) -> InstalledSkill:
        """Put one skill into a directory of skills, or raise BadSkillRefError."""
        name, root = name_of(ref), Path(into)
        try:
            with scratch_in(root) as scratch:
                sha256 = await self._fill(ref, name, scratch)
                await anyio.to_thread.run_sync(place, scratch / name, root / name)
        except FileExistsError:
            raise BadSkillRefError(f"there is already a skill {name} in {into}") from None
        except (BadTreeError, OSError) as error:
            raise BadSkillRefError(
                f"the skill {ref.source} cannot be installed: {error}"
            ) from error
        return InstalledSkill(
            name=name, path=str(root / name), kind=ref.kind, source=ref.source, sha256=sha256
        )

    async def _fill(self, ref: SkillRef, name: str, scratch: Path) -> str:
        """Make the skill in a scratch directory; return the hash of its entry point."""
        made = scratch / name
        if isinstance(ref, LocalSkillRef):
            _require_folder(Path(ref.path))
        match ref:
            case LocalSkillRef(path=path, copies=True):
                made.mkdir(mode=0o700)
                await anyio.to_thread.run_sync(_copied, Path(path), made)
            case LocalSkillRef(path=path):
                sha256 = _checked_hash(Path(path), ref)
                made.symlink_to(path)
                return sha256
            case BuiltinSkillRef():
                made.mkdir(mode=0o700)
                await anyio.to_thread.run_sync(copy_tree, _builtin(ref), made)
            case GithubSkillRef():
                made.mkdir(mode=0o700)
                await self._github.fetch_skill(ref, made, scratch=scratch)
            case _:
                assert_never(ref)
        sha256 = _checked_hash(made, ref)
        await anyio.to_thread.run_sync(write_record, made, ref)
        return sha256


def name_of(ref: SkillRef) -> str:
    """Return the name of the directory a skill gets, or raise BadSkillRefError."""
    match ref:
        case BuiltinSkillRef():
            name = ref.name
        case LocalSkillRef():
            name = Path(ref.path).name
        case GithubSkillRef():
            name = ref.skill
        case _:
            assert_never(ref)
    if not is_simple_name(name):
        raise BadSkillRefError(
            f"{name!r} cannot be the name of a skill",
            hint="name its directory with letters, digits, '-', '_' and '.'",
        )
    return name


def _require_folder(path: Path) -> None:
    if path.is_dir():
        return
    if os.path.lexists(path) and not path.is_symlink():
        raise BadSkillRefError(
            f"{path} is a file, and a skill is a directory",
            hint=f"name its directory: {path.parent}",
        )
    raise BadSkillRefError(
        f"there is no such directory: {path}", hint="a skill is a directory with a SKILL.md"
    )


def _copied(source: Path, made: Path) -> None:
    """Copy a skill as somebody works on it: its history and what it was built with stay there."""
    copy_tree(source, made, passed_over=PASSED_OVER)


def _builtin(ref: BuiltinSkillRef) -> Path:
    found = builtin_skill(ref.name)
    if found is None:
        known = ", ".join(builtin_skill_names())
        raise BadSkillRefError(f"Holon has no skill {ref.name}", hint=f"it has {known}")
    return found


def _checked_hash(folder: Path, ref: SkillRef) -> str:
    """Return the hash of a skill's entry point, or raise where it has none that can be used."""
    for name in SKILL_FILES:
        try:
            found = read_bounded(folder / name, bytes_max=TREE_FILE_BYTES_MAX)
        except FileUnusableError as error:
            raise BadSkillRefError(
                f"the skill {ref.source} is unusable: {error.message}"
            ) from error
        if found is not None:
            _require_front_matter(found.content, name, ref)
            return hashlib.sha256(found.content).hexdigest()
    raise BadSkillRefError(
        f"the skill {ref.source} has no SKILL.md", hint="a skill is a directory with a SKILL.md"
    )


def _require_front_matter(content: bytes, name: str, ref: SkillRef) -> None:
    # Only for those who install: it brings YAML with it.
    from holon.adapters.files.skill_front_matter import BadFrontMatterError, read_front_matter

    try:
        read_front_matter(content)
    except BadFrontMatterError as error:
        raise BadSkillRefError(
            f"the skill {ref.source} cannot be installed: {name} is not usable: {error.message}"
        ) from error
