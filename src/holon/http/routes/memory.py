"""Memory routes of an agent: search, get, status, rebuild.

Owns:  the routes of memory search.
Rule 1: results are those the agent itself would get, with the same labels.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from holon.adapters.files.contained_files import ContainedFiles
from holon.decide.memory.documents import MEMORY_FILES, require_source_ref
from holon.decide.workspaces import agent_home_of
from holon.http.context import HttpContext, named_agent, shown_agent
from holon.http.route import Access, Call, Route
from holon.model.errors import Refusal, RefusalCode, RefusedError
from holon.model.limits import (
    MEMORY_FILE_BYTES_MAX,
    MEMORY_HITS_COUNT_DEFAULT,
    MEMORY_HITS_COUNT_MAX,
    MEMORY_QUERY_CHARS_MAX,
    MEMORY_TEXT_CHARS_DEFAULT,
    MEMORY_TEXT_CHARS_MAX,
)
from holon.model.values import AgentId
from holon.ports.workspaces import FileRefusedError, PathEscapeError
from holon.wire.responses import MemoryHits, RebuildAnswer, ShownHit, ShownIndex, ShownText


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words to look for."""

    query: Annotated[str, Meta(min_length=1, max_length=MEMORY_QUERY_CHARS_MAX)]
    limit: Annotated[int, Meta(ge=1, le=MEMORY_HITS_COUNT_MAX)] = MEMORY_HITS_COUNT_DEFAULT
    include_all_workspaces: bool = False


class SourceQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reference, copied from a hit."""

    source_ref: Annotated[str, Meta(min_length=1, max_length=MEMORY_QUERY_CHARS_MAX)]
    max_chars: Annotated[int, Meta(ge=1, le=MEMORY_TEXT_CHARS_MAX)] = MEMORY_TEXT_CHARS_DEFAULT


async def search(context: HttpContext, call: Call) -> MemoryHits:
    """Search an agent's memory."""
    agent_id, query = await shown_agent(context, call), call.query_as(SearchQuery)
    result = await context.host.memory.search(
        agent_id,
        query.query,
        limit=query.limit,
        include_all_workspaces=query.include_all_workspaces,
    )
    hits = tuple(ShownHit(**msgspec.structs.asdict(hit)) for hit in result.hits)
    return MemoryHits(results=hits, index=result.status, notes=result.notes)


async def get(context: HttpContext, call: Call) -> ShownText:
    """Show the exact text behind a hit."""
    agent_id, query = await shown_agent(context, call), call.query_as(SourceQuery)
    source_ref = require_source_ref(query.source_ref)
    text = await context.host.memory.get(agent_id, source_ref, chars_max=query.max_chars)
    if text is None:
        raise RefusedError(
            Refusal(
                code=RefusalCode.MEMORY_SOURCE_NOT_FOUND,
                message="there is nothing in the agent's memory under this source_ref",
                hint="search again, and copy the source_ref of a hit as it stands",
                field="source_ref",
            )
        )
    return ShownText(**msgspec.structs.asdict(text))


async def status(context: HttpContext, call: Call) -> ShownIndex:
    """Say how the index of an agent stands."""
    agent_id = await shown_agent(context, call)
    index_status = await context.host.memory.status(agent_id)
    notes = await _unusable_files(context, agent_id)
    return ShownIndex(**msgspec.structs.asdict(index_status), notes=notes)


async def _unusable_files(context: HttpContext, agent_id: AgentId) -> tuple[str, ...]:
    """Return notes on the memory files that the search cannot cover."""
    files = ContainedFiles().under(agent_home_of(context.facts.home_dir, agent_id))
    notes: list[str] = []
    for path in MEMORY_FILES.values():
        try:
            await files.read(path, bytes_max=MEMORY_FILE_BYTES_MAX)
        except (FileRefusedError, PathEscapeError) as refused:
            notes.append(f"{path} is not searched: {refused.message}")
    return tuple(notes)


async def rebuild(context: HttpContext, call: Call) -> RebuildAnswer:
    """Throw the index away and build it anew, behind the answer."""
    await shown_agent(context, call)
    return RebuildAnswer(ok=True, index=await context.host.memory.rebuild(named_agent(call)))


def _routes(prefix: str) -> tuple[Route[HttpContext], ...]:
    """Search and get: of the agent the path names, or of the default one."""
    return (
        Route(
            method="GET",
            path=f"{prefix}/search",
            access=Access.READ,
            summary="Search an agent's memory: its notes, results, episodes, work and commands.",
            answer=search,
            query=SearchQuery,
            returns=MemoryHits,
            refusals=(404,),
            tags=("memory",),
        ),
        Route(
            method="GET",
            path=f"{prefix}/memory/get",
            access=Access.READ,
            summary="The full text of a search result.",
            answer=get,
            query=SourceQuery,
            returns=ShownText,
            refusals=(404,),
            tags=("memory",),
        ),
    )


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    *_routes(""),
    *_routes("/agents/{agent_id}"),
    Route(
        method="GET",
        path="/agents/{agent_id}/memory/status",
        access=Access.READ,
        summary="The state of an agent's memory index.",
        answer=status,
        returns=ShownIndex,
        refusals=(404,),
        tags=("memory",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/memory/rebuild",
        access=Access.CONTROL,
        summary="Rebuild an agent's memory index in the background.",
        answer=rebuild,
        returns=RebuildAnswer,
        refusals=(404,),
        tags=("memory",),
    ),
)
