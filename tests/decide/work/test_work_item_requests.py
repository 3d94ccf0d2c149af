"""What an operator's request about a work item amounts to."""

import msgspec
import pytest
from msgspec import UNSET

from holon.decide.work.items import WorkItemEdit, complete
from holon.decide.work.requests import (
    creation_of,
    edited_item,
    existing_item,
    focus_commit,
    revision_commit,
)
from holon.model.agents import AgentFocus, AgentStatus
from holon.model.budgets import UpdateTurnRate
from holon.model.commits import (
    Commit,
    FocusWorkItem,
    MoveWait,
    OpenWait,
    PutWorkItem,
    WorkItemAtRevision,
)
from holon.model.errors import Refusal, RefusalCode
from holon.model.limits import RECHECK_DEFAULT_MS, WORK_ITEMS_OPEN_COUNT_MAX
from holon.model.values import WaitId, later
from holon.model.wake import WaitKind, WaitState
from holon.model.work import WorkItemRecord
from tests.decide.sample_rows import AGENT_ID, ITEM, NOW, agent_in, wait_of

vary = msgspec.structs.replace
UP = agent_in(AgentStatus.ASLEEP)


def written(commit: Commit) -> WorkItemRecord:
    (item,) = (change.item for change in commit.changes if isinstance(change, PutWorkItem))
    return item


def test_an_item_is_opened_once_and_starts_the_count_of_vain_turns_anew() -> None:
    made = creation_of(ITEM, kept=None, agent=UP, open_count=0)
    assert isinstance(made, Commit)
    assert [type(change) for change in made.changes] == [PutWorkItem, UpdateTurnRate]
    assert creation_of(ITEM, kept=ITEM, agent=UP, open_count=0) is None


def test_an_item_is_not_opened_for_an_agent_that_takes_nothing_or_has_too_many() -> None:
    for agent, open_count, code in (
        (None, 0, RefusalCode.AGENT_NOT_FOUND),
        (agent_in(AgentStatus.STOPPED), 0, RefusalCode.AGENT_STOPPED),
        (UP, WORK_ITEMS_OPEN_COUNT_MAX, RefusalCode.QUOTA_REACHED),
    ):
        refused = creation_of(ITEM, kept=None, agent=agent, open_count=open_count)
        assert isinstance(refused, Refusal)
        assert refused.code is code


def test_a_key_with_another_objective_is_a_conflict_until_the_item_was_revised() -> None:
    other = vary(ITEM, objective="something else")
    refused = existing_item(ITEM, other)
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.IDEMPOTENCY_CONFLICT
    revised = vary(other, revision=2)
    assert existing_item(ITEM, revised) is revised
    assert existing_item(ITEM, None) is ITEM


def test_the_focus_answers_what_was_asked_about_the_item() -> None:
    asked = wait_of(WaitKind.OPERATOR)
    commit = focus_commit("control:r1", ITEM, [asked], now=NOW)
    kinds = [type(change) for change in commit.changes]
    assert kinds == [MoveWait, FocusWorkItem, UpdateTurnRate]
    unmoved = WorkItemAtRevision(work_item_id=ITEM.id, revision=ITEM.revision)
    assert commit.expects[0] == unmoved


@pytest.mark.parametrize(
    ("after_ms", "expected_ms"), [(None, RECHECK_DEFAULT_MS), (60_000, 60_000)]
)
def test_a_blocked_item_is_looked_at_again(after_ms: int | None, expected_ms: int) -> None:
    edited = edited_item(
        ITEM, WorkItemEdit(), blocked_by="rain", recheck_after_ms=after_ms, now=NOW
    )
    assert edited.blocked_by == "rain"
    assert edited.recheck_at == later(NOW, by_ms=expected_ms)
    assert edited.revision == ITEM.revision + 1


def test_an_edit_leaves_the_blocker_alone_unless_it_speaks_of_it() -> None:
    blocked = edited_item(ITEM, WorkItemEdit(), blocked_by="rain", recheck_after_ms=None, now=NOW)
    renamed = edited_item(
        blocked, WorkItemEdit(objective="paint"), blocked_by=UNSET, recheck_after_ms=None, now=NOW
    )
    assert (renamed.objective, renamed.blocked_by) == ("paint", "rain")
    freed = edited_item(renamed, WorkItemEdit(), blocked_by=None, recheck_after_ms=None, now=NOW)
    assert freed.blocked_by is None


def test_a_blocker_opens_a_reminder_in_the_commit_that_writes_it() -> None:
    blocked = edited_item(ITEM, WorkItemEdit(), blocked_by="rain", recheck_after_ms=None, now=NOW)
    commit = revision_commit(
        "control:r1",
        blocked,
        [],
        agent=UP,
        reminder_id=WaitId("wait_9"),
        moves_blocker=True,
        now=NOW,
    )
    (opened,) = (change.wait for change in commit.changes if isinstance(change, OpenWait))
    assert (opened.id, opened.kind) == ("wait_9", WaitKind.RECHECK)
    assert written(commit) == blocked


def test_a_completed_item_waits_for_nothing_and_is_no_focus() -> None:
    waits = [wait_of(WaitKind.TASK), wait_of(WaitKind.OPERATOR)]
    agent = vary(UP, focus=AgentFocus(current_work_item_id=ITEM.id))
    commit = revision_commit(
        "control:r1",
        complete(ITEM, now=NOW),
        waits,
        agent=agent,
        reminder_id=None,
        moves_blocker=True,
        now=NOW,
    )
    ended = [change for change in commit.changes if isinstance(change, MoveWait)]
    assert [each.state for each in ended] == [WaitState.CANCELLED, WaitState.CANCELLED]
    assert FocusWorkItem(agent_id=AGENT_ID, work_item_id=None) in commit.changes


def test_an_item_that_is_not_the_focus_leaves_the_focus_alone() -> None:
    commit = revision_commit(
        "control:r1",
        complete(ITEM, now=NOW),
        [],
        agent=UP,
        reminder_id=None,
        moves_blocker=True,
        now=NOW,
    )
    assert not any(isinstance(change, FocusWorkItem) for change in commit.changes)
