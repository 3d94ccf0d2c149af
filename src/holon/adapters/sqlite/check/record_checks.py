"""Records that must be readable, and what the columns beside them say of them.

Owns:  I8, and briefs that cannot be read.
Rule 1: whatever the runtime would end on because it cannot be read is found here first.
Rule 2: a column drawn from a record says what the record says, since the scheduler goes by it.
"""

from collections.abc import Iterator

from holon.adapters.sqlite.change_codec import can_run, micros_or_none, recheck_due_at
from holon.adapters.sqlite.check.facts import Facts
from holon.adapters.sqlite.check.report import Invariant, Violation
from holon.model.brief import BriefRecord
from holon.model.errors import DecodeError
from holon.model.task import TaskRecord
from holon.model.work_item import WorkItemRecord
from holon.wire.codec import decode


def check_tasks(facts: Facts) -> Iterator[Violation]:
    """I8: a task has ended, or it has a record that says what runs and for whom."""
    stored = facts.texts("select task_id, agent_id, kind, status, record from tasks")
    for task_id, agent_id, kind, status, text in stored:
        try:
            record = decode(text, TaskRecord)
        except DecodeError as error:
            yield _violation(Invariant.TASKS_ARE_KNOWN, task_id, f"is {status}: {error}")
            continue
        if (record.id, record.agent_id, record.kind) != (task_id, agent_id, kind):
            detail = f"is {status} with the record of {record.id} ({record.kind})"
            yield _violation(Invariant.TASKS_ARE_KNOWN, task_id, detail)


def check_work_items(facts: Facts) -> Iterator[Violation]:
    """I8: a work item has a record, and comes up when the record says so."""
    stored = facts.texts(
        "select work_item_id, agent_id, state, can_run, recheck_due_at, record from work_items"
    )
    for item_id, agent_id, state, runs, due_at, text in stored:
        try:
            record = decode(text, WorkItemRecord)
        except DecodeError as error:
            yield _violation(Invariant.TASKS_ARE_KNOWN, item_id, f"is {state}: {error}")
            continue
        for fault in _item_faults(record, item=(item_id, agent_id), runs=runs, due_at=due_at):
            yield _violation(Invariant.TASKS_ARE_KNOWN, item_id, f"is {state} {fault}")


def _item_faults(
    record: WorkItemRecord, *, item: tuple[str, str], runs: str, due_at: str
) -> Iterator[str]:
    if (record.id, record.agent_id) != item:
        yield f"with the record of {record.id} ({record.agent_id})"
    if runs != str(int(can_run(record))):
        yield f"and its row says can_run = {runs}, against its record"
    due = micros_or_none(recheck_due_at(record))
    if due_at != ("" if due is None else str(due)):
        yield f"and its row says recheck_due_at = {due_at or 'never'}, against its record"


def check_briefs(facts: Facts) -> Iterator[Violation]:
    """What an agent said can be read."""
    for brief_id, text in facts.texts("select brief_id, record from briefs"):
        try:
            decode(text, BriefRecord)
        except DecodeError as error:
            yield _violation(Invariant.FILE_IS_SOUND, brief_id, f"cannot be read: {error}")


def _violation(invariant: Invariant, subject: str, detail: str) -> Violation:
    return Violation(invariant=invariant, subject=subject, detail=detail)
