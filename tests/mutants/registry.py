"""Faults that real projects shipped, planted on purpose to see whether the tests can see.

Owns:  one planting function per mutant and the layer that must kill it. Nothing in production code
       knows about them: HOLON_MUTANT=M4 makes conftest call `plant("M4")` before the tests run.
Rule 1: M1 to M24 are the list of known faults of others, in its numbering. H1 and on are our own,
        as are O (who owns a home), S (how a service ends) and C (clocks that are set).
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.mutants import (
    clock_mutants,
    database_mutants,
    hands_mutants,
    lane_mutants,
    owner_mutants,
    restart_mutants,
    service_mutants,
    store_mutants,
    wake_mutants,
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted fault and the tests that must fail because of it."""

    name: str
    fault: str
    layer: str
    tests: tuple[str, ...]
    plant: Callable[[], None]


SIM = ("tests/simulation/test_worlds.py::test_a_world_keeps_its_promises",)

OWNER = ("tests/adapters/sqlite/test_home_owner.py",)

MUTANTS: tuple[Mutant, ...] = (
    Mutant("M1", "acknowledged before it is durable", "simulation", SIM, store_mutants.plant_m1),
    Mutant("M2", "open turns are not taken up at start", "simulation", SIM, lane_mutants.plant_m2),
    Mutant(
        "M3",
        "a tool's effect and its result are two commits",
        "simulation",
        SIM,
        lane_mutants.plant_m3,
    ),
    Mutant("M4", "the news is cleared after the look", "simulation", SIM, lane_mutants.plant_m4),
    Mutant(
        "M5",
        "a stale generation may still write",
        "store contract",
        ("tests/contract/store/test_commits.py",),
        store_mutants.plant_m5,
    ),
    Mutant(
        "M6", "only timers of agents that ran are watched", "simulation", SIM, wake_mutants.plant_m6
    ),
    Mutant(
        "M7",
        "a wait ends before its result is queued",
        "runtime",
        ("tests/runtime/test_task_service.py",),
        wake_mutants.plant_m7,
    ),
    Mutant(
        "M8",
        "a new wait drops one that was already triggered",
        "tools",
        ("tests/tools/test_sleep.py",),
        wake_mutants.plant_m8,
    ),
    Mutant(
        "M9",
        "a late report reopens a finished task",
        "decisions",
        ("tests/decide/tasks/test_task_lifecycle.py",),
        store_mutants.plant_m9,
    ),
    Mutant(
        "M10",
        "a reader that fell behind is skipped ahead",
        "http",
        (
            "tests/http/test_event_streams.py::test_a_reader_that_was_held_up_gets_no_gap_but_the_end",
        ),
        service_mutants.plant_m10,
    ),
    Mutant(
        "M11",
        "a reader's place moves before what it missed is read",
        "http",
        (
            "tests/http/test_event_streams.py::test_what_happens_while_one_catches_up_comes_after_what_was_missed",
        ),
        service_mutants.plant_m11,
    ),
    Mutant(
        "M12",
        "the count of vain offers forgets across lanes",
        "runtime",
        ("tests/runtime/test_no_progress.py",),
        wake_mutants.plant_m12,
    ),
    Mutant(
        "M13",
        "cancelling a timer leaves its queued ticks",
        "runtime",
        ("tests/runtime/test_timer_service.py",),
        wake_mutants.plant_m13,
    ),
    Mutant(
        "M14",
        "a repeating timer drifts to when it fired",
        "decisions",
        ("tests/decide/wake/test_timer_grid.py",),
        wake_mutants.plant_m14,
    ),
    Mutant(
        "M15",
        "the model that answered last is asked first by all",
        "runtime",
        (
            "tests/runtime/test_provider_caller.py::test_a_fallback_that_answered_leads_nothing_afterwards",
        ),
        service_mutants.plant_m15,
    ),
    Mutant(
        "M16",
        "an unfinished call is left without a result",
        "simulation",
        SIM,
        lane_mutants.plant_m16,
    ),
    Mutant(
        "M17",
        "the output file of a command has no bound",
        "shell contract",
        ("tests/contract/test_shell.py::test_s64_what_is_over_the_cap_never_reaches_the_disk",),
        service_mutants.plant_m17,
    ),
    Mutant(
        "M18",
        "a tick that was cut off is not taken up again",
        "simulation",
        SIM,
        lane_mutants.plant_m18,
    ),
    Mutant(
        "M19",
        "waiting for the operator swallows a recheck",
        "decisions",
        ("tests/decide/turns/test_continuation.py",),
        wake_mutants.plant_m19,
    ),
    Mutant(
        "M20",
        "no handle left ends the accepting",
        "http",
        ("tests/http/test_listeners.py::test_who_knocks_while_no_handle_is_left_is_let_in_later",),
        service_mutants.plant_m20,
    ),
    Mutant(
        "M21",
        "a cron slot that ran is run again after a restart",
        "runtime",
        (
            "tests/runtime/test_timer_service.py::test_a_cron_slot_that_ran_is_not_run_again_after_a_restart",
        ),
        restart_mutants.plant_m21,
    ),
    Mutant(
        "M22",
        "what waits behind a turn is kept in memory only",
        "whole host",
        (
            "tests/serve/test_compose.py::test_what_waits_behind_a_turn_outlives_an_end_in_good_order",
            "tests/runtime/test_ingress.py::test_what_waits_behind_a_long_turn_survives_a_crash",
        ),
        restart_mutants.plant_m22,
    ),
    Mutant(
        "M23",
        "an error of recovery is swallowed",
        "runtime",
        (
            "tests/runtime/test_host.py::test_a_recovery_that_fails_ends_the_host_before_it_is_ready",
        ),
        restart_mutants.plant_m23,
    ),
    Mutant(
        "M24",
        "a host that drains goes on claiming",
        "runtime",
        (
            "tests/runtime/test_scheduler.py::test_a_host_that_drains_ends_the_turn_that_runs_and_claims_nothing_more",
        ),
        restart_mutants.plant_m24,
    ),
    Mutant(
        "H1",
        "running commands are not attached to again",
        "simulation",
        SIM,
        hands_mutants.plant_h1,
    ),
    Mutant(
        "H2",
        "a call is answered as cut off while its command goes on",
        "runtime",
        ("tests/runtime/test_strays.py",),
        hands_mutants.plant_h2,
    ),
    Mutant(
        "H3",
        "an end that nobody saw is never told",
        "simulation",
        SIM,
        hands_mutants.plant_h3,
    ),
    Mutant(
        "H4",
        "a task's result is delivered twice",
        "simulation",
        SIM,
        hands_mutants.plant_h4,
    ),
    Mutant(
        "H5",
        "a command that no row speaks of goes on",
        "runtime",
        ("tests/runtime/test_strays.py",),
        hands_mutants.plant_h5,
    ),
    Mutant(
        "O1",
        "a home is recovered before it is owned",
        "store",
        OWNER,
        owner_mutants.plant_o1,
    ),
    Mutant("O2", "a replaced owner writes on", "store", OWNER, owner_mutants.plant_o2),
    Mutant(
        "O3",
        "a copy takes up the commands of its original",
        "commands",
        ("tests/adapters/exec/test_copied_runs.py",),
        owner_mutants.plant_o3,
    ),
    Mutant(
        "O4",
        "a copy takes the service of its original for its own",
        "files",
        ("tests/adapters/system/test_home_identity.py",),
        owner_mutants.plant_o4,
    ),
    Mutant("O5", "a copy goes by the name of its original", "store", OWNER, owner_mutants.plant_o5),
    Mutant(
        "H6",
        "the files of the database are not watched",
        "store",
        ("tests/adapters/sqlite/test_database_underneath.py",),
        database_mutants.plant_h6,
    ),
    Mutant(
        "H7",
        "an empty or missing database is begun anew beside its agents",
        "store",
        ("tests/adapters/sqlite/test_database_underneath.py",),
        database_mutants.plant_h7,
    ),
    Mutant(
        "H8",
        "a log is laid over another database",
        "store",
        ("tests/adapters/sqlite/test_database_underneath.py",),
        database_mutants.plant_h8,
    ),
    Mutant(
        "H9",
        "a restored home keeps its timeline",
        "backup",
        ("tests/adapters/backup/test_backup.py",),
        database_mutants.plant_h9,
    ),
    Mutant(
        "H10",
        "a log that is lost is not missed",
        "store",
        ("tests/adapters/sqlite/test_database_underneath.py",),
        database_mutants.plant_h10,
    ),
    Mutant(
        "S1",
        "a start is cut off with whoever asked for it",
        "runtime",
        ("tests/runtime/test_command_service.py",),
        hands_mutants.plant_s1,
    ),
    Mutant(
        "S2",
        "a recorded task that was not started stays unstarted",
        "runtime",
        ("tests/runtime/test_command_service.py",),
        hands_mutants.plant_s2,
    ),
    Mutant(
        "C1",
        "a clock that was corrected silences timers",
        "runtime",
        ("tests/runtime/test_timer_dispatcher.py",),
        clock_mutants.plant_c1,
    ),
    Mutant(
        "C2",
        "a lost battery makes timers early",
        "runtime",
        ("tests/runtime/test_timer_dispatcher.py",),
        clock_mutants.plant_c2,
    ),
    Mutant(
        "C3",
        "retention goes by the wall clock",
        "runtime",
        ("tests/runtime/test_retention_keeper.py",),
        clock_mutants.plant_c3,
    ),
    Mutant(
        "C4",
        "a clock that is set back is not noticed",
        "runtime",
        ("tests/runtime/test_timer_dispatcher.py",),
        clock_mutants.plant_c4,
    ),
    Mutant(
        "C5",
        "rows go by stamps the clock stood at again later",
        "store",
        ("tests/adapters/sqlite/test_retention_clocks.py",),
        clock_mutants.plant_c5,
    ),
    Mutant(
        "C6",
        "keys given under a clock in the past are forgotten",
        "store",
        ("tests/adapters/sqlite/test_retention_clocks.py",),
        clock_mutants.plant_c6,
    ),
    Mutant(
        "C7",
        "one old stamp makes all events before it old",
        "store",
        ("tests/adapters/sqlite/test_retention_clocks.py",),
        clock_mutants.plant_c7,
    ),
    Mutant(
        "C8",
        "a start before anything ended believes any clock",
        "decisions",
        ("tests/decide/events/test_trusted_time.py",),
        clock_mutants.plant_c8,
    ),
    Mutant(
        "H16",
        "blanks before a token of a prompt are looked at once for each of them",
        "growth",
        (
            "tests/hostile/test_scan_growth.py"
            "::test_a_scan_takes_as_long_for_each_character_of_a_long_text_as_of_a_short_one",
        ),
        lane_mutants.plant_h16,
    ),
    Mutant(
        "H17",
        "a turn that ends the process each time is never set aside",
        "decisions",
        ("tests/decide/turns/test_recovery_plan.py",),
        restart_mutants.plant_h17,
    ),
)


def plant(name: str) -> None:
    """Plant the fault of this name; an unknown name is an error."""
    found = {mutant.name: mutant for mutant in MUTANTS}
    found[name].plant()
