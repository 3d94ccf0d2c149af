"""Settlement: the end of a turn as one commit.

Owns:  everything that becomes durable together when a turn ends.
Rule 1: one turn, one commit: `settle:<message>` ends the turn and its message, reports to the
        operator, records the closure and sets the agent's posture.
Rule 2: a failed turn is visible in the foreground: a failure brief, a transcript entry and a
        runtime_error event, the latter two with the attempts and the tokens they cost.
Rule 3: a turn that no provider answers yet is deferred, not failed: `defer:<turn>` returns its
        message to the queue until the named moment, and the agent sleeps until then. One brief
        says so for all messages that meet the same outage. A turn that ran out of budget is
        deferred like it, together with every other turn of the agent.
Rule 4: the closure is derived from the rows as this commit leaves them.
Rule 5: only the lane that still holds the agent's lease may settle: the generation is expected.
Rule 6: each completed item with a report has a brief of its own, however the turn ended. One more
        brief says how the turn ended, unless the reports have said it: then it is left out, except
        where the last text may be a question to the operator.
Rule 7: a turn whose conversation was too long leaves its work item waiting
        (decide/turns/context_too_long).

In `SettlementFacts`, `snapshot`, `bound` (the item the turn began with) and `completed` (the items
it completed) are read just before settling; `final_round` holds the
changes of the last round (or the receipts of calls that were cut off) and goes first;
`next_position` is the first transcript position free after it; `timeline` belongs to the exchange
that failed, so its tokens are not yet in `usage`.
"""

from datetime import datetime

import msgspec

from holon.decide.agents.lifecycle import next_status
from holon.decide.budgets.budget import BUDGET_USED_UP, budget_text
from holon.decide.budgets.no_progress import is_self_started, turn_rate_after
from holon.decide.text.bounded import shortened
from holon.decide.turns.closure import closure_facts, derive_closure
from holon.decide.turns.commits import entry_of
from holon.decide.turns.context_too_long import (
    ended_by_compaction,
    is_too_long,
    item_to_hold,
    too_long_wait,
    waiting_text,
)
from holon.decide.turns.failures import ABORTED_KINDS
from holon.decide.wake.activation import (
    AskOperator,
    Rest,
    RestUntil,
    ReviewBudget,
    decide_activation,
)
from holon.decide.wake.hints import waits_ended_by
from holon.decide.work.completion import decide_work_transition, promotions_of
from holon.model.agents import AgentSignal, AgentState, AgentStatus
from holon.model.budgets import BudgetHold, PauseTurns, UpdateTurnRate
from holon.model.commits import (
    AgentGeneration,
    AppendBrief,
    AppendTranscript,
    Change,
    Commit,
    DeferMessage,
    Expect,
    MoveWait,
    OpenWait,
    PutWorkItem,
    RecordClosure,
    RecordEvent,
    ReleaseDeferred,
    SetAgentStatus,
    SettleMessage,
    SettleTurn,
    WaitInState,
    WorkItemAtRevision,
)
from holon.model.events.briefs import BriefKind, BriefRecord, FailureArtifact, OperatorVisibility
from holon.model.events.event import ProviderDeferred, RuntimeErrorRecorded
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.limits import BRIEF_TEXT_BYTES_MAX, TERMINAL_TEXT_BYTES_MAX
from holon.model.providers.attempts import AttemptTimeline, TokenUsage
from holon.model.providers.models import ModelRef
from holon.model.queue import MessageEnvelope, MessageState
from holon.model.record import Record
from holon.model.turns.transcript import RuntimeFailure
from holon.model.turns.turn import (
    ENDED_WELL,
    Closure,
    Finish,
    TerminalKind,
    TurnRecord,
    TurnTerminal,
    WaitingReason,
    waiting_reason_of,
)
from holon.model.values import BriefId, SummaryId, WaitId, WorkItemId, WorkspaceId
from holon.model.wake import WaitKind, WaitRecord, WaitState
from holon.model.work import WorkItemRecord, WorkItemState


class SettlementFacts(Record, frozen=True, kw_only=True):
    """A finished turn and the rows around it."""

    generation: int
    message: MessageEnvelope
    turn: TurnRecord
    finish: Finish
    usage: TokenUsage
    round_count: int
    duration_ms: int
    next_position: int
    snapshot: AgentSnapshot
    brief_id: BriefId
    bound: WeighedItem | None = None
    completed: tuple[WorkItemRecord, ...] = ()
    summary_ids: tuple[SummaryId, ...] = ()
    report_brief_ids: tuple[BriefId, ...] = ()  # at least as many as completions
    wait_id: WaitId | None = None  # needed when the conversation was too long
    models: tuple[ModelRef, ...] = ()  # that this agent may ask now
    timeline: AttemptTimeline | None = None
    final_round: tuple[Change, ...] = ()
    cost_micros: int = 0
    budget_hold: BudgetHold | None = None  # the used-up budget that put the turn off
    moved: bool = False  # whether the turn made progress (decide/budgets/no_progress)
    workspace_id: WorkspaceId | None = None  # where the agent works


def settle_turn(facts: SettlementFacts, *, now: datetime) -> Commit:
    """Build the commit that makes the turn's end durable."""
    turn = facts.turn
    terminal = terminal_of(facts, now=now)
    transition = decide_work_transition(
        facts.finish, facts.completed, turn=turn, summary_ids=facts.summary_ids, now=now
    )
    status = _status_after(facts, terminal, now=now)
    closure = derive_closure(closure_facts(_snapshot_after(facts, terminal, status)))
    return Commit(
        commit_id=_commit_id(facts),
        at=now,
        changes=(
            *facts.final_round,
            *_failure_changes(facts, now=now),
            SettleTurn(
                agent_id=turn.agent_id,
                turn_id=turn.turn_id,
                terminal=terminal,
                usage=_spent(facts),
                round_count=facts.round_count,
                cost_micros=facts.cost_micros,
            ),
            *_pace(facts, now=now),
            *_turn_pause(facts),
            _ended_message(facts),
            *_resolved_waits(facts),
            *transition,
            *_opened_waits(facts, now=now),
            *_brief_changes(facts, closure, now=now),
            *_released(facts),
            RecordClosure(agent_id=turn.agent_id, closure=closure),
            *_posture_changes(facts, status),
        ),
        expects=(
            AgentGeneration(agent_id=turn.agent_id, generation=facts.generation),
            *_item_expectations(transition),
            *_wait_expectations(facts),
        ),
    )


def terminal_of(facts: SettlementFacts, *, now: datetime) -> TurnTerminal:
    """Return how the turn ended, from whether it failed and how."""
    failure = facts.finish.failure
    kind = TerminalKind.COMPLETED if failure is None else _failed_kind(failure)
    return TurnTerminal(
        turn_id=facts.turn.turn_id,
        turn_index=facts.turn.turn_index,
        kind=TerminalKind.DEFERRED if facts.finish.deferred_until is not None else kind,
        completed_at=now,
        duration_ms=facts.duration_ms,
        reason=None if failure is None else failure.summary,
        last_assistant_message=shortened(
            facts.finish.last_text, bytes_max=TERMINAL_TEXT_BYTES_MAX
        ).text,
    )


def _failed_kind(failure: FailureArtifact) -> TerminalKind:
    """Failures named like a terminal kind end as that kind; every other one is an abort."""
    named = {kind.value: kind for kind in TerminalKind if kind not in ENDED_WELL}
    return named.get(failure.kind, TerminalKind.ABORTED)


def _failure_changes(facts: SettlementFacts, *, now: datetime) -> tuple[Change, ...]:
    failure = facts.finish.failure
    if failure is None:
        return ()
    spent, until = _spent(facts), facts.finish.deferred_until
    failure_data = RuntimeFailure(
        failure=failure, timeline=facts.timeline, token_usage=spent, retry_at=until
    )
    entry = entry_of(facts.turn, position=facts.next_position, at=now, data=failure_data)
    if facts.budget_hold is not None:  # the hold is the event: no provider failed
        return (AppendTranscript(entry=entry),)
    return (
        AppendTranscript(entry=entry),
        RecordEvent(agent_id=facts.turn.agent_id, event=_failure_event(facts, failure)),
    )


def _failure_event(
    facts: SettlementFacts, failure: FailureArtifact
) -> RuntimeErrorRecorded | ProviderDeferred:
    turn_id, timeline, spent = facts.turn.turn_id, facts.timeline, _spent(facts)
    if (until := facts.finish.deferred_until) is not None:
        return ProviderDeferred(
            failure=failure, turn_id=turn_id, until=until, timeline=timeline, token_usage=spent
        )
    return RuntimeErrorRecorded(
        failure=failure, turn_id=turn_id, timeline=timeline, token_usage=spent
    )


def _spent(facts: SettlementFacts) -> TokenUsage:
    """Everything the turn cost: its rounds and the attempts that led nowhere."""
    spent = facts.usage
    failed = facts.timeline.aggregated_token_usage if facts.timeline is not None else None
    return spent if failed is None else spent.plus(failed)


def _pace(facts: SettlementFacts, *, now: datetime) -> tuple[UpdateTurnRate, ...]:
    before, started = facts.snapshot.agent.pace, is_self_started(facts.message)
    pace = turn_rate_after(before, self_started=started, moved=facts.moved, now=now)
    if pace == before:
        return ()
    return (UpdateTurnRate(agent_id=facts.turn.agent_id, pace=pace),)


def _turn_pause(facts: SettlementFacts) -> tuple[PauseTurns, ...]:
    if facts.budget_hold is None:
        return ()
    return (PauseTurns(agent_id=facts.turn.agent_id, hold=facts.budget_hold),)


def _commit_id(facts: SettlementFacts) -> str:
    """A message ends once, but it may be put off in several turns."""
    if facts.finish.deferred_until is not None:
        return f"defer:{facts.turn.turn_id}"
    return f"settle:{facts.message.id}"


def _ended_message(facts: SettlementFacts) -> SettleMessage | DeferMessage:
    failure = facts.finish.failure
    if (until := facts.finish.deferred_until) is not None:
        return DeferMessage(
            agent_id=facts.turn.agent_id,
            message_id=facts.message.id,
            turn_id=facts.turn.turn_id,
            until=until,
        )
    aborted = failure is not None and failure.kind in ABORTED_KINDS
    return SettleMessage(
        agent_id=facts.turn.agent_id,
        message_id=facts.message.id,
        state=MessageState.ABORTED if aborted else MessageState.PROCESSED,
        reason="turn_completed" if failure is None else failure.kind,
        turn_id=facts.turn.turn_id,
    )


def _resolved_waits(facts: SettlementFacts) -> tuple[MoveWait, ...]:
    """Resolve the waits this turn ended, unless they ended otherwise in the meantime."""
    if facts.finish.deferred_until is not None:
        return ()  # the message has ended nothing yet
    by_message = waits_ended_by(facts.snapshot, facts.message)
    resolved_ids = {moved.wait_id for moved in by_message}
    return (
        *by_message,
        *(moved for moved in _compacted(facts) if moved.wait_id not in resolved_ids),
    )


def _compacted(facts: SettlementFacts) -> tuple[MoveWait, ...]:
    return ended_by_compaction(facts.snapshot, facts.final_round, facts.finish.failure)


def _resolved_wait_ids(facts: SettlementFacts) -> tuple[WaitId, ...]:
    return tuple(moved.wait_id for moved in _resolved_waits(facts))


def _released(facts: SettlementFacts) -> tuple[ReleaseDeferred, ...]:
    """Let what was put off go once a turn was answered: the provider is back before its time."""
    if not _is_back(facts):
        return ()
    return (ReleaseDeferred(agent_id=facts.turn.agent_id),)


def _is_back(facts: SettlementFacts) -> bool:
    return facts.finish.failure is None and facts.snapshot.deferred_until is not None


def _waiting_item(facts: SettlementFacts) -> WeighedItem | None:
    """The item that waits because the conversation was too long."""
    if facts.wait_id is None or not is_too_long(facts.finish.failure):
        return None
    return item_to_hold(facts.snapshot, facts.message)


def _opened_waits(facts: SettlementFacts, *, now: datetime) -> tuple[OpenWait, ...]:
    waiting_item = _waiting_item(facts)
    if waiting_item is None or facts.wait_id is None:
        return ()
    return (OpenWait(wait=too_long_wait(waiting_item, facts.wait_id, facts.models, now=now)),)


def _brief_changes(
    facts: SettlementFacts, closure: Closure, *, now: datetime
) -> tuple[AppendBrief, ...]:
    """The turn's briefs: each report, then how the turn ended."""
    reports = promotions_of(facts.finish, facts.completed)
    briefs = [
        AppendBrief(
            brief=_brief(facts, brief_id, text=each.report, work_item_id=each.item.id, now=now),
            visibility=OperatorVisibility.WORK_DONE,  # in any other wait of the agent
        )
        for each, brief_id in zip(reports, facts.report_brief_ids, strict=False)
    ]
    asks = waiting_reason_of(closure) is WaitingReason.AWAITING_OPERATOR_INPUT
    if _needs_closing_brief(facts, [each.report for each in reports], asks=asks):
        closing = _closing_brief(facts, asks=asks, now=now)
        visibility = _closing_visibility(facts, closing, asks=asks)
        briefs.append(AppendBrief(brief=closing, visibility=visibility))
    return tuple(briefs)


def _closing_visibility(
    facts: SettlementFacts, closing: BriefRecord, *, asks: bool
) -> OperatorVisibility:
    completed = {item.id for item in facts.completed}
    if closing.kind is BriefKind.RESULT and closing.work_item_id in completed:
        return OperatorVisibility.WORK_DONE
    return OperatorVisibility.ACTION_REQUIRED if asks else OperatorVisibility.TURN_RESULT


def _needs_closing_brief(facts: SettlementFacts, reports: list[str], *, asks: bool) -> bool:
    finish = facts.finish
    if finish.deferred_until is not None:  # an earlier brief may have named the moment
        return facts.snapshot.deferred_until is None or facts.budget_hold is not None
    if finish.failure is not None or not reports:
        return True
    is_news = bool(finish.last_text.strip()) and finish.last_text not in reports
    return asks and is_news


def _closing_brief(facts: SettlementFacts, *, asks: bool, now: datetime) -> BriefRecord:
    return _brief(
        facts,
        facts.brief_id,
        text=_closing_text(facts),
        work_item_id=_closing_item(facts, asks=asks),
        failure=facts.finish.failure,
        now=now,
    )


def _closing_item(facts: SettlementFacts, *, asks: bool) -> WorkItemId | None:
    """The item the end of the turn is about: the one it left waiting, or the one it began with."""
    if (waiting_item := _waiting_item(facts)) is not None:
        return waiting_item.item.id
    bound = facts.bound
    if asks and bound is not None and bound.item.state is WorkItemState.COMPLETED:
        return None  # a question is not about what is done
    return bound.item.id if bound is not None else facts.turn.work_item_id


def _brief(
    facts: SettlementFacts,
    brief_id: BriefId,
    *,
    text: str,
    work_item_id: WorkItemId | None,
    now: datetime,
    failure: FailureArtifact | None = None,
) -> BriefRecord:
    kind = BriefKind.RESULT if failure is None else BriefKind.FAILURE
    put_off = failure is not None and facts.finish.deferred_until is not None
    return BriefRecord(
        id=brief_id,
        agent_id=facts.turn.agent_id,
        kind=BriefKind.ACK if put_off else kind,
        created_at=now,
        text=shortened(text, bytes_max=BRIEF_TEXT_BYTES_MAX).text,
        workspace_id=facts.workspace_id,
        work_item_id=work_item_id,
        turn_id=facts.turn.turn_id,
        related_message_id=facts.message.id,
        related_task_id=facts.message.task_id,
        failure=failure,
    )


def _closing_text(facts: SettlementFacts) -> str:
    finish = facts.finish
    if finish.failure is None:
        return finish.last_text
    if facts.budget_hold is not None:
        return budget_text(facts.budget_hold, in_turn=True)
    if finish.deferred_until is not None:
        return _deferred_text(finish.failure, finish.deferred_until)
    waiting_item, text = _waiting_item(facts), _failure_text(finish.failure)
    return text if waiting_item is None else f"{text}\n{waiting_text(waiting_item)}"


def _deferred_text(failure: FailureArtifact, until: datetime) -> str:
    return (
        f"Deferred until {until:%Y-%m-%d %H:%M} UTC: {failure.summary}\n"
        "The message waits and the agent resumes by itself then. To resume sooner, give the agent"
        " another model."
    )


def _failure_text(failure: FailureArtifact) -> str:
    if failure.recovery_hint is None:
        return failure.summary
    return f"{failure.summary}\nWhat to do: {failure.recovery_hint}"


def _status_after(
    facts: SettlementFacts, terminal: TurnTerminal, *, now: datetime
) -> AgentStatus | None:
    """Return the new posture, or nothing when the operator changed it during the turn.

    The agent rests unless its rows already give a reason to continue.
    """
    status = facts.snapshot.agent.posture.status
    if status is not AgentStatus.AWAKE_RUNNING:
        return None
    settled = next_status(status, AgentSignal.RUN_SETTLED)
    after = _snapshot_after(facts, terminal, settled)
    goes_on = _is_back(facts) or not isinstance(
        decide_activation(after, now=now), Rest | RestUntil | AskOperator | ReviewBudget
    )
    return settled if goes_on else next_status(status, AgentSignal.RESTED)


def _posture_changes(
    facts: SettlementFacts, status: AgentStatus | None
) -> tuple[SetAgentStatus, ...]:
    if status is None:
        return ()
    ended = _resolved_wait_ids(facts)
    rests = [
        wait.deadline_at
        for wait in facts.snapshot.agent_waits
        if wait.kind is WaitKind.REST
        and wait.state is WaitState.ACTIVE
        and wait.id not in ended
        and wait.deadline_at is not None
    ]
    if facts.finish.deferred_until is not None:
        rests.append(facts.finish.deferred_until)
    asleep = status is AgentStatus.ASLEEP
    return (
        SetAgentStatus(
            agent_id=facts.turn.agent_id,
            status=status,
            reason=_posture_reason(facts),
            sleeping_until=min(rests, default=None) if asleep else None,
        ),
    )


def _posture_reason(facts: SettlementFacts) -> str:
    finish = facts.finish
    if facts.budget_hold is not None:
        return BUDGET_USED_UP
    if finish.deferred_until is not None:
        return "provider_deferred"
    return finish.sleep_reason or "turn_settled"


def _snapshot_after(
    facts: SettlementFacts, terminal: TurnTerminal, status: AgentStatus | None
) -> AgentSnapshot:
    """Return the rows the closure depends on, as this commit leaves them."""
    snapshot, ended = facts.snapshot, _resolved_wait_ids(facts)
    opened = tuple(change.wait for change in _opened_waits(facts, now=terminal.completed_at))
    put_off_until = snapshot.deferred_until or facts.finish.deferred_until
    agent = snapshot.agent
    posture = agent.posture
    settled: AgentState = msgspec.structs.replace(
        agent,
        posture=msgspec.structs.replace(posture, status=status or posture.status),
        focus=msgspec.structs.replace(agent.focus, open_turn_id=None),
        last_terminal=terminal,
    )
    if facts.budget_hold is not None:
        rate_state = msgspec.structs.replace(agent.pace, budget_until=facts.budget_hold.until)
        settled = msgspec.structs.replace(settled, pace=rate_state)
    return msgspec.structs.replace(
        snapshot,
        agent=settled,
        claimed_message_id=None,
        deferred_until=None if _is_back(facts) else put_off_until,
        agent_waits=_without(snapshot.agent_waits, ended),
        current=snapshot.current and _weighed_after(snapshot.current, ended, opened),
        queued=tuple(_weighed_after(weighed, ended, opened) for weighed in snapshot.queued),
        unweighed_waits=_without(snapshot.unweighed_waits, ended),
    )


def _weighed_after(
    weighed: WeighedItem, ended: tuple[WaitId, ...], opened: tuple[WaitRecord, ...]
) -> WeighedItem:
    own = tuple(wait for wait in opened if wait.work_item_id == weighed.item.id)
    return msgspec.structs.replace(weighed, waits=(*_without(weighed.waits, ended), *own))


def _without(waits: tuple[WaitRecord, ...], ended: tuple[WaitId, ...]) -> tuple[WaitRecord, ...]:
    return tuple(wait for wait in waits if wait.id not in ended)


def _item_expectations(transition: tuple[Change, ...]) -> tuple[Expect, ...]:
    return tuple(
        WorkItemAtRevision(work_item_id=change.item.id, revision=change.item.revision - 1)
        for change in transition
        if isinstance(change, PutWorkItem)
    )


def _wait_expectations(facts: SettlementFacts) -> tuple[Expect, ...]:
    """An item that was changed, or a wait that was answered meanwhile, is decided on again."""
    held = _waiting_item(facts)
    unmoved = () if held is None else (_unmoved(held.item),)
    compacted = (
        WaitInState(wait_id=moved.wait_id, state=WaitState.ACTIVE) for moved in _compacted(facts)
    )
    return (*unmoved, *compacted)


def _unmoved(item: WorkItemRecord) -> WorkItemAtRevision:
    return WorkItemAtRevision(work_item_id=item.id, revision=item.revision)
