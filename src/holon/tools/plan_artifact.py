"""The plan of a work item, as a file the agent edits like any other.

Owns:  where the file is, seeding it, and the bounded look at it that every view carries.
Rule 1: the file is the plan. A file that is not there is no error: the item has no plan yet.
Rule 2: a file that cannot be read is told as a problem beside the view; the view itself stands.
Rule 3: the host keeps no file times. A plan that is as it was recorded keeps the recorded moment;
        one that was edited since is dated to the moment the edit was seen.
"""

import hashlib
from datetime import datetime

from holon.model.json_value import JsonValue
from holon.model.limits import PLAN_BYTES_MAX, PLAN_PREVIEW_CHARS_MAX
from holon.model.record import Record
from holon.model.work_item import PlanArtifact, WorkItemRecord
from holon.ports.files import FileChange, FileRefusedError, Files, PathEscapeError, StoredFile
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse

_MODE = 0o644


class PlanLook(Record, frozen=True, kw_only=True):
    """What there is of a plan, or why it could not be read."""

    artifact: PlanArtifact | None = None
    problem: str | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The problem as a note for the model."""
        return () if self.problem is None else (f"the plan could not be read: {self.problem}",)


def plan_path(work_item_id: str) -> str:
    """Where the plan is, seen from the agent's home."""
    return f"work-items/{work_item_id}/plan.md"


async def look_at_plan(
    item: WorkItemRecord, files: Files, *, agent_home: str, now: datetime
) -> PlanLook:
    """Look at the file as it is now."""
    try:
        home = files.under(agent_home)
    except FileRefusedError:
        return PlanLook()  # a host without files has no plans
    try:
        found = await home.read(plan_path(item.id), bytes_max=PLAN_BYTES_MAX)
    except (PathEscapeError, FileRefusedError) as problem:
        return PlanLook(problem=str(problem))
    if found is None:
        return PlanLook()
    recorded = item.plan_artifact
    return PlanLook(
        artifact=_described(item.id, found.content, recorded, agent_home=agent_home, now=now)
    )


async def seed_plan(
    work_item_id: str, plan: str, scene: ToolScene, ports: ToolPorts
) -> PlanArtifact | ToolExecution | None:
    """Write the first plan of a new item, if there is one."""
    if not plan.strip():
        return None
    content = plan.encode()
    if len(content) > PLAN_BYTES_MAX:
        return refuse(
            "invalid_tool_input",
            f"the plan is longer than {PLAN_BYTES_MAX} bytes",
            hint="seed a short plan and extend its file afterwards",
            field="plan",
        )
    change = FileChange(path=plan_path(work_item_id), after=StoredFile(content=content, mode=_MODE))
    try:
        await ports.files.under(scene.agent_home).replace_all((change,))
    except (PathEscapeError, FileRefusedError) as problem:
        return refuse(
            "plan_not_written",
            f"the plan could not be written: {problem}",
            hint="create the work item without a plan",
            field="plan",
        )
    return _described(work_item_id, content, None, agent_home=scene.agent_home, now=scene.now)


def plan_view(artifact: PlanArtifact, work_item_id: str, *, chars_max: int) -> JsonValue:
    """The plan as a reader sees it."""
    preview = artifact.preview[:chars_max]
    return {
        "relative_path": plan_path(work_item_id),
        "path": artifact.path,
        "hash": artifact.hash,
        "bytes": artifact.bytes,
        "updated_at": artifact.updated_at.isoformat(),
        "preview": preview,
        "preview_complete": artifact.preview_complete and preview == artifact.preview,
    }


def _described(
    work_item_id: str,
    content: bytes,
    recorded: PlanArtifact | None,
    *,
    agent_home: str,
    now: datetime,
) -> PlanArtifact:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    text = content.decode(errors="replace")
    unchanged = recorded is not None and recorded.hash == digest
    return PlanArtifact(
        path=f"{agent_home}/{plan_path(work_item_id)}",
        hash=digest,
        bytes=len(content),
        updated_at=recorded.updated_at if unchanged and recorded is not None else now,
        preview=text[:PLAN_PREVIEW_CHARS_MAX],
        preview_complete=len(text) <= PLAN_PREVIEW_CHARS_MAX,
    )
