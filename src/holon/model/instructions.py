"""Standing guidance that people keep in files: AGENTS.md and its relatives.

Owns:  what was loaded, from where, what could not be, and what is to be mistrusted of it.
Rule 1: the text goes into the prompt and nowhere else; surfaces show where it came from.
"""

from enum import StrEnum

from holon.model.ids import TurnId
from holon.model.instant import Instant
from holon.model.record import Record


class InstructionSource(StrEnum):
    """Whose guidance it is; the order here is the order in a prompt."""

    USER_GLOBAL = "user_global"
    AGENT = "agent"
    WORKSPACE = "workspace"


class InstructionKind(StrEnum):
    """Which file it stands in."""

    AGENTS_MD = "agents_md"
    CLAUDE_MD = "claude_md"


class InstructionMetadata(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Where guidance came from; never what it says."""

    source: InstructionSource
    kind: InstructionKind
    path: str
    bytes: int
    sha256: str
    truncated: bool


class LoadedInstructions(Record, frozen=True, kw_only=True):
    """One file of guidance. `bytes` is its size on disk; `truncated` says that `text` is less."""

    source: InstructionSource
    kind: InstructionKind
    path: str
    text: str
    bytes: int
    sha256: str
    truncated: bool = False

    @property
    def metadata(self) -> InstructionMetadata:
        """What surfaces may show of it."""
        return InstructionMetadata(
            source=self.source,
            kind=self.kind,
            path=self.path,
            bytes=self.bytes,
            sha256=self.sha256,
            truncated=self.truncated,
        )


class LoadedGuidance(Record, frozen=True, kw_only=True):
    """Everything that was found, and what stood in the way of the rest."""

    files: tuple[LoadedInstructions, ...] = ()
    problems: tuple[str, ...] = ()


class TaintedInstructions(Record, frozen=True, kw_only=True):
    """The newest change of an agent's own sources that somebody from outside may be behind.

    It was seen in a turn in which they had a word. `change_count` counts all such changes there
    have ever been.
    """

    path: str  # below the agent's home
    changed_at: Instant
    turn_id: TurnId
    change_count: int
