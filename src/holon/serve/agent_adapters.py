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
    """Whose templates, skills and guidance a host uses, and where GitHub's archives are."""

    user_home: Path
    github_base: str


class AgentAdapters(msgspec.Struct, frozen=True, kw_only=True):
    """The ports; those of a host without a person know nothing."""

    homes: AgentHomes = msgspec.field(default_factory=NoHomes)
    instructions: Instructions = msgspec.field(default_factory=NoInstructions)
    templates: TemplateCatalog = msgspec.field(default_factory=NoTemplates)
    skills: SkillCatalogs = msgspec.field(default_factory=NoSkills)
    skill_folders: SkillFolders = msgspec.field(default_factory=NoSkillFolders)


def user_files_of(environ: Mapping[str, str], github_base: str) -> UserFiles | None:
    """Return whose files these are, or nothing where nobody says where their home is."""
    home = user_home_of(environ)
    return None if home is None else UserFiles(user_home=home, github_base=github_base)


def template_store(files: UserFiles) -> TemplateStore:
    """Return the templates of a person."""
    return TemplateStore(templates_root(files.user_home), GithubTrees(files.github_base))


def agent_adapters(home: Path, files: UserFiles | None) -> AgentAdapters:
    """Return the ports for a HOLON_HOME that works for a person, or for none."""
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
    """Put Holon's templates among the person's own; return what was in the way."""
    return seed_templates(templates_root(files.user_home))


def seed(files: UserFiles | None, journal: Journal) -> None:
    """Do the same, and note in the journal what was in the way."""
    for problem in () if files is None else seed_user(files):
        journal.note("templates_not_seeded", problem, level=LogLevel.WARNING)
