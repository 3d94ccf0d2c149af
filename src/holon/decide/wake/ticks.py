"""Ticks: messages the runtime queues for an agent by itself.

Owns:  the request of every tick, what changes in the same commit, and what must still hold then.
Rule 1: a tick goes through the same admission as any message; models cannot make one.
Rule 2: at most one tick of a key waits at a time: a unique column enforces it. Hints with content
        have a key of their own: a blank tick may be delayed, they never are.
Rule 3: a recheck reminds the agent of its blockers and uses up their reminders; the items stay
        blocked.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from holon.decide.queue.admission import Admitted
from holon.decide.queue.commits import OperatorQuestion, queue_change
from holon.decide.queue.message_view import (
    continue_text,
    expired_text,
    hint_refs,
    hint_tick_body,
    offer_text,
    question_text,
    recheck_text,
    timer_text,
)
from holon.decide.wake.activation import AskOperator, ContinueActive, EmitRecheckTick, OfferQueued
from holon.decide.wake.timers import FireDecision
from holon.decide.work.items import consume_recheck
from holon.model.agents import AgentState
from holon.model.commits import (
    AgentGeneration,
    Change,
    Commit,
    Expect,
    MoveWait,
    PutWorkItem,
    RememberActivation,
    TakeWakeHints,
    WaitInState,
    WakeHintAtRevision,
    WorkItemAtRevision,
)
from holon.model.events.reads import DueTimer, WeighedItem
from holon.model.queue import (
    AdmissionContext,
    DeliverySurface,
    IngressRequest,
    MessageBody,
    MessageKind,
    Priority,
    SystemOrigin,
    TextBody,
    TimerOrigin,
)
from holon.model.record import Record
from holon.model.values import AgentId, BriefId, WaitId, WorkItemId, WorkspaceId
from holon.model.wake import WaitKind, WaitRecord, WaitState, WakeHint

WORK_QUEUE: Final = "work_queue"  # the origin of offers of work
BLANK_HINTS: Final = "wake_hint"  # the keys of ticks for hints
NEWS: Final = "wake_news"


class PlannedTick(Record, frozen=True, kw_only=True):
    """A tick that is still to be admitted, and what becomes true with it."""

    request: IngressRequest
    changes: tuple[Change, ...]
    expects: tuple[Expect, ...]


def hint_tick(agent_id: AgentId, hints: Sequence[WakeHint]) -> PlannedTick:
    """Deliver the parked hints."""
    waits = [hint.wait_id for hint in hints if hint.wait_id is not None]
    has_content = any(hint.has_content for hint in hints)
    plain = _request(
        agent_id,
        subsystem="wake_hint",
        body=hint_tick_body(hints),
        tick_key=NEWS if has_content else BLANK_HINTS,
        wait_id=waits[0] if waits else None,
    )
    request = msgspec.structs.replace(
        plain,
        source_refs=hint_refs(hints),
        correlation_id=hints[0].correlation_id if len(hints) == 1 else None,
        causation_id=hints[0].causation_id if len(hints) == 1 else None,
    )
    keys = tuple(hint.source_key for hint in hints)
    return PlannedTick(
        request=request,
        changes=(TakeWakeHints(agent_id=agent_id, source_keys=keys),),
        expects=tuple(
            WakeHintAtRevision(
                agent_id=agent_id, source_key=hint.source_key, revision=hint.revision
            )
            for hint in hints
        ),
    )


def work_tick(agent_id: AgentId, decision: ContinueActive | OfferQueued) -> PlannedTick:
    """Offer an item, and remember having done so."""
    item = decision.item.item
    continues = isinstance(decision, ContinueActive)
    text = continue_text(decision.item) if continues else offer_text(decision.item)
    return PlannedTick(
        request=_request(
            agent_id,
            subsystem=WORK_QUEUE,
            body=TextBody(text=text),
            tick_key=f"work:{item.id}",
            work_item_id=item.id,
        ),
        changes=(RememberActivation(memory=decision.memory),),
        expects=(WorkItemAtRevision(work_item_id=item.id, revision=item.revision),),
    )


def recheck_tick(agent_id: AgentId, decision: EmitRecheckTick, *, now: datetime) -> PlannedTick:
    """Remind of blockers whose moment has come; the tick ends the first reminder by identity."""
    changes: list[Change] = []
    expects: list[Expect] = []
    reminders: list[WaitId] = []
    for weighed in decision.items:
        item = weighed.item
        expects.append(WorkItemAtRevision(work_item_id=item.id, revision=item.revision))
        changes.append(PutWorkItem(item=consume_recheck(item, now=now)))
        for wait in _reminders(weighed):
            reminders.append(wait.id)
            expects.append(WaitInState(wait_id=wait.id, state=WaitState.ACTIVE))
            changes.append(
                MoveWait(
                    agent_id=wait.agent_id,
                    wait_id=wait.id,
                    state=WaitState.RESOLVED,
                    by="recheck_due",
                )
            )
    request = _request(
        agent_id,
        subsystem="recheck",
        body=TextBody(text=recheck_text(decision.items)),
        tick_key="recheck",
        wait_id=reminders[0] if reminders else None,
    )
    return PlannedTick(request=request, changes=tuple(changes), expects=tuple(expects))


def _reminders(weighed: WeighedItem) -> tuple[WaitRecord, ...]:
    return tuple(
        wait
        for wait in weighed.waits
        if wait.kind is WaitKind.RECHECK and wait.state is WaitState.ACTIVE
    )


def tick_commit(planned: PlannedTick, admitted: Admitted, *, agent: AgentState) -> Commit:
    """Queue an admitted tick together with what belongs to it."""
    agent_id = agent.identity.agent_id
    return Commit(
        commit_id=f"tick:{admitted.message.id}",
        at=admitted.message.created_at,
        changes=(*planned.changes, queue_change(admitted)),
        expects=(
            AgentGeneration(agent_id=agent_id, generation=agent.generation),
            *planned.expects,
        ),
    )


def operator_question(
    decision: AskOperator,
    *,
    wait_id: WaitId,
    brief_id: BriefId,
    workspace_id: WorkspaceId | None,
    now: datetime,
) -> OperatorQuestion:
    """Ask a person about an item that does not move, instead of offering it again."""
    item = decision.item.item
    return OperatorQuestion(
        item=item,
        wait=WaitRecord(
            id=wait_id,
            agent_id=item.agent_id,
            kind=WaitKind.OPERATOR,
            waiting_for="how to go on with an item that does not move",
            created_at=now,
            deadline_at=None,
            work_item_id=item.id,
        ),
        brief_id=brief_id,
        text=question_text(decision.item),
        memory=decision.memory,
        workspace_id=workspace_id,
    )


def timer_tick(due: DueTimer, fire: FireDecision) -> IngressRequest:
    """Return the tick of a timer that came due."""
    timer = due.timer
    return IngressRequest(
        agent_id=timer.agent_id,
        kind=MessageKind.TIMER_TICK,
        origin=TimerOrigin(timer_id=timer.id),
        body=TextBody(text=timer_text(timer, late_by_ms=fire.late_by_ms)),
        surface=DeliverySurface.TIMER_SCHEDULER,
        admission=AdmissionContext.RUNTIME_OWNED,
        priority=Priority.NEXT,
        tick_key=f"timer:{timer.id}",
        wait_id=timer.wait_id,
    )


def expiry_tick(wait: WaitRecord) -> IngressRequest:
    """Return the tick of a wait whose deadline passed."""
    return _request(
        wait.agent_id,
        subsystem="wait_deadline",
        body=TextBody(text=expired_text(wait)),
        tick_key=f"wait:{wait.id}",
        priority=Priority.NEXT,
        work_item_id=wait.work_item_id,
        wait_id=wait.id,
    )


def _request(
    agent_id: AgentId,
    *,
    subsystem: str,
    body: MessageBody,
    tick_key: str,
    priority: Priority = Priority.BACKGROUND,
    work_item_id: WorkItemId | None = None,
    wait_id: WaitId | None = None,
) -> IngressRequest:
    return IngressRequest(
        agent_id=agent_id,
        kind=MessageKind.SYSTEM_TICK,
        origin=SystemOrigin(subsystem=subsystem),
        body=body,
        surface=DeliverySurface.RUNTIME_SYSTEM,
        admission=AdmissionContext.RUNTIME_OWNED,
        priority=priority,
        tick_key=tick_key,
        work_item_id=work_item_id,
        wait_id=wait_id,
    )
