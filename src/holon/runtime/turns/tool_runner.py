"""Tool runner: run one tool call and build the commit of its result.

Owns:  the error boundary around tools: a tool that raises becomes a refusal the model can read.
Rule 1: the result and everything the tool changed are one commit, fenced by the lane's generation.
Rule 2: a tool with an effect outside the database is never run twice; a tool that only plans is
        planned again when the rows it read have changed.
Rule 3: an agent's home exists before its first tool runs; the working directory is resolved for
        every call, so that the next one follows an agent into another workspace.
Rule 4: a result may quote a secret the host holds; it is redacted for the model and the transcript.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from holon.decide.text.bounded import OutputBudget
from holon.decide.text.secrets import (
    call_without_secrets,
    outcome_without_secrets,
    value_without_secrets,
)
from holon.decide.turns.commits import LaneLease, finish_call, tool_done_commit
from holon.decide.wake.triggers import has_address, value_without_addresses
from holon.model.commits import Commit
from holon.model.errors import StoreError
from holon.model.record import Record
from holon.model.tasks import TaskQuota
from holon.model.turns.conversation import ToolUseBlock
from holon.model.turns.tools import ToolCallRecord, ToolCallState, ToolOk
from holon.model.turns.turn import ToolReceipt
from holon.model.values import MessageId
from holon.ports.clock import Clock, IdSource
from holon.ports.guidance import SkillCatalogs
from holon.ports.journal import Journal, LogLevel, Redactor
from holon.ports.memory import MemoryRecall
from holon.ports.reads import StoreReads
from holon.ports.tasks import Shell, TaskControl
from holon.ports.tracer import Tracer
from holon.ports.workspaces import Directories, DirectoryRefusedError, Files
from holon.runtime.guidance.instruction_watch import InstructionWatch
from holon.runtime.workspaces.place import AgentPlaces
from holon.tools.guidance import guarded_address
from holon.tools.registry import ToolRegistry
from holon.tools.tool import (
    SummaryReader,
    Tool,
    ToolExecution,
    ToolPorts,
    ToolScene,
    receipt_of,
    refuse,
)

if TYPE_CHECKING:
    from holon.runtime.guidance.skill_watch import SkillWatch


CallListener: TypeAlias = Callable[[ToolCallRecord], None]


class FinishedCall(Record, frozen=True, kw_only=True):
    """A call that ran: its receipt, and the commit that makes it true."""

    receipt: ToolReceipt
    commit: Commit
    only_planned: bool


class ToolRunner:
    """Runs tool calls for one host."""

    def __init__(
        self,
        *,
        reads: StoreReads,
        clock: Clock,
        ids: IdSource,
        tools: ToolRegistry,
        agent_places: AgentPlaces,
        shell: Shell,
        files: Files,
        places: Directories,
        skills: SkillCatalogs,
        instructions: InstructionWatch,
        tasks: TaskControl,
        recall: MemoryRecall,
        summary_of: SummaryReader,
        redactor: Redactor,
        tracer: Tracer,
        journal: Journal,
        calls: CallListener,
        output_budget: OutputBudget,
        task_quota: TaskQuota,
    ) -> None:
        """`calls` is notified of every call that begins, with secrets redacted."""
        self._reads = reads
        self._clock = clock
        self._tools = tools
        self._agent_places = agent_places
        self._places = places
        self._catalogs = skills
        self._instructions = instructions
        self._redactor = redactor
        self._tracer = tracer
        self._journal = journal
        self._calls = calls
        self._ports = ToolPorts(
            reads=reads,
            ids=ids,
            clock=clock,
            shell=shell,
            files=files,
            places=places,
            tasks=tasks,
            recall=recall,
            redactor=redactor,
            output_budget=output_budget,
            task_quota=task_quota,
            summary_of=summary_of,
        )

    @cached_property
    def _skills(self) -> "SkillWatch":
        # Imported on the first call, to keep a run without tools fast.
        from holon.runtime.guidance.skill_watch import SkillWatch

        return SkillWatch(self._reads, self._catalogs)

    async def run(
        self, call: ToolCallRecord, lease: LaneLease, *, message_id: MessageId
    ) -> FinishedCall:
        """Run one started call; the caller applies the returned commit."""
        clock = self._clock
        started_ns = clock.monotonic_ns()
        tool = self._tools.named(call.name)
        scene = await self._scene(call, message_id)
        self._calls(call_without_secrets(call, self._redactor.redact))
        try:
            await self._places.ensure(scene.agent_home)
            await self._instructions.begin(call)
            execution = await self._run(tool, call, scene)
        except StoreError:
            raise
        except DirectoryRefusedError as refused:
            execution = refuse(refused.code, refused.message, hint=refused.hint)
        except Exception as error:  # noqa: BLE001 - named boundary: a tool's bug must not end the turn
            self._note_crash(call, error)
            execution = _crashed(call.name)
        execution = await self._skills.noticed(call, scene, execution)
        execution = await self._instructions.noticed(call, execution)
        return self._finished(call, lease, execution, started_ns=started_ns)

    async def _run(self, tool: Tool, call: ToolCallRecord, scene: ToolScene) -> ToolExecution:
        """Run a tool; only those with outside effects are given trigger addresses and secrets.

        A tool that only plans stores its arguments, and a secret must not be stored.
        """
        arguments = call.input
        if tool.only_plans:
            arguments = value_without_secrets(
                value_without_addresses(arguments), self._redactor.redact
            )
        elif has_address(arguments):
            refused = await guarded_address(scene, self._ports)
            if refused is not None:
                return refused
        return await tool.run(arguments, scene, self._ports)

    def _note_crash(self, call: ToolCallRecord, error: Exception) -> None:
        self._journal.note(
            "tool_crashed",
            f"{call.name} failed inside the runtime (a bug)",
            level=LogLevel.ERROR,
            error=error,
            agent_id=call.agent_id,
            turn_id=call.turn_id,
            effect_id=call.effect_id,
        )

    async def _scene(self, call: ToolCallRecord, message_id: MessageId) -> ToolScene:
        place = await self._agent_places.current(call.agent_id)
        return ToolScene(
            agent_id=call.agent_id,
            turn_id=call.turn_id,
            message_id=message_id,
            effect_id=call.effect_id,
            now=self._clock.now(),
            work_item_id=call.work_item_id,
            agent_home=self._agent_places.home_of(call.agent_id),
            execution_root=place.execution_root,
            cwd=place.cwd,
            workspace=place,
        )

    def _finished(
        self, call: ToolCallRecord, lease: LaneLease, execution: ToolExecution, *, started_ns: int
    ) -> FinishedCall:
        clock = self._clock
        use = ToolUseBlock(call_id=call.call_id, name=call.name, input=call.input)
        outcome = outcome_without_secrets(execution.outcome, self._redactor.redact)
        receipt = receipt_of(use, outcome)
        succeeded = isinstance(outcome, ToolOk)
        finished = finish_call(
            call,
            receipt,
            state=ToolCallState.SUCCEEDED if succeeded else ToolCallState.FAILED,
            duration_ms=(clock.monotonic_ns() - started_ns) // 1_000_000,
        )
        self._tracer.tool_ended(call, finished)
        commit = tool_done_commit(
            lease,
            finished,
            effects=execution.changes,
            expects=execution.expects,
            now=clock.now(),
        )
        return FinishedCall(
            receipt=receipt,
            commit=commit,
            only_planned=self._tools.named(call.name).only_plans,
        )


def _crashed(name: str) -> ToolExecution:
    return refuse(
        "tool_crashed",
        f"{name} failed inside the runtime; its effect is unknown",
        hint="check the state before trying again, or go on without it",
    )
