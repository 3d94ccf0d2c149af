"""Turn driver: performs the steps that decide/turns/step names, until the turn is finished.

Owns:  the running turn: its log in memory, its position in the transcript, its lane's lease.
Rule 1: the driver never decides what a turn does; it performs a step and reports the result.
Rule 2: a round is durable before its tools run; a tool's result is durable before the next round
        is. The last result's commit is in flight while the provider is already called.
Rule 3: everything the turn makes durable goes through its writer, which stops a fenced lane.
Rule 4: when the driver has raised, the stored log is complete: no commit of the turn is in flight.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from holon.decide.budgets.budget import budget_failure
from holon.decide.queue.next_message import Interject, decide_interjection
from holon.decide.turns.commits import (
    InterjectionFacts,
    LaneLease,
    RoundFacts,
    interjection_commit,
    interjection_entry,
    round_changes,
    round_commit,
)
from holon.decide.turns.compaction import ShownHistory
from holon.decide.turns.replay import replay
from holon.decide.turns.step import advance, compaction_recorded, reminder_recorded
from holon.model.budgets import BudgetHold
from holon.model.commits import AppendTranscript, Applied, Change, RecordEvent
from holon.model.events.briefs import FailureArtifact
from holon.model.events.event import TurnContextBuilt
from holon.model.limits import INTERJECTIONS_PER_POINT_COUNT_MAX
from holon.model.providers.attempts import AttemptTimeline, TokenUsage
from holon.model.providers.models import parse_model_ref
from holon.model.queue import MessageEnvelope
from holon.model.record import Record
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.transcript import TurnCompaction, TurnLog
from holon.model.turns.turn import (
    CallModel,
    Finish,
    ModelAnswered,
    ModelFailed,
    OperatorInterjected,
    RoundTiming,
    RunTools,
    SafePoint,
    ToolReceipt,
    ToolsReturned,
    TurnInput,
    TurnRecord,
    TurnStep,
)
from holon.model.values import AgentId
from holon.model.work import ReminderPolicy
from holon.ports.clock import Clock
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.journal import Redactor
from holon.ports.store import Store
from holon.ports.tracer import Tracer
from holon.prompt.frame import Assembly
from holon.prompt.planner import PinnedOverBudget
from holon.runtime.background import raise_unless_bug
from holon.runtime.budgets import TurnGovernor
from holon.runtime.commits import DECISIONS_COUNT_MAX
from holon.runtime.guidance.instruction_watch import InstructionWatch
from holon.runtime.providers.caller import ProviderCaller
from holon.runtime.turns.context import ContextBuilder, no_prompt, prompt_input_of
from holon.runtime.turns.conversation import (
    ConversationWindow,
    TokenCalibrations,
    TurnRenderings,
    WindowExceeded,
    compaction_commit,
    read_past,
)
from holon.runtime.turns.log import LaneFencedError, LiveLog, TurnWriter
from holon.runtime.turns.tool_runner import ToolRunner
from holon.runtime.work.reminder import ReminderCheck
from holon.tools.registry import ToolRegistry

RoundGate: TypeAlias = Callable[[AgentId], FailureArtifact | None]


class TurnEnd(Record, frozen=True, kw_only=True):
    """How the loop ended, with what the settlement still has to record."""

    finish: Finish
    log: TurnLog
    usage: TokenUsage
    round_count: int
    final_round: tuple[Change, ...] = ()
    failed_timeline: AttemptTimeline | None = None
    budget_hold: BudgetHold | None = None  # the turn stopped because this budget is exhausted


class TurnDriver:
    """One turn, from its log to its finish."""

    def __init__(
        self,
        lease: LaneLease,
        *,
        store: Store,
        clock: Clock,
        tools: ToolRegistry,
        runner: ToolRunner,
        instructions: InstructionWatch,
        governor: TurnGovernor,
        context: ContextBuilder,
        provider: ProviderCaller,
        reminders: ReminderPolicy,
        calibrations: TokenCalibrations,
        renderings: TurnRenderings,
        redactor: Redactor,
        tracer: Tracer,
        failpoints: Failpoints,
        round_gate: RoundGate,
    ) -> None:
        """`round_gate` is called before each round; a failure it returns ends the turn."""
        self._lease = lease
        self._reads = store.reads
        self._clock = clock
        self._tools = tools
        self._runner = runner
        self._instructions = instructions
        self._governor = governor
        self._context = context
        self._provider = provider
        self._calibrations = calibrations
        self._renderings = renderings
        self._redactor = redactor
        self._tracer = tracer
        self._failpoints = failpoints
        self._round_gate = round_gate
        self._writer = TurnWriter(store=store, clock=clock, failpoints=failpoints)
        self._reminders = ReminderCheck(
            lease, reads=store.reads, clock=clock, routing=provider.routing, policy=reminders
        )
        self._unrecorded: tuple[Change, ...] = ()
        self._final_round: tuple[Change, ...] = ()
        self._failed_timeline: AttemptTimeline | None = None
        self._budget_hold: BudgetHold | None = None

    async def run(self, log: TurnLog) -> TurnEnd:
        """Continue from the log until the turn is finished."""
        resumption = replay(log, tools=self._tools.policy)
        self._live = LiveLog(log)
        began_ns = self._clock.monotonic_ns()
        past = await read_past(
            self._reads,
            log.turn.agent_id,
            renderings=self._renderings,
            redact=self._redactor.redact,
        )
        prompt = await self._assembled(log, past.turns)
        url = await self._context.trigger_url(log.turn.agent_id)
        self._window = self._window_for(prompt, past, log.turn, trigger_url=url)
        took_ms = (self._clock.monotonic_ns() - began_ns) // 1_000_000
        built = TurnContextBuilt(turn_id=log.turn.turn_id, context_build_ms=took_ms)
        # Recorded with the first round, or with the settlement: never a commit of its own.
        self._unrecorded = (RecordEvent(agent_id=log.turn.agent_id, event=built),)
        self._state, step = resumption.state, resumption.step
        self._round_number = resumption.round_number
        self._usage = resumption.usage
        try:
            while not isinstance(step, Finish):
                step = await self._take(step)
        except Exception as error:
            raise_unless_bug(error)
            await self._writer.wait_in_flight()  # a result in flight belongs to the log
            raise
        await self._writer.wait_in_flight()
        instructions = await self._instructions.ending(self._live.log)
        return TurnEnd(
            finish=step,
            log=self._live.log,
            usage=self._usage,
            round_count=self._round_number,
            final_round=(*self._unrecorded, *self._final_round, *self._ending(), *instructions),
            failed_timeline=self._failed_timeline,
            budget_hold=self._budget_hold,
        )

    async def _take(self, step: CallModel | RunTools) -> TurnStep:
        match step:
            case CallModel():
                if self._round_number > 0:
                    if (failed := await self._out_of_budget()) is not None:
                        return await self._record_round(failed)
                    await self._accept_interjections(SafePoint.BEFORE_PROVIDER_CONTINUATION)
                    await self._remind()
                return await self._record_round(await self._ask_model())
            case RunTools():
                await self._accept_interjections(SafePoint.BEFORE_TOOL_EXECUTION)
                following = self._fold(await self._run_tools())
                return await self._accept_interjections(SafePoint.AFTER_TOOL_RESULTS) or following

    async def _out_of_budget(self) -> ModelFailed | None:
        """Defer the turn when a budget is exhausted."""
        await self._writer.wait_in_flight()
        self._budget_hold = hold = await self._governor.hold_between_rounds(
            self._live.log, self._usage
        )
        return (
            None if hold is None else ModelFailed(failure=budget_failure(hold), retry_at=hold.until)
        )

    async def _remind(self) -> None:
        """Remind the model of its current item when it has not updated it for many rounds."""
        commit = await self._reminders.due_commit(self._state, self._live, self._override)
        if commit is None:
            return
        await self._writer.wait_in_flight()
        await self._writer.apply(commit)
        if any(isinstance(change, AppendTranscript) for change in commit.changes):
            self._live.absorb(commit)
            self._state = reminder_recorded(self._state)

    def _fold(self, happened: TurnInput) -> TurnStep:
        self._state, step = advance(self._state, happened, tools=self._tools.policy)
        return step

    async def _assembled(self, log: TurnLog, history: Sequence[TurnLog]) -> Assembly:
        """Return the prompt of this turn; a later change of model affects later turns."""
        agent = await self._reads.agents.agent(log.turn.agent_id)
        if agent is None:
            raise LaneFencedError(f"agent {log.turn.agent_id} is gone")
        chosen = agent.model.override_model
        self._override = parse_model_ref(chosen) if chosen is not None else None
        moment = prompt_input_of(agent, log, history, override=self._override)
        return await self._context.assembled(moment)

    def _window_for(
        self, prompt: Assembly, past: ShownHistory, turn: TurnRecord, *, trigger_url: str | None
    ) -> ConversationWindow | PinnedOverBudget:
        """Return the conversation window; without a prompt there is none."""
        if isinstance(prompt, PinnedOverBudget):
            return prompt
        return ConversationWindow(
            prompt,
            past,
            turn,
            renderings=self._renderings,
            redact=self._redactor.redact,
            trigger_url=trigger_url,
        )

    async def _ask_model(self) -> ModelAnswered | ModelFailed:
        if (limit := self._round_gate(self._live.turn.agent_id)) is not None:
            return ModelFailed(failure=limit)
        if isinstance(self._window, PinnedOverBudget):
            return ModelFailed(failure=no_prompt(self._window))
        if (failed := await self._compact_if_needed(self._window)) is not None:
            return failed
        await self._failpoints.reach(Failpoint.PROVIDER_BEFORE_CALL)
        clock = self._clock
        began_ns = clock.monotonic_ns()
        request = self._window.request(self._live.log, self._tools.specs)
        asked_ns, started_at = clock.monotonic_ns(), clock.now()
        answer = await self._provider.ask(request, override=self._override)
        self._timing = RoundTiming(
            context_build_ms=(asked_ns - began_ns) // 1_000_000,
            provider_round_ms=(clock.monotonic_ns() - asked_ns) // 1_000_000,
            started_at=started_at,
            completed_at=clock.now(),
        )
        self._tracer.round_ended(self._lease.turn_id, answer, self._timing)
        request_bytes = self._window.request_bytes(self._live.log)
        self._calibrations.observe(answer, request_bytes=request_bytes)
        await self._writer.wait_in_flight()
        return answer

    async def _compact_if_needed(self, window: ConversationWindow) -> ModelFailed | None:
        """Compact the conversation if it exceeds its budget; return the failure if nothing fits."""
        log, now = self._live.log, self._clock.now()
        match window.due(log, self._state):
            case None:
                return None
            case WindowExceeded(failed=failed, changes=changes):
                self._final_round = changes
                return failed
            case TurnCompaction() as compaction:
                commit = compaction_commit(self._lease, log, compaction, now=now)
                await self._writer.wait_in_flight()
                await self._writer.apply(commit)
                self._live.absorb(commit)
                is_asked = compaction.request is not None
                self._state = compaction_recorded(self._state, is_asked=is_asked)
                return None

    def _ending(self) -> tuple[Change, ...]:
        """Changes to the past that later turns read, settled with this turn."""
        if isinstance(self._window, PinnedOverBudget):
            return ()
        now = self._clock.now()
        return self._window.ending(self._live.log, self._final_round, now=now)

    async def _record_round(self, answer: ModelAnswered | ModelFailed) -> TurnStep:
        step = self._fold(answer)
        if isinstance(answer, ModelFailed):
            self._failed_timeline = answer.timeline
            return step
        self._usage = self._usage.plus(answer.usage)
        self._round_number += 1
        facts = RoundFacts(
            lease=self._lease,
            turn=self._live.turn,
            round_number=self._round_number,
            position=self._live.next_position,
            spoke=answer,
            step=step,
            timing=self._timing,
            before=self._unrecorded,
        )
        self._unrecorded = ()
        now = self._clock.now()
        point = SafePoint.AFTER_PROVIDER_ROUND
        if isinstance(step, Finish) and (
            step.failure is not None or not await self._waiting_interjections(point)
        ):
            self._final_round = round_changes(facts, now=now)  # part of the settlement commit
            return step
        await self._failpoints.reach(Failpoint.ROUND_BEFORE_COMMIT)
        commit = round_commit(facts, now=now)
        await self._writer.apply(commit)
        self._live.absorb(commit)
        await self._failpoints.reach(Failpoint.ROUND_AFTER_COMMIT)
        return await self._accept_interjections(point) or step

    async def _run_tools(self) -> ToolsReturned:
        pending = self._live.unanswered(self._round_number)
        for index, call in enumerate(pending):
            await self._writer.wait_in_flight()
            receipt = await self._finish_call(call, last=index == len(pending) - 1)
            self._live.finish(call.effect_id, receipt)
        return ToolsReturned(receipts=self._live.receipts(self._round_number))

    async def _finish_call(self, call: ToolCallRecord, *, last: bool) -> ToolReceipt:
        message_id = self._live.turn.message_id
        for _ in range(DECISIONS_COUNT_MAX):
            finished = await self._runner.run(call, self._lease, message_id=message_id)
            await self._failpoints.reach(Failpoint.TOOL_BEFORE_DONE)
            unguarded = finished.commit.expects == (self._lease.fence,)
            if last and unguarded and self._writer.submit(finished.commit):
                return finished.receipt
            outcome = await self._writer.try_apply(finished.commit)
            await self._failpoints.reach(Failpoint.TOOL_AFTER_DONE)
            if isinstance(outcome, Applied):
                return finished.receipt
            if not finished.only_planned:
                break
        raise LaneFencedError(f"the result of {call.effect_id} could not be recorded")

    async def _accept_interjections(self, point: SafePoint) -> TurnStep | None:
        """Add pending operator messages to the turn; return the next step if there were any."""
        following: TurnStep | None = None
        for message, text in await self._waiting_interjections(point):
            following = await self._interject(message, text, point) or following
        return following

    async def _waiting_interjections(self, point: SafePoint) -> list[tuple[MessageEnvelope, str]]:
        waiting = await self._reads.queue.interjections(
            self._lease.agent_id, limit=INTERJECTIONS_PER_POINT_COUNT_MAX
        )
        judged = ((m, decide_interjection(m, point)) for m in waiting)
        return [(m, verdict.text) for m, verdict in judged if isinstance(verdict, Interject)]

    async def _interject(
        self, message: MessageEnvelope, text: str, point: SafePoint
    ) -> TurnStep | None:
        now = self._clock.now()
        snapshot = await self._reads.agents.snapshot(self._lease.agent_id, now=now)
        if snapshot is None:
            raise LaneFencedError(f"agent {self._lease.agent_id} is gone")
        facts = InterjectionFacts(
            lease=self._lease,
            turn=self._live.turn,
            message=message,
            text=text,
            point=point,
            position=self._live.next_position,
            snapshot=snapshot,
        )
        if not isinstance(
            await self._writer.try_apply(interjection_commit(facts, now=now)), Applied
        ):
            return None  # claimed or voided concurrently; a fence shows at the next commit
        self._live.append(interjection_entry(facts, now=now))
        return self._fold(OperatorInterjected(message_id=message.id, text=text, point=point))
