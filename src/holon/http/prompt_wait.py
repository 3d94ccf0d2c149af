"""`wait_ms` of a prompt: waits for the end of the message within the request.

Owns:  when such a wait ends, how many may be open, and the response to each.
Rule 1: the state of a message is read from its records; events only trigger another read.
Rule 2: the briefs of a message's own turn answer it. A message that was interjected into a running
        turn ends with that turn and is answered by that turn's briefs.
Rule 3: however a wait ends, the message stays admitted.
"""

from typing import Final, NamedTuple

import anyio

from holon.decide.turns.closure import current_closure
from holon.http.context import HttpContext
from holon.model.budgets import BudgetUsedUp
from holon.model.events.briefs import BriefRecord
from holon.model.events.event import (
    MessageAborted,
    MessageDropped,
    MessageProcessed,
    ProviderDeferred,
    TurnEnded,
)
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import SECOND_MS, SURFACE_PAGE_COUNT_MAX
from holon.model.queue import AdmissionReceipt, MessageState, QueueEntry
from holon.model.turns.transcript import Interjection
from holon.model.values import AgentId, Instant, MessageId, TurnId
from holon.ports.reads import StoreReads
from holon.projections.agents.summary import closure_view
from holon.runtime.events.feed import CursorLostError, EventReader, SubscriberLaggedError
from holon.wire.responses import HoldReason, Prompted, WaitEnd

_LOOKS_AGAIN: Final = (
    MessageProcessed,
    MessageAborted,
    MessageDropped,
    TurnEnded,
    BudgetUsedUp,
    ProviderDeferred,
)
_TURNS_LOOKED_AT: Final = 8  # for the one an interjection entered


class _MessageProgress(NamedTuple):
    """The state of a message: how it ended, or what delays it."""

    ended: MessageState | None = None
    turn_id: TurnId | None = None  # the running turn it entered
    held_until: Instant | None = None
    held_by: HoldReason | None = None


async def awaited(
    context: HttpContext, receipt: AdmissionReceipt, *, wait_ms: int, scope: anyio.CancelScope
) -> Prompted:
    """Wait for the end of an admitted message; return its state when the wait is over."""
    try:
        context.prompt_waits.acquire_nowait()
    except anyio.WouldBlock:
        return await _told(context, receipt, WaitEnd.TOO_MANY_WAITS)
    try:
        wait_end = await _wait(context, receipt, wait_ms=wait_ms, scope=scope)
    finally:
        context.prompt_waits.release()
    return await _told(context, receipt, wait_end)


async def _wait(
    context: HttpContext, receipt: AdmissionReceipt, *, wait_ms: int, scope: anyio.CancelScope
) -> WaitEnd:
    try:
        with scope, anyio.move_on_after(wait_ms / SECOND_MS):
            await _until_ended_or_held(context, receipt)
            return WaitEnd.HELD  # if it has ended, its record says so
    except (CursorLostError, SubscriberLaggedError):
        pass  # the reader lagged behind the events: the client may repeat the request
    return WaitEnd.RUNTIME_ENDS if scope.cancel_called else WaitEnd.TIME_IS_UP


async def _until_ended_or_held(context: HttpContext, receipt: AdmissionReceipt) -> None:
    """Return once the message has ended, or a new event delays it."""
    _, newest = await context.host.reads.events.event_bounds(receipt.agent_id)
    with context.host.events.reader(receipt.agent_id, after=newest) as events:
        standing = await _standing(context, receipt)
        while standing.ended is None:
            is_news = await _next_look(events)
            standing = await _standing(context, receipt)
            if is_news and standing.held_by is not None:
                return


async def _next_look(events: EventReader) -> bool:
    """Return after events that may have changed the state of a message."""
    while True:
        page = await events.page()
        if any(isinstance(each.event, _LOOKS_AGAIN) for each in page):
            return any(isinstance(each.event, BudgetUsedUp | ProviderDeferred) for each in page)
        if not page:
            await events.news()


async def _standing(context: HttpContext, receipt: AdmissionReceipt) -> _MessageProgress:
    reads = context.host.reads
    entry = await reads.queue.message(receipt.message_id)
    if entry is None:
        return _MessageProgress(ended=MessageState.PROCESSED)  # and pruned since
    if entry.state is MessageState.INTERJECTED:
        return await _turn_entered(reads, entry)
    if entry.state.is_terminal:
        return _MessageProgress(ended=entry.state)
    snapshot = await reads.agents.snapshot(receipt.agent_id, now=context.clock.now())
    if entry.state is not MessageState.QUEUED or snapshot is None:
        return _MessageProgress()
    return _held(entry, snapshot)


async def _turn_entered(reads: StoreReads, entry: QueueEntry) -> _MessageProgress:
    """Return the state of the turn an interjection entered, if it is among the newest ones."""
    message = entry.message
    logs = await reads.turns.turns_page(message.agent_id, before_index=None, limit=_TURNS_LOOKED_AT)
    for log in logs:
        heard = (each.data for each in log.entries if isinstance(each.data, Interjection))
        if any(each.message_id == message.id for each in heard):
            ended = None if log.turn.terminal is None else MessageState.PROCESSED
            return _MessageProgress(ended=ended, turn_id=log.turn.turn_id)
    return _MessageProgress(ended=entry.state)


def _held(entry: QueueEntry, snapshot: AgentSnapshot) -> _MessageProgress:
    if (until := snapshot.agent.pace.budget_until) is not None:
        return _MessageProgress(held_until=until, held_by=HoldReason.BUDGET_USED_UP)
    if entry.was_put_off and (until := snapshot.deferred_until) is not None:
        return _MessageProgress(held_until=until, held_by=HoldReason.PROVIDER_DEFERRED)
    return _MessageProgress()


async def _told(context: HttpContext, receipt: AdmissionReceipt, wait_end: WaitEnd) -> Prompted:
    reads, agent_id = context.host.reads, receipt.agent_id
    standing = await _standing(context, receipt)
    snapshot = await reads.agents.snapshot(agent_id, now=context.clock.now())
    closure = None if snapshot is None else current_closure(snapshot)
    is_answered = standing.ended is not None
    return Prompted(
        ok=True,
        agent_id=agent_id,
        message_id=receipt.message_id,
        duplicate=receipt.duplicate,
        answered=is_answered,
        wait_end=None if is_answered else wait_end,
        ended=standing.ended,
        briefs=await _briefs(reads, agent_id, receipt.message_id, standing) if is_answered else (),
        closure=None if closure is None else closure_view(closure),
        held_until=standing.held_until,
        held_by=standing.held_by,
    )


async def _briefs(
    reads: StoreReads, agent_id: AgentId, message_id: MessageId, standing: _MessageProgress
) -> tuple[BriefRecord, ...]:
    """The briefs that answer the message, oldest first."""
    page = await reads.events.briefs_page(agent_id, before=None, limit=SURFACE_PAGE_COUNT_MAX)
    if standing.turn_id is not None:
        return tuple(each for each in reversed(page) if each.turn_id == standing.turn_id)
    newest_first = [each for each in page if each.related_message_id == message_id]
    # Earlier turns on the same message were deferred; their briefs are superseded.
    return tuple(each for each in reversed(newest_first) if each.turn_id == newest_first[0].turn_id)
