"""The user's templates.

Owns:  listing, looking at, resolving, installing and removing the directories under
       `~/.agents/templates`.
Rule 1: a template id means a directory there and nowhere else. Only where Holon could not put its
        own there (a home that cannot be written) are they taken from the package.
Rule 2: what is installed appears whole or not at all, and replaces nothing.
Rule 3: a selector is read before anything is opened or fetched.
Rule 4: a template whose skills cannot be had, as far as this machine knows, is not installed.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

import anyio.to_thread
import msgspec

from holon.adapters.files.builtin_templates import (
    RECORD_FILE,
    builtin_template,
    builtin_template_ids,
    is_as_seeded,
)
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.new_tree import BadTreeError, copy_tree
from holon.adapters.files.skill_install import FolderSkillInstaller
from holon.adapters.files.template_folder import (
    TemplateContent,
    read_foreign_template,
    read_template,
)
from holon.adapters.files.template_skills import UnusableSkill, unusable_skills
from holon.adapters.files.whole_folder import place, remove_tree, scratch_in, sweep_scratch
from holon.adapters.system.private_file import FileUnusableError, folder_lock
from holon.decide.template_selector import is_simple_name, parse_selector, parse_template_id
from holon.model.limits import TEMPLATE_ID_CHARS_MAX, TEMPLATES_LISTED_COUNT_MAX
from holon.model.record import Record
from holon.model.skill_ref import BadSkillRefError
from holon.model.template import (
    BadTemplateError,
    GithubTree,
    NamedTemplate,
    TemplateEntry,
    TemplateFolder,
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
        found = await anyio.to_thread.run_sync(self.listing)
        return tuple(
            TemplateEntry(template_id=each.template_id, summary=each.summary)
            for each in found
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
        found = await anyio.to_thread.run_sync(self.listing)
        return tuple([await self._checked(each) for each in found])

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
            # Fetched elsewhere: nobody waits for the network while the lock is held.
            with tempfile.TemporaryDirectory(prefix="holon-template-") as fetched:
                found = await self.resolve(text, scratch=Path(fetched))
                for skill in await self.unusable_skills(found.content):
                    raise BadSkillRefError(skill.problem, hint=skill.hint)
                folder = Path(fetched, "tree") if found.kind == "github" else Path(found.source)
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
            found = await self.unusable_skills(read_template(Path(listed.path)))
        except BadTemplateError as error:  # it has changed meanwhile
            return msgspec.structs.replace(listed, problem=error.message)
        return msgspec.structs.replace(listed, problem=found[0].problem if found else None)

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
    known = ListedTemplate(
        template_id=folder.name,
        path=str(folder),
        is_builtin=is_builtin,
        is_modified=is_builtin and is_as_seeded(folder) is not True,
    )
    try:
        content = read_template(folder)
    except BadTemplateError as error:
        return msgspec.structs.replace(known, problem=error.message)
    skills = tuple(f"{ref.kind}:{ref.source}" for ref in content.skill_refs)
    return msgspec.structs.replace(known, summary=content.summary, skills=skills)


def _is_writable(root: Path) -> bool:
    return root.is_dir() and os.access(root, os.W_OK)


def _unknown(template_id: str) -> BadTemplateError:
    return BadTemplateError(f"there is no template {template_id}", hint=_KNOWN)
