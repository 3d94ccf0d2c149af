"""The file adapters behind agents: homes, templates, instructions and skills.

Owns:  their construction for a host that works for a user. No logic.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from holon.adapters.files.agent_homes import FileAgentHomes
from holon.adapters.files.builtin_templates import seed_templates
from holon.adapters.files.github_tree import GithubTrees
from holon.adapters.files.instructions import InstructionFiles
from holon.adapters.files.skill_folders import FolderSkillInstaller, InstalledSkills
from holon.adapters.files.skill_scan import SkillScan
from holon.adapters.files.templates import TemplateStore
from holon.adapters.system.directories import templates_root, user_home_of
from holon.ports.agents import AgentHomes, NoHomes, NoTemplates, TemplateCatalog
from holon.ports.guidance import (
    Instructions,
    NoInstructions,
    NoSkillFolders,
    NoSkills,
    SkillCatalogs,
    SkillFolders,
)
from holon.ports.journal import Journal, LogLevel


class UserFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The home of the user whose templates, skills and guidance a host uses; GitHub's address."""

    user_home: Path
    github_base: str


class AgentAdapters(msgspec.Struct, frozen=True, kw_only=True):
    """The ports; without a user they are empty."""

    homes: AgentHomes = msgspec.field(default_factory=NoHomes)
    instructions: Instructions = msgspec.field(default_factory=NoInstructions)
    templates: TemplateCatalog = msgspec.field(default_factory=NoTemplates)
    skills: SkillCatalogs = msgspec.field(default_factory=NoSkills)
    skill_folders: SkillFolders = msgspec.field(default_factory=NoSkillFolders)


def user_files_of(environ: Mapping[str, str], github_base: str) -> UserFiles | None:
    """Return the user's files, or None if the environment names no home."""
    home = user_home_of(environ)
    return None if home is None else UserFiles(user_home=home, github_base=github_base)


def template_store(files: UserFiles) -> TemplateStore:
    """Return the template store of a user."""
    return TemplateStore(templates_root(files.user_home), GithubTrees(files.github_base))


def agent_adapters(home: Path, files: UserFiles | None) -> AgentAdapters:
    """Return the ports for a home, with or without a user."""
    if files is None:
        return AgentAdapters()
    templates = template_store(files)
    skills = FolderSkillInstaller(GithubTrees(files.github_base))
    return AgentAdapters(
        homes=FileAgentHomes(home, templates, skills),
        instructions=InstructionFiles(files.user_home),
        templates=templates,
        skills=SkillScan(files.user_home),
        skill_folders=InstalledSkills(skills),
    )


def seed_user(files: UserFiles) -> tuple[str, ...]:
    """Copy Holon's templates to the user's; return the problems."""
    return seed_templates(templates_root(files.user_home))


def seed(files: UserFiles | None, journal: Journal) -> None:
    """Seed the user's templates, and log the problems."""
    for problem in () if files is None else seed_user(files):
        journal.note("templates_not_seeded", problem, level=LogLevel.WARNING)
