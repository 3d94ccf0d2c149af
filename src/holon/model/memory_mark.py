"""What a commit leaves behind for memory search.

Owns:  the marks: which record has to be indexed anew, and what a turn has been shown.
"""

from typing import TypeAlias

from holon.model.ids import AgentId, MessageId, TurnId
from holon.model.memory_index import MemoryKind
from holon.model.provenance import AuthorityClass
from holon.model.record import Record


class SourceChanged(Record, frozen=True, kw_only=True):
    """A record was written; `turn_id` is the turn that did it, `turns` those it tells of."""

    agent_id: AgentId
    kind: MemoryKind
    source_id: str
    turn_id: TurnId | None = None
    turns: tuple[int, int] | None = None


class TurnShown(Record, frozen=True, kw_only=True):
    """A turn was shown content of this authority.

    One that `goes_on` is worth no more than the turn before it, nor than that of `root_id`.
    """

    turn_id: TurnId
    authority_class: AuthorityClass
    goes_on: bool = False
    root_id: MessageId | None = None


MemoryMark: TypeAlias = SourceChanged | TurnShown
