"""The MemorySearch and MemoryGet tools: find recorded notes, decisions and results.

Owns:  both tools. They change nothing.
Rule 1: a reference is copied from MemorySearch. One that is invented, names a file or belongs to
        another agent finds nothing, and the answer does not say which of these it was.
Rule 2: every hit states its origin and the authority of its content. Being found in memory does not
        raise that authority.
"""

from typing import Annotated, Final

import msgspec

from holon.decide.memory.documents import require_source_ref
from holon.model.errors import BadIdError
from holon.model.limits import (
    MEMORY_HITS_COUNT_DEFAULT,
    MEMORY_HITS_COUNT_MAX,
    MEMORY_QUERY_CHARS_MAX,
    MEMORY_TEXT_CHARS_DEFAULT,
    MEMORY_TEXT_CHARS_MAX,
)
from holon.model.memory.index import FoundMemory, IndexState
from holon.model.memory.records import MemoryHit
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.values import JsonValue
from holon.ports.memory import MemoryIndexError
from holon.tools.arguments import decode_arguments, guidance_for, leniently, schema_of
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse


class MemoryGetArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text to read, and its maximum length."""

    source_ref: Annotated[
        str,
        msgspec.Meta(
            min_length=1, description="The source_ref of a MemorySearch hit, copied as it stands."
        ),
    ]
    max_chars: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=MEMORY_TEXT_CHARS_MAX, description="How many characters to show at most."
        ),
    ] = MEMORY_TEXT_CHARS_DEFAULT


class MemoryGet:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="MemoryGet",
            description=guidance_for("memory_get"),
            input_schema=schema_of(MemoryGetArguments),
        )

    @leniently(("ref", "source_ref"), ("id", "source_ref"), ("limit", "max_chars"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Return the text of a reference."""
        request = decode_arguments(arguments, MemoryGetArguments)
        if isinstance(request, ToolExecution):
            return request
        try:
            source_ref = require_source_ref(request.source_ref)
            found = await ports.recall.get(scene.agent_id, source_ref, chars_max=request.max_chars)
        except BadIdError as bad:
            return refuse("invalid_tool_input", bad.message, hint=bad.hint, field="source_ref")
        except MemoryIndexError as problem:
            return refuse(problem.code, problem.message, hint=problem.hint)
        if found is None:
            return refuse(
                "memory_source_not_found",
                "there is nothing in your memory under this source_ref",
                hint="search again, and copy the source_ref of a hit as it stands",
                field="source_ref",
            )
        return ToolExecution(
            outcome=ToolOk(result=msgspec.to_builtins(msgspec.structs.asdict(found)))
        )


class MemorySearchArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query, and its scope."""

    query: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=MEMORY_QUERY_CHARS_MAX,
            description="Words to look for, in any language. They are plain words: no operators.",
        ),
    ]
    limit: Annotated[
        int,
        msgspec.Meta(ge=1, le=MEMORY_HITS_COUNT_MAX, description="How many hits to show at most."),
    ] = MEMORY_HITS_COUNT_DEFAULT
    include_all_workspaces: Annotated[
        bool,
        msgspec.Meta(
            description="Also look at what belongs to workspaces you are not in; default: your own"
            " memory and the active workspace."
        ),
    ] = False


class MemorySearch:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="MemorySearch",
            description=guidance_for("memory_search"),
            input_schema=schema_of(MemorySearchArguments),
        )

    @leniently(("q", "query"), ("text", "query"), ("max_results", "limit"), ("count", "limit"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Return the hits of a query."""
        request = decode_arguments(arguments, MemorySearchArguments)
        if isinstance(request, ToolExecution):
            return request
        try:
            found = await ports.recall.search(
                scene.agent_id,
                request.query,
                limit=request.limit,
                include_all_workspaces=request.include_all_workspaces,
            )
        except MemoryIndexError as problem:
            return refuse(problem.code, problem.message, hint=problem.hint)
        result: JsonValue = {
            "query": request.query,
            "results": [hit_view(hit) for hit in found.hits],
        }
        return ToolExecution(outcome=ToolOk(result=result, notes=(*found.notes, *_missing(found))))


def hit_view(hit: MemoryHit) -> JsonValue:
    """Return a hit with every field."""
    return msgspec.to_builtins(msgspec.structs.asdict(hit))


def _missing(found: FoundMemory) -> tuple[str, ...]:
    if found.status.state is IndexState.READY:
        return ()
    return (
        f"the index is still being built: {found.status.behind_count} records are not in it yet;"
        " search again in a while",
    )
