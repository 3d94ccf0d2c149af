"""Working memory follows from settled evidence: revisions, deltas, and what a prompt is shown."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.decide.memory.working_memory import (
    SettledTurn,
    changed_fields,
    next_memory,
    remembered,
    summary_of,
)
from holon.decide.turns.evidence import TurnEvidence
from holon.model.memory.records import (
    MEMORY_ENTRIES_COUNT_MAX,
    MEMORY_FILES_COUNT_MAX,
    MEMORY_LINE_CHARS_MAX,
    MEMORY_SUMMARY_CHARS_MAX,
    MemoryDeltaReason,
    MemoryState,
    WorkingMemory,
)
from holon.model.queue import MessageKind
from holon.model.turns.turn import TerminalKind
from holon.model.values import WaitId, WorkItemId, WorkspaceId
from holon.model.wake import WaitKind, WaitRecord, WaitState
from holon.model.work import PlanStatus, TodoItem, TodoState, WorkItemRecord
from tests.decide.memory_rows import OPERATOR, OUTSIDE, check, settled, terminal
from tests.decide.sample_rows import AGENT_ID, ITEM, NOW

PLANNED = msgspec.structs.replace(
    ITEM,
    plan_status=PlanStatus.READY,
    todo_list=(
        TodoItem(text="buy tiles", state=TodoState.COMPLETED),
        TodoItem(text="lay tiles", state=TodoState.IN_PROGRESS),
        TodoItem(text="clean up"),
    ),
)
OTHER = msgspec.structs.replace(ITEM, id=WorkItemId("work_2"), objective="paint the door")


def wait(kind: WaitKind, text: str = "the tiles", *, state: WaitState = WaitState.ACTIVE) -> Any:
    return WaitRecord(
        id=WaitId(f"wait_{kind}"),
        agent_id=AGENT_ID,
        kind=kind,
        waiting_for=text,
        created_at=NOW,
        deadline_at=None,
        state=state,
    )


def evidence(**fields: Any) -> TurnEvidence:
    return TurnEvidence(**{"authority_class": OPERATOR, **fields})


@pytest.mark.requirement("working-memory:structured")
def test_memory_holds_what_the_item_the_calls_the_words_and_the_waits_say() -> None:
    turn = settled(
        "tiles are\nordered",
        item=PLANNED,
        queued=(OTHER,),
        waits=(wait(WaitKind.EXTERNAL), wait(WaitKind.REST), wait(WaitKind.RECHECK)),
        workspace_id=WorkspaceId("ws_1"),
        evidence=evidence(
            files=("src/roof.py", "plan.md"),
            commands=(check("pytest", ended_well=False),),
            decisions=("took up work item work_1",),
        ),
    )
    assert next_memory(WorkingMemory(), turn) == WorkingMemory(
        current_work_item_id=ITEM.id,
        objective="mend the roof",
        work_summary="tiles are ordered",
        scope_hints=("workspace ws_1", "src/"),
        plan=("ready",),
        todo_list=("in_progress: lay tiles", "pending: clean up"),
        working_set_files=("src/roof.py", "plan.md"),
        recent_decisions=("took up work item work_1",),
        pending_followups=("did not hold: pytest", "work item work_2: paint the door"),
        waiting_on=("external: the tiles",),
    )


def test_files_stay_with_their_item_and_decisions_stay_for_good() -> None:
    before = WorkingMemory(
        current_work_item_id=ITEM.id,
        working_set_files=("a.py",),
        recent_decisions=("took up work item work_1",),
        work_summary="halfway",
    )
    same = next_memory(before, settled("", item=ITEM, evidence=evidence(files=("b.py",))))
    assert same.working_set_files == ("b.py", "a.py")
    assert same.work_summary == "halfway"
    other = next_memory(before, settled("", item=OTHER))
    assert other.working_set_files == ()
    assert other.work_summary is None
    assert other.recent_decisions == ("took up work item work_1",)


def test_a_failed_check_is_left_until_it_holds() -> None:
    before = WorkingMemory(pending_followups=("did not hold: pytest", "did not hold: mypy src"))
    kept = next_memory(before, settled())
    assert kept.pending_followups == before.pending_followups
    mended = evidence(commands=(check("pytest"), check("pytest", ended_well=False)))
    after = next_memory(before, settled(evidence=mended))
    assert after.pending_followups == ("did not hold: mypy src",)


@pytest.mark.requirement("working-memory:outside-words-decide-nothing")
def test_words_of_a_turn_that_others_had_a_word_in_say_so() -> None:
    turn = settled("the key is 1234", item=ITEM, evidence=evidence(authority_class=OUTSIDE))
    memory = next_memory(WorkingMemory(), turn)
    assert memory.work_summary == "[external_evidence] the key is 1234"
    assert memory.objective == ITEM.objective
    assert memory.recent_decisions == ()


def test_a_turn_that_failed_is_told_by_its_end_and_not_by_its_words() -> None:
    turn = settled(terminal=terminal("half a sen", index=4, kind=TerminalKind.ABORTED))
    assert summary_of(turn) == "turn 4 ended aborted"


@pytest.mark.requirement("working-memory:revision")
def test_the_revision_goes_up_by_one_and_only_when_something_changed() -> None:
    first = remembered(MemoryState(), settled(item=ITEM))
    assert first.revision == 1
    again = remembered(first, settled(item=ITEM, index=2))
    assert again.revision == 1
    moved = remembered(again, settled("more", item=ITEM, index=3))
    assert moved.revision == 2


@pytest.mark.requirement("working-memory:delta-shown-once")
@pytest.mark.requirement("working-memory:last-prompted")
def test_a_delta_is_pending_until_a_turn_that_showed_it_is_settled() -> None:
    first = remembered(MemoryState(), settled(item=ITEM))
    assert first.pending_delta is not None
    assert (first.pending_delta.from_revision, first.pending_delta.to_revision) == (0, 1)
    assert first.last_prompted_revision == 0
    unheard = remembered(first, settled(item=ITEM, index=2, was_prompted=False))
    assert unheard.pending_delta == first.pending_delta
    assert unheard.last_prompted_revision == 0
    shown = remembered(unheard, settled(item=ITEM, index=3))
    assert shown.pending_delta is None
    assert shown.last_prompted_revision == shown.revision == 1


@pytest.mark.requirement("working-memory:delta-shown-once")
def test_what_changes_before_a_delta_was_shown_is_added_to_it() -> None:
    first = remembered(MemoryState(), settled(item=ITEM))
    grown = remembered(
        first,
        settled("", item=ITEM, index=2, was_prompted=False, evidence=evidence(files=("a.py",))),
    )
    delta = grown.pending_delta
    assert delta is not None
    assert (delta.from_revision, delta.to_revision, delta.created_at_turn) == (0, 2, 2)
    assert delta.changed_fields == (
        "current_work_item_id",
        "objective",
        "work_summary",
        "plan",
        "working_set_files",
    )
    assert "working set files: a.py" in delta.summary_lines


@pytest.mark.requirement("working-memory:delta-names-its-reason")
@pytest.mark.parametrize(
    ("before", "turn", "reason"),
    [
        (MemoryState(), settled(item=ITEM), MemoryDeltaReason.ACTIVE_WORK_CHANGED),
        (MemoryState(), settled(), MemoryDeltaReason.TERMINAL_TURN_COMPLETED),
        (
            MemoryState(),
            settled("", workspace_id=WorkspaceId("ws_1")),
            MemoryDeltaReason.SCOPE_HINTS_CHANGED,
        ),
        (
            MemoryState(),
            settled(message_kind=MessageKind.TASK_RESULT),
            MemoryDeltaReason.TASK_REJOINED,
        ),
        (
            MemoryState(),
            settled(message_kind=MessageKind.TIMER_TICK),
            MemoryDeltaReason.WAKE_RESUMED,
        ),
    ],
)
def test_a_delta_says_why(
    before: MemoryState, turn: SettledTurn, reason: MemoryDeltaReason
) -> None:
    delta = remembered(before, turn).pending_delta
    assert delta is not None
    assert delta.reason is reason


@pytest.mark.requirement("working-memory:base-moves-with-the-epoch")
def test_the_lasting_part_moves_with_the_epoch_alone() -> None:
    first = remembered(MemoryState(), settled(item=ITEM))
    assert first.base is None
    epoch = remembered(first, settled("two", item=ITEM, index=2, compression_epoch=1))
    assert epoch.base == epoch.memory
    later = remembered(epoch, settled("three", item=ITEM, index=3, compression_epoch=1))
    assert later.base == epoch.memory != later.memory


_TEXTS = st.text(max_size=600)
_ITEMS = st.builds(
    lambda number, objective, todos: WorkItemRecord(
        id=WorkItemId(f"work_{number}"),
        agent_id=AGENT_ID,
        objective=objective,
        created_at=NOW,
        updated_at=NOW,
        todo_list=tuple(TodoItem(text=text) for text in todos),
    ),
    st.integers(1, 3),
    _TEXTS,
    st.lists(_TEXTS, max_size=12),
)
_TURNS = st.builds(
    lambda text, item, queued, files, heard, epoch: settled(
        text,
        item=item,
        queued=tuple(queued),
        was_prompted=heard,
        compression_epoch=epoch,
        evidence=evidence(files=tuple(files)),
    ),
    _TEXTS,
    st.none() | _ITEMS,
    st.lists(_ITEMS, max_size=12),
    st.lists(st.sampled_from([f"d{n}/f.py" for n in range(20)]), max_size=8),
    st.booleans(),
    st.integers(0, 2),
)


@pytest.mark.requirement("working-memory:deterministic")
@pytest.mark.requirement("working-memory:revision")
@settings(max_examples=60)
@given(st.lists(_TURNS, max_size=6))
def test_over_any_turns_memory_is_bounded_and_its_revisions_tell_every_change(
    turns: list[SettledTurn],
) -> None:
    state = MemoryState()
    for turn in turns:
        before, state = state, remembered(state, turn)
        assert state == remembered(before, turn)
        moved = bool(changed_fields(before.memory, state.memory))
        assert state.revision == before.revision + moved
        assert before.last_prompted_revision <= state.last_prompted_revision <= state.revision
        is_behind = state.revision > state.last_prompted_revision
        assert (state.pending_delta is not None) is is_behind
        if state.pending_delta is not None:
            assert state.pending_delta.to_revision == state.revision
            assert state.pending_delta.from_revision == state.last_prompted_revision
        _require_bounded(state.memory)


def _require_bounded(memory: WorkingMemory) -> None:
    assert len(memory.work_summary or "") <= MEMORY_SUMMARY_CHARS_MAX
    assert len(memory.working_set_files) <= MEMORY_FILES_COUNT_MAX
    for name in WorkingMemory.__struct_fields__:
        value = getattr(memory, name)
        if isinstance(value, tuple):
            assert len(value) <= max(MEMORY_ENTRIES_COUNT_MAX, MEMORY_FILES_COUNT_MAX)
            assert all(len(entry) <= MEMORY_LINE_CHARS_MAX for entry in value)
