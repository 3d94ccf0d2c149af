"""A run in one's own process: when it is over, and what it adds up to."""

from pathlib import Path

import anyio
import pytest

from holon.adapters.system.clock import SystemClock
from holon.model.commits import AdvanceTask
from holon.model.queue import TrustLevel
from holon.model.tasks import TaskStatus
from holon.model.values import AgentId
from holon.projections.turns.run_result import FinalStatus, RunResult
from holon.runtime.host import Host
from holon.serve.compose import Hooks, HostOptions, open_host
from holon.serve.one_shot import OneShot, RoundLimit, run_once, run_request
from tests.support.builders import a_task
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel

MAIN = AgentId("main")
FOLLOW_UP = ScriptedCall(name="Enqueue", input={"text": "and then that"})
SCRIPT = Script(
    rules=(
        ScriptedRule(when="and then", rounds=(ScriptedRound(text="Then that."),)),
        ScriptedRule(
            when="twice", rounds=(ScriptedRound(calls=(FOLLOW_UP,)), ScriptedRound(text="First."))
        ),
        ScriptedRule(rounds=(ScriptedRound(text="Hello."),)),
    )
)


def models() -> SingleModel:
    return SingleModel(ScriptedProvider(SCRIPT, SystemClock()))


async def ask(
    host: Host, text: str, *, trust: TrustLevel = TrustLevel.TRUSTED_OPERATOR
) -> RunResult:
    return await run_once(host, SystemClock(), agent_id=MAIN, text=text, trust=trust)


async def test_what_an_agent_leaves_itself_is_part_of_the_run(tmp_path: Path) -> None:
    async with open_host(tmp_path, models()) as host:
        result = await ask(host, "twice")
    assert (result.final_text, result.message_count) == ("Then that.", 2)


async def test_a_run_counts_nothing_of_what_was_before(tmp_path: Path) -> None:
    async with open_host(tmp_path, models()) as host:
        await ask(host, "twice")
        result = await ask(host, "hi")
    assert (result.final_text, result.message_count, result.model_rounds) == ("Hello.", 1, 1)


@pytest.mark.requirement("run-once:trust")
@pytest.mark.parametrize("trust", list(TrustLevel))
async def test_a_text_of_any_trust_is_answered(tmp_path: Path, trust: TrustLevel) -> None:
    async with open_host(tmp_path, models()) as host:
        result = await ask(host, "hi", trust=trust)
    assert (result.final_status, result.final_text) == (FinalStatus.COMPLETED, "Hello.")


@pytest.mark.requirement("run-once:waits-for-tasks")
async def test_a_run_is_over_when_its_tasks_are_and_their_results_were_heard(
    tmp_path: Path,
) -> None:
    async with open_host(tmp_path, models()) as host:
        await ask(host, "hi")
        await host.tasks.open(a_task())
        run = OneShot(host, SystemClock(), MAIN)
        await run.ask(run_request(MAIN, "hi", trust=TrustLevel.TRUSTED_OPERATOR))
        await run.rest(wait_for_tasks=False)  # the agent rests, though its task runs
        assert (await run.result()).message_count == 1
        async with anyio.create_task_group() as beside:
            beside.start_soon(_end_task, host)
            await run.rest(wait_for_tasks=True)
        result = await run.result()
    assert (result.message_count, result.final_status) == (2, FinalStatus.COMPLETED)
    assert [task["status"] for task in result.tasks] == ["completed"]


async def _end_task(host: Host) -> None:
    ended = AdvanceTask(
        agent_id=MAIN, task_id=a_task().id, status=TaskStatus.COMPLETED, result_summary="over"
    )
    assert await host.tasks.report(ended)


@pytest.mark.requirement("run-once:round-limit")
async def test_the_rounds_of_a_run_are_counted_over_all_its_turns(tmp_path: Path) -> None:
    allowance = RoundLimit(rounds_max=2)
    hooks = Hooks(round_gate=allowance.gate)
    async with open_host(tmp_path, models(), HostOptions(hooks=hooks)) as host:
        result = await ask(host, "twice")
        state = await host.reads.agents.agent(MAIN)
    assert result.final_status is FinalStatus.MAX_TURNS_EXCEEDED
    assert (result.model_rounds, result.message_count) == (2, 2)
    assert result.raw_final_text is None  # the last turn never got to say anything
    assert state is not None
    assert state.focus.open_turn_id is None  # the turn that was cut short is settled
