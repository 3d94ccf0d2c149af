"""If a row is in a table, it is legal: every invariant refuses, by name, what would break it."""

import re
from importlib import resources

import apsw
import pytest

from holon.adapters.sqlite.database.error_mapping import ConstraintNames
from tests.adapters.sqlite.raw_rows import everything

END = "settled_at = 1, settled_reason = 'r'"
SETTLE = "update turns set state = 'settled', settled_at = 1, terminal = '{}'"
MESSAGE = (
    "insert into messages (message_id, agent_id, state, band, kind, origin_kind, trust,"
    " authority_class, admission_context, surface, admitted_at, envelope) values"
    " ('msg_9', 'main', 'queued', 2, 'operator_prompt', 'operator', 'trusted_operator',"
    " 'operator_instruction', 'control_authenticated', 'cli_prompt', 0, '{}')"
)
TURN = (
    "insert into turns (turn_id, agent_id, turn_index, message_id, generation, opened_at, state,"
    " settled_at, terminal) values"
)
WAIT = (
    "insert into waits (wait_id, agent_id, kind, state, work_item_id, deadline_at, record) values"
)
REVOKE = "update external_triggers set status = 'revoked', revoked_at = 1"
TRIGGER = (
    "insert into external_triggers (external_trigger_id, agent_id, delivery_mode, status, epoch,"
    " created_at) values ('trig_2', 'main', 'wake_hint', 'active', 1, 0)"
)
DELIVERY = (
    "insert into trigger_deliveries (external_trigger_id, delivery_key, delivered_at, disposition)"
    " select external_trigger_id, delivery_key, 1, disposition from trigger_deliveries"
)
OCCUPANCY = (
    "insert into workspace_occupancies select 'occ_9', execution_root_id || 'ROOT', workspace_id,"
    " holder_agent_id, 'MODE', 0, ENDED from workspace_occupancies"
)
SOURCE = (
    "insert into memory_sources (agent_id, kind, source_id, evidence_rank, gone, changed_at)"
    " values ('main', 'brief', 'brief_9', 1, 0, 0)"
)

OWNER = (
    "insert into home_owner (only_row, generation, home_id, path, device, inode, lock_device,"
    " lock_inode, pid, start_ticks, process_space) values"
)

REFUSED = {
    # Agents.
    "agents_status_is_known": "update agents set status = 'dozing'",
    "agents_archived_is_a_flag": "update agents set archived = 2",
    "agents_archived_owe_nothing": "update agents set archived = 1",
    "agents_archived_stay_so": (
        "insert into agents (agent_id, identity, archived, status, status_since, status_reason)"
        " values ('old', '{}', 1, 'asleep', 0, 'r');"
        "update agents set archived = 0 where agent_id = 'old'"
    ),
    "agents_counters_are_natural": "update agents set passed_over = -1",
    "agents_generation_never_falls": "update agents set generation = 0",
    "agents_turn_index_never_falls": (
        "update agents set turn_index = 5; update agents set turn_index = 4"
    ),
    "agents_identity_is_written_once": "update agents set identity = '{}'",
    "agents_self_started_is_natural": "update agents set self_started_count = -1",
    "agents_gave_up_is_a_flag": "update agents set gave_up = 2",
    "usage_is_natural": "insert into usage values ('main', 1, 1, -1, 0)",
    # Messages.
    "messages_state_is_known": (
        f"update messages set state = 'lost', {END} where message_id = 'msg_2'"
    ),
    "messages_band_is_known": MESSAGE.replace("'queued', 2", "'queued', 4"),
    "messages_kind_is_known": MESSAGE.replace("'operator_prompt'", "'gossip'"),
    "messages_origin_is_known": MESSAGE.replace("'operator',", "'nobody',").replace(
        "'operator_instruction'", "'external_evidence'"
    ),
    "messages_trust_is_known": MESSAGE.replace("'trusted_operator'", "'trusted_friend'"),
    "messages_authority_is_known": MESSAGE.replace("'operator_instruction'", "'whim'"),
    "messages_admission_is_known": MESSAGE.replace("'operator',", "'channel',")
    .replace("'operator_instruction'", "'external_evidence'")
    .replace("'control_authenticated'", "'waved_through'"),
    "messages_operator_is_proven": MESSAGE.replace(
        "'control_authenticated'", "'public_unauthenticated'"
    ),
    "messages_operator_authority_is_the_operators": MESSAGE.replace("'operator',", "'channel',"),
    "messages_key_has_digest": MESSAGE.replace("surface,", "surface, idempotency_key,").replace(
        "'cli_prompt',", "'cli_prompt', 'k',"
    ),
    "messages_claim_has_generation": MESSAGE.replace("'queued'", "'claimed'"),
    "messages_end_has_moment_and_reason": "update messages set settled_at = 1",
    "messages_unseen_is_a_processed_one": "update messages set unseen = 1",
    "messages_id": MESSAGE.replace("msg_9", "msg_2"),
    "messages_one_claim_per_agent": (
        "update messages set state = 'claimed', claimed_generation = 2 where message_id = 'msg_2'"
    ),
    "messages_idempotency_key": MESSAGE.replace(
        "surface,", "surface, idempotency_key, body_digest,"
    ).replace("'cli_prompt',", "'http_control_prompt', 'k', 'd',"),
    "messages_one_pending_tick": MESSAGE.replace("surface,", "surface, tick_key,").replace(
        "'cli_prompt',", "'cli_prompt', 't',"
    ),
    "messages_end_once": (
        f"update messages set state = 'dropped', {END} where message_id = 'msg_2';"
        "update messages set state = 'processed' where message_id = 'msg_2'"
    ),
    "messages_claim_is_not_handed_back": "update messages set state = 'queued'",
    "messages_unfinished_are_kept": "delete from messages where message_id = 'msg_2'",
    "messages_provenance_is_fixed": "update messages set trust = 'trusted_system'",
    "messages_only_queued_ones_wait": (
        "update messages set not_before = 1 where message_id = 'msg_1'"
    ),
    "queues_count_is_natural": "update queues set queued_count = -1",
    # Turns.
    "turns_state_is_known": "update turns set state = 'paused'",
    "turns_terminal_iff_settled": "update turns set state = 'settled'",
    "turns_counters_are_natural": "update turns set resume_count = -1",
    "turns_crash_count_is_natural": "update turns set crash_count = -1",
    "turns_crash_progress_is_natural": "update turns set crash_progress = -1",
    "turns_one_open_per_agent": f"{TURN} ('t2', 'main', 2, 'msg_2', 1, 0, 'open', null, null)",
    "turns_one_per_message": f"{TURN} ('t2', 'main', 2, 'msg_1', 1, 0, 'settled', 1, '{{}}')",
    "turns_deferred_names_the_turn": "update turns set deferred = 2",
    "turns_index": f"{TURN} ('t2', 'main', 1, 'msg_2', 1, 0, 'settled', 1, '{{}}')",
    "turns_settle_once": f"{SETTLE}; update turns set state = 'open', terminal = null",
    "turns_open_are_kept": "delete from turns",
    "transcript_position": (
        "drop trigger transcript_positions_are_gapless;"  # it would speak first
        "insert into transcript values (9, 'turn_1', 0, 0, '{}')"
    ),
    "transcript_positions_are_gapless": "insert into transcript values (9, 'turn_1', 2, 0, '{}')",
    "transcript_is_append_only": "update transcript set data = '{}'",
    "transcript_ends_with_its_turn": (
        f"{SETTLE}; insert into transcript values (9, 'turn_1', 1, 0, '{{}}')"
    ),
    "tool_calls_state_is_known": "update tool_calls set state = 'guessed', receipt = '{}',"
    " finished_at = 1",
    "tool_calls_receipt_iff_finished": "update tool_calls set state = 'failed'",
    "tool_calls_position": (
        "insert into tool_calls (effect_id, call_id, turn_id, round, position, name, input, state,"
        " started_at) values ('e', 'c', 'turn_1', 1, 0, 'n', '{}', 'started', 0)"
    ),
    "tool_calls_finish_once": (
        "update tool_calls set state = 'failed', receipt = '{}', finished_at = 1;"
        "update tool_calls set state = 'succeeded'"
    ),
    "briefs_kind_is_known": "update briefs set kind = 'rumour'",
    "briefs_id": (
        "insert into briefs select 9, brief_id, agent_id, turn_id, kind, 0, '' from briefs"
    ),
    # Work.
    "work_items_state_is_known": "update work_items set state = 'lost', can_run = 0",
    "work_items_wait_count_is_natural": "update work_items set open_wait_count = -1",
    "work_items_only_open_ones_run": "update work_items set state = 'completed'",
    "work_items_only_open_ones_are_rechecked": (
        "update work_items set state = 'completed', can_run = 0, recheck_due_at = 1"
    ),
    "work_items_start_at_revision_one": (
        "insert into work_items (work_item_id, agent_id, state, revision, can_run, created_at,"
        " updated_at, record) values ('w', 'main', 'open', 2, 1, 0, 0, '{}')"
    ),
    "work_items_revision_follows": "update work_items set revision = 3",
    "work_items_stay_with_their_agent": "update work_items set agent_id = 'other'",
    "work_items_complete_once": (
        "update work_items set state = 'completed', can_run = 0;"
        "update work_items set state = 'open'"
    ),
    "work_items_open_are_kept": "delete from work_items",
    "activations_count_is_natural": "update activations set no_progress_count = -1",
    "tasks_status_is_known": "update tasks set status = 'lost'",
    "tasks_end_once": ("update tasks set status = 'failed'; update tasks set status = 'completed'"),
    "tasks_only_move_forward": "update tasks set status = 'queued'",
    "tasks_open_are_kept": "delete from tasks",
    # Waking.
    "timers_status_is_known": "update timers set status = 'snoozed', next_fire_at = null,"
    " ended_at = 1",
    "timers_active_iff_next_slot": "update timers set next_fire_at = null",
    "timers_end_has_moment": "update timers set ended_at = 1",
    "timers_end_once": (
        "update timers set status = 'cancelled', next_fire_at = null, ended_at = 1;"
        "update timers set status = 'active'"
    ),
    "timers_active_are_kept": "delete from timers",
    "wake_hints_revision_is_positive": "insert into wake_hints values ('main', 's', 0, 0, '')",
    "wake_hints_revision_rises": "update wake_hints set record = ''",
    "waits_kind_is_known": "update waits set kind = 'luck'",
    "waits_state_is_known": "update waits set state = 'forgotten', ended_at = 1",
    "waits_end_has_moment": "update waits set state = 'resolved'",
    "waits_can_end": "update waits set source_id = null, deadline_at = null",
    "waits_one_rest_per_agent": (
        f"{WAIT} ('a', 'main', 'rest', 'active', null, 1, ''),"
        " ('b', 'main', 'rest', 'active', null, 1, '')"
    ),
    "waits_one_recheck_per_item": (
        f"{WAIT} ('a', 'main', 'recheck', 'active', 'work_1', 1, ''),"
        " ('b', 'main', 'recheck', 'active', 'work_1', 1, '')"
    ),
    "waits_end_once": (
        "update waits set state = 'expired', ended_at = 1;"
        "update waits set state = 'active', ended_at = null"
    ),
    "waits_triggered_is_not_taken_back": (
        "update waits set state = 'triggered'; update waits set state = 'cancelled', ended_at = 1"
    ),
    "waits_open_are_kept": "delete from waits",
    "tool_latency_sums_are_natural": (
        "insert into tool_latency values ('main', 'ExecCommand', 1, 5, 9, 5)"
    ),
    # The log.
    "event_heads_floor_is_below": "update event_heads set floor_seq = last_seq + 1",
    "event_heads_only_rise": "update event_heads set last_seq = last_seq - 1",
    "events_sequence": "insert into events values (999, 'main', 1, 0, '{}', null)",
    "events_are_gapless": "insert into events values (999, 'main', 998, 0, '{}', null)",
    "events_are_append_only": "update events set event = '{}'",
    "events_leave_from_the_old_end": "delete from events where event_seq = 2",
    "commits_id": "insert into commits values (9, 'everything', 0)",
    # What no name of its own is needed for.
    "row_refers_to_nothing": "update agents set current_work_item_id = 'nowhere'",
    "agents_primary_key": (
        "insert into agents (agent_id, identity, archived, status, status_since, status_reason)"
        " values ('main', '{}', 0, 'asleep', 0, 'r')"
    ),
    "messages_envelope_is_present": MESSAGE.replace("'{}'", "null"),
    # External triggers.
    "external_triggers_mode_is_known": "update external_triggers set delivery_mode = 'shout'",
    "external_triggers_status_is_known": "update external_triggers set status = 'asleep'",
    "external_triggers_revoked_has_moment": "update external_triggers set status = 'revoked'",
    "external_triggers_counters_are_natural": "update external_triggers set delivery_count = -1",
    "external_triggers_one_per_agent": TRIGGER,
    "external_triggers_epoch_never_falls": (
        "update external_triggers set epoch = 3; update external_triggers set epoch = 2"
    ),
    "external_triggers_return_with_a_new_epoch": (
        f"{REVOKE}; update external_triggers set status = 'active', revoked_at = null"
    ),
    "external_triggers_revoked_take_nothing": (
        f"{REVOKE}; update external_triggers set delivery_count = 9"
    ),
    "external_triggers_stay_with_their_agent": "update external_triggers set agent_id = 'other'",
    "external_triggers_are_kept": "delete from external_triggers",
    # Workspaces.
    "skill_activations_state_is_known": "update skill_activations set state = 'x'",
    "skill_activations_reason_is_known": (
        "update skill_activations set load_reason = 'prompt_injection'"
    ),
    "skill_activations_source_is_known": "update skill_activations set source = 'x'",
    "skill_activations_session_lasts": "update skill_activations set state = 'session_active'",
    "agent_contexts_first_turn_is_one": ("insert into agent_contexts values ('other', 0, 1, '[]')"),
    "agent_contexts_epoch_is_positive": ("insert into agent_contexts values ('other', 1, 0, '[]')"),
    "agent_contexts_recap_is_a_list": "insert into agent_contexts values ('other', 1, 1, '{}')",
    "agent_contexts_only_move_on": (
        "update agent_contexts set history_from_turn = 1, compression_epoch = 2"
    ),
    "agent_contexts_are_kept": "delete from agent_contexts",
    "tainted_instructions_count_is_positive": (
        "insert into tainted_instructions values ('other', 'AGENTS.md', 'turn_1', 0, 0)"
    ),
    "tainted_instructions_count_on": (
        "update tainted_instructions set change_count = change_count + 2"
    ),
    "tainted_instructions_are_kept": "delete from tainted_instructions",
    "workspaces_anchor_is_absolute": "insert into workspaces values ('ws_9', 'srv', null, 0, 0)",
    "workspaces_one_per_anchor": (
        "insert into workspaces select 'ws_9', workspace_anchor, null, 0, 0 from workspaces"
    ),
    "workspaces_stay_what_they_are": "update workspaces set workspace_anchor = '/elsewhere'",
    "workspaces_are_kept": "delete from workspaces",
    "workspace_occupancies_mode_is_known": (
        "update workspace_occupancies set access_mode = 'shared_write'"
    ),
    "workspace_occupancies_one_per_holder": (
        OCCUPANCY.replace("MODE", "shared_read").replace("ENDED", "null")
    ),
    "workspace_occupancies_exclude_each_other": (
        OCCUPANCY.replace("MODE", "exclusive_write").replace("ENDED", "null").replace("ROOT", "")
    ),
    "workspace_occupancies_end_once": (
        OCCUPANCY.replace("MODE", "shared_read").replace("ENDED", "1")
        + "; update workspace_occupancies set released_at = null where occupancy_id = 'occ_9'"
    ),
    "workspace_occupancies_open_are_kept": "delete from workspace_occupancies",
    "workspace_occupancies_active_are_held": "update workspace_occupancies set released_at = 1",
    "attached_workspaces_active_stays": "delete from attached_workspaces",
    "active_workspaces_one_per_occupancy": (
        "insert into active_workspaces select 'other', workspace_id, occupancy_id,"
        " projection_kind, execution_root, cwd from active_workspaces"
    ),
    "active_workspaces_projection_is_known": "update active_workspaces set projection_kind = 'x'",
    "active_workspaces_root_is_absolute": (
        "update active_workspaces set execution_root = 'srv', cwd = 'srv'"
    ),
    "active_workspaces_cwd_is_inside": "update active_workspaces set cwd = '/srv/site-2'",
    # Memory.
    "memory_sources_kind_is_known": SOURCE.replace("'brief'", "'rumour'"),
    "memory_sources_rank_is_known": SOURCE.replace("1, 0, 0)", "4, 0, 0)"),
    "memory_sources_gone_is_a_flag": SOURCE.replace("1, 0, 0)", "1, 2, 0)"),
    "memory_sources_one_per_record": f"{SOURCE}; {SOURCE}",
    "turn_evidence_rank_is_known": (
        "insert into turn_evidence select turn_id, 4 from turns limit 1"
    ),
    "working_memories_prompted_is_known": (
        "update working_memories set last_prompted_revision = revision + 1"
    ),
    "working_memories_archived_is_natural": (
        "insert into working_memories values ('other', 0, 0, null, -1, '{}')"
    ),
    "working_memories_go_forward": "update working_memories set revision = revision + 2",
    "episodes_one_per_id": (
        "insert into episodes (episode_id, agent_id, end_turn_index, finalized_at, record)"
        " values ('ep_1', 'main', 2, 0, '{}')"
    ),
    "episodes_never_change": "update episodes set record = '{}'",
    # The owner of the home.
    "home_owner_is_one": f"{OWNER} (2, 1, 'h', '/h', '1', '1', '1', '1', 1, 1, '')",
    "home_owner_generation_positive": f"{OWNER} (1, 0, 'h', '/h', '1', '1', '1', '1', 1, 1, '')",
    "home_owner_generation_goes_up": (
        f"{OWNER} (1, 2, 'h', '/h', '1', '1', '1', '1', 1, 1, '');"
        "update home_owner set generation = 2"
    ),
    # The timeline of the log.
    "log_epoch_is_one_row": "insert into log_epoch (id, epoch) values (2, '0123456789abcdef')",
    "log_epoch_is_an_id": "insert or replace into log_epoch (id, epoch) values (1, 'short')",
    # Deliveries.
    "trigger_deliveries_primary_key": DELIVERY,
    "trigger_deliveries_key_is_a_digest": "update trigger_deliveries set delivery_key = 'short'",
    "trigger_deliveries_content_is_a_digest": (
        "update trigger_deliveries set content_digest = 'short'"
    ),
    "trigger_deliveries_disposition_is_known": (
        "update trigger_deliveries set disposition = 'ignored'"
    ),
}


@pytest.mark.parametrize(("constraint", "sql"), REFUSED.items(), ids=REFUSED)
def test_the_schema_refuses_by_name(constraint: str, sql: str) -> None:
    connection, _ = everything()
    with pytest.raises(apsw.ConstraintError) as refused:
        connection.execute(sql)
    assert ConstraintNames(connection).name_of(refused.value) == constraint


def test_every_named_invariant_of_the_schema_is_tried() -> None:
    folder = resources.files("holon.adapters.sqlite") / "migrations"
    schema = "\n".join(entry.read_text(encoding="utf-8") for entry in folder.iterdir())
    named = set(re.findall(r"^ *constraint (\w+)", schema, re.MULTILINE))
    named |= set(re.findall(r"^create unique index (\w+)", schema, re.MULTILINE))
    named |= set(re.findall(r"raise\(abort, '(\w+)'\)", schema))
    assert sorted(named - set(REFUSED)) == []


def test_one_row_of_everything_is_legal() -> None:
    connection, _ = everything()
    assert connection.execute("pragma foreign_key_check").fetchall() == []
    assert connection.pragma("integrity_check") == "ok"


def test_a_queue_knows_its_length_whatever_happens_to_its_messages() -> None:
    connection, _ = everything()
    connection.execute(MESSAGE)
    connection.execute(
        f"update messages set state = 'dropped', {END} where message_id in ('msg_1', 'msg_9')"
    )
    counted = connection.execute("select queued_count, admitted_count from queues").fetchall()
    assert counted == [(1, 3)]
