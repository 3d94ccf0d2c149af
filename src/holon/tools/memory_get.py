"""MemoryGet: the exact text behind a hit.

Owns:  the MemoryGet tool. It changes nothing.
Rule 1: a reference is copied from MemorySearch. One that was made up, that names a file or that is
        another agent's leads nowhere, and nothing says which of these it was.
"""

from typing import Annotated, Final

import msgspec

from holon.decide.memory_documents import require_source_ref
from holon.model.errors import BadIdError
from holon.model.json_value import JsonValue
from holon.model.limits import MEMORY_TEXT_CHARS_DEFAULT, MEMORY_TEXT_CHARS_MAX
from holon.model.tool import ToolOk, ToolSpec
from holon.ports.memory_index import MemoryIndexError
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse


class MemoryGetArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which text, and how much of it."""

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
        """Read."""
        asked = decode_arguments(arguments, MemoryGetArguments)
        if isinstance(asked, ToolExecution):
            return asked
        try:
            source_ref = require_source_ref(asked.source_ref)
            found = await ports.recall.get(scene.agent_id, source_ref, chars_max=asked.max_chars)
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
