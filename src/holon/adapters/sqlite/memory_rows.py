"""Between documents and the rows of a memory index.

Owns:  the order of the columns, and the records they become.
Rule 1: a row that cannot be read is damage: the index is derived, so it is made anew.
"""

from typing import Final, NamedTuple

import msgspec

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.memory_file import DamagedIndexError
from holon.adapters.sqlite.statements import Row
from holon.model.ids import AgentId, WorkspaceId
from holon.model.instant import from_micros, to_micros
from holon.model.limits import MEMORY_DOCUMENT_CHARS_MAX
from holon.model.memory import MemoryHit
from holon.model.memory_index import MemoryDocument, MemoryKind, MemoryText, ScopeKind
from holon.model.provenance import AuthorityClass

_METADATA: Final = msgspec.json.Decoder(dict[str, str])


class FoundRow(NamedTuple):
    """The columns of every query for documents."""

    rank: float
    source_ref: str
    kind: str
    scope_kind: str
    workspace_id: str | None
    agent_id: str
    source_path: str | None
    title: str
    updated_at: int
    authority_class: str
    metadata: str
    body: str


class DocumentValues(NamedTuple):
    """The columns a document is stored in."""

    source_ref: str
    source_key: str
    kind: str
    scope_kind: str
    workspace_id: str | None
    agent_id: str
    source_path: str | None
    title: str
    updated_at: int
    authority_class: str
    metadata: str
    digest: str
    body: str


def row_values(document: MemoryDocument, *, digest: str) -> DocumentValues:
    """Return what is stored of a document."""
    return DocumentValues(
        source_ref=document.source_ref,
        source_key=document.source_key,
        kind=document.kind.value,
        scope_kind=document.scope_kind.value,
        workspace_id=document.workspace_id,
        agent_id=document.agent_id,
        source_path=document.source_path,
        title=_storable(document.title),
        updated_at=to_micros(document.updated_at),
        authority_class=document.authority_class.value,
        metadata=encode(document.metadata),
        digest=digest,
        body=_storable(document.body[:MEMORY_DOCUMENT_CHARS_MAX]),
    )


def hit_of(row: Row, *, snippet: str) -> MemoryHit:
    """Return a row as a search result."""
    found = FoundRow._make(row)
    text = text_of(row, chars_max=1)
    return MemoryHit(
        kind=text.kind.value,
        source_ref=text.source_ref,
        scope_kind=text.scope_kind.value,
        agent_id=text.agent_id,
        title=text.title,
        snippet=snippet,
        score=round(-found.rank, 6),
        updated_at=text.updated_at,
        authority_class=text.authority_class,
        workspace_id=text.workspace_id,
        source_path=text.source_path,
        metadata=text.metadata,
    )


def text_of(row: Row, *, chars_max: int) -> MemoryText:
    """Return a row with its exact text, within a bound."""
    found = FoundRow._make(row)
    workspace_id = found.workspace_id
    try:
        return MemoryText(
            kind=MemoryKind(found.kind),
            source_ref=found.source_ref,
            scope_kind=ScopeKind(found.scope_kind),
            agent_id=AgentId(found.agent_id),
            title=found.title,
            updated_at=from_micros(found.updated_at),
            authority_class=AuthorityClass(found.authority_class),
            content=found.body[:chars_max],
            truncated=len(found.body) > chars_max,
            workspace_id=None if workspace_id is None else WorkspaceId(workspace_id),
            source_path=found.source_path,
            metadata=_METADATA.decode(found.metadata),
        )
    except (ValueError, OverflowError, msgspec.DecodeError) as damage:
        raise DamagedIndexError(f"a row cannot be read: {damage}") from damage


def _storable(text: str) -> str:
    """A text without what UTF-8 has no form for."""
    return text.encode(errors="replace").decode()
