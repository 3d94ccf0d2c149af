"""Each invariant: a sound database keeps it, and one planted fault is seen as just that fault."""

from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.check.checker import check_connection, check_database
from holon.adapters.sqlite.check.facts import Invariant
from holon.adapters.sqlite.database.connection import open_memory
from holon.adapters.sqlite.database.migrate import migrate
from holon.model.values import MessageId, later
from tests.adapters.sqlite.check.story import plant, tell
from tests.support.manual_clock import DAWN

ENDED_TWICE = '{"kind":"message_processed","message_id":"msg_1","reason":"again"}'
SECOND_TURN = [
    """insert into turns select 'turn_9', agent_id, 9, message_id, work_item_id, generation,
           resume_count, opened_at, state, settled_at, terminal, round_count, usage, deferred,
           crash_count, crash_progress
       from turns where turn_id = 'turn_1'""",
    """insert into transcript (turn_id, position, created_at, data)
       select 'turn_9', position, created_at, data from transcript
       where turn_id = 'turn_1' and position = 0""",
    tell("main", '{"kind":"turn_started","turn_id":"turn_9","turn_index":9,"message_id":"msg_1"}'),
    tell(
        "main",
        '{"kind":"turn_terminal","turn_id":"turn_9","turn_index":9,"terminal":"completed",'
        '"duration_ms":1,"usage":{}}',
    ),
]

FAULTS = [
    pytest.param(
        "I1 msg_lost: its admission was committed, but it is gone",
        ["insert into commits (commit_id, applied_at) values ('admit:msg_lost', 0)"],
        id="admitted and gone",
        marks=pytest.mark.requirement("check:admitted-stays"),
    ),
    pytest.param(
        "I2 msg_1: settled 2 turns: turn_1, turn_9", SECOND_TURN, id="message settled twice"
    ),
    pytest.param(
        "I3 main: message msg_1 was processed and became processed",
        [tell("main", ENDED_TWICE)],
        id="moved after its end",
        marks=pytest.mark.requirement("audit:ends-are-final"),
    ),
    pytest.param(
        "I3 main: task task_end was completed and became failed",
        [
            tell("main", '{"kind":"task_status_updated","task_id":"task_end","status":"failed"}'),
            "update tasks set status = 'failed' where task_id = 'task_end'",
        ],
        id="second terminal status",
    ),
    pytest.param(
        "I4 main: msg_2 is claimed by generation 1, the agent is at 2",
        ["update messages set claimed_generation = 1 where message_id = 'msg_2'"],
        id="claimed by a dead generation",
    ),
    pytest.param(
        "I4 main: msg_hook is claimed but has no open turn",
        [
            """update messages set state = 'claimed', claimed_generation = 2
               where message_id = 'msg_hook'""",
            "update queues set queued_count = queued_count - 1 where agent_id = 'main'",
            tell(
                "main",
                '{"kind":"message_processing_started","message_id":"msg_hook","generation":2}',
            ),
        ],
        id="claimed without a turn",
    ),
    pytest.param(
        "I5 main: event_seq jumps from",
        ["delete from events where json_extract(event, '$.kind') = 'brief_created'"],
        id="gap in the log",
        marks=pytest.mark.requirement("check:log-is-gapless"),
    ),
    pytest.param(
        "I5 other: event_seq ends at 4, but 9 were given out",
        ["update event_heads set last_seq = 9 where agent_id = 'other'"],
        id="end of the log missing",
    ),
    pytest.param(
        "I5 other: event_seq jumps from 0 to 2",
        [
            "delete from events where agent_id = 'other' and event_seq = 1",
            "update agents set status = 'asleep' where agent_id = 'other'",
            tell("other", '{"kind":"agent_state_changed","status":"asleep","reason":"r"}'),
        ],
        id="start of the log missing without a floor",
    ),
    pytest.param(
        "I5 ghost: has 1 events but no row of its own",
        [
            """insert into events (agent_id, event_seq, created_at, event)
            values ('ghost', 1, 0, '{"kind":"work_item_focus_released"}')"""
        ],
        id="log of no agent",
    ),
    pytest.param(
        "I6 main: message msg_1 is processed in the log and dropped in its row",
        ["update messages set state = 'dropped' where message_id = 'msg_1'"],
        id="row moved in silence",
        marks=pytest.mark.requirement("audit:folding-gives-the-rows"),
    ),
    pytest.param(
        "I6 main: timer timer_9 is active in its row, but no event tells of it",
        [
            "insert into timers select 'timer_9', agent_id, status, next_fire_at, last_fired_at,"
            " fire_count, ended_at, record from timers"
        ],
        id="row nobody told of",
    ),
    pytest.param(
        "I6 main: message msg_tick is queued in the log, but it has no row",
        [
            "delete from messages where message_id = 'msg_tick'",
            "update queues set queued_count = queued_count - 1 where agent_id = 'main'",
            "delete from commits where commit_id = 'tick:msg_tick'",
        ],
        id="unfinished row deleted",
    ),
    pytest.param(
        "I6 main: focus is work_1 in the log and  in its row",
        ["update agents set current_work_item_id = null where agent_id = 'main'"],
        id="focus lost",
    ),
    pytest.param(
        "I6 main: work_item_revision work_1 is 1 in the log and 7 in its row",
        ["update work_items set revision = 7"],
        id="revision nobody wrote",
    ),
    pytest.param(
        "cannot be read: Invalid value 'sung' at $.kind",
        [tell("main", '{"kind":"sung"}')],
        id="event of no kind",
    ),
    pytest.param(
        "I7 wait_task: waits for a task: source task_gone is gone and no deadline",
        ["update waits set source_id = 'task_gone' where wait_id = 'wait_task'"],
        id="waits for a task that is not there",
        marks=pytest.mark.requirement("check:waits-can-end"),
    ),
    pytest.param(
        "I7 wait_timer: waits for a timer: source timer_1 is gone and no deadline",
        [
            """update timers set status = 'cancelled', next_fire_at = null, ended_at = 0""",
            tell("main", '{"kind":"timer_cancelled","timer_id":"timer_1"}'),
        ],
        id="waits for a cancelled timer",
    ),
    pytest.param(
        "I7 wait_rest: waits for a rest: it has no source and its deadline has passed",
        ["update waits set deadline_at = 0 where wait_id = 'wait_rest'"],
        id="deadline long past",
    ),
    pytest.param(
        "I7 wait_recheck: belongs to a work item that is completed",
        [
            """update work_items set state = 'completed', revision = 2, can_run = 0,
                   record = json_set(record, '$.state', 'completed')""",
            tell(
                "main",
                '{"kind":"work_item_written","work_item_id":"work_1","state":"completed",'
                '"revision":2}',
            ),
        ],
        id="waits for a finished item",
    ),
    pytest.param(
        "I7 wait_told: is triggered, but no message that is still to come names it",
        ["update messages set wait_id = null where message_id = 'msg_told'"],
        id="triggered and forgotten",
    ),
    pytest.param(
        "I8 task_run: is running: Object missing required field `id` at $",
        ["update tasks set record = '{}' where task_id = 'task_run'"],
        id="task without a record",
    ),
    pytest.param(
        "I8 task_end: is completed with the record of task_run (sleep_job)",
        [
            """update tasks set record = (select record from tasks where task_id = 'task_run')
            where task_id = 'task_end'"""
        ],
        id="task with another's record",
    ),
    pytest.param(
        "I9 turn_1: Sleep of round 1 has no call",
        ["delete from tool_calls where effect_id = 'turn_1.1.1'"],
        id="tool use without a call",
        marks=pytest.mark.requirement("check:calls-are-paired"),
    ),
    pytest.param(
        "I9 turn_1: call turn_1.1.0 has no result, though the turn went on without it",
        ["update tool_calls set receipt = null where effect_id = 'turn_1.1.0'"],
        id="settled turn with an unanswered call",
    ),
    pytest.param(
        "I9 turn_1: Enqueue of round 1 has the call of Dance",
        ["update tool_calls set name = 'Dance' where effect_id = 'turn_1.1.0'"],
        id="call of another tool",
    ),
    pytest.param(
        "I9 turn_2: call turn_2.4.0 answers no tool use",
        [
            """insert into tool_calls select 'turn_2.4.0', call_id, turn_id, 4, position, name,
                   input, state, started_at, finished_at, duration_ms, work_item_id, receipt
               from tool_calls where effect_id = 'turn_2.1.0'""",
            tell(
                "main",
                '{"kind":"tool_started","effect_id":"turn_2.4.0","turn_id":"turn_2",'
                '"tool_name":"Sleep"}',
            ),
        ],
        id="call nobody asked for",
    ),
    pytest.param(
        "I9 turn_1: its transcript jumps to position 7 where 2 is due",
        ["update transcript set position = 7 where turn_id = 'turn_1' and position = 2"],
        id="gap in a transcript",
    ),
    pytest.param(
        "I9 turn_2: cannot be read",
        [
            """update transcript set data = '{"kind":"sung"}'
            where turn_id = 'turn_2' and position = 1"""
        ],
        id="unreadable transcript",
    ),
    pytest.param(
        "I10 main: 2 ticks of key wake_hint are pending",
        ["update messages set tick_key = 'wake_hint' where message_id = 'msg_told'"],
        id="two ticks of one key",
        marks=pytest.mark.requirement("check:ticks-coalesce"),
    ),
    pytest.param(
        "I10 main: 2 ticks of timer timer_1 are queued",
        ["update messages set timer_id = 'timer_1' where message_id = 'msg_told'"],
        id="two ticks of one timer",
    ),
    pytest.param(
        "I11 other: is completed, but no turn of it has ended",
        [
            """update agents set last_closure = '{"outcome":"completed"}'
            where agent_id = 'other'"""
        ],
        id="completed out of nothing",
        marks=pytest.mark.requirement("check:closures-hold"),
    ),
    pytest.param(
        "I11 main: its closure cannot be read: Object contains unknown field `waiting_reason`",
        [
            """update agents set last_closure =
            '{"outcome":"completed","waiting_reason":"awaiting_timer"}' where agent_id = 'main'"""
        ],
        id="completed and waiting",
    ),
    pytest.param(
        "I11 other: is continuable for work_1, which it never had",
        [
            """update agents set last_closure = '{"outcome":"continuable","work_signal":
            {"work_item_id":"work_1","status":"active","reactivation_mode":"continue_active"}}'
            where agent_id = 'other'"""
        ],
        id="continuable with another's work",
    ),
    pytest.param(
        "is completed with a reason",
        [
            tell(
                "main",
                '{"kind":"closure_decided","outcome":"completed",'
                '"waiting_reason":"awaiting_timer"}',
            )
        ],
        id="closure event with a stray reason",
    ),
    pytest.param(
        "is continuable and names no item",
        [tell("main", '{"kind":"closure_decided","outcome":"continuable"}')],
        id="closure event without its item",
    ),
    pytest.param(
        "I11 other: is awake_running without an open turn",
        [
            "update agents set status = 'awake_running' where agent_id = 'other'",
            tell("other", '{"kind":"agent_state_changed","status":"awake_running","reason":"r"}'),
        ],
        id="running nothing",
    ),
    pytest.param(
        "I12 msg_1: claims to be the operator, but came in by public_unauthenticated",
        [
            """update messages set admission_context = 'public_unauthenticated',
                authority_class = 'external_evidence', trust = 'untrusted_external',
                envelope = json_set(envelope, '$.admission_context', 'public_unauthenticated',
                    '$.authority_class', 'external_evidence', '$.trust', 'untrusted_external')
            where message_id = 'msg_1'"""
        ],
        id="operator by the public door",
        marks=pytest.mark.requirement("check:provenance-holds"),
    ),
    pytest.param(
        "I12 msg_hook: webhook by public_unauthenticated is worth integration_signal,"
        " not operator_instruction",
        [
            """update messages set authority_class = 'operator_instruction',
                trust = 'trusted_operator', envelope = json_set(envelope,
                    '$.authority_class', 'operator_instruction', '$.trust', 'trusted_operator')
            where message_id = 'msg_hook'"""
        ],
        id="stranger with the operator's authority",
        marks=pytest.mark.requirement("check:provenance-holds"),
    ),
    pytest.param(
        "I12 msg_hook: has trust trusted_operator beside authority external_evidence",
        [
            """update messages set trust = 'trusted_operator',
                envelope = json_set(envelope, '$.trust', 'trusted_operator')
            where message_id = 'msg_hook'"""
        ],
        id="trust above authority",
    ),
    pytest.param(
        "I12 msg_hook: its envelope names another origin, door or authority",
        [
            """update messages set envelope = json_set(envelope, '$.origin.kind', 'operator')
            where message_id = 'msg_hook'"""
        ],
        id="envelope against its columns",
    ),
    pytest.param(
        "I13 timer_1: stands off its grid of 7000 ms",
        [
            """update timers set next_fire_at = next_fire_at + 1, record = json_set(
                   record, '$.schedule', json('{"repeat":"every","interval_ms":7000}'))
               where timer_id = 'timer_1'"""
        ],
        id="timer off its grid",
    ),
    pytest.param(
        "I13 timer_1: this is no cron expression",
        [
            """update timers set record = json_set(
                   record, '$.schedule', json('{"repeat":"cron","expression":"61 * * * *"}'))
               where timer_id = 'timer_1'"""
        ],
        id="timer that never comes round",
    ),
    pytest.param(
        "I14 other: is in workspace",
        ["update workspace_occupancies set released_at = 1"],
        id="in a workspace without a hold on it",
        marks=pytest.mark.requirement("workspace:occupancy"),
    ),
    pytest.param(
        "I14 main: holds some_root but is not in it",
        [
            """insert into workspace_occupancies
               select 'occ_9', 'some_root', workspace_id, 'main', access_mode, 0, null
               from workspace_occupancies"""
        ],
        id="a hold of nobody",
    ),
    pytest.param(
        "is held by other, main, one of them alone",
        [
            """insert into workspace_occupancies
               select 'occ_9', execution_root_id, workspace_id, 'main', 'exclusive_write', 0, null
               from workspace_occupancies"""
        ],
        id="held alone, twice",
    ),
    pytest.param(
        "I14 other: works in /etc, outside of /srv/site",
        ["update active_workspaces set cwd = '/etc'"],
        id="outside of its root",
    ),
    pytest.param(
        "I6 other: active_workspace is  in the log and ws_",
        [tell("other", '{"kind":"workspace_exited","workspace_id":"ws_1"}')],
        id="left a workspace by the log only",
    ),
    pytest.param(
        "I15 main: keeps /s/SKILL.md although no turn has earned it",
        ["update skill_activations set is_lasting = 0"],
        id="a skill that was not earned",
    ),
    pytest.param(
        "file briefs: row 1 points to no row of turns",
        ["update briefs set turn_id = 'turn_gone'"],
        id="dangling reference",
    ),
]


@pytest.mark.requirement("check:clean-is-clean")
def test_a_sound_database_is_clean_and_counted(database: Path) -> None:
    report = check_database(database)
    assert report.violations == ()
    assert report.is_clean
    assert report.counts["agents"] == 2
    assert report.counts["messages"] == 6
    assert report.counts["waits"] == 7
    assert report.as_of == DAWN


@pytest.mark.parametrize(("line", "statements"), FAULTS)
def test_a_planted_fault_is_seen_as_what_it_is(
    database: Path, line: str, statements: list[str]
) -> None:
    plant(database, *statements)
    violations = check_database(database).violations
    assert any(line in str(violation) for violation in violations), violations
    assert len({violation.invariant for violation in violations}) == 1, violations


def test_every_invariant_has_a_planted_fault() -> None:
    lines = " ".join(str(param.values[0]) for param in FAULTS)
    assert {i for i in Invariant if f"{i.value} " in lines} == set(Invariant)


@pytest.mark.requirement("check:admitted-stays")
def test_an_acknowledged_message_must_be_there(database: Path) -> None:
    acked = {MessageId("msg_1"), MessageId("msg_hook")}
    assert check_database(database, acked=acked).is_clean
    (violation,) = check_database(database, acked=acked | {MessageId("msg_none")}).violations
    assert str(violation) == "I1 msg_none: its admission was acknowledged, but it is gone"


@pytest.mark.requirement("check:waits-can-end")
@pytest.mark.parametrize(
    ("passed_ms", "status", "clean"),
    [
        pytest.param(3_600_000 + 59_000, "awake_running", True, id="within the grace"),
        pytest.param(3_600_000 + 61_000, "awake_running", False, id="after the grace"),
        pytest.param(99_999_999, "stopped", True, id="the agent is stopped"),
    ],
)
def test_deadlines_are_judged_by_the_moment_given(
    database: Path, passed_ms: int, status: str, clean: bool
) -> None:
    if status == "stopped":
        plant(
            database,
            "update agents set status = 'stopped' where agent_id = 'main'",
            tell("main", '{"kind":"agent_state_changed","status":"stopped","reason":"r"}'),
        )
    assert check_database(database, now=later(DAWN, by_ms=passed_ms)).is_clean is clean


def test_a_database_in_memory_can_be_checked_where_it_is() -> None:
    connection = open_memory()
    migrate(connection)
    report = check_connection(connection)
    assert report.is_clean
    assert report.as_of is None
    assert set(report.counts.values()) == {0}
    connection.close()


def test_a_damaged_page_is_a_violation_and_not_a_crash(database: Path) -> None:
    with apsw.Connection(str(database)) as connection:
        (root,) = connection.execute(
            "select rootpage from sqlite_schema where name = 'messages'"
        ).fetchall()[0]
        page_bytes = int(str(connection.pragma("page_size")))
    connection.close()
    raw = bytearray(database.read_bytes())
    start = (int(str(root)) - 1) * page_bytes
    raw[start : start + page_bytes] = b"\xff" * page_bytes
    database.write_bytes(raw)
    violations = check_database(database).violations
    assert Invariant.FILE_IS_SOUND in {violation.invariant for violation in violations}
