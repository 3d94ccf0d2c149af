"""A directory of installed skills, as an operator changes it.

Owns:  replacing and removing skills, and telling what was changed since it was installed.
Rule 1: a skill is replaced or removed in one step: whoever looks sees the old one, the new one, or,
        after a removal, none.
Rule 2: what somebody changed, or put there by hand, is neither replaced nor removed unless asked
        for in so many words. A skill that is as it was installed may be installed again from where
        it came from: that is how it is brought up to date.
Rule 3: of a skill that is a link only the link is touched.
Rule 4: a skill goes by the name of its folder; where no folder has it, by the name its front matter
        gives it, if only one does.
"""

import ctypes
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from holon.adapters.files.skill_install import FolderSkillInstaller, name_of
from holon.adapters.files.skill_record import read_record, tree_hash
from holon.adapters.files.whole_folder import SCRATCH_PREFIX, scratch_in
from holon.adapters.system.private_file import FileUnusableError, read_bounded, sync_folder
from holon.decide.template_selector import is_simple_name
from holon.model.limits import SKILLS_PER_ROOT_COUNT_MAX, TREE_FILE_BYTES_MAX
from holon.model.refusal import Refusal, RefusalCode, RefusedError
from holon.model.skill import SKILL_FILES
from holon.model.skill_ref import BadSkillRefError, InstalledSkill, SkillFolder, SkillRef

_SHOWN_COUNT_MAX: Final = 8
_AT_CWD: Final = -100
_EXCHANGE: Final = 2
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM})


class InstalledSkills:
    """Directories of skills on this machine."""

    def __init__(self, installer: FolderSkillInstaller) -> None:
        self._installer = installer

    async def install(self, ref: SkillRef, into: str, *, force: bool) -> InstalledSkill:
        """Put a skill into a directory of skills, or raise and leave it as it was."""
        root, name = Path(into), name_of(ref)
        await anyio.to_thread.run_sync(_make_root, root)
        target = root / name
        there = await anyio.to_thread.run_sync(_look, target)
        if there is None:
            return await self._installer.install(ref, into)
        if not force and (there.is_changed or (there.kind, there.source) != (ref.kind, ref.source)):
            raise _occupied(there)
        with scratch_in(root) as scratch:
            made = await self._installer.install(ref, str(scratch))
            await anyio.to_thread.run_sync(_swap, scratch / name, target)
        return msgspec.structs.replace(made, path=str(target))

    async def uninstall(self, name: str, into: str, *, force: bool) -> SkillFolder:
        """Take a skill out of a directory of skills; return what was there."""
        there = await anyio.to_thread.run_sync(_found, Path(into), name)
        if there is None:
            raise RefusedError(
                Refusal(
                    code=RefusalCode.SKILL_NOT_FOUND,
                    message=f"there is no skill {name[:120]!r} in {into}",
                    hint="see which are installed: holon skills list",
                    field="name",
                )
            )
        if there.is_changed and not force:
            raise _changed(there)
        await anyio.to_thread.run_sync(_remove, Path(there.path))
        return there

    async def installed(self, into: str) -> Sequence[SkillFolder]:
        """Tell what is in a directory of skills, by name."""
        return await anyio.to_thread.run_sync(_list, Path(into))


def _make_root(root: Path) -> None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadSkillRefError(f"{root} cannot be made: {error.strerror}") from error


def _list(root: Path) -> list[SkillFolder]:
    looks = (_look(path) for path in _folders(root))
    return [look for look in looks if look is not None]


def _folders(root: Path) -> list[Path]:
    try:
        names = sorted(each for each in os.listdir(root) if not each.startswith(SCRATCH_PREFIX))
    except OSError:
        return []
    found = (root / name for name in names[:SKILLS_PER_ROOT_COUNT_MAX])
    return [path for path in found if path.is_dir() or path.is_symlink()]


def _found(root: Path, name: str) -> SkillFolder | None:
    """Return the skill of this name, or raise where several give it to themselves."""
    there = _look(root / name) if is_simple_name(name) else None
    if there is not None:
        return there
    called = [each for each in _folders(root) if _own_name(each) == name]
    if len(called) > 1:
        shown = ", ".join(each.name for each in called[:_SHOWN_COUNT_MAX])
        raise RefusedError(
            Refusal(
                code=RefusalCode.SKILL_NOT_FOUND,
                message=f"{len(called)} skills in {root} are named {name[:120]!r}",
                hint=f"name the folder of one of them: {shown}",
                field="name",
            )
        )
    return _look(called[0]) if called else None


def _own_name(folder: Path) -> str | None:
    """Return the name a skill gives itself."""
    # Only for those who remove one by its name: it brings YAML with it.
    from holon.adapters.files.skill_front_matter import BadFrontMatterError, read_front_matter

    for name in SKILL_FILES:
        try:
            found = read_bounded(folder / name, bytes_max=TREE_FILE_BYTES_MAX)
            if found is not None:
                return read_front_matter(found.content).name
        except (FileUnusableError, BadFrontMatterError):
            return None
    return None


def _look(target: Path) -> SkillFolder | None:
    if not os.path.lexists(target):
        return None
    if target.is_symlink():
        source = str(target.readlink())
        return SkillFolder(name=target.name, path=str(target), kind="local", source=source)
    record = read_record(target)
    if record is None:
        return SkillFolder(name=target.name, path=str(target), is_changed=True)
    return SkillFolder(
        name=target.name,
        path=str(target),
        kind=record.kind,
        source=record.source,
        is_changed=tree_hash(target) != record.tree_sha256,
    )


def _remove(target: Path) -> None:
    with scratch_in(target.parent) as scratch:
        target.rename(scratch / target.name)
        sync_folder(target.parent)


def _swap(made: Path, target: Path) -> None:
    """Let two directories change places."""
    if not _exchanged(made, target):
        aside = made.with_name(f"{made.name}.old")
        target.rename(aside)
        try:
            made.rename(target)
        except OSError:
            aside.rename(target)
            raise
    sync_folder(target.parent)


def _exchanged(made: Path, target: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    exchange = getattr(libc, "renameat2", None)
    if exchange is None:
        return False
    if exchange(_AT_CWD, os.fsencode(made), _AT_CWD, os.fsencode(target), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(target))


def _occupied(there: SkillFolder) -> RefusedError:
    if there.is_changed:
        return _changed(there)
    return RefusedError(
        Refusal(
            code=RefusalCode.SKILL_ALREADY_INSTALLED,
            message=f"the skill {there.name} is already installed, from {there.source}",
            hint="uninstall it first, or replace it with --force",
            field="name",
        )
    )


def _changed(there: SkillFolder) -> RefusedError:
    how = "was not put there by Holon" if there.source is None else "was changed since"
    return RefusedError(
        Refusal(
            code=RefusalCode.SKILL_CHANGED,
            message=f"the skill {there.name} is there and {how}; it was left as it is",
            hint=f"keep what you need of {there.path}, then use --force",
            field="name",
        )
    )
