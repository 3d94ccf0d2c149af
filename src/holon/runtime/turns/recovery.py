"""Startup recovery: take over the turns and tasks an earlier process left.

Owns:  performing the recovery plan, agent by agent, for all agents, eagerly.
Rule 1: every step is a commit that may be repeated; a crash during recovery is recovered like any
        other.
Rule 2: nothing is admitted and no lane runs until recovery is done.
Rule 3: the command of an interrupted call is ended before the call is answered: the model is told
        that its effect is unknown, so it must not continue in the background.
Rule 4: after recovery, a command and its children run for a task or not at all. An operator's abort
        answers a call and then ends its command; a crash in between leaves a command that no row
        names.
Rule 5: a task that was recorded and not yet started is started now.
Rule 6: a bug about one agent does not end the start. It is logged, the agent stays as it is and is
        added to `left`: it gets no lane until its rows change.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from holon.decide.tasks.commands import run_id_of, run_ids_of_call
from holon.decide.turns.commits import LaneLease, resume_commit
from holon.decide.turns.context_too_long import SOURCE as CONTEXT_TOO_LONG
from holon.decide.turns.context_too_long import ended_by_other_models
from holon.decide.turns.recovery import (
    AbandonTurnPlan,
    InterruptTask,
    ResumeTurnPlan,
    SetAsideTurnPlan,
    plan_tasks,
    plan_turn,
)
from holon.decide.turns.replay import cut_off, used_by_turn
from holon.model.commits import Commit, FinishToolCall, WaitInState
from holon.model.events.reads import AgentSnapshot
from holon.model.guidance import RestoreSkills
from holon.model.tasks import TaskRecord
from holon.model.turns.transcript import TurnLog
from holon.model.values import AgentId, IdPrefix, TaskId
from holon.model.wake import WaitState
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.journal import Journal
from holon.ports.store import Store
from holon.ports.tasks import Shell
from holon.ports.turns import TurnMark
from holon.runtime.background import bug_noted
from holon.runtime.budgets import TurnGovernor
from holon.runtime.commits import apply_patiently, patiently
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.tasks.records import TaskService
from holon.runtime.tasks.supervisor import TaskSupervisor, os_errors_noted
from holon.runtime.turns.driver import TurnEnd
from holon.runtime.turns.settler import Settler


class Recovery:
    """Takes over the turns and tasks of an earlier process."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        routing: ModelRouting,
        shell: Shell,
        failpoints: Failpoints,
        journal: Journal,
        turn_mark: TurnMark,
        settler: Settler,
        governor: TurnGovernor,
        tasks: TaskService,
        supervisor: TaskSupervisor,
        start: Callable[[TaskRecord], Awaitable[bool]],
    ) -> None:
        self._start = start
        self._store = store
        self._clock = clock
        self._ids = ids
        self._routing = routing
        self._shell = shell
        self._failpoints = failpoints
        self._journal = journal
        self._turn_mark = turn_mark
        self._settler = settler
        self._governor = governor
        self._tasks = tasks
        self._supervisor = supervisor
        self._figures: Counter[str] = Counter()
        self.left: set[AgentId] = set()

    async def run(self) -> None:
        """Recover every open turn and every task without a running command."""
        reads = self._store.reads
        for agent_id in await reads.turns.agents_with_open_turns():
            await self._guarded(agent_id, partial(self._recover_turn, agent_id))
            await self._failpoints.reach(Failpoint.RECOVERY_BETWEEN_AGENTS)
        open_tasks = await reads.tasks.open_tasks()
        live = {*await self._supervisor.reattach(open_tasks)}
        for task in open_tasks:
            if task.id not in live:
                await self._guarded(task.agent_id, partial(self._start_left, task, live))
        for plan in plan_tasks(open_tasks, live=live):
            if isinstance(plan, InterruptTask):
                await self._guarded(plan.advance.agent_id, partial(self._interrupt, plan))
        self._figures["tasks_taken_up"] = len(live)
        await self._end_strays([task for task in open_tasks if task.id in live])
        await self._governor.review_all()
        await self._release_for_other_models()
        await self._restore_skills()
        self._note_figures()

    async def _guarded(self, agent_id: AgentId, step: Callable[[], Awaitable[None]]) -> None:
        with bug_noted(
            self._journal,
            "recovery_crashed",
            f"the open work of {agent_id} could not be recovered, and stays as it is (a bug)",
            agent_id=agent_id,
        ) as boundary:
            await step()
        if boundary.met_bug:
            self.left.add(agent_id)

    async def _start_left(self, task: TaskRecord, live: set[TaskId]) -> None:
        if await self._start(task):
            self._figures["tasks_started"] += 1
            live.add(task.id)

    async def _interrupt(self, plan: InterruptTask) -> None:
        self._figures["tasks_interrupted"] += 1
        report = partial(self._tasks.report, plan.advance)
        await patiently(report, clock=self._clock)

    def _note_figures(self) -> None:
        figures = self._figures
        self._journal.note(
            "recovered",
            "recovered the work of an earlier process",
            turns_resumed=figures["turns_resumed"],
            turns_abandoned=figures["turns_abandoned"],
            turns_set_aside=figures["turns_set_aside"],
            tasks_taken_up=figures["tasks_taken_up"],
            tasks_interrupted=figures["tasks_interrupted"],
            commands_ended=figures["commands_ended"],
        )

    async def _recover_turn(self, agent_id: AgentId) -> None:
        reads, now = self._store.reads, self._clock.now()
        snapshot = await reads.agents.snapshot(agent_id, now=now)
        turn_id = snapshot.agent.focus.open_turn_id if snapshot else None
        log = await reads.turns.turn_log(turn_id) if turn_id else None
        if snapshot is None or log is None:
            return
        plan = plan_turn(log, ended_process=self._turn_mark.left_by == turn_id)
        await self._end_commands_of(plan.interrupted)
        match plan:
            case ResumeTurnPlan(interrupted=interrupted, crashes=crashes):
                self._figures["turns_resumed"] += 1
                held = snapshot.agent.generation
                commit = resume_commit(log.turn, interrupted, held=held, now=now, crashes=crashes)
                await apply_patiently(self._store, commit, clock=self._clock)
            case AbandonTurnPlan():
                self._figures["turns_abandoned"] += 1
                await self._abandon(snapshot, log, plan)
            case SetAsideTurnPlan():
                self._figures["turns_set_aside"] += 1
                await self._abandon(snapshot, log, plan)

    async def _end_commands_of(self, interrupted: Sequence[FinishToolCall]) -> None:
        shell = self._shell
        for call in interrupted:
            for run_id in run_ids_of_call(call.tool_name, call.effect_id):
                with os_errors_noted(self._journal, "an interrupted command could not be ended"):
                    command = await shell.attach(run_id)
                    if command is not None:
                        await command.stop(force=True)
                        await shell.forget(run_id)

    async def _end_strays(self, live: Sequence[TaskRecord]) -> None:
        journal, owned = self._journal, {run_id_of(task) for task in live}
        unended: Sequence[str] = ()
        with os_errors_noted(journal, "stray commands cannot be listed"):
            unended = await self._shell.unended_runs()
        for run_id in unended:
            if run_id in owned:
                continue
            with bug_noted(journal, "recovery_crashed", "a stray command keeps running (a bug)"):
                await self._end_stray(run_id)

    async def _end_stray(self, run_id: str) -> None:
        with os_errors_noted(self._journal, "a stray command could not be ended"):
            command = await self._shell.attach(run_id)
            if command is not None:
                self._figures["commands_ended"] += 1
                await command.stop(force=True)

    async def _abandon(
        self, snapshot: AgentSnapshot, log: TurnLog, plan: AbandonTurnPlan | SetAsideTurnPlan
    ) -> None:
        """Settle a turn that ended or blocked the process each time it was resumed."""
        entry = await self._store.reads.queue.message(log.turn.message_id)
        if entry is None:
            return
        spent = used_by_turn(log)
        end = TurnEnd(
            finish=cut_off(log, plan.failure),
            log=log,
            usage=spent.usage,
            round_count=spent.round_count,
            final_round=plan.interrupted,
        )
        lease = LaneLease(
            agent_id=log.turn.agent_id,
            turn_id=log.turn.turn_id,
            generation=snapshot.agent.generation,
        )
        if isinstance(plan, SetAsideTurnPlan):
            await self._settler.set_aside(end, entry.message, lease)
        else:
            await self._settler.settle(end, entry.message, lease)

    async def _restore_skills(self) -> None:
        """Mark skills that an earlier process left session_active as restored."""
        if not await self._store.reads.guidance.has_skills_to_restore():
            return
        commit = Commit(
            commit_id=f"restore:{self._ids.fresh(IdPrefix.REQUEST)}",
            at=self._clock.now(),
            changes=(RestoreSkills(),),
        )
        await apply_patiently(self._store, commit, clock=self._clock)

    async def _release_for_other_models(self) -> None:
        """Release items that waited for a larger context window, now that other models are used."""
        reads = self._store.reads
        waits = await reads.wake.waits_on(CONTEXT_TOO_LONG)
        for agent_id in dict.fromkeys(wait.agent_id for wait in waits):
            agent = await reads.agents.agent(agent_id)
            if agent is None:
                continue
            own = [wait for wait in waits if wait.agent_id == agent_id]
            moved = ended_by_other_models(own, self._routing.configured(agent.model))
            if not moved:
                continue
            commit = Commit(
                commit_id=f"models:{self._ids.fresh(IdPrefix.REQUEST)}",
                at=self._clock.now(),
                changes=moved,
                expects=tuple(
                    WaitInState(wait_id=each.wait_id, state=WaitState.ACTIVE) for each in moved
                ),
            )
            await apply_patiently(self._store, commit, clock=self._clock)
