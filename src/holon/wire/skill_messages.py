"""What the control plane takes and answers about skills.

Owns:  the bodies of installing and uninstalling, and their receipts.
Rule 1: strict: an unknown field is refused.
"""

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta

from holon.model.ids import AgentId
from holon.model.limits import WORKSPACE_PATH_CHARS_MAX
from holon.model.record import Record
from holon.wire.control_requests import ControlBody

_Named = Annotated[str, Meta(min_length=1, max_length=WORKSPACE_PATH_CHARS_MAX)]


class SkillKind(StrEnum):
    """Where a skill comes from."""

    BUILTIN = "builtin"
    LOCAL = "local"
    GITHUB = "github"


class InstallSkillRequest(ControlBody, frozen=True, kw_only=True):
    """Which skill: one of Holon's own, an absolute path, or `owner/repo@skill`.

    Without a kind, the form of the name decides. `force` replaces what is there, also when it was
    changed.
    """

    name: _Named
    kind: SkillKind | None = None
    copy: bool = False  # of a local skill, instead of linking to it
    force: bool = False


class UninstallSkillRequest(ControlBody, frozen=True, kw_only=True):
    """Which skill to take away. `force` also takes one that was changed or made by hand."""

    name: _Named
    force: bool = False


class SkillReceipt(Record, frozen=True, kw_only=True):
    """It is so now; the agent's next prompt shows it."""

    ok: Literal[True]
    agent_id: AgentId
    name: str
    path: str
    source_kind: str | None = None
    source: str | None = None
