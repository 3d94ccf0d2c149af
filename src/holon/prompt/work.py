"""Work sections of the prompt: the current item, its process trace, and other items.

Owns:  the text of the current item and of the other items; the process trace of the current item:
       calls, texts and briefs, oldest first, bounded.
Rule 1: the sections project the rows; an agent without work items gets no section, and no item is
        invented for it.
Rule 2: the current item is shown whole: plan preview, todos, blocker and its open waits. Its
        compact form keeps the objective, the remaining todos and the blocker.
Rule 3: other items come by class (decide/work/projection), bounded, and counted beyond the bound.
Rule 4: names of calls are model output like any other: a model may call tools that do not exist.
Rule 5: texts are those of a round; thinking is never included, nor anything of another agent.
Rule 6: a brief represents its turn where the turn itself is no longer available.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from holon.decide.text.fencing import disarmed, fenced, quoted
from holon.decide.turns.replay import receipts_by_place
from holon.decide.wake.triggers import without_addresses
from holon.decide.work.projection import QueueClass, by_class, promoted_reports, scheduling_state
from holon.model.events.briefs import BriefRecord
from holon.model.events.reads import WeighedItem
from holon.model.limits import (
    PROMPT_ITEM_CHARS_MAX,
    PROMPT_ITEMS_PER_CLASS_COUNT_MAX,
    PROMPT_REPORT_CHARS_MAX,
    PROMPT_TODOS_COMPACT_COUNT_MAX,
    PROMPT_TRACE_LINES_COUNT_MAX,
)
from holon.model.text_size import cut
from holon.model.turns.conversation import text_of
from holon.model.turns.transcript import AssistantRound, TurnLog
from holon.model.values import AgentId, WorkItemId
from holon.model.wake import WaitRecord
from holon.model.work import TodoItem, TodoState, WorkItemRecord
from holon.prompt.facts import PromptFacts, TraceLine

_BOX: Final = {TodoState.PENDING: " ", TodoState.IN_PROGRESS: ">", TodoState.COMPLETED: "x"}


def current_work_item(facts: PromptFacts) -> str | None:
    """The current item, in full."""
    current = facts.work.current
    if current is None:
        return None
    item = current.item
    lines = [*_head(current), f"objective: {disarmed(quoted(item.objective))}"]
    if item.blocked_by is not None:
        lines.append(f"blocked_by: {disarmed(quoted(item.blocked_by))}")
        if item.recheck_at is not None:
            lines.append(f"recheck_at: {item.recheck_at.isoformat()}")
    if item.todo_list:
        lines += ["todo_list:", *map(_todo, item.todo_list)]
    if current.waits:
        lines += ["waits:", *map(_wait, current.waits)]
    return "\n".join((*lines, *_plan(facts)))


def compact_work_item(facts: PromptFacts) -> str | None:
    """The current item, in its compact form."""
    current = facts.work.current
    if current is None:
        return None
    item = current.item
    open_todos = [todo for todo in item.todo_list if todo.state is not TodoState.COMPLETED]
    lines = [*_head(current), f"objective: {_short(item.objective)}"]
    if item.blocked_by is not None:
        lines.append(f"blocked_by: {_short(item.blocked_by)}")
    lines += [_todo(todo) for todo in open_todos[:PROMPT_TODOS_COMPACT_COUNT_MAX]]
    if (plan := facts.work.current_plan) is not None:
        lines.append(f"plan: {quoted(plan.path)}")
    lines.append("(shortened: GetWorkItem shows all of it)")
    return "\n".join(lines)


def process_trace(facts: PromptFacts) -> str | None:
    """The recent steps of work on the current item."""
    if not facts.work.current_trace:
        return None
    lines = [
        f"- {line.at.isoformat(timespec='minutes')} {_short(line.what)}: {_short(line.text)}"
        for line in facts.work.current_trace
    ]
    return "\n".join(["## Work on it so far", *lines])


def work_queue(facts: PromptFacts) -> str | None:
    """Other items, by class."""
    return _queue(facts, per_class=PROMPT_ITEMS_PER_CLASS_COUNT_MAX)


def compact_work_queue(facts: PromptFacts) -> str | None:
    """Other items, one per class, with counts."""
    return _queue(facts, per_class=1)


def _queue(facts: PromptFacts, *, per_class: int) -> str | None:
    work = facts.work
    lines: list[str] = []
    for name, members in by_class(work.others).items():
        lines.append(f"{name} ({len(members)}):")
        lines += [_candidate(each) for each in members[:per_class]]
        lines += _more(len(members) - per_class)
    unseen = work.open_count - len(work.others) - (work.current is not None)
    if unseen > 0:
        lines.append(f"and {unseen} more open items: ListWorkItems shows them")
    reports = promoted_reports(work.completed)[:per_class]
    if reports:
        lines.append(f"{QueueClass.COMPLETED_RECENT}:")
        lines += [_report(item, report) for item, report in reports]
    return "\n".join(["## Other work items", *lines]) if lines else None


def _head(current: WeighedItem) -> list[str]:
    item = current.item
    state = scheduling_state(item, current.waits)
    return ["## Current work item", f"{item.id}: {state}, plan {item.plan_status}"]


def _todo(todo: TodoItem) -> str:
    return f"- [{_BOX[todo.state]}] {disarmed(quoted(todo.text))}"


def _wait(wait: WaitRecord) -> str:
    until = "" if wait.deadline_at is None else f", until {wait.deadline_at.isoformat()}"
    return f"- {wait.id} ({wait.kind}, {wait.state}{until}): {_short(wait.waiting_for)}"


def _plan(facts: PromptFacts) -> list[str]:
    plan = facts.work.current_plan
    if plan is None:
        return []
    rest = "" if plan.preview_complete else "; the file has more"
    return [
        f"plan: {quoted(plan.path)} ({plan.bytes} bytes, {plan.hash[:19]}{rest})",
        fenced(plan.preview.strip("\n"), content_id=f"{plan.path}:{plan.hash}"),
    ]


def _candidate(weighed: WeighedItem) -> str:
    item = weighed.item
    why = f" (blocked by: {_short(item.blocked_by)})" if item.blocked_by is not None else ""
    waits = _awaited(weighed.waits)
    return f"- {item.id}: {_short(item.objective)}{why}{waits}"


def _awaited(waits: Sequence[WaitRecord]) -> str:
    return f" (waits for: {_short(waits[0].waiting_for)})" if waits else ""


def _report(item: WorkItemRecord, report: str) -> str:
    text = disarmed(quoted(report))[:PROMPT_REPORT_CHARS_MAX]
    return f"- {item.id}: {_short(item.objective)} → {text}"


def _more(count: int) -> list[str]:
    return [f"- and {count} more"] if count > 0 else []


def _short(text: str) -> str:
    return cut(disarmed(quoted(text)), chars_max=PROMPT_ITEM_CHARS_MAX)


def trace_of(
    agent_id: AgentId,
    work_item_id: WorkItemId | None,
    turns: Sequence[TurnLog],
    briefs: Sequence[BriefRecord] = (),
) -> tuple[TraceLine, ...]:
    """Return the newest steps of work on an item; none without an item."""
    if work_item_id is None:
        return ()
    bound = [
        log
        for log in turns
        if log.turn.agent_id == agent_id and log.turn.work_item_id == work_item_id
    ]
    shown = {log.turn.turn_id for log in bound}
    from_briefs = (
        TraceLine(at=brief.created_at, what=f"brief ({brief.kind})", text=brief.text)
        for brief in briefs
        if brief.agent_id == agent_id
        and brief.work_item_id == work_item_id
        and brief.turn_id not in shown
    )
    lines = sorted([*from_briefs, *(line for log in bound for line in _lines_of(log))], key=_moment)
    return tuple(lines[-PROMPT_TRACE_LINES_COUNT_MAX:])


def _moment(line: TraceLine) -> float:
    return line.at.timestamp()


def _lines_of(log: TurnLog) -> Iterator[TraceLine]:
    receipts = receipts_by_place(log.calls)
    for entry in log.entries:
        if isinstance(entry.data, AssistantRound) and (text := text_of(entry.data.spoke.blocks)):
            yield TraceLine(at=entry.created_at, what="you said", text=_one_line(text))
    for recorded in log.calls:
        call = recorded.call
        receipt = receipts.get((call.round, call.position))
        ended = "no result" if receipt is None else "failed" if receipt.is_error else "done"
        arguments = _one_line(without_addresses(msgspec.json.encode(call.input).decode()))
        yield TraceLine(at=call.started_at, what=call.name, text=f"{ended}: {arguments}")


def _one_line(text: str) -> str:
    return text[:PROMPT_ITEM_CHARS_MAX]
