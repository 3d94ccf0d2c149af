"""Agent homes: provision a new agent's home, complete it, remove it.

Owns:  the content and modes of a home; building it in a scratch directory, renaming it into place
       and undoing that; removing the homes of past one-shot runs.
Rule 1: everything is private to the owner: directories 0700, files 0600.
Rule 2: a home is complete, with skills and provenance, before it gets its name. A failure until
        then leaves nothing among the agents.
Rule 3: `agents/.births/<agent>` exists from the first step until provisioning is settled, so a
        process that was killed in between leaves a marker, and only a home with this marker is ever
        removed. The marker identifies the directory itself, so another directory is safe.
Rule 4: a directory that existed before is completed or refused, never replaced. Completing adds
        what is missing; an existing file of any kind stays: files appear by a hard link, which the
        system refuses where the name is taken.
Rule 5: AGENTS.md is the template's text and the guidance about the home, once.
Rule 6: the default agent always gets guidance: when the user's holon-default cannot be used, it
        gets the packaged one, and the log says so. It is the first agent of every HOLON_HOME; a
        later request for holon-default is refused, as with any template.
Rule 7: a home that is removed is first renamed into `agents/.removed`; what a killed process left
        there is removed by the next pass. Folders are opened without following links and everything
        is done relative to their descriptors: an agent's command may create links anywhere.
"""

import errno
import json
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import anyio.to_thread

from holon import __version__
from holon.adapters.files.builtin_templates import builtin_template, home_guidance
from holon.adapters.files.new_tree import place, remove_tree
from holon.adapters.files.templates import ResolvedTemplate, TemplateStore, read_template
from holon.adapters.system.private_file import sync_folder
from holon.model.agents import DEFAULT_TEMPLATE, BadTemplateError
from holon.model.errors import HolonError, StoreFullError, StoreReadOnlyError
from holon.model.guidance import BadSkillRefError, InstalledSkill
from holon.model.limits import RUN_HOMES_COUNT_MAX
from holon.model.values import AGENT_ID_PATTERN, AgentId, IdPrefix, JsonValue, parse_agent_id
from holon.ports.agents import AgentHomeError, HomeOccupiedError
from holon.ports.guidance import SkillInstaller

AGENTS_FILE: Final = "AGENTS.md"
PROVENANCE_FILE: Final = ".holon/state/template-provenance.json"
SKILLS_FOLDER: Final = "skills"
_FOLDERS: Final = (
    "memory",
    "notes",
    "work",
    SKILLS_FOLDER,
    ".holon",
    ".holon/state",
    ".holon/ledger",
    ".holon/indexes",
)
_MEMORIES: Final = {
    "memory/self.md": "# Self\n\nWhat you have learned about yourself and your work.\n",
    "memory/operator.md": "# Operator\n\nWhat you know about the people you work for.\n",
}
_MARK: Final = "<!-- holon:agent-home -->"
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BARE: Final = "# Agent\n"
_AGENTS: Final = "agents"
_BIRTHS: Final = ".births"
_REMOVED: Final = ".removed"
_TEMPORARY: Final = f"{IdPrefix.TEMPORARY_RUN}_"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SIGN: Final = "placed.json"
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def agents_md_of(template: str | None) -> str:
    """Return the first AGENTS.md of an agent made from this text, or from none."""
    body = (template if template is not None else _BARE).rstrip()
    if _MARK in body:  # it was taken from another agent's home
        return f"{body}\n"
    return f"{body}\n\n{home_guidance()}\n"


def build_home(folder: Path, *, agents_md: str) -> None:
    """Make a home in a directory that is not there yet."""
    folder.mkdir(mode=0o700)
    complete_home(folder, agents_md=agents_md)


def complete_home(folder: Path, *, agents_md: str | None) -> None:
    """Add what a home lacks; raises OSError where something stands in the way."""
    for name in _FOLDERS:
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    for name, text in _MEMORIES.items():
        add_file(folder / name, text.encode())
    if agents_md is not None:
        add_file(folder / AGENTS_FILE, agents_md.encode())
    sync_folder(folder)


def write_provenance(folder: Path, record: JsonValue) -> None:
    """Write down how a home came to be."""
    add_file(folder / PROVENANCE_FILE, json.dumps(record, indent=2).encode() + b"\n")


def add_file(path: Path, content: bytes) -> None:
    """Make a private file appear whole, unless the name is taken."""
    if os.path.lexists(path):
        return
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with os.fdopen(os.open(draft, _NEW_FILE, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink(missing_ok=True)


_log = logging.getLogger(__name__)


class FileAgentHomes:
    """The homes under one HOLON_HOME."""

    def __init__(self, home: Path, templates: TemplateStore, skills: SkillInstaller) -> None:
        self._agents = home / _AGENTS
        self._births = self._agents / _BIRTHS
        self._templates = templates
        self._skills = skills

    async def make(self, agent_id: AgentId, *, template: str | None, at: datetime) -> None:
        """Make the home of an agent that is about to be born."""
        target = self._agents / parse_agent_id(agent_id)
        try:
            await self.discard(agent_id)  # what an earlier attempt may have left
            if _is_taken(target):
                await self._take_over(target, agent_id, template)
                return
            scratch = await anyio.to_thread.run_sync(self._scratch_of, agent_id)
            try:
                await self._built_or_fallback(scratch, template, at)
                await anyio.to_thread.run_sync(_placed, scratch, target)
            except BaseException:
                _undone(scratch, target)
                raise
        except OSError as error:
            raise _home_error(f"the home {target} cannot be made", error) from error

    async def keep(self, agent_id: AgentId) -> None:
        """The agent is born: its home is no longer provisional."""
        sign = self._births / parse_agent_id(agent_id)
        try:
            remove_tree(sign)
        except OSError as error:
            raise _home_error(f"{sign} cannot be removed", error) from error

    async def discard(self, agent_id: AgentId) -> None:
        """The agent was not born: take its provisional home away."""
        sign = self._births / parse_agent_id(agent_id)
        try:
            await anyio.to_thread.run_sync(_undone, sign, self._agents / agent_id)
        except OSError as error:
            raise _home_error(f"what {sign} tells of cannot be removed", error) from error

    async def provisional(self) -> Sequence[AgentId]:
        """Name the agents whose homes are provisional."""
        try:
            names = sorted(os.listdir(self._births))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _home_error(f"{self._births} cannot be read", error) from error
        return tuple(AgentId(name) for name in names if AGENT_ID_PATTERN.fullmatch(name))

    async def complete(self, agent_id: AgentId, *, template: str | None) -> None:
        """Add what the home of an agent lacks; its AGENTS.md comes from the template."""
        target = self._agents / parse_agent_id(agent_id)
        try:
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
            await anyio.to_thread.run_sync(lambda: complete_home(target, agents_md=None))
            if not _has_guidance(target):
                text = await self._text(template, agent_id)
                add_file(target / AGENTS_FILE, agents_md_of(text).encode())
        except OSError as error:
            raise _home_error(f"the home {target} cannot be completed", error) from error

    async def temporary(self) -> Sequence[AgentId]:
        """Name the agents made for one run whose homes are here, and finish earlier removals."""
        try:
            return await anyio.to_thread.run_sync(_temporary_in, self._agents)
        except OSError as error:
            raise _home_error(f"{self._agents} cannot be looked at", error) from error

    async def remove(self, agent_id: AgentId) -> None:
        """Remove the home of a one-shot agent."""
        name = parse_agent_id(agent_id)
        try:
            await anyio.to_thread.run_sync(_removed, self._agents, name)
        except OSError as error:
            raise _home_error(f"the home {self._agents / name} cannot be removed", error) from error

    async def _text(self, template: str | None, agent_id: AgentId) -> str | None:
        if template is None:
            return None
        scratch = self._scratch_of(agent_id)
        try:
            return (await self._templates.resolve(template, scratch=scratch)).content.agents_md
        except BadTemplateError as problem:
            own = builtin_template(template) if template == DEFAULT_TEMPLATE else None
            if own is None:
                raise
            _tell_stand_in(agent_id, problem)
            return read_template(own).agents_md
        finally:
            remove_tree(scratch)

    async def _take_over(self, target: Path, agent_id: AgentId, template: str | None) -> None:
        if template is not None:
            raise HomeOccupiedError(
                f"there is already a directory {target}",
                hint="leave out the template to use it as it is, or move it away",
            )
        await self.complete(agent_id, template=None)

    def _scratch_of(self, agent_id: AgentId) -> Path:
        self._agents.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._births.mkdir(mode=0o700, exist_ok=True)
        scratch = self._births / agent_id
        remove_tree(scratch)
        scratch.mkdir(mode=0o700)
        return scratch

    async def _built_or_fallback(self, scratch: Path, template: str | None, at: datetime) -> None:
        try:
            await self._built(scratch, template, at)
        except (BadTemplateError, BadSkillRefError) as problem:
            own = builtin_template(template) if template == DEFAULT_TEMPLATE else None
            if own is None or not self._is_first(scratch.name):
                raise
            _tell_stand_in(scratch.name, problem)
            remove_tree(scratch / "home")
            await self._built(scratch, str(own), at)

    def _is_first(self, agent_id: str) -> bool:
        """Whether no other agent has a home here yet."""
        names = os.listdir(self._agents)
        return not any(name != agent_id and AGENT_ID_PATTERN.fullmatch(name) for name in names)

    async def _built(self, scratch: Path, template: str | None, at: datetime) -> None:
        resolved = None
        if template is not None:
            resolved = await self._templates.resolve(template, scratch=scratch)
        text = agents_md_of(None if resolved is None else resolved.content.agents_md)
        folder = scratch / "home"
        await anyio.to_thread.run_sync(lambda: build_home(folder, agents_md=text))
        refs = () if resolved is None else resolved.content.skill_refs
        skills = [await self._skills.install(ref, str(folder / SKILLS_FOLDER)) for ref in refs]
        record = _provenance(resolved, skills, at)
        await anyio.to_thread.run_sync(write_provenance, folder, record)


def _tell_stand_in(agent_id: str, problem: HolonError) -> None:
    _log.warning(
        "%s is made from the %s that comes with Holon, since yours cannot be used: %s",
        agent_id,
        DEFAULT_TEMPLATE,
        problem.message,
    )


def _placed(scratch: Path, target: Path) -> None:
    if target.is_dir():
        target.rmdir()  # it is empty, else it would have been taken over
    sign: JsonValue = {"inode": (scratch / "home").stat().st_ino}
    add_file(scratch / _SIGN, json.dumps(sign).encode())
    place(scratch / "home", target)


def _undone(sign: Path, target: Path) -> None:
    if not os.path.lexists(sign):
        return
    try:
        inode = json.loads((sign / _SIGN).read_bytes()).get("inode")
        if target.stat(follow_symlinks=False).st_ino == inode:
            remove_tree(target)
    except (FileNotFoundError, ValueError, AttributeError):
        pass  # it was not placed yet
    remove_tree(sign)


@contextmanager
def _opened(path: Path | str, *, within: int | None = None) -> Iterator[int]:
    """Lend a folder; a link in its place is an error."""
    folder = os.open(path, _FOLDER, dir_fd=within)
    try:
        yield folder
    finally:
        os.close(folder)


def _temporary_in(agents: Path) -> Sequence[AgentId]:
    if not agents.is_dir() or agents.is_symlink():
        return ()
    with _opened(agents) as folder:
        with suppress(FileNotFoundError), _opened(_REMOVED, within=folder) as removed:
            for name in os.listdir(removed):
                if name.startswith(_TEMPORARY):
                    shutil.rmtree(name, ignore_errors=True, dir_fd=removed)
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.name.startswith(_TEMPORARY) and entry.is_dir(follow_symlinks=False)
            ]
    agent_ids = sorted(name for name in names if AGENT_ID_PATTERN.fullmatch(name))
    return tuple(AgentId(name) for name in agent_ids[:RUN_HOMES_COUNT_MAX])


def _removed(agents: Path, name: str) -> None:
    with _opened(agents) as folder:
        with suppress(FileExistsError):
            os.mkdir(_REMOVED, mode=0o700, dir_fd=folder)
        with _opened(_REMOVED, within=folder) as removed:
            with _opened(name, within=folder):
                pass  # it exists and is not a link
            shutil.rmtree(name, ignore_errors=True, dir_fd=removed)  # of an earlier attempt
            os.rename(name, name, src_dir_fd=folder, dst_dir_fd=removed)
            shutil.rmtree(name, ignore_errors=True, dir_fd=removed)


def _has_guidance(target: Path) -> bool:
    return os.path.lexists(target / AGENTS_FILE)


def _is_taken(target: Path) -> bool:
    """Whether the path exists; an empty directory counts as absent."""
    if not os.path.lexists(target):
        return False
    return target.is_symlink() or not target.is_dir() or any(target.iterdir())


def _provenance(
    resolved: ResolvedTemplate | None, skills: Sequence[InstalledSkill], at: datetime
) -> JsonValue:
    template: JsonValue = None
    if resolved is not None:
        template = {
            "selector": resolved.selector,
            "kind": resolved.kind,
            "source": resolved.source,
            "ref": resolved.ref,
            "commit": resolved.commit,
            "agents_md_sha256": resolved.content.agents_md_sha256,
            "skills_json_sha256": resolved.content.skills_json_sha256,
        }
    return {
        "created_at": at.isoformat(),
        "holon_version": __version__,
        "template": template,
        "skills": [
            {"name": each.name, "kind": each.kind, "source": each.source, "sha256": each.sha256}
            for each in skills
        ],
    }


def _home_error(subject: str, error: OSError) -> HolonError:
    """Return the error for a home; a full disk gives the usual store error."""
    message = f"{subject}: {error.strerror}"
    if error.errno in _NO_SPACE:
        return StoreFullError(message)
    return StoreReadOnlyError(message) if error.errno == errno.EROFS else AgentHomeError(message)
