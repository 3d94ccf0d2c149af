"""Agent templates, as far as others need to know them.

Owns:  the catalog entry, and the three forms of the selector that names a template.
Rule 1: what a template holds is read once, when an agent is made from it; nothing refers to it
        afterwards.
"""

from typing import Final, TypeAlias

from holon.model.errors import BadInputError
from holon.model.record import Record

DEFAULT_TEMPLATE: Final = "holon-default"
GITHUB_ARCHIVES: Final = "https://codeload.github.com"


class BadTemplateError(BadInputError):
    """A template cannot be named like this, or cannot be used as it is; nothing was made."""

    code = "bad_template"


class TemplateEntry(Record, frozen=True, kw_only=True):
    """One template by the name that selects it."""

    template_id: str
    summary: str = ""


class NamedTemplate(Record, frozen=True, kw_only=True):
    """A template among those of the user."""

    template_id: str


class TemplateFolder(Record, frozen=True, kw_only=True):
    """A template anywhere on this machine."""

    path: str


class GithubTree(Record, frozen=True, kw_only=True):
    """A directory of a repository at one ref."""

    owner: str
    repo: str
    ref: str
    path: str

    @property
    def url(self) -> str:
        """The address that selects it."""
        return f"https://github.com/{self.owner}/{self.repo}/tree/{self.ref}/{self.path}"


TemplateSelector: TypeAlias = NamedTemplate | TemplateFolder | GithubTree
