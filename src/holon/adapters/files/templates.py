"""The agent templates of the user: read, list, resolve, install, remove.

Owns:  reading a template whole and bounded, or refusing it; finding out which of its skills are
       unavailable; the directories under `~/.agents/templates`.
Rule 1: a template that is only partly understood is refused.
Rule 2: the directory's name is the template's id; unknown files in it are not read.
Rule 3: the user's own templates may be links to anywhere. In any other directory a link that leads
        out is refused: a repository must not choose which files of this machine an agent reads.
Rule 4: problems are reported by the installer itself, so a check refuses a template in the same
        words as creating an agent from it.
Rule 5: a check uses no network: a skill on GitHub is judged by its reference alone.
Rule 6: a template id means a directory there and nowhere else. Only where Holon could not install
        its own there (a home that cannot be written) are packaged templates used.
Rule 7: an installed template appears whole or not at all, and replaces nothing. One whose skills
        are known to be unavailable on this machine is not installed.
Rule 8: a selector is validated before anything is opened or fetched.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, assert_never

import anyio.to_thread
import msgspec

from holon.adapters.files.builtin_templates import (
    RECORD_FILE,
    builtin_skill,
    builtin_template,
    builtin_template_ids,
    is_as_seeded,
)
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.new_tree import (
    BadTreeError,
    copy_tree,
    place,
    remove_tree,
    scratch_in,
    sweep_scratch,
)
from holon.adapters.files.skill_folders import FolderSkillInstaller, name_of
from holon.adapters.system.private_file import FileUnusableError, folder_lock, read_bounded
from holon.decide.agents.templates import is_simple_name, parse_selector, parse_template_id
from holon.decide.guidance.skills import read_manifest
from holon.model.agents import (
    BadTemplateError,
    GithubTree,
    NamedTemplate,
    TemplateEntry,
    TemplateFolder,
)
from holon.model.guidance import BadSkillRefError, BuiltinSkillRef, GithubSkillRef, SkillRef
from holon.model.limits import (
    SUMMARY_CHARS_MAX,
    TEMPLATE_ID_CHARS_MAX,
    TEMPLATE_MANIFEST_BYTES_MAX,
    TEMPLATE_TEXT_BYTES_MAX,
    TEMPLATES_LISTED_COUNT_MAX,
)
from holon.model.record import Record
from holon.ports.guidance import SkillInstaller

AGENTS_FILE: Final = "AGENTS.md"
MANIFEST_FILE: Final = "skills.json"
_SHAPE: Final = (
    "a template is a directory with a text file AGENTS.md and, if need be, a skills.json"
)
_KNOWN = "`holon template list` shows the templates there are"
_ID_RULE = (
    "an id begins with a letter or digit, goes on with letters, digits, '-', '_' and '.', and has"
    f" at most {TEMPLATE_ID_CHARS_MAX} characters; choose one with --as"
)
_ONE_SEGMENT = (
    "a ref with '/' is not supported: what follows the first segment is taken for the path; name"
    " such a branch by its commit id"
)


class TemplateContent(Record, frozen=True, kw_only=True):
    """What a template gives to a new agent."""

    agents_md: str
    agents_md_sha256: str
    skill_refs: tuple[SkillRef, ...] = ()
    skills_json_sha256: str | None = None

    @property
    def summary(self) -> str:
        """Its first paragraph, or its title where there is none."""
        return summary_of(self.agents_md)


def read_foreign_template(folder: Path) -> TemplateContent:
    """Return what a template directory holds that is not among the user's own."""
    root = os.path.realpath(folder).rstrip("/")
    for name in (AGENTS_FILE, MANIFEST_FILE):
        path = folder / name
        if path.is_symlink() and not os.path.realpath(path).startswith(f"{root}/"):
            raise BadTemplateError(
                f"{path} is a link that leads out of {folder}", hint="put a copy in its place"
            )
    return read_template(folder)


def read_template(folder: Path) -> TemplateContent:
    """Return what a template directory holds, or raise BadTemplateError."""
    if folder.is_symlink() and not folder.exists():
        raise BadTemplateError(
            f"{folder} is a link that leads nowhere", hint=f"holon template remove {folder.name}"
        )
    if not folder.is_dir():
        raise BadTemplateError(f"there is no template directory {folder}", hint=_SHAPE)
    body = _content(folder / AGENTS_FILE, bytes_max=TEMPLATE_TEXT_BYTES_MAX)
    if body is None:
        raise BadTemplateError(f"{folder} has no {AGENTS_FILE}", hint=_SHAPE)
    text = _text(folder / AGENTS_FILE, body)
    if not text.strip():
        raise BadTemplateError(f"{folder / AGENTS_FILE} is empty", hint=_SHAPE)
    manifest = _content(folder / MANIFEST_FILE, bytes_max=TEMPLATE_MANIFEST_BYTES_MAX)
    return TemplateContent(
        agents_md=text,
        agents_md_sha256=hashlib.sha256(body).hexdigest(),
        skill_refs=() if manifest is None else _refs(folder / MANIFEST_FILE, manifest),
        skills_json_sha256=None if manifest is None else hashlib.sha256(manifest).hexdigest(),
    )


def summary_of(text: str) -> str:
    """Return a line about a template: the first that is not a heading, else the heading."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    prose = [line for line in lines if not line.startswith(("#", "<!--", "---"))]
    first = prose[0] if prose else (lines[0].lstrip("# ") if lines else "")
    return _whole_words(first, chars_max=SUMMARY_CHARS_MAX)


def _whole_words(line: str, *, chars_max: int) -> str:
    """Return a line cut behind a word, with a sign that there was more."""
    if len(line) <= chars_max:
        return line
    head = line[:chars_max]
    words = head.rpartition(" ")[0].rstrip(" ,;:")
    return f"{words or head[:-1]}…"


def _content(path: Path, *, bytes_max: int) -> bytes | None:
    if path.is_dir():
        raise BadTemplateError(f"{path} is a directory and not a file", hint=_SHAPE)
    try:
        file = read_bounded(path, bytes_max=bytes_max)
    except FileUnusableError as error:
        raise BadTemplateError(error.message, hint=error.hint) from error
    return None if file is None else file.content


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadTemplateError(f"{path} is not UTF-8 text") from None


def _refs(path: Path, content: bytes) -> tuple[SkillRef, ...]:
    try:
        refs = read_manifest(json.loads(content))
        names = Counter(name_of(ref) for ref in refs)
    except (ValueError, RecursionError):
        raise BadTemplateError(f"{path} is not JSON") from None
    except BadSkillRefError as error:
        raise BadTemplateError(f"{path}: {error.message}", hint=error.hint) from error
    for name, count in names.items():
        if count > 1:
            raise BadTemplateError(
                f"{path}: {count} of its skills would be named {name}",
                hint="name each skill once; two of one name cannot stand beside each other",
            )
    return refs


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

    unusable: list[UnusableSkill] = []
    names: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="holon-template-") as folder:
        for ref in refs:
            try:
                await _try(ref, names, installer, Path(folder))
            except BadSkillRefError as error:
                unusable.append(UnusableSkill(ref=ref, problem=error.message, hint=error.hint))
    return tuple(unusable)


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


class ResolvedTemplate(Record, frozen=True, kw_only=True):
    """A template as it was when it was asked for, and where it came from."""

    selector: str
    kind: str  # template_id, local_path or github
    source: str  # the directory or address
    content: TemplateContent
    ref: str | None = None
    commit: str | None = None


class ListedTemplate(Record, frozen=True, kw_only=True):
    """One template of the user's. `problem` says why it cannot be used."""

    template_id: str
    path: str
    summary: str = ""
    skills: tuple[str, ...] = ()
    is_builtin: bool = False  # it has the name of one of Holon's own
    is_modified: bool = False  # and is not, or no longer, as Holon made it
    problem: str | None = None


class TemplateStore:
    """The templates under one root."""

    def __init__(self, root: Path, github: GithubTrees) -> None:
        self._root = root
        self._github = github
        self._skills = FolderSkillInstaller(github)

    async def entries(self) -> Sequence[TemplateEntry]:
        """Return the templates that can be used, by id."""
        listing = await anyio.to_thread.run_sync(self.listing)
        return tuple(
            TemplateEntry(template_id=each.template_id, summary=each.summary)
            for each in listing
            if each.problem is None
        )

    def listing(self) -> tuple[ListedTemplate, ...]:
        """Describe every template, also those that cannot be used."""
        try:
            names = sorted(os.listdir(self._root))
        except OSError:
            return ()
        meant = [name for name in names if is_simple_name(name) and _is_meant(self._root / name)]
        return tuple(_listed(self._root / name) for name in meant[:TEMPLATES_LISTED_COUNT_MAX])

    async def checked_listing(self) -> tuple[ListedTemplate, ...]:
        """Do the same, and look at the skills they name as well."""
        listing = await anyio.to_thread.run_sync(self.listing)
        return tuple([await self._checked(each) for each in listing])

    async def unusable_skills(self, content: TemplateContent) -> tuple[UnusableSkill, ...]:
        """Return those skills of a template that cannot be had; GitHub is not asked."""
        return await unusable_skills(content.skill_refs, self._skills)

    async def resolve(self, text: str, *, scratch: Path) -> ResolvedTemplate:
        """Return what a selector names, or raise BadTemplateError or SourceUnreachableError.

        `scratch` is an empty directory for what has to be fetched.
        """
        selector = parse_selector(text)
        match selector:
            case NamedTemplate(template_id=template_id):
                return self._named(template_id)
            case TemplateFolder(path=path):
                is_own = Path(path).is_relative_to(self._root)
                content = (read_template if is_own else read_foreign_template)(Path(path))
                return ResolvedTemplate(
                    selector=text, kind="local_path", source=path, content=content
                )
            case GithubTree():
                folder = scratch / "tree"
                folder.mkdir(mode=0o700)
                return await self._fetched(selector, folder, scratch)
            case _:
                assert_never(selector)

    async def install(self, text: str, *, name: str | None = None) -> ListedTemplate:
        """Copy a template directory or a GitHub tree among the user's templates."""
        import tempfile  # only for this one command

        target = self._root / installed_id(text, name=name)
        _require_free(target)
        try:
            # Fetched outside the root, so the lock is not held during network access.
            with tempfile.TemporaryDirectory(prefix="holon-template-") as fetched:
                resolved = await self.resolve(text, scratch=Path(fetched))
                for skill in await self.unusable_skills(resolved.content):
                    raise BadSkillRefError(skill.problem, hint=skill.hint)
                folder = (
                    Path(fetched, "tree") if resolved.kind == "github" else Path(resolved.source)
                )
                await anyio.to_thread.run_sync(_installed, folder, target)
        except (OSError, FileUnusableError) as error:
            raise BadTemplateError(f"{target} cannot be made: {error}") from error
        except BadTreeError as error:
            raise BadTemplateError(f"{text} cannot be installed: {error.message}") from error
        return _listed(target)

    def remove(self, template_id: str) -> Path:
        """Take a template away; a link is removed and what it leads to is not."""
        target = self._root / parse_template_id(template_id)
        if not os.path.lexists(target):
            raise _unknown(template_id)
        try:
            with folder_lock(self._root):
                sweep_scratch(self._root)
                with scratch_in(self._root) as scratch:
                    target.rename(scratch / target.name)
        except (OSError, FileUnusableError) as error:
            raise BadTemplateError(f"{target} cannot be removed: {error}") from error
        return target

    def _named(self, template_id: str) -> ResolvedTemplate:
        folder = self._root / template_id
        if not os.path.lexists(folder):
            own = builtin_template(template_id)
            if own is None or _is_writable(self._root):
                raise _unknown(template_id)
            folder = own
        return ResolvedTemplate(
            selector=template_id,
            kind="template_id",
            source=str(folder),
            content=read_template(folder),
        )

    async def _checked(self, listed: ListedTemplate) -> ListedTemplate:
        if listed.problem is not None or not listed.skills:
            return listed
        try:
            unusable = await self.unusable_skills(read_template(Path(listed.path)))
        except BadTemplateError as error:  # it has changed meanwhile
            return msgspec.structs.replace(listed, problem=error.message)
        return msgspec.structs.replace(listed, problem=unusable[0].problem if unusable else None)

    async def _fetched(self, tree: GithubTree, folder: Path, scratch: Path) -> ResolvedTemplate:
        try:
            commit = await self._github.fetch_tree(tree, folder, scratch=scratch)
            content = read_template(folder)
        except (BadTreeError, BadTemplateError) as error:
            raise BadTemplateError(
                f"{tree.url} is no template: {error.message}",
                hint=_ONE_SEGMENT if "/" in tree.path else error.hint,
            ) from error
        return ResolvedTemplate(
            selector=tree.url,
            kind="github",
            source=tree.url,
            content=content,
            ref=tree.ref,
            commit=commit,
        )


def installed_id(text: str, *, name: str | None) -> str:
    """Return the id a template gets when it is installed, or raise BadTemplateError."""
    selector = parse_selector(text)
    if isinstance(selector, NamedTemplate):
        raise BadTemplateError(
            f"{text!r} is a template id already", hint="give an absolute path or a GitHub URL"
        )
    last = selector.path.rstrip("/").rpartition("/")[2]
    template_id = name if name is not None else last
    if not is_simple_name(template_id):
        raise BadTemplateError(f"{template_id!r} cannot be the id of a template", hint=_ID_RULE)
    return template_id


def _installed(folder: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with folder_lock(target.parent):
        sweep_scratch(target.parent)
        with scratch_in(target.parent) as scratch:
            copy_tree(folder, scratch)
            remove_tree(scratch / RECORD_FILE)  # a copy is the user's, whatever it was before
            _require_free(target)
            place(scratch, target)


def _require_free(target: Path) -> None:
    if os.path.lexists(target):
        raise BadTemplateError(
            f"there is already a template {target.name}",
            hint=f"choose another name with --as, or holon template remove {target.name}",
        )


def _is_meant(path: Path) -> bool:
    """Whether this is a template, or was one: a link that leads nowhere is listed as such."""
    return path.is_dir() or (path.is_symlink() and not path.exists())


def _listed(folder: Path) -> ListedTemplate:
    is_builtin = folder.name in builtin_template_ids()
    listed = ListedTemplate(
        template_id=folder.name,
        path=str(folder),
        is_builtin=is_builtin,
        is_modified=is_builtin and is_as_seeded(folder) is not True,
    )
    try:
        content = read_template(folder)
    except BadTemplateError as error:
        return msgspec.structs.replace(listed, problem=error.message)
    skills = tuple(f"{ref.kind}:{ref.source}" for ref in content.skill_refs)
    return msgspec.structs.replace(listed, summary=content.summary, skills=skills)


def _is_writable(root: Path) -> bool:
    return root.is_dir() and os.access(root, os.W_OK)


def _unknown(template_id: str) -> BadTemplateError:
    return BadTemplateError(f"there is no template {template_id}", hint=_KNOWN)
