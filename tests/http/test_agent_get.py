"""AgentGet in a turn, beside the status an operator reads."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from holon.adapters.system.clock import SystemClock
from tests.http.serving import settled
from tests.support.control_server import MAIN, ServerOptions, control_server
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel

LOOKS = Script(
    rules=(
        ScriptedRule(
            rounds=(
                ScriptedRound(calls=(ScriptedCall(name="AgentGet", input={}),)),
                ScriptedRound(text="done"),
            ),
        ),
    )
)
OF_THE_TOOL = {"external_trigger", "work_items", "tasks"}
UNTOUCHED_BY_A_TURN = (
    "identity",
    "lifecycle",
    "execution",
    "model",
    "active_external_triggers",
    "active_wait_conditions",
    "skills",
    "withheld_tools",
)


@pytest.mark.requirement("agent-get:the-same-summary")
async def test_an_agent_reads_the_summary_its_operator_reads(tmp_path: Path) -> None:
    models = SingleModel(ScriptedProvider(LOOKS, SystemClock()))
    async with control_server(tmp_path / "home", ServerOptions(models=models)) as server:
        item = await server.host.work.create(MAIN, objective="deploy")
        await settled(server)
        await settled(server, "again")  # both have been asked by then: the model has answered
        (log, *_) = await server.host.reads.turns.turns_page(MAIN, before_index=None, limit=1)
        (call,) = log.calls
        assert call.receipt is not None
        result: dict[str, Any] = msgspec.json.decode(call.receipt.content)["result"]
        status = (await server.operator.get(f"/agents/{MAIN}/status")).json()
        assert set(result) - OF_THE_TOOL <= set(status)
        assert set(status) - set(result) <= {"closure"}
        assert set(result["counts"]) == set(status["counts"])
        assert {"id", "status", "turn_index", "execution_profile"} <= set(result["agent"])
        for name in UNTOUCHED_BY_A_TURN:
            assert result.get(name) == status.get(name), name
        assert [each["id"] for each in result["work_items"]] == [item.id]
        assert result["external_trigger"]["status"] == "active"
        assert result["active_external_triggers"][0]["trigger_url"].endswith(".***")
