"""Scan this machine for the skills an agent may discover.

Owns:  the scan order of roots, and the cache between two scans.
Rule 1: there are three scopes, each with a list of roots; the first root that exists is the only
        one used (decision 0030 says why skills differ from guidance). An existing root that cannot
        be read is a problem, and no reason to use the next.
Rule 2: a skill is a folder with a SKILL.md; folders are searched until one is found, to a bounded
        depth. The catalog holds metadata, not the body.
Rule 3: a defective skill is a problem in the result, and the others load. The number of skills and
        problems, and the bytes read of each, are bounded.
Rule 4: a link out of a workspace is not followed: a repository must not choose which files of this
        machine enter a prompt. The user's own skills and an agent's may be links to anywhere. A
        folder is searched once, under its own name rather than that of a link to it.
Rule 5: a file that has not changed since it was read is not read again: scanning known skills costs
        one stat each. A few of them cost less than starting work on a thread, so they are scanned
        on the event loop.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import anyio.to_thread

from holon.adapters.files.openat import Stamp, lasting_stamp, stamp_of
from holon.model import limits
from holon.model.guidance import SKILL_FILES, PassedOverRoot, SkillCatalog, SkillEntry, SkillScope
from holon.model.lru import Lru

if TYPE_CHECKING:
    from holon.adapters.files.skill_front_matter import FrontMatter

_SHARED_ROOTS: Final = (".agents/skills", ".codex/skills", ".claude/skills")
_ROOTS: Final = {
    SkillScope.USER: _SHARED_ROOTS,
    SkillScope.AGENT: ("skills", *_SHARED_ROOTS),
    SkillScope.WORKSPACE: _SHARED_ROOTS,
}
PASSED_OVER: Final = frozenset({".git", ".venv", "__pycache__", "node_modules"})
_CIRCLE: Final = "its links lead in a circle"
_ON_LOOP_COUNT_MAX: Final = 16
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

_Read: TypeAlias = "FrontMatter | str"  # a text says why it cannot be used


class _Remembered(NamedTuple):
    stamp: Stamp | None
    read: _Read


class _ScanResult(NamedTuple):
    """What a look at one root came across."""

    files: dict[str, _Remembered]
    folders_count: int
    listed_count: int  # whatever lies in the folders looked into


_UNSEEN: Final = _ScanResult({}, 0, 0)


class _Root(NamedTuple):
    scope: SkillScope
    path: str
    within: str | None  # links must not lead out of this
    flaw: str | None = None  # why it cannot be used


class _Link(NamedTuple):
    path: str
    found_in: str  # the real path of its folder
    depth: int


class SkillScan:
    """Finds skills, and remembers what it read."""

    def __init__(self, user_home: Path | None) -> None:
        self._user_home = None if user_home is None else str(user_home)
        self._known: Lru[str, _ScanResult] = Lru(limits.SKILL_ROOTS_KEPT_COUNT_MAX)

    async def catalog(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> SkillCatalog:
        """Return the skills an agent may discover."""
        roots = _roots_of(self._places(agent_home, workspace_anchor, with_user_scope))
        if self._is_short(roots):
            return self._scan(roots)
        return await anyio.to_thread.run_sync(self._scan, roots)

    async def passed_over(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> tuple[PassedOverRoot, ...]:
        """Return the roots behind the first of each scope, and the skills only they have.

        This is for people who ask; no prompt looks there, and nothing of it is remembered.
        """
        places = self._places(agent_home, workspace_anchor, with_user_scope)
        return await anyio.to_thread.run_sync(_passed_over, places)

    def _places(
        self, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> list[tuple[SkillScope, str]]:
        places = [(SkillScope.AGENT, agent_home)]
        if with_user_scope and self._user_home is not None:
            places.insert(0, (SkillScope.USER, self._user_home))
        if workspace_anchor is not None and workspace_anchor != agent_home:
            places.append((SkillScope.WORKSPACE, workspace_anchor))
        return places

    def own_catalog(self, agent_home: str) -> SkillCatalog:
        """Return the skills of an agent's own, at once."""
        return self._scan(_roots_of([(SkillScope.AGENT, agent_home)]))

    def _is_short(self, roots: list[_Root]) -> bool:
        """Whether the last look at these roots came across little."""
        scans = [self._known.peek(root.path) for root in roots]
        counts = [each.listed_count for each in scans if each is not None]
        return len(counts) == len(scans) and sum(counts) <= _ON_LOOP_COUNT_MAX

    def _scan(self, roots: list[_Root]) -> SkillCatalog:
        entries: list[SkillEntry] = []
        problems: list[str] = []
        for root in roots:
            look = _RootScan(root, (self._known.peek(root.path) or _UNSEEN).files)
            entries.extend(look.entries())
            problems.extend(look.problems)
            seen_now = _ScanResult(look.seen, look.folders_count, look.listed_count)
            self._known.put(root.path, seen_now)
        problems.extend(_name_clashes(entries))
        problems_count = len(problems)
        hidden = problems_count - limits.SKILL_PROBLEMS_COUNT_MAX
        if hidden > 0:
            problems[limits.SKILL_PROBLEMS_COUNT_MAX :] = [
                f"and {hidden} more problems with skills"
            ]
        return SkillCatalog(
            entries=tuple(entries),
            problems=tuple(problems),
            problems_count=problems_count,
            user_home=self._user_home,
        )

    def folders_count(self, agent_home: str) -> int:
        """How many folders the last look at an agent's own skills came across."""
        root = _first_root(SkillScope.AGENT, agent_home)
        return 0 if root is None else (self._known.peek(root.path) or _UNSEEN).folders_count


class _RootScan:
    """One look at one root."""

    def __init__(self, root: _Root, known: dict[str, _Remembered]) -> None:
        self._root = root
        self._known = known
        self.folders_count = 0
        self.listed_count = 0
        self._visited: set[str] = set()  # real paths of folders
        self._links: deque[_Link] = deque()  # not yet followed
        self.seen: dict[str, _Remembered] = {}
        self.problems: list[str] = []

    def entries(self) -> Iterator[SkillEntry]:
        """Yield the skills, by name of their folders; a name counts once."""
        if self._root.flaw is not None:
            self._problem(self._root.path, self._root.flaw)
            return
        names: dict[str, str] = {}
        for path, real in sorted(self._skill_files(), key=lambda pair: pair[0].split("/")):
            if len(self.seen) >= limits.SKILLS_PER_ROOT_COUNT_MAX:
                count_max = limits.SKILLS_PER_ROOT_COUNT_MAX
                self._problem(self._root.path, f"only its first {count_max} skills are used")
                return
            entry = self._entry(path, real)
            if entry is None:
                continue
            if entry.name in names:
                self._problem(entry.path, f"{names[entry.name]} has the same name, {entry.name}")
                continue
            names[entry.name] = entry.path
            yield entry

    def _skill_files(self) -> Iterator[tuple[str, str]]:
        """Yield what makes folders skills, each with its real path.

        Those below real folders come first, then those where links lead.
        """
        root = os.path.realpath(self._root.path)
        self._visited.add(root)
        yield from self._below(self._root.path, root, depth=0)
        while self._links:
            link = self._links.popleft()
            target = self._target(link)
            if target is not None:
                yield from self._in_folder(link.path, target, depth=link.depth)

    def _below(self, folder: str, real: str, *, depth: int) -> Iterator[tuple[str, str]]:
        try:
            with os.scandir(folder) as entries:
                listed = list(entries)
        except OSError as error:
            self._problem(folder, _reason_of(error))
            return
        self.listed_count += len(listed)
        inner = [each for each in listed if _is_searched(each)]
        for each in sorted(inner, key=lambda each: each.name):
            self.folders_count += 1
            if self.folders_count > limits.SKILL_FOLDERS_SEEN_COUNT_MAX:
                return
            if each.is_symlink():
                self._links.append(_Link(each.path, real, depth))
            else:
                yield from self._in_folder(each.path, f"{real}/{each.name}", depth=depth)

    def _in_folder(self, folder: str, real: str, *, depth: int) -> Iterator[tuple[str, str]]:
        if real in self._visited:
            return  # a link led here already, or leads to what has a name of its own
        self._visited.add(real)
        path = _skill_file(folder)
        if path is not None:
            yield path, f"{real}{path.removeprefix(folder)}"
        elif depth + 1 < limits.SKILL_FOLDER_DEPTH_COUNT_MAX:
            yield from self._below(folder, real, depth=depth + 1)

    def _target(self, link: _Link) -> str | None:
        """Return the real path of the folder a link leads to, if it may be looked into."""
        try:
            real = os.path.realpath(link.path, strict=True)
            if not self._is_inside(link.path, real) or not os.path.isdir(real):
                return None
        except OSError as error:
            self._problem(link.path, _reason_of(error))
            return None
        if f"{link.found_in}/".startswith(f"{real.rstrip('/')}/"):
            self._problem(link.path, _CIRCLE)
            return None
        return real

    def _is_inside(self, path: str, real: str) -> bool:
        within = self._root.within
        if within is None or real.startswith(f"{within.rstrip('/')}/"):
            return True
        self._problem(path, f"it leads out of {within}")
        return False

    def _entry(self, path: str, real: str) -> SkillEntry | None:
        named = os.path.basename(os.path.dirname(path))
        read = self._front_matter(path)
        if isinstance(read, str):
            self._problem(path, read)
            return None
        if not path.isprintable():
            self._problem(path, "its path cannot be shown")
            return None
        self.problems.extend(f"{path}: {each}" for each in read.remarks)
        if read.name is not None and read.name != named:
            self.problems.append(
                f"{path}: it is named {read.name}, its folder {named}; give both one name"
            )
        return SkillEntry(
            name=read.name or named,
            description=read.description,
            scope=self._root.scope,
            path=path,
            real_path=None if real == path else real,
        )

    def _front_matter(self, path: str) -> _Read:
        try:
            facts = os.lstat(path)
            if stat.S_ISLNK(facts.st_mode):
                if not self._is_inside(path, os.path.realpath(path, strict=True)):
                    return "its content lies elsewhere"
                facts = os.stat(path)
        except OSError as error:
            return _reason_of(error)
        cached = self._known.get(path)
        if cached is None or cached.stamp != stamp_of(facts):
            cached = _Remembered(lasting_stamp(facts), _read(path))
        self.seen[path] = cached
        return cached.read

    def _problem(self, path: str, why: str) -> None:
        shown = path if path.isprintable() else ascii(path)  # it may not even be Unicode
        self.problems.append(f"{shown} is not used: {why}")


def _roots_of(places: list[tuple[SkillScope, str]]) -> list[_Root]:
    return [root for scope, place in places if (root := _first_root(scope, place)) is not None]


def _first_root(scope: SkillScope, place: str) -> _Root | None:
    return next(_roots_there(scope, place), None)


def _roots_there(scope: SkillScope, place: str) -> Iterator[_Root]:
    within = os.path.realpath(place) if scope is SkillScope.WORKSPACE else None
    for name in _ROOTS[scope]:
        path = f"{place}/{name}"
        if _is_there(path):
            yield _Root(scope, path, within, _flaw(path, within))


def _passed_over(places: list[tuple[SkillScope, str]]) -> tuple[PassedOverRoot, ...]:
    passed_over = list[PassedOverRoot]()
    for scope, place in places:
        used, *others = [*_roots_there(scope, place)] or [_Root(scope, place, None)]
        if not others:
            continue
        used_names = {entry.name for entry in _RootScan(used, {}).entries()}
        real = os.path.realpath(used.path)
        for other in others:
            if os.path.realpath(other.path) == real:
                continue  # the same folder under another name
            names = [entry.name for entry in _RootScan(other, {}).entries()]
            hidden = [name for name in names if name not in used_names]
            passed_over.append(
                PassedOverRoot(
                    scope=scope,
                    path=other.path,
                    used_path=used.path,
                    hidden_skills=tuple(hidden[: limits.SKILL_HIDDEN_SHOWN_COUNT_MAX]),
                    hidden_count=len(hidden),
                )
            )
    return tuple(passed_over)


def _is_there(path: str) -> bool:
    """Whether the path exists; an unreadable one counts as existing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _flaw(path: str, within: str | None) -> str | None:
    """Return why what is in the place of a root cannot be one."""
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            return "it is not a folder"
    except OSError as error:
        return _reason_of(error)
    if within is None or f"{os.path.realpath(path)}/".startswith(f"{within.rstrip('/')}/"):
        return None
    return f"it leads out of {within}"


def _name_clashes(entries: list[SkillEntry]) -> Iterator[str]:
    """Yield remarks about equally named skills in several scopes; all of them are used."""
    first: dict[str, SkillEntry] = {}
    for entry in entries:
        other = first.setdefault(entry.name, entry)
        if other is not entry:
            yield (
                f"{entry.path}: a skill of the {other.scope} scope has the same name, {entry.name}:"
                f" {other.path}; rename or remove one of them"
            )


def _skill_file(folder: str) -> str | None:
    """Return the file that makes a folder a skill."""
    for name in SKILL_FILES:
        path = f"{folder}/{name}"
        if os.path.lexists(path):
            return path
    return None


def _is_searched(each: "os.DirEntry[str]") -> bool:
    if each.name in PASSED_OVER or each.name.startswith(".holon-"):
        return False
    try:
        return each.is_symlink() or each.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _read(path: str) -> _Read:
    # Here, not above: an agent without skills has none to read.
    from holon.adapters.files.skill_front_matter import BadFrontMatterError, read_front_matter

    try:
        handle = os.open(path, _READ)  # a pipe in its place has no writer: do not wait for one
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return "it is not a plain file"
            content = file.read(limits.SKILL_HEAD_BYTES_MAX + 1)
        return read_front_matter(content)
    except BadFrontMatterError as error:
        return error.message
    except OSError as error:
        return _reason_of(error)


def _reason_of(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return _CIRCLE
    return error.strerror or "it cannot be read"
