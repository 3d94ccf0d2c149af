"""Install, update and remove skills in a directory.

Owns:  `.holon-skill-install.json` and the hash of a skill's files; the three sources of a skill,
       and the directory or link each one leaves; replacing and removing skills, and detecting local
       changes.
Rule 1: the hash covers names, execute permission and content; byproducts of running a script
        (compiled Python) are not covered. A folder that cannot be read whole, or exceeds the
        install limits, counts as changed.
Rule 2: a skill appears whole or not at all, and never replaces another one.
Rule 3: its directory is named by the reference; the name in its front matter is never used as a
        path.
Rule 4: packaged skills and skills from GitHub are copied; a skill on this machine is linked, so
        that edits of its author take effect, unless a copy is requested. A copy holds a record of
        its source.
Rule 5: a skill that no agent could use is not installed: its SKILL.md must name and describe it.
Rule 6: replacing or removing takes one step: readers see the old skill, the new one, or, after a
        removal, none.
Rule 7: a skill that was changed or created by hand is replaced or removed only on explicit request.
        An unchanged one may be installed again from its source, which updates it.
Rule 8: of a linked skill only the link is changed.
Rule 9: a skill is found by the name of its folder, else by the name in its front matter if that is
        unique.
"""

import ctypes
import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, assert_never

import anyio.to_thread
import msgspec

from holon.adapters.files.builtin_templates import builtin_skill, builtin_skill_names
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.new_tree import SCRATCH_PREFIX, BadTreeError, copy_tree, place, scratch_in
from holon.adapters.files.skill_scan import PASSED_OVER
from holon.adapters.system.private_file import FileUnusableError, read_bounded, sync_folder
from holon.decide.agents.templates import is_simple_name
from holon.model.errors import Refusal, RefusalCode, RefusedError
from holon.model.guidance import (
    SKILL_FILES,
    BadSkillRefError,
    BuiltinSkillRef,
    GithubSkillRef,
    InstalledSkill,
    LocalSkillRef,
    SkillFolder,
    SkillRef,
)
from holon.model.limits import (
    KIB,
    SKILLS_PER_ROOT_COUNT_MAX,
    TREE_BYTES_MAX,
    TREE_FILE_BYTES_MAX,
    TREE_FILES_COUNT_MAX,
)
from holon.model.record import Record

RECORD_FILE: Final = ".holon-skill-install.json"
_RECORD_BYTES_MAX: Final = 64 * KIB
_BYPRODUCTS: Final = "__pycache__"
_SHOWN_COUNT_MAX: Final = 8
_AT_CWD: Final = -100
_EXCHANGE: Final = 2
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM})


class InstallRecord(Record, frozen=True, kw_only=True):
    """Where a copied skill came from, and the hash of its files then."""

    kind: str
    source: str
    tree_sha256: str


class _TooLargeError(Exception):
    """More than is ever installed."""


def write_record(folder: Path, ref: SkillRef) -> None:
    """Remember in a fresh copy where it came from."""
    tree_sha256 = tree_hash(folder)
    if tree_sha256 is None:
        raise OSError(f"{folder} cannot be read")
    record = InstallRecord(kind=ref.kind, source=ref.source, tree_sha256=tree_sha256)
    path = folder / RECORD_FILE
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    path.chmod(0o600)


def read_record(folder: Path) -> InstallRecord | None:
    """Return what an installation left; nothing where none did, or not in this form."""
    try:
        file = read_bounded(folder / RECORD_FILE, bytes_max=_RECORD_BYTES_MAX)
        return None if file is None else msgspec.json.decode(file.content, type=InstallRecord)
    except (FileUnusableError, msgspec.MsgspecError):
        return None


def tree_hash(folder: Path) -> str | None:
    """Return the hash of a skill's files, or None when they cannot be read."""
    whole = hashlib.sha256()
    try:
        for name, path in _files(folder):
            runs = os.access(path, os.X_OK)
            content = hashlib.sha256(_content(path)).hexdigest()
            whole.update(f"{name}\0{int(runs)}\0{content}\n".encode())
    except (OSError, UnicodeError, _TooLargeError):
        return None
    return whole.hexdigest()


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    files: list[tuple[str, Path]] = []
    for above, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [each for each in folders if each != _BYPRODUCTS]
        links = [each for each in folders if Path(above, each).is_symlink()]
        for name in (*names, *links):
            path = Path(above, name)
            relative = str(path.relative_to(folder))
            if relative != RECORD_FILE:
                files.append((relative, path))
        if len(files) > TREE_FILES_COUNT_MAX:
            raise _TooLargeError
    return iter(sorted(files))


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return b"link " + os.fsencode(path.readlink())
    if not path.is_file() or path.stat().st_size > TREE_BYTES_MAX:
        raise _TooLargeError
    return path.read_bytes()


def _raise(error: OSError) -> None:
    raise error


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
        copy = scratch / name
        if isinstance(ref, LocalSkillRef):
            _require_folder(Path(ref.path))
        match ref:
            case LocalSkillRef(path=path, copies=True):
                copy.mkdir(mode=0o700)
                await anyio.to_thread.run_sync(_copied, Path(path), copy)
            case LocalSkillRef(path=path):
                sha256 = _checked_hash(Path(path), ref)
                copy.symlink_to(path)
                return sha256
            case BuiltinSkillRef():
                copy.mkdir(mode=0o700)
                await anyio.to_thread.run_sync(copy_tree, _builtin(ref), copy)
            case GithubSkillRef():
                copy.mkdir(mode=0o700)
                await self._github.fetch_skill(ref, copy, scratch=scratch)
            case _:
                assert_never(ref)
        sha256 = _checked_hash(copy, ref)
        await anyio.to_thread.run_sync(write_record, copy, ref)
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


def _copied(source: Path, copy: Path) -> None:
    """Copy a skill under development, without its version history and build files."""
    copy_tree(source, copy, passed_over=PASSED_OVER)


def _builtin(ref: BuiltinSkillRef) -> Path:
    folder = builtin_skill(ref.name)
    if folder is None:
        names = ", ".join(builtin_skill_names())
        raise BadSkillRefError(f"Holon has no skill {ref.name}", hint=f"it has {names}")
    return folder


def _checked_hash(folder: Path, ref: SkillRef) -> str:
    """Return the hash of a skill's entry point, or raise where it has none that can be used."""
    for name in SKILL_FILES:
        try:
            file = read_bounded(folder / name, bytes_max=TREE_FILE_BYTES_MAX)
        except FileUnusableError as error:
            raise BadSkillRefError(
                f"the skill {ref.source} is unusable: {error.message}"
            ) from error
        if file is not None:
            _require_front_matter(file.content, name, ref)
            return hashlib.sha256(file.content).hexdigest()
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


class InstalledSkills:
    """Directories of skills on this machine."""

    def __init__(self, installer: FolderSkillInstaller) -> None:
        self._installer = installer

    async def install(self, ref: SkillRef, into: str, *, force: bool) -> InstalledSkill:
        """Put a skill into a directory of skills, or raise and leave it as it was."""
        root, name = Path(into), name_of(ref)
        await anyio.to_thread.run_sync(_make_root, root)
        target = root / name
        installed = await anyio.to_thread.run_sync(_look, target)
        if installed is None:
            return await self._installer.install(ref, into)
        if not force and (
            installed.is_changed or (installed.kind, installed.source) != (ref.kind, ref.source)
        ):
            raise _already_installed(installed)
        with scratch_in(root) as scratch:
            copy = await self._installer.install(ref, str(scratch))
            await anyio.to_thread.run_sync(_swap, scratch / name, target)
        return msgspec.structs.replace(copy, path=str(target))

    async def uninstall(self, name: str, into: str, *, force: bool) -> SkillFolder:
        """Take a skill out of a directory of skills; return what was there."""
        installed = await anyio.to_thread.run_sync(_skill_named, Path(into), name)
        if installed is None:
            raise RefusedError(
                Refusal(
                    code=RefusalCode.SKILL_NOT_FOUND,
                    message=f"there is no skill {name[:120]!r} in {into}",
                    hint="see which are installed: holon skills list",
                    field="name",
                )
            )
        if installed.is_changed and not force:
            raise _changed(installed)
        await anyio.to_thread.run_sync(_remove, Path(installed.path))
        return installed

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
    paths = (root / name for name in names[:SKILLS_PER_ROOT_COUNT_MAX])
    return [path for path in paths if path.is_dir() or path.is_symlink()]


def _skill_named(root: Path, name: str) -> SkillFolder | None:
    """Return the skill of this name, or raise where several give it to themselves."""
    installed = _look(root / name) if is_simple_name(name) else None
    if installed is not None:
        return installed
    matching = [each for each in _folders(root) if _own_name(each) == name]
    if len(matching) > 1:
        shown = ", ".join(each.name for each in matching[:_SHOWN_COUNT_MAX])
        raise RefusedError(
            Refusal(
                code=RefusalCode.SKILL_NOT_FOUND,
                message=f"{len(matching)} skills in {root} are named {name[:120]!r}",
                hint=f"name the folder of one of them: {shown}",
                field="name",
            )
        )
    return _look(matching[0]) if matching else None


def _own_name(folder: Path) -> str | None:
    """Return the name a skill gives itself."""
    # Only for those who remove one by its name: it brings YAML with it.
    from holon.adapters.files.skill_front_matter import BadFrontMatterError, read_front_matter

    for name in SKILL_FILES:
        try:
            file = read_bounded(folder / name, bytes_max=TREE_FILE_BYTES_MAX)
            if file is not None:
                return read_front_matter(file.content).name
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


def _swap(copy: Path, target: Path) -> None:
    """Let two directories change places."""
    if not _exchanged(copy, target):
        aside = copy.with_name(f"{copy.name}.old")
        target.rename(aside)
        try:
            copy.rename(target)
        except OSError:
            aside.rename(target)
            raise
    sync_folder(target.parent)


def _exchanged(copy: Path, target: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    exchange = getattr(libc, "renameat2", None)
    if exchange is None:
        return False
    if exchange(_AT_CWD, os.fsencode(copy), _AT_CWD, os.fsencode(target), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(target))


def _already_installed(installed: SkillFolder) -> RefusedError:
    if installed.is_changed:
        return _changed(installed)
    return RefusedError(
        Refusal(
            code=RefusalCode.SKILL_ALREADY_INSTALLED,
            message=f"the skill {installed.name} is already installed, from {installed.source}",
            hint="uninstall it first, or replace it with --force",
            field="name",
        )
    )


def _changed(installed: SkillFolder) -> RefusedError:
    how = "was not put there by Holon" if installed.source is None else "was changed since"
    return RefusedError(
        Refusal(
            code=RefusalCode.SKILL_CHANGED,
            message=f"the skill {installed.name} is there and {how}; it was left as it is",
            hint=f"keep what you need of {installed.path}, then use --force",
            field="name",
        )
    )
