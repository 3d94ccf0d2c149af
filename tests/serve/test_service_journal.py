"""The journal of a service: its file, its level, what is seen on a terminal, and the counts."""

import json
import logging
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest

from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.run_files import RunFiles
from holon.adapters.system.secrets import SecretRegistry
from holon.http.context import Traffic
from holon.model.errors import HomeInUseError
from holon.model.limits import JOURNAL_WINDOW_MS
from holon.ports.journal import LogLevel, NothingToRedact
from holon.projections.runtime_status import FailurePhase
from holon.serve.service_journal import LifecycleFailures, service_journal, sum_up, tell_refusals
from tests.runtime.notes import Notes
from tests.support.manual_clock import ManualClock

CANARY = "canary-0123456789-abcdef"


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    (tmp_path / "run").mkdir(mode=0o700)
    return RunFiles(tmp_path)


def lines_of(files: RunFiles) -> list[Any]:
    return [json.loads(line) for line in files.log.read_text(encoding="utf-8").splitlines()]


def test_lines_go_to_the_file_and_what_matters_to_the_terminal_too(
    files: RunFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    with service_journal(files, LogLevel.INFO, NothingToRedact()) as journal:
        journal.note("ready", "serves")
        journal.note("provider_failed", "no answer", level=LogLevel.WARNING)
        logging.getLogger("holon.http.app").error("GET /x failed")
    assert [line["event"] for line in lines_of(files)] == ["ready", "provider_failed", "log"]
    shown = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 1)[1] for line in shown] == [
        "WARNING provider_failed: no answer",
        "ERROR log: GET /x failed",
    ]
    assert files.log.stat().st_mode & 0o777 == 0o600


def test_why_a_service_ended_is_left_to_the_command_unless_it_is_a_bug(
    files: RunFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    with service_journal(files, LogLevel.INFO, NothingToRedact()) as journal:
        journal.note("start_refused", "the port is taken", level=LogLevel.ERROR)
        journal.note("ended_badly", "a bug", level=LogLevel.ERROR, error=ValueError("a bug"))
    assert [line["event"] for line in lines_of(files)] == ["start_refused", "ended_badly"]
    shown = capsys.readouterr().err
    assert "the port is taken" not in shown
    assert "ended_badly: a bug" in shown


@pytest.mark.requirement("journal:refused-requests-are-counted")
async def test_refused_requests_become_one_line_a_minute(files: RunFiles) -> None:
    traffic, clock = Traffic(), ManualClock()
    with service_journal(files, LogLevel.INFO, NothingToRedact()) as journal:
        async with anyio.create_task_group() as beside:
            beside.start_soon(sum_up, journal, traffic, clock)
            for status in [401] * 5_000 + [404, 404]:
                traffic.refusals[status] += 1
            await anyio.wait_all_tasks_blocked()
            for _ in range(3):
                clock.advance(JOURNAL_WINDOW_MS)
                await anyio.wait_all_tasks_blocked()
            beside.cancel_scope.cancel()
    [line] = lines_of(files)
    assert line["message"] == "requests were refused: 5000 with 401, 2 with 404"
    assert (line["count"], line["level"]) == (5_002, "info")


def test_a_fault_of_ours_among_the_refused_makes_it_a_warning() -> None:
    notes, traffic = Notes(), Traffic()
    traffic.refusals[503] += 1
    tell_refusals(notes, traffic)
    tell_refusals(notes, traffic)
    assert [note.level for note in notes.lines] == [LogLevel.WARNING]


@pytest.mark.requirement("journal:a-life-is-told")
@pytest.mark.parametrize(
    ("error", "started", "events", "has_trace"),
    [
        (None, True, ["starting", "ended"], False),
        (HomeInUseError("in use"), False, ["starting", "start_refused"], False),
        (ValueError(CANARY), False, ["starting", "start_refused"], True),
        (ExceptionGroup("g", [ValueError(CANARY)]), True, ["starting", "ended_badly"], True),
    ],
)
def test_beginning_and_end_are_told_and_how_they_failed(
    files: RunFiles,
    error: Exception | None,
    started: bool,
    events: list[str],
    has_trace: bool,
) -> None:
    notes, secrets = Notes(), SecretRegistry()
    secrets.learn("key", CANARY)
    failures = FailureFiles(files)
    life = LifecycleFailures(failures, ManualClock(), journal=notes, redactor=secrets)
    expected = nullcontext() if error is None else pytest.raises(type(error))
    with expected, life:
        if started:
            life.started()
        if error is not None:
            raise error
    assert [note.event for note in notes.lines] == events
    assert (notes.lines[-1].error is not None) is has_trace
    kept = failures.of(FailurePhase.SHUTDOWN if started else FailurePhase.STARTUP)
    assert (kept is not None) is has_trace
    assert kept is None or kept.summary == "ValueError: [secret:key]"
