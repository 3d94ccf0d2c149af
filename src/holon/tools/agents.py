"""The AgentGet tool: what the runtime knows about the calling agent.

Owns:  the AgentGet tool. It changes nothing.
Rule 1: it shows the summary operators see (projections/agents/summary), and in addition what an
        agent needs about itself: its open work items and tasks, and the address of its trigger.
Rule 2: the answer is bounded, however much the agent has accumulated: rows are shown up to a limit
        and counted beyond it.
"""

from typing import Final

import msgspec

from holon.decide.agents.lifecycle import refuse_unknown
from holon.decide.wake.triggers import descriptor
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import AGENT_ROWS_SHOWN_COUNT_MAX, EVENT_TEXT_CHARS_MAX
from holon.model.tasks import TaskRecord
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.values import JsonValue
from holon.tools.arguments import decode_arguments, guidance_for, leniently, schema_of
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.work.items import Seen, refused


class AgentGetArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No arguments."""


class AgentGet:
    """Shows the calling agent's own summary."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="AgentGet",
            description=guidance_for("agent_get"),
            input_schema=schema_of(AgentGetArguments),
        )

    @leniently()
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Return the summary, the trigger, and open work items and tasks."""
        request = decode_arguments(arguments, AgentGetArguments)
        if isinstance(request, ToolExecution):
            return request
        snapshot = await ports.reads.agents.snapshot(scene.agent_id, now=scene.now)
        summary = await ports.summary_of(scene.agent_id)
        if snapshot is None or summary is None:
            return refused(refuse_unknown(scene.agent_id))
        trigger = await ports.reads.wake.trigger_of(scene.agent_id)
        # The summary shows a masked address only where deliveries to this host are possible.
        has_deliveries = any(each.trigger_url for each in summary.active_external_triggers)
        tasks = [t for t in await ports.reads.tasks.open_tasks() if t.agent_id == scene.agent_id]
        result: JsonValue = {
            **msgspec.to_builtins(summary),
            "external_trigger": descriptor(trigger, has_deliveries=has_deliveries),
            "work_items": _items(snapshot),
            "tasks": [_task(task) for task in tasks[:AGENT_ROWS_SHOWN_COUNT_MAX]],
        }
        return ToolExecution(outcome=ToolOk(result=result))


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
