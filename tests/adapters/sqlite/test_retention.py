"""Retention: bounded, oldest first, and never what is unfinished or still needed."""

from datetime import timedelta
from pathlib import Path

import apsw
import msgspec
import pytest

from holon.adapters.sqlite.check.checker import check_connection
from holon.decide.queue.idempotency import keyed_id
from holon.model.commits import (
    AppendBrief,
    CancelTimer,
    ClaimMessage,
    CreateTask,
    CreateTimer,
    FocusWorkItem,
    OpenTurn,
    OpenWait,
    PutWorkItem,
    QueueMessage,
)
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import (
    COMMIT_IDS_KEPT_MS_MIN,
    DAY_MS,
    IDEMPOTENCY_KEPT_MS_MIN,
    MIB,
    MINUTE_MS,
)
from holon.model.queue import MessageEnvelope, MessageKind, TaskOrigin
from holon.model.tasks import TaskStatus
from holon.model.values import IdPrefix, TaskId, TimerId, WorkItemId, to_micros
from holon.model.work import WorkItemState
from tests.adapters.sqlite.history_rows import LATER, History, settled
from tests.support.builders import (
    MAIN,
    START,
    a_brief,
    a_message,
    a_task,
    a_tick,
    a_timer,
    a_turn,
    a_wait,
    a_work_item,
    an_agent,
    moment,
)

BY_AGE = RetentionPolicy(age_ms=90 * DAY_MS, events_count_min=3, turns_count_min=2, batch_count=50)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "test.sqlite")


def test_a_settled_turn_goes_with_everything_that_belongs_to_it(history: History) -> None:
    for n in range(1, 11):
        history.add_turn(n, at=moment(n))
    history.prune(BY_AGE)
    for table in ("turns", "transcript", "tool_calls", "briefs", "messages"):
        assert history.count(table) == BY_AGE.turns_count_min, table
    kept = history.connection.execute("select turn_index from turns order by 1").fetchall()
    assert kept == [(9,), (10,)], "the newest stay"


def test_what_is_young_stays(history: History) -> None:
    history.add_turn(1, at=START)
    history.add_turn(2, at=START)
    for n in range(3, 8):
        history.add_turn(n, at=LATER - timedelta(days=1))
    history.prune(BY_AGE)
    assert history.count("turns") == 5


def test_events_leave_from_the_old_end_and_the_floor_says_how_far(history: History) -> None:
    for n in range(1, 11):
        history.add_turn(n, at=moment(n))
    ((newest,),) = history.connection.execute("select last_seq from event_heads").fetchall()
    history.prune(BY_AGE)
    assert isinstance(newest, int)
    heads = history.connection.execute("select floor_seq, last_seq from event_heads").fetchall()
    assert heads == [(newest - 3, newest)]
    kept = history.connection.execute("select event_seq from events order by 1").fetchall()
    assert kept == [(seq,) for seq in range(newest - 2, newest + 1)]
    history.add_turn(11, at=LATER)
    ((after,),) = history.connection.execute("select last_seq from event_heads").fetchall()
    assert after == newest + 8, "numbering goes on without a gap"


def test_an_idle_agent_keeps_its_newest_events_however_old(history: History) -> None:
    history.make("other", an_agent("other"))
    for n in range(1, 11):
        history.add_turn(n, at=moment(n))
    history.prune(RetentionPolicy(age_ms=1, events_count_min=0, turns_count_min=0, batch_count=7))
    kept = history.connection.execute("select agent_id from events order by 1").fetchall()
    assert kept == [("main",), ("other",)], "even with a minimum of 0 one event is kept"
    assert history.count("turns") == 1


def test_unfinished_rows_are_never_removed(history: History) -> None:
    turn = a_turn("turn_1", message_id="msg_1")
    history.make(
        "open",
        QueueMessage(message=a_message("msg_1")),
        QueueMessage(message=a_message("msg_2")),
        ClaimMessage(agent_id=MAIN, message_id=a_message("msg_1").id, generation=1, passed_over=0),
        OpenTurn(turn=turn),
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        PutWorkItem(item=a_work_item()),
        OpenWait(wait=a_wait(work_item_id=WorkItemId("work_1"))),
    )
    greedy = RetentionPolicy(
        age_ms=1, bytes_max=1, events_count_min=0, turns_count_min=0, batch_count=10
    )
    history.prune(greedy)
    for table, count in {
        "messages": 2,
        "turns": 1,
        "tasks": 1,
        "timers": 1,
        "work_items": 1,
        "waits": 1,
    }.items():
        assert history.count(table) == count, table


def test_finished_tasks_items_and_waits_go_unless_an_agent_points_at_them(
    history: History,
) -> None:
    done = a_work_item("work_1", revision=2, state=WorkItemState.COMPLETED)
    focus = a_work_item("work_2", revision=2, state=WorkItemState.COMPLETED)
    history.make(
        "done",
        CreateTask(task=a_task(status=TaskStatus.COMPLETED)),
        PutWorkItem(item=a_work_item("work_1")),
        PutWorkItem(item=a_work_item("work_2")),
        FocusWorkItem(agent_id=MAIN, work_item_id=WorkItemId("work_2")),
        PutWorkItem(item=done),
        PutWorkItem(item=focus),
        AppendBrief(brief=a_brief()),
    )
    history.prune(BY_AGE)
    assert history.count("tasks") == 0
    assert history.count("briefs") == 0
    assert history.connection.execute("select work_item_id from work_items").fetchall() == [
        ("work_2",)
    ]


def test_keys_and_commit_ids_are_remembered_long_enough(history: History) -> None:
    for n in range(1, 6):
        history.add_turn(n, at=moment(n), key=f"k{n}")
    greedy = RetentionPolicy(
        age_ms=1, bytes_max=1, events_count_min=1, turns_count_min=1, batch_count=10
    )
    history.prune(greedy, now=moment(COMMIT_IDS_KEPT_MS_MIN))
    assert history.count("turns") == 1
    assert history.count("commits") == 10, "only the birth is old enough to be forgotten"
    history.prune(greedy, now=moment(COMMIT_IDS_KEPT_MS_MIN + 10))
    assert history.count("commits") == 0
    history.prune(greedy, now=moment(IDEMPOTENCY_KEPT_MS_MIN))
    assert history.count("messages") == 5, "their keys may still be repeated"
    history.prune(greedy, now=moment(IDEMPOTENCY_KEPT_MS_MIN + 10))
    assert history.count("messages") == 1


def test_an_archived_agent_leaves_one_event_once_it_is_old(history: History) -> None:
    for n in range(1, 31):
        history.add_run(n, at=moment(n))
    history.add_run(31, at=LATER)
    history.prune(RetentionPolicy())
    for table in ("turns", "messages", "episodes"):
        assert history.count(table) == 1, f"{table}: the young one stays"
    old = "select count(*) from events where agent_id <> 'main' and agent_id <> 'run_31'"
    assert history.connection.execute(old).fetchall() == [(30,)]
    history.prune(RetentionPolicy(), now=moment(400 * DAY_MS))
    assert history.count("turns") == 0
    assert check_connection(history.connection).violations == ()


def test_above_the_cap_archived_agents_are_no_reason_to_stay_there(history: History) -> None:
    for n in range(1, 301):
        history.add_run(n, at=START)
    cap = MIB
    reports = history.prune(RetentionPolicy(bytes_max=cap), now=START)
    assert reports[0].database_bytes > cap >= reports[-1].database_bytes
    assert check_connection(history.connection).violations == ()


def _made_and_done(history: History, *, ending: str) -> None:
    task, timer, item = (f"{kind}_{ending}" for kind in ("task", "timer", "work"))
    history.make(
        "done",
        CreateTask(task=a_task(task, status=TaskStatus.COMPLETED)),
        PutWorkItem(item=a_work_item(item)),
        PutWorkItem(item=a_work_item(item, revision=2, state=WorkItemState.COMPLETED)),
        CreateTimer(timer=a_timer(timer)),
        CancelTimer(agent_id=MAIN, timer_id=TimerId(timer)),
    )


def test_what_a_key_gave_its_id_stays_as_long_as_the_key(history: History) -> None:
    keyed = keyed_id(IdPrefix.TASK, MAIN, "k1").removeprefix("task_")
    _made_and_done(history, ending=keyed)
    greedy = RetentionPolicy(age_ms=1, bytes_max=1)
    for now, count in ((IDEMPOTENCY_KEPT_MS_MIN - 1, 1), (IDEMPOTENCY_KEPT_MS_MIN, 0)):
        history.prune(greedy, now=moment(now))
        for table in ("tasks", "work_items", "timers"):
            assert history.count(table) == count, table


@pytest.mark.requirement("runtime:finished-history-is-bounded")
def test_what_no_key_gave_its_id_goes_as_soon_as_its_time_has_come(history: History) -> None:
    _made_and_done(history, ending="0kx5rt8zq1v9m3c7b2n6h4j8wd")
    history.prune(RetentionPolicy(age_ms=1, bytes_max=1), now=moment(10))
    for table in ("tasks", "work_items", "timers"):
        assert history.count(table) == 0, table


def a_result(message_id: str) -> MessageEnvelope:
    origin = TaskOrigin(task_id=TaskId("task_1"))
    return a_tick(message_id, kind=MessageKind.TASK_RESULT, origin=origin)


def test_a_result_that_names_no_task_keeps_none(history: History) -> None:
    unseen = a_result("msg_2")
    history.make(
        "done",
        CreateTask(task=a_task(status=TaskStatus.COMPLETED)),
        QueueMessage(message=a_result("msg_1")),
        QueueMessage(message=unseen),
        settled(unseen, unseen=True),
    )
    history.prune(BY_AGE)
    assert history.count("tasks") == 0


def test_a_clock_that_stood_in_the_future_does_not_stop_it(history: History) -> None:
    ahead = moment(3_650 * DAY_MS)
    for n in range(1, 31):
        history.add_turn(n, at=ahead, key=f"k{n}")
    for n in range(31, 41):
        history.add_turn(n, at=START)
    for n in range(41, 61):
        history.add_turn(n, at=LATER)
    history.prune(BY_AGE, now=LATER)
    for table in ("turns", "messages"):
        assert history.count(table) == 20, table
    ((oldest,),) = history.connection.execute("select min(created_at) from events").fetchall()
    assert oldest == to_micros(LATER)


def test_a_clock_that_was_set_back_makes_nothing_old(history: History) -> None:
    for n in range(1, 31):
        history.add_turn(n, at=LATER)
    events_count = history.count("events")
    history.prune(BY_AGE, now=LATER - timedelta(hours=1))
    assert history.count("turns") == 30
    assert history.count("events") == events_count - 1, "only the birth is old"


def test_above_the_cap_it_does_not_matter_what_a_clock_said(history: History) -> None:
    for n in range(1, 31):
        history.add_turn(n, at=LATER)
    history.prune(msgspec.structs.replace(BY_AGE, bytes_max=1), now=START)
    assert history.count("turns") == BY_AGE.turns_count_min


def test_a_step_is_bounded_and_says_that_there_is_more(history: History) -> None:
    for n in range(1, 101):
        history.add_turn(n, at=moment(n))
    reports = history.prune(BY_AGE)
    assert len(reports) > 3
    assert [report.more for report in reports] == [True] * (len(reports) - 1) + [False]
    per_turn_rows = 8 + 5  # events, and rows of all other tables
    assert max(report.rows_removed for report in reports) <= 4 * BY_AGE.batch_count + per_turn_rows


def test_the_cap_holds_under_a_sustained_load(history: History) -> None:
    cap = 4 * MIB
    policy = RetentionPolicy(
        bytes_max=cap, events_count_min=100, turns_count_min=10, batch_count=200
    )
    path = Path(history.connection.filename)
    largest = 0
    for n in range(1, 2_001):
        at = moment(n * MINUTE_MS)
        history.add_turn(n, at=at)
        history.checkpoints.take_if_due()
        if n % 50 == 0:
            history.prune(policy, now=at)
            largest = max(largest, path.stat().st_size)
    assert largest <= cap * 1.05
    assert history.count("turns") > 300, "it keeps what it has room for"
    assert history.connection.pragma("integrity_check") == "ok"
    assert history.connection.execute("pragma foreign_key_check").fetchall() == []


def test_the_file_gets_shorter_and_the_log_is_cut(history: History) -> None:
    for n in range(1, 301):
        history.add_turn(n, at=moment(n))
    history.checkpoints.truncate()
    path = Path(history.connection.filename)
    before = path.stat().st_size
    reports = history.prune(BY_AGE)
    assert path.stat().st_size < before // 2
    assert path.stat().st_size == reports[-1].database_bytes
    assert Path(f"{path}-wal").stat().st_size == 0


def test_a_pass_that_finds_nothing_writes_nothing(history: History) -> None:
    history.add_turn(1, at=START)
    report = history.retention.step(RetentionPolicy(), now=START)
    assert (report.rows_removed, report.more) == (0, False)


def test_a_step_that_fails_leaves_no_transaction_open(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise apsw.FullError("planted")

    monkeypatch.setattr(history.retention, "_forget", fail)
    with pytest.raises(apsw.FullError):
        history.retention.step(BY_AGE, now=LATER)
    assert not history.connection.in_transaction


def test_a_step_that_was_undone_is_taken_again(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(1, 31):
        history.add_turn(n, at=moment(n))

    def fail(*_: object, **__: object) -> None:
        raise apsw.FullError("planted")

    with monkeypatch.context() as disk:
        disk.setattr(history.retention, "_forget", fail)
        with pytest.raises(apsw.FullError):
            history.retention.step(BY_AGE, now=LATER)
    assert history.count("turns") == 30
    history.prune(BY_AGE)
    assert history.count("turns") == BY_AGE.turns_count_min
    assert history.count("events") == BY_AGE.events_count_min
