"""Where a skill that is to be installed comes from.

Owns:  the three kinds of reference, and what an installation leaves behind.
"""

from typing import Literal, TypeAlias

import msgspec

from holon.model.errors import BadInputError
from holon.model.record import Record


class BadSkillRefError(BadInputError):
    """A skill cannot be referred to like this, or is not there; nothing was installed."""

    code = "bad_skill_ref"


class BuiltinSkillRef(Record, frozen=True, kw_only=True):
    """A skill that comes with Holon."""

    name: str
    kind: Literal["builtin"] = "builtin"

    @property
    def source(self) -> str:
        """The reference in words."""
        return self.name


class LocalSkillRef(Record, frozen=True, kw_only=True):
    """A directory with a SKILL.md, by its absolute path."""

    path: str
    kind: Literal["local"] = "local"
    copies: bool = False  # else it is linked, and goes on changing where it is

    @property
    def source(self) -> str:
        """The reference in words."""
        return self.path


class GithubSkillRef(Record, frozen=True, kw_only=True):
    """A skill of a repository, as `owner/repo@skill`."""

    owner: str
    repo: str
    skill: str
    kind: Literal["github"] = "github"

    @property
    def source(self) -> str:
        """The reference in words."""
        return f"{self.owner}/{self.repo}@{self.skill}"


SkillRef: TypeAlias = BuiltinSkillRef | LocalSkillRef | GithubSkillRef


class SkillFolder(Record, frozen=True, kw_only=True):
    """A skill in a directory of skills; without a source somebody made it there.

    `is_changed`: it is not what an installation left, so nothing may replace it unasked.
    """

    name: str
    path: str
    kind: str | None = None
    source: str | None = None
    is_changed: bool = msgspec.field(default_factory=bool)


class InstalledSkill(Record, frozen=True, kw_only=True):
    """A skill in its place. `sha256` is of its SKILL.md as it was then."""

    name: str
    path: str
    kind: str
    source: str
    sha256: str
