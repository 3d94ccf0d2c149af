"""When a model is reminded of its work item, and that the reminder stays small."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.turns.commits import LaneLease
from holon.decide.turns.step import TurnState, advance, open_turn, reminder_recorded
from holon.decide.work.reminder import (
    HEADER,
    REQUEST,
    Remind,
    ReminderContext,
    ReminderFacts,
    SkipReminder,
    decide_reminder,
    is_reminder_due,
    reminder_commit,
)
from holon.model.commits import AppendTranscript, RecordEvent
from holon.model.limits import ESTIMATED_TOKEN_BYTES
from holon.model.turns.transcript import WorkReminder
from holon.model.turns.turn import ToolReceipt, ToolsReturned
from holon.model.work import (
    PlanArtifact,
    PlanStatus,
    ReminderObstacle,
    ReminderPolicy,
    TodoItem,
    TodoState,
    WorkItemRecord,
    WorkReminderSkipped,
)
from tests.decide.sample_rows import AGENT_ID, ITEM, NOW
from tests.decide.turn_rows import TOOLS, TURN, bad, interjected, ok, spoke, use

PATIENT = ReminderPolicy()
QUICK = ReminderPolicy(rounds_count=2, cooldown_rounds_count=3)
BUSY: WorkItemRecord = msgspec.structs.replace(
    ITEM,
    objective="mend\nthe roof",
    plan_status=PlanStatus.READY,
    blocked_by="rain",
    todo_list=(
        TodoItem(text="buy tiles", state=TodoState.COMPLETED),
        TodoItem(text="lay tiles"),
        TodoItem(text="climb up", state=TodoState.IN_PROGRESS),
    ),
    plan_artifact=PlanArtifact(
        path="/home/plan.md",
        hash="h",
        bytes=9,
        updated_at=NOW,
        preview="first the ladder",
        preview_complete=True,
    ),
)


def worked(state: TurnState, receipt: ToolReceipt) -> TurnState:
    """One more round with one call."""
    state, _ = advance(state, spoke("", use(receipt.name)), tools=TOOLS)
    return advance(state, ToolsReturned(receipts=(receipt,)), tools=TOOLS)[0]


def rounds(count: int, state: TurnState | None = None) -> TurnState:
    """Rounds in which no work item is touched."""
    state = state or open_turn()
    for _ in range(count):
        state = worked(state, ok())
    return state


@pytest.mark.requirement("turn-complete:stale-item-is-brought-up")
def test_a_reminder_is_due_after_so_many_rounds_and_again_after_the_cooldown() -> None:
    assert not is_reminder_due(rounds(9), PATIENT)
    assert is_reminder_due(rounds(10), PATIENT)
    reminded = reminder_recorded(rounds(2))
    assert not is_reminder_due(reminded, QUICK)
    assert not is_reminder_due(rounds(2, reminded), QUICK)
    assert is_reminder_due(rounds(3, reminded), QUICK)


@pytest.mark.requirement("turn-complete:stale-item-is-brought-up")
@pytest.mark.parametrize(
    "name", ["CreateWorkItem", "PickWorkItem", "UpdateWorkItem", "CompleteWorkItem"]
)
def test_a_work_item_that_was_changed_is_not_stale(name: str) -> None:
    tools = msgspec.structs.replace(
        TOOLS, known=TOOLS.known | {name}, exposed=TOOLS.exposed | {name}
    )
    state, _ = advance(rounds(9), spoke("", use(name)), tools=tools)
    touched, _ = advance(state, ToolsReturned(receipts=(ok(name),)), tools=tools)
    assert not is_reminder_due(touched, PATIENT)
    assert is_reminder_due(rounds(10, touched), PATIENT)
    failed, _ = advance(state, ToolsReturned(receipts=(bad(name),)), tools=tools)
    assert is_reminder_due(failed, PATIENT)


def test_nobody_is_reminded_who_was_just_spoken_to_or_need_not_be() -> None:
    heard, _ = advance(rounds(10), interjected(), tools=TOOLS)
    assert not is_reminder_due(heard, PATIENT)
    assert not is_reminder_due(rounds(10), msgspec.structs.replace(PATIENT, rounds_count=0))
    assert not is_reminder_due(open_turn(), PATIENT)


@pytest.mark.requirement("turn-complete:reminder-is-derived-and-bounded")
def test_a_reminder_tells_of_the_item_and_leaves_out_what_is_done() -> None:
    said = decide_reminder(ReminderFacts(item=BUSY), PATIENT)
    assert isinstance(said, Remind)
    assert said.text.splitlines() == [
        HEADER,
        REQUEST,
        f"work item {ITEM.id}, plan ready",
        "objective: mend the roof",
        "blocked by: rain",
        "todo (in_progress): climb up",
        "todo (pending): lay tiles",
        "plan in /home/plan.md: first the ladder",
    ]


@pytest.mark.requirement("turn-complete:reminder-asks-only-for-real-changes")
def test_a_reminder_asks_for_an_update_only_where_something_changed() -> None:
    assert "material progress" in REQUEST
    assert "if not, just go on" in REQUEST
    before = rounds(10)
    assert reminder_recorded(before).made_progress == before.made_progress


@pytest.mark.requirement("turn-complete:reminder-is-derived-and-bounded")
@given(
    tokens=st.integers(1, 600),
    objective=st.text(min_size=1, max_size=3_000),
    todos=st.lists(st.text(min_size=1, max_size=200), max_size=20),
)
def test_a_reminder_never_outgrows_its_budget(
    tokens: int, objective: str, todos: list[str]
) -> None:
    item = msgspec.structs.replace(
        ITEM, objective=objective, todo_list=tuple(TodoItem(text=text) for text in todos)
    )
    decision = decide_reminder(ReminderFacts(item=item), ReminderPolicy(tokens_max=tokens))
    match decision:
        case Remind(text=text):
            assert len(text.encode()) <= tokens * ESTIMATED_TOKEN_BYTES
            assert text.startswith(f"{HEADER}\n{REQUEST}\nwork item {ITEM.id}")
        case SkipReminder(obstacle=obstacle):
            assert obstacle is ReminderObstacle.BUDGET_TOO_SMALL
            assert tokens * ESTIMATED_TOKEN_BYTES < len(f"{HEADER}\n{REQUEST}") + 100


@pytest.mark.requirement("turn-complete:reminder-never-fills-the-prompt")
@pytest.mark.parametrize(
    ("prompt", "prompt_max", "given"),
    [(0, None, True), (10**9, None, True), (100, 1_000, True), (990, 1_000, False)],
)
def test_a_reminder_that_would_outgrow_the_prompt_is_left_out(
    prompt: int, prompt_max: int | None, given: bool
) -> None:
    facts = ReminderFacts(item=BUSY, prompt_tokens=prompt, prompt_tokens_max=prompt_max)
    decision = decide_reminder(facts, PATIENT)
    if given:
        assert isinstance(decision, Remind)
    else:
        assert decision == SkipReminder(obstacle=ReminderObstacle.PROMPT_BUDGET)


def test_a_reminder_is_part_of_the_turn_and_a_skipped_one_only_of_the_log() -> None:
    lease = LaneLease(agent_id=AGENT_ID, turn_id=TURN.turn_id, generation=3)
    place = ReminderContext(lease=lease, turn=TURN, after_round=10, position=21)
    given_commit = reminder_commit(place, ITEM, Remind(text="look"), now=NOW)
    [appended] = given_commit.changes
    assert isinstance(appended, AppendTranscript)
    said = WorkReminder(work_item_id=ITEM.id, after_round=10, text="look")
    assert (appended.entry.position, appended.entry.data) == (21, said)
    skip = SkipReminder(obstacle=ReminderObstacle.PROMPT_BUDGET)
    skipped_commit = reminder_commit(place, ITEM, skip, now=NOW)
    skipped = WorkReminderSkipped(
        turn_id=TURN.turn_id,
        work_item_id=ITEM.id,
        after_round=10,
        obstacle=ReminderObstacle.PROMPT_BUDGET,
    )
    assert skipped_commit.changes == (RecordEvent(agent_id=AGENT_ID, event=skipped),)
    assert given_commit.commit_id != skipped_commit.commit_id
    assert given_commit.expects == skipped_commit.expects == (lease.fence,)
