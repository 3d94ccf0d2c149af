"""The commits that slow an agent down.

Owns:  delaying a message, stopping self-started turns, suppressing a start, and the hold of a
       used-up budget, each as one commit.
Rule 1: the commit that begins a rest or a hold also informs the operator, so exactly once.
Rule 2: a message that starts no turn is kept to be shown later, and the waits it was to end are
        ended with it.
"""

from datetime import datetime

from holon.decide.agents.lifecycle import next_status
from holon.decide.budgets.budget import budget_text
from holon.decide.budgets.no_progress import self_starts_stopped_text
from holon.decide.wake.hints import waits_ended_by
from holon.model.agents import AgentSignal, AgentStatus, TurnRateState
from holon.model.budgets import (
    BudgetHold,
    HoldMessage,
    PauseTurns,
    ReviewHolds,
    UnpauseTurns,
    UpdateTurnRate,
)
from holon.model.commits import (
    AgentGeneration,
    AppendBrief,
    Change,
    Commit,
    MessageInState,
    RecordEvent,
    ReleaseDeferred,
    SetAgentStatus,
    SettleMessage,
)
from holon.model.events.briefs import BriefKind, BriefRecord
from holon.model.events.event import ContinuationResolved
from holon.model.events.reads import AgentSnapshot
from holon.model.queue import MessageEnvelope, MessageState, is_contentful
from holon.model.record import Record
from holon.model.turns.turn import LivenessOnly, Reentry
from holon.model.values import BriefId, Instant, WorkspaceId


class PendingStart(Record, frozen=True, kw_only=True):
    """A message that would start a turn, and the agent it would start it for."""

    commit_id: str
    at: Instant
    snapshot: AgentSnapshot
    message: MessageEnvelope
    passed_over: int
    brief_id: BriefId
    workspace_id: WorkspaceId | None = None  # where the agent works

    @property
    def _unmoved(self) -> tuple[AgentGeneration, MessageInState]:
        agent = self.snapshot.agent
        return (
            AgentGeneration(agent_id=agent.identity.agent_id, generation=agent.generation),
            MessageInState(message_id=self.message.id, state=MessageState.QUEUED),
        )

    def commit(self, *changes: Change) -> Commit:
        """Make these changes, unless the agent or the message changed since the snapshot."""
        return Commit(commit_id=self.commit_id, at=self.at, changes=changes, expects=self._unmoved)


def hold_message_commit(start: PendingStart, *, until: datetime) -> Commit:
    """Let the message wait for its moment."""
    message = start.message
    return start.commit(HoldMessage(agent_id=message.agent_id, message_id=message.id, until=until))


def stop_self_starts_commit(
    start: PendingStart, reentry: Reentry, *, pace: TurnRateState
) -> Commit:
    """Stop self-started turns, and inform the operator."""
    agent_id = start.message.agent_id
    brief = BriefRecord(
        id=start.brief_id,
        agent_id=agent_id,
        kind=BriefKind.RESULT,
        created_at=start.at,
        text=self_starts_stopped_text(pace.self_started_count),
        workspace_id=start.workspace_id,
        work_item_id=start.snapshot.agent.focus.current_work_item_id,
    )
    return start.commit(
        UpdateTurnRate(agent_id=agent_id, pace=pace),
        AppendBrief(brief=brief),
        *_silenced(start, reentry),
    )


def suppress_start_commit(start: PendingStart, reentry: Reentry, *, comes_again: bool) -> Commit:
    """End a message that starts no turn; its content is shown in the next one.

    The tick of a timer that comes round again is not: there may be thousands by then.
    """
    return start.commit(*_silenced(start, reentry, is_shown=not comes_again))


def pause_turns_commit(start: PendingStart, hold: BudgetHold) -> Commit:
    """Begin nothing until the budget has room; inform the operator when that is new."""
    agent = start.snapshot.agent
    agent_id = agent.identity.agent_id
    is_known = agent.pace.budget_until is not None
    brief = BriefRecord(
        id=start.brief_id,
        agent_id=agent_id,
        kind=BriefKind.ACK,
        created_at=start.at,
        text=budget_text(hold),
        workspace_id=start.workspace_id,
        related_message_id=start.message.id,
    )
    return start.commit(
        PauseTurns(agent_id=agent_id, hold=hold),
        *(() if is_known else (AppendBrief(brief=brief),)),
        *resting(start.snapshot, reason="budget_used_up", until=hold.until),
    )


def extend_pause_commit(
    commit_id: str, snapshot: AgentSnapshot, hold: BudgetHold, *, now: datetime
) -> Commit:
    """The budget turned out to be used up for longer."""
    return _review(
        commit_id,
        snapshot,
        PauseTurns(agent_id=snapshot.agent.identity.agent_id, hold=hold),
        *resting(snapshot, reason="budget_used_up", until=hold.until),
        now=now,
    )


def unpause_turns_commit(commit_id: str, snapshot: AgentSnapshot, *, now: datetime) -> Commit:
    """The budget has room again: messages whose turns it put off may be taken up."""
    agent_id = snapshot.agent.identity.agent_id
    return _review(
        commit_id,
        snapshot,
        UnpauseTurns(agent_id=agent_id),
        ReleaseDeferred(agent_id=agent_id),  # before its moment, when the budget was raised
        *resting(snapshot, reason="budget_freed", until=None),
        now=now,
    )


def review_holds_commit(commit_id: str, *, now: datetime) -> Commit:
    """Have every hold checked again."""
    return Commit(commit_id=commit_id, at=now, changes=(ReviewHolds(),))


def _review(commit_id: str, snapshot: AgentSnapshot, *changes: Change, now: datetime) -> Commit:
    agent = snapshot.agent
    unmoved = AgentGeneration(agent_id=agent.identity.agent_id, generation=agent.generation)
    return Commit(commit_id=commit_id, at=now, changes=changes, expects=(unmoved,))


def resting(
    snapshot: AgentSnapshot, *, reason: str, until: datetime | None
) -> tuple[SetAgentStatus, ...]:
    """The posture of an agent that begins nothing for now; a running turn or task continues."""
    agent = snapshot.agent
    if agent.posture.status not in (AgentStatus.AWAKE_IDLE, AgentStatus.ASLEEP):
        return ()
    return (
        SetAgentStatus(
            agent_id=agent.identity.agent_id,
            status=next_status(agent.posture.status, AgentSignal.RESTED),
            reason=reason,
            sleeping_until=until,
        ),
    )


def _silenced(
    start: PendingStart, reentry: Reentry, *, is_shown: bool = True
) -> tuple[Change, ...]:
    message = start.message
    silent = LivenessOnly(
        trigger_kind=reentry.trigger_kind,
        prior_outcome=reentry.prior_outcome,
        prior_waiting_reason=reentry.prior_waiting_reason,
        evidence=("rests_until_outside_input",),
    )
    return (
        RecordEvent(
            agent_id=message.agent_id,
            event=ContinuationResolved(message_id=message.id, continuation=silent),
        ),
        *waits_ended_by(start.snapshot, message),
        SettleMessage(
            agent_id=message.agent_id,
            message_id=message.id,
            state=MessageState.PROCESSED,
            reason="liveness_only",
            unseen=is_shown and is_contentful(message.body),
            passed_over=start.passed_over,
        ),
    )
