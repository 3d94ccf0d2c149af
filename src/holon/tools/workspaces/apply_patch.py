"""The ApplyPatch tool: change files as a patch says, all of them or none.

Owns:  the ApplyPatch tool: parse a patch, plan every file, replace all files at once.
Rule 1: nothing is written before everything is planned, and then all at once or not at all.
Rule 2: both patch forms are accepted, whichever the schema offered.
Rule 3: instruction files are not changed in a turn that includes untrusted input (tools/guidance).
Rule 4: every refusal has a kind, shows where the patch and the file differ, and says what to do.
"""

from typing import TYPE_CHECKING, Annotated, Final

import anyio.to_thread
import msgspec

from holon.model.limits import (
    PATCH_FILE_BYTES_MAX,
    PATCH_TREE_BYTES_MAX,
    TOOL_ERROR_DETAIL_CHARS_MAX,
)
from holon.model.turns.tools import FreeformGrammar, ToolError, ToolOk, ToolRefused, ToolSpec
from holon.model.values import JsonValue
from holon.ports.workspaces import FileRefusedError, PathEscapeError, RootedFiles, StoredFile
from holon.tools.arguments import (
    decode_arguments,
    guidance_file,
    guidance_for,
    leniently,
    schema_of,
)
from holon.tools.guidance import guarded
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.workspaces.patching.document import TOO_LARGE, PatchRefusedError, quoted

if TYPE_CHECKING:
    from holon.tools.workspaces.patching.document import Patch
    from holon.tools.workspaces.patching.plan import PatchPlan

_PATHS_SHOWN_COUNT_MAX: Final = 3


class ApplyPatchArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The patch."""

    patch: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            description="A unified diff, or a patch between *** Begin Patch and *** End Patch."
            " Paths are relative to the execution root.",
        ),
    ]


class ApplyPatch:
    """The tool."""

    only_plans: Final = False

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="ApplyPatch",
            description=guidance_for("apply_patch"),
            input_schema=schema_of(ApplyPatchArguments),
            mutates=True,
            freeform=FreeformGrammar(argument="patch", syntax="lark", definition=_grammar()),
        )

    @leniently(("input", "patch"), ("diff", "patch"), ("content", "patch"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Apply one patch."""
        request = decode_arguments(arguments, ApplyPatchArguments)
        if isinstance(request, ToolExecution):
            return request
        # Local imports: the patch engine is slow to load, and many runs apply no patch.
        from holon.tools.workspaces.patching.parse import parse_patch
        from holon.tools.workspaces.patching.plan import plan_patch

        try:
            patch = await anyio.to_thread.run_sync(parse_patch, request.patch)
            files = ports.files.under(scene.execution_root)
            before = await _read_all(files, patch)
            plan = await anyio.to_thread.run_sync(plan_patch, patch, before)
            if plan.changes:
                changed = [change.path for change in plan.changes]
                if (refusal := await guarded(changed, scene, ports)) is not None:
                    return refusal
                await files.replace_all(plan.changes)
                ports.recall.files_changed(scene.agent_id, scene.execution_root, changed)
        except PatchRefusedError as problem:
            return _refused(problem.kind, problem)
        except PathEscapeError as problem:
            return _refused("path_escape", problem)
        except FileRefusedError as problem:
            return _refused(problem.code, problem)
        return ToolExecution(
            outcome=ToolOk(result=_result(plan, patch), summary_text=_summary(plan))
        )


async def _read_all(files: RootedFiles, patch: "Patch") -> dict[str, StoredFile | None]:
    """Read every file the patch names, within the limit for their total size."""
    from holon.tools.workspaces.patching.plan import paths_of

    files_by_path: dict[str, StoredFile | None] = {}
    left = PATCH_TREE_BYTES_MAX
    for path in paths_of(patch):
        files_by_path[path] = stored = await files.read(path, bytes_max=PATCH_FILE_BYTES_MAX)
        left -= 0 if stored is None else len(stored.content)
        if left < 0:
            raise PatchRefusedError(
                TOO_LARGE,
                f"the files of one patch may have {PATCH_TREE_BYTES_MAX} bytes together",
                hint="split the change into several smaller patches",
            )
    return files_by_path


def _refused(
    kind: str, problem: PatchRefusedError | PathEscapeError | FileRefusedError
) -> ToolExecution:
    details: JsonValue = problem.details if isinstance(problem, PatchRefusedError) else None
    error = ToolError(
        kind=kind,
        message=problem.message,
        hint=problem.hint or "nothing was changed; correct the patch and send it whole again",
        field="patch",
        details=_fitting(details),
    )
    return ToolExecution(outcome=ToolRefused(error=error))


def _fitting(details: JsonValue) -> JsonValue:
    """Drop candidates until the details fit into the error."""
    while isinstance(details, dict) and details.get("candidates"):
        if len(msgspec.json.encode(details)) <= TOOL_ERROR_DETAIL_CHARS_MAX:
            break
        details = {**details, "candidates": details["candidates"][:-1]}
    return details


def _result(plan: "PatchPlan", patch: "Patch") -> JsonValue:
    changed = [
        {"action": file.action.value, "path": file.path}
        | ({"from_path": file.from_path} if file.from_path is not None else {})
        for file in plan.changed_files
    ]
    return {
        "changed_files": changed,
        "changed_paths": [file.path for file in plan.changed_files],
        "changed_file_count": len(plan.changed_files),
        "ignored_metadata": list(patch.ignored_metadata),
        "diagnostics": [
            {"path": note.path, "kind": note.kind, "message": note.message} for note in plan.notes
        ],
        "summary_text": _summary(plan),
    }


def _summary(plan: "PatchPlan") -> str:
    if not plan.changed_files:
        return "the files already have the contents of the patch"
    shown = [f"{f.action.value} {quoted(f.path)}" for f in plan.changed_files]
    more = len(shown) - _PATHS_SHOWN_COUNT_MAX
    named = ", ".join(shown[:_PATHS_SHOWN_COUNT_MAX])
    return f"{named} and {more} more" if more > 0 else named


def _grammar() -> str:
    return guidance_file("apply_patch.lark")
