"""Operator requests on work items.

Owns:  whether an item may be opened, and the commits that open, focus and revise one.
Rule 1: opening an item never replaces what the agent is working on.
Rule 2: an operator's change is input from outside: self-started turns are allowed again, and
        questions asked about the item are answered (decide/work/items).
Rule 3: a key stands for one item. Requested again with another objective it is a conflict, as long
        as the item was not revised.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from holon.decide.agents.lifecycle import refuse_recipient, refuse_unknown
from holon.decide.budgets.budget import work_item_quota
from holon.decide.budgets.no_progress import reset_turn_rate
from holon.decide.queue.idempotency import key_conflict
from holon.decide.work import items
from holon.decide.work.items import (
    WorkItemEdit,
    answer_questions,
    put_blocker,
    put_revision,
    released_focus,
)
from holon.model.agents import AgentState
from holon.model.commits import AgentAdmits, Commit, FocusWorkItem, PutWorkItem, WorkItemAtRevision
from holon.model.errors import Refusal
from holon.model.limits import RECHECK_DEFAULT_MS
from holon.model.values import WaitId, later
from holon.model.wake import WaitRecord
from holon.model.work import WorkItemRecord, WorkItemState


def creation_of(
    item: WorkItemRecord,
    *,
    kept: WorkItemRecord | None,
    agent: AgentState | None,
    open_count: int,
) -> Commit | Refusal | None:
    """Open an item, unless an earlier request with the same key has opened it."""
    if kept is not None:
        return None
    if agent is None:
        return refuse_unknown(item.agent_id)
    if (refusal := refuse_recipient(agent)) is not None:
        return refusal
    if (full := work_item_quota(open_count)) is not None:
        return full
    return Commit(
        commit_id=f"work:{item.id}:created",
        at=item.created_at,
        changes=(PutWorkItem(item=item), reset_turn_rate(item.agent_id)),
        expects=(AgentAdmits(agent_id=item.agent_id),),
    )


def existing_item(
    asked: WorkItemRecord, existing: WorkItemRecord | None
) -> WorkItemRecord | Refusal:
    """Return the item that is kept under a key, whichever request made it."""
    if existing is None:
        return asked
    if existing.revision == 1 and existing.objective != asked.objective:
        return key_conflict(asked.id)
    return existing


def focus_commit(
    commit_id: str, item: WorkItemRecord, waits: Sequence[WaitRecord], *, now: datetime
) -> Commit:
    """Make an open item the focus of its agent; `waits` are the item's open ones."""
    answered = answer_questions(item, waits)
    focused = FocusWorkItem(agent_id=item.agent_id, work_item_id=item.id)
    unmoved = WorkItemAtRevision(work_item_id=item.id, revision=item.revision)
    return Commit(
        commit_id=commit_id,
        at=now,
        changes=(*answered.changes, focused, reset_turn_rate(item.agent_id)),
        expects=(unmoved, *answered.expects),
    )


def edited_item(
    item: WorkItemRecord,
    changed: WorkItemEdit,
    *,
    blocked_by: str | UnsetType | None,
    recheck_after_ms: int | None,
    now: datetime,
) -> WorkItemRecord:
    """Return the next revision of an item: its text, and its blocker if that changed.

    A blocked item is checked again later; without a moment for that, one is chosen.
    """
    edited = items.edit(item, changed, now=now)
    if isinstance(blocked_by, str):
        recheck_at = later(now, by_ms=recheck_after_ms or RECHECK_DEFAULT_MS)
        edited = items.block(edited, blocked_by=blocked_by, recheck_at=recheck_at, now=now)
    elif blocked_by is not UNSET:
        edited = items.unblock(edited, now=now)
    return msgspec.structs.replace(edited, revision=item.revision + 1)


def revision_commit(
    commit_id: str,
    revised: WorkItemRecord,
    waits: Sequence[WaitRecord],
    *,
    agent: AgentState | None,
    reminder_id: WaitId | None,
    moves_blocker: bool,
    now: datetime,
) -> Commit:
    """Write a revision with all that moves along; `waits` are the open ones of the item.

    A completed item is no longer the focus of its agent.
    """
    answered = answer_questions(revised, waits)
    planned = put_revision(revised)
    if moves_blocker:
        planned = put_blocker(revised, waits, now=now, wait_id=reminder_id)
    released: tuple[FocusWorkItem, ...] = ()
    if revised.state is WorkItemState.COMPLETED:
        focus = None if agent is None else agent.focus.current_work_item_id
        released = released_focus(revised, focus=focus)
    return Commit(
        commit_id=commit_id,
        at=now,
        changes=(*answered.changes, *planned.changes, *released, reset_turn_rate(revised.agent_id)),
        expects=(*planned.expects, *answered.expects),
    )
