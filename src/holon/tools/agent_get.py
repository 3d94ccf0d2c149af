"""AgentGet: what the runtime knows about the agent that asks.

Owns:  the AgentGet tool. It changes nothing.
Rule 1: the summary is bounded, whatever the agent has piled up: rows are shown up to a number and
        counted beyond it.
"""

from typing import Final

import msgspec

from holon.decide.agent_refusals import refuse_unknown
from holon.decide.trigger_address import descriptor
from holon.model.json_value import JsonValue
from holon.model.limits import (
    AGENT_ROWS_SHOWN_COUNT_MAX,
    EVENT_TEXT_CHARS_MAX,
    TOOL_LATENCIES_SHOWN_COUNT_MAX,
)
from holon.model.snapshot import AgentSnapshot
from holon.model.task import TaskRecord
from holon.model.tool import ToolOk, ToolSpec
from holon.model.workspace import WorkspaceBindings
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.execution_view import execution_of, execution_view
from holon.tools.guidance_texts import guidance_for
from holon.tools.own_work_items import refused
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.work_item_view import Seen, wait_views


class AgentGetArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing needs to be said."""


class AgentGet:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="AgentGet",
            description=guidance_for("agent_get"),
            input_schema=schema_of(AgentGetArguments),
        )

    @leniently()
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Read the summary."""
        asked = decode_arguments(arguments, AgentGetArguments)
        if isinstance(asked, ToolExecution):
            return asked
        snapshot = await ports.reads.snapshot(scene.agent_id, now=scene.now)
        target = await ports.reads.admission_target(scene.agent_id)
        if snapshot is None or target is None:
            return refused(refuse_unknown(scene.agent_id))
        tasks = [t for t in await ports.reads.open_tasks() if t.agent_id == scene.agent_id]
        latencies = await ports.reads.tool_latencies(
            scene.agent_id, limit=TOOL_LATENCIES_SHOWN_COUNT_MAX
        )
        counts = await ports.reads.work_item_counts(scene.agent_id)
        result: JsonValue = {
            "identity": _whole(snapshot.agent.identity),
            "external_trigger": descriptor(await ports.reads.trigger_of(scene.agent_id)),
            "status": _whole(snapshot.agent.posture),
            "model": {"override": snapshot.agent.model.override_model},
            "focus": _focus(snapshot),
            "execution": execution_view(execution_of(scene, ports)),
            "attached_workspaces": _workspaces(
                await ports.reads.workspace_bindings(scene.agent_id)
            ),
            "counts": {
                "queued_messages": target.queued_count,
                "open_work_items": counts.open_count,
                "waits": len(snapshot.agent_waits),
                "tasks": len(tasks),
                "active_timers": snapshot.active_timer_count,
                "wake_hints": len(snapshot.hints),
            },
            "work_items": _items(snapshot),
            "waits": wait_views(snapshot.agent_waits),
            "tasks": [_task(task) for task in tasks[:AGENT_ROWS_SHOWN_COUNT_MAX]],
            "totals": _whole(snapshot.agent.totals),
            "tool_latency": [_whole(each) for each in latencies],
        }
        return ToolExecution(outcome=ToolOk(result=result))


def _whole(record: msgspec.Struct) -> JsonValue:
    """A record with every field, also those that stand at their default."""
    return msgspec.to_builtins(msgspec.structs.asdict(record))


def _workspaces(bindings: WorkspaceBindings) -> JsonValue:
    active = None if bindings.active is None else bindings.active.workspace_id
    return [
        {
            "workspace_id": entry.workspace_id,
            "workspace_anchor": entry.workspace_anchor,
            "repo_name": entry.repo_name,
            "is_active": entry.workspace_id == active,
        }
        for entry in bindings.attached[:AGENT_ROWS_SHOWN_COUNT_MAX]
    ]


def _focus(snapshot: AgentSnapshot) -> JsonValue:
    focus = snapshot.agent.focus
    return {
        "current_work_item_id": focus.current_work_item_id,
        "open_turn_id": focus.open_turn_id,
    }


def _open_items(snapshot: AgentSnapshot) -> list[Seen]:
    focus = snapshot.agent.focus.current_work_item_id
    weighed = (*((snapshot.current,) if snapshot.current else ()), *snapshot.queued)
    seen = (Seen(item=each.item, waits=each.waits, focus=focus) for each in weighed)
    return [each for each in seen if each.standing != "completed"]


def _items(snapshot: AgentSnapshot) -> JsonValue:
    return [
        {
            "id": seen.item.id,
            "objective": seen.item.objective[:EVENT_TEXT_CHARS_MAX],
            "focus": seen.standing,
            "scheduling_state": seen.scheduling.value,
        }
        for seen in _open_items(snapshot)[:AGENT_ROWS_SHOWN_COUNT_MAX]
    ]


def _task(task: TaskRecord) -> JsonValue:
    return {
        "id": task.id,
        "kind": task.kind.value,
        "status": task.status.value,
        "summary": (task.summary or "")[:EVENT_TEXT_CHARS_MAX] or None,
        "work_item_id": task.work_item_id,
        "updated_at": task.updated_at.isoformat(),
    }
