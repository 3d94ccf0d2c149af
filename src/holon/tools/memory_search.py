"""MemorySearch: find again what was written down, decided or done.

Owns:  the MemorySearch tool. It changes nothing.
Rule 1: every hit says where it comes from and what its content is worth. Finding a text in memory
        makes it no more than it was when it came in.
"""

from typing import Annotated, Final

import msgspec

from holon.model.json_value import JsonValue
from holon.model.limits import (
    MEMORY_HITS_COUNT_DEFAULT,
    MEMORY_HITS_COUNT_MAX,
    MEMORY_QUERY_CHARS_MAX,
)
from holon.model.memory import MemoryHit
from holon.model.memory_index import FoundMemory, IndexState
from holon.model.tool import ToolOk, ToolSpec
from holon.ports.memory_index import MemoryIndexError
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse


class MemorySearchArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look for, and where."""

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
        """Search."""
        asked = decode_arguments(arguments, MemorySearchArguments)
        if isinstance(asked, ToolExecution):
            return asked
        try:
            found = await ports.recall.search(
                scene.agent_id,
                asked.query,
                limit=asked.limit,
                include_all_workspaces=asked.include_all_workspaces,
            )
        except MemoryIndexError as problem:
            return refuse(problem.code, problem.message, hint=problem.hint)
        result: JsonValue = {
            "query": asked.query,
            "results": [hit_view(hit) for hit in found.hits],
        }
        return ToolExecution(outcome=ToolOk(result=result, notes=(*found.notes, *_missing(found))))


def hit_view(hit: MemoryHit) -> JsonValue:
    """A hit with every field."""
    return msgspec.to_builtins(msgspec.structs.asdict(hit))


def _missing(found: FoundMemory) -> tuple[str, ...]:
    if found.status.state is IndexState.READY:
        return ()
    return (
        f"the index is still being built: {found.status.behind_count} records are not in it yet;"
        " search again in a while",
    )
