"""The session of one run: host, signals and result.

Owns:  the run request, its host, and the handling of Ctrl-C.
Rule 1: the first Ctrl-C aborts the running turn, as an operator's abort does, and ends the run. The
        agent keeps its state and can be prompted again. The second one ends the process at once,
        with the command of the current call; the next process that opens the home recovers.
Rule 2: background tasks survive an aborted run, as they survive any end of this process. The
        operator is told which ones are running.
Rule 3: only the run's agent is shown and bound by the round limit, not others that the host
        resumes.
"""

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import anyio
import click
import msgspec

from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.cli.console import exit_codes
from holon.decide.tasks.commands import run_ids_of_call
from holon.model.errors import HolonError, RefusalCode, RefusedError, StoreFullError, first_error
from holon.model.events.briefs import FailureArtifact
from holon.model.events.event import Event, ToolExecuted, ToolExecutionFailed
from holon.model.providers.models import parse_model_ref
from holon.model.queue import TrustLevel
from holon.model.tasks import TaskRecord
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.turn import AnswerProgress
from holon.model.values import AgentId
from holon.projections.turns.run_result import RunResult
from holon.runtime.host import Host
from holon.serve.compose import COMMANDS_FOLDER, Hooks
from holon.serve.configured_host import open_configured_host
from holon.serve.one_shot import (
    OneShot,
    RoundLimit,
    archive_temporary,
    named_agent,
    run_request,
    temporary_agent,
)

if TYPE_CHECKING:
    from holon.cli.run.view import RunView
    from holon.config.load_settings import Settings

STOP_SIGNALS: Final = {
    signal.SIGINT: exit_codes.INTERRUPTED,
    signal.SIGTERM: exit_codes.TERMINATED,
}


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a run."""

    text: str
    agent_id: AgentId | None = None
    create_agent: bool = False
    template: str | None = None
    trust: TrustLevel = TrustLevel.TRUSTED_OPERATOR
    rounds_max: int | None = None
    wait_for_tasks: bool = True
    workspace_root: str | None = None
    workspace_cwd: str | None = None


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome. `stopped_by` is the signal that ended it; `running` are remaining tasks."""

    result: RunResult
    stopped_by: signal.Signals | None = None
    running: tuple[TaskRecord, ...] = ()


class _RunHooks(msgspec.Struct, kw_only=True):
    """The host hooks of a run, limited to its agent."""

    view: "RunView"
    allowance: RoundLimit
    agent_id: AgentId | None = None
    under_way: ToolCallRecord | None = None  # the newest call that has no result yet

    def growing(self, agent_id: AgentId, progress: AnswerProgress) -> None:
        if agent_id == self.agent_id:
            self.view.growing(agent_id, progress)

    def began(self, call: ToolCallRecord) -> None:
        if call.agent_id == self.agent_id:
            self.under_way = call
            self.view.began(call)

    def told(self, event: Event) -> None:
        if isinstance(event, ToolExecuted | ToolExecutionFailed):
            self._settled(event.effect_id)
        self.view.told(event)

    def _settled(self, effect_id: str) -> None:
        if self.under_way is not None and self.under_way.effect_id == effect_id:
            self.under_way = None

    def gate(self, agent_id: AgentId) -> FailureArtifact | None:
        return self.allowance.gate(agent_id) if agent_id == self.agent_id else None


async def carry_out(settings: "Settings", order: RunRequest, view: "RunView") -> RunOutcome:
    """Carry out the request in the home of these settings; raises HolonError."""
    attention = _RunHooks(
        view=view,
        allowance=RoundLimit(rounds_max=order.rounds_max),
        agent_id=order.agent_id,
    )
    hooks = Hooks(progress=attention.growing, calls=attention.began, round_gate=attention.gate)
    commands = settings.home / COMMANDS_FOLDER
    problem: HolonError | None = None
    end: RunOutcome | None = None
    try:
        async with open_configured_host(
            settings,
            dict(os.environ),
            workspace_root=order.workspace_root,
            workspace_cwd=order.workspace_cwd or order.workspace_root,
            hooks=hooks,
        ) as served:
            if served.plane.note is not None:
                click.echo(f"holon: {served.plane.note}", err=True)
            end = await _Session(served.host, order, attention, commands).run()
    except* HolonError as several:
        problem = first_error(several)
    finally:
        view.close()
    if problem is not None:
        raise problem
    assert end is not None
    return end


class _Session(msgspec.Struct):
    """A run within its open host."""

    host: Host
    order: RunRequest
    attention: _RunHooks
    commands: Path  # where the host keeps what it knows of running commands
    clock: SystemClock = msgspec.field(default_factory=SystemClock)

    async def run(self) -> RunOutcome:
        agent_id = await self._agent()
        self.attention.agent_id = agent_id
        await self._tell_what_is_withheld(agent_id)
        view = self.attention.view
        run = OneShot(self.host, self.clock, agent_id, listener=self.attention.told)
        stopped_by: list[signal.Signals] = []
        async with _stoppable(stopped_by.append), _refreshed(view):
            await run.ask(run_request(agent_id, self.order.text, trust=self.order.trust))
            await run.rest(wait_for_tasks=self.order.wait_for_tasks)
        if stopped_by:
            await self._stop(agent_id)
        open_tasks = await self.host.reads.tasks.open_tasks()
        result = await run.result()
        if result.is_over and not stopped_by:
            await self._let_go(agent_id)
        return RunOutcome(
            result=result,
            stopped_by=stopped_by[0] if stopped_by else None,
            running=tuple(task for task in open_tasks if task.agent_id == agent_id),
        )

    async def _agent(self) -> AgentId:
        named = self.order.agent_id
        if named is None:
            return await temporary_agent(self.host, self.clock, TimeOrderedIds())
        order = self.order
        return await named_agent(
            self.host, self.clock, named, create=order.create_agent, template=order.template
        )

    async def _tell_what_is_withheld(self, agent_id: AgentId) -> None:
        agent = await self.host.reads.agents.agent(agent_id)
        chosen = None if agent is None else agent.model.override_model
        model = self.host.preference.default if chosen is None else parse_model_ref(chosen)
        withheld = self.host.withheld_tools(model)
        if withheld:
            told = f"{model} is a trial model and acts on nothing: it is not given"
            click.echo(f"holon: {told} {', '.join(withheld)}", err=True)
            click.echo("       allow it to run commands with: --allow-trial-tools", err=True)

    async def _let_go(self, agent_id: AgentId) -> None:
        with suppress(StoreFullError):  # the result matters more; the agent stays in use
            await archive_temporary(self.host, agent_id)

    async def _stop(self, agent_id: AgentId) -> None:
        view = self.attention.view
        view.close()
        _end_at_the_next(self.attention, self.commands)
        click.echo("holon: stopping (press again to end at once)", err=True)
        try:
            await self.host.control.abort_run(agent_id)
        except RefusedError as refused:
            if refused.refusal.code is not RefusalCode.NO_CURRENT_RUN:
                raise


@asynccontextmanager
async def _stoppable(note: Callable[[signal.Signals], None]) -> AsyncIterator[None]:
    """Cancel the block on a signal."""
    async with anyio.create_task_group() as watching:
        await watching.start(_cancel_on_signal, watching.cancel_scope, note)
        yield
        watching.cancel_scope.cancel()


async def _cancel_on_signal(
    scope: anyio.CancelScope,
    note: Callable[[signal.Signals], None],
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with anyio.open_signal_receiver(*STOP_SIGNALS) as signals:
        task_status.started()
        async for number in signals:
            note(number)
            scope.cancel()
            return


@asynccontextmanager
async def _refreshed(view: "RunView") -> AsyncIterator[None]:
    async with anyio.create_task_group() as drawing:
        drawing.start_soon(view.keep_fresh)
        yield
        drawing.cancel_scope.cancel()


def _end_at_the_next(attention: _RunHooks, commands: Path) -> None:
    """End the process immediately on the next signal; durable state is kept."""
    from holon.adapters.exec.end_now import end_now  # now: a handler had better import nothing

    call = attention.under_way

    def end(number: int, frame: FrameType | None) -> None:
        for run_id in () if call is None else run_ids_of_call(call.name, call.effect_id):
            end_now(commands, run_id)
        os._exit(STOP_SIGNALS[signal.Signals(number)])

    for number in STOP_SIGNALS:
        signal.signal(number, end)
