"""What stories about commands share: the tools, the scripts, and what came of the calls."""

from typing import Any

import msgspec

from holon.model.events.event import MessageAdmitted
from holon.model.queue import MessageKind
from holon.model.tasks import TaskRecord
from holon.tools.queue import Enqueue
from holon.tools.registry import ToolRegistry, local_tools
from holon.tools.wake import Sleep
from tests.runtime.house import House, Setup
from tests.runtime.records import kept_calls, kept_tasks
from tests.support.scripted_shell import CommandScript

COMMANDS = {
    "make": CommandScript(after_ms=60_000, stdout=b"compiling\n", stderr=b"a warning\n"),
    "fail": CommandScript(after_ms=60_000, stdout=b"boom\n", exit_status=2),
    "quick": CommandScript(after_ms=50, stdout=b"quick as can be\n"),
    "server": CommandScript(after_ms=86_400_000, stdout=b"listening\n"),
    "stubborn": CommandScript(after_ms=86_400_000, ignores_terminate=True),
    "ask": CommandScript(after_ms=86_400_000, stdout=b"name? ", echoes=True),
    "broken": CommandScript(cannot_start="no such shell"),
}


def shell_setup(**other: Any) -> Setup:
    """A house with hands."""
    tools = ToolRegistry((Sleep(), Enqueue(), *local_tools()))
    return Setup(**{"tools": tools, "commands": COMMANDS, **other})


def receipts(house: House) -> list[dict[str, Any]]:
    """What the model was told about its calls, in the order they were made."""
    told = [recorded.receipt for recorded in kept_calls(house)]
    return [msgspec.json.decode(receipt.content) for receipt in told if receipt is not None]


def results(house: House) -> list[dict[str, Any]]:
    """The results of the calls that succeeded."""
    return [told["result"] for told in receipts(house) if told["ok"]]


def tasks(house: House) -> list[TaskRecord]:
    """Every task on record, oldest first."""
    return kept_tasks(house)


async def task_results(house: House) -> list[MessageAdmitted]:
    """Every task_result that was queued."""
    return [
        event
        for event in await house.events()
        if isinstance(event, MessageAdmitted) and event.message_kind is MessageKind.TASK_RESULT
    ]
