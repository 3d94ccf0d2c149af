"""`holon daemon logs`: bounded, harmless, and never through a link."""

import json
import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.logs import move_aside, open_log
from holon.adapters.system.run_files import RunFiles, UnsafePathError
from holon.cli.main import main
from holon.daemon.logs import LogFollower, log_report
from holon.model.limits import (
    DAEMON_LOG_BYTES_MAX,
    DAEMON_LOG_LINE_CHARS_MAX,
    DAEMON_LOG_LINES_COUNT_MAX,
    DAEMON_LOG_READ_BYTES_MAX,
)
from holon.projections.runtime_status import FailurePhase
from tests.daemon.driving import failure

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    (tmp_path / "run").mkdir(mode=0o700)
    return RunFiles(tmp_path)


def shown(files: RunFiles, *arguments: str) -> str:
    done = CliRunner().invoke(main, ["daemon", "logs", "--home", str(files.home), *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.requirement("daemon:log-tail-is-bounded")
def test_the_tail_has_a_bound_in_lines_in_width_and_in_what_is_read(files: RunFiles) -> None:
    line = b"x" * (DAEMON_LOG_LINE_CHARS_MAX + 50)
    files.log.write_bytes(b"\n".join([line] * 2_000) + b"\n")
    report = log_report(files, lines_max=10**9)
    assert report.truncated
    assert 0 < len(report.lines) <= DAEMON_LOG_LINES_COUNT_MAX
    assert sum(map(len, report.lines)) <= DAEMON_LOG_READ_BYTES_MAX
    assert {len(line) for line in report.lines} == {DAEMON_LOG_LINE_CHARS_MAX}
    assert len(log_report(files, lines_max=3).lines) == 3


def test_a_short_log_is_shown_whole(files: RunFiles) -> None:
    files.log.write_text("one\ntwo\n", encoding="utf-8")
    report = log_report(files, lines_max=40)
    assert (report.lines, report.truncated) == (("one", "two"), False)
    assert log_report(files, lines_max=1).lines == ("two",)


def test_no_log_is_an_empty_one(files: RunFiles) -> None:
    assert log_report(files, lines_max=40).lines == ()
    assert "the log is empty" in shown(files)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_nothing_in_a_log_or_a_failure_moves_a_terminal(
    files: RunFiles, form: tuple[str, ...]
) -> None:
    bad = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31mred\u202eback\x1bc"
    files.log.write_text(f"safe {bad} end\n", encoding="utf-8")
    files.startup_failure.write_bytes(failure(f"why {bad}"))
    told = shown(files, *form)
    assert "safe" in told
    text = json.loads(told)["lines"][0] if form else told
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)


def test_a_log_that_is_a_link_is_neither_read_nor_written(files: RunFiles, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("secret\n", encoding="utf-8")
    files.log.symlink_to(elsewhere)
    assert log_report(files, lines_max=40).lines == ()
    with pytest.raises(UnsafePathError, match="symbolic link"):
        open_log(files.log)
    assert elsewhere.read_text(encoding="utf-8") == "secret\n"


def test_a_large_log_is_moved_aside_when_the_next_runtime_starts(files: RunFiles) -> None:
    with files.log.open("wb") as log:
        log.truncate(DAEMON_LOG_BYTES_MAX + 1)
    os.close(open_log(files.log))
    assert files.log.stat().st_size == 0
    assert files.log.with_name("daemon.log.1").stat().st_size == DAEMON_LOG_BYTES_MAX + 1


def test_the_tail_has_the_length_that_was_asked_for_under_either_name(files: RunFiles) -> None:
    files.log.write_text("".join(f"line {number}\n" for number in range(100)), encoding="utf-8")
    assert "line 20\n" in shown(files)
    assert "line 19\n" not in shown(files), "80 by default"
    for name in ("--tail", "--lines"):
        told = shown(files, name, "2")
        assert ("line 98\n" in told, "line 97\n" in told) == (True, False)


def test_a_log_is_followed_across_the_move_to_another_file(files: RunFiles) -> None:
    with closing(LogFollower(files.log)) as tail:
        assert tail.last_lines(5) == ()
        assert tail.new_lines() == (), "there is none yet"
        files.log.write_bytes(b"one\ntwo\nthr")
        assert tail.new_lines() == ("one", "two")
        with files.log.open("ab", buffering=0) as log:
            log.write(b"ee\n")
            assert tail.new_lines() == ("three",)
            move_aside(files.log)
            log.write(b"four\n")
        assert tail.new_lines() == ("four",), "the old one is read to its end"
        files.log.write_bytes(b"five\n")
        assert [*tail.new_lines(), *tail.new_lines(), *tail.new_lines()] == ["five"]


def test_what_is_followed_begins_with_the_end_of_what_is_there(files: RunFiles) -> None:
    files.log.write_bytes(b"x" * DAEMON_LOG_READ_BYTES_MAX + b"\none\ntwo\n")
    with closing(LogFollower(files.log)) as tail:
        assert tail.last_lines(2) == ("one", "two")
        assert tail.new_lines() == ()
        files.log.write_bytes(b"anew\n")
        assert [*tail.new_lines(), *tail.new_lines(), *tail.new_lines()] == ["anew"], "cut short"


def test_following_shows_each_line_until_it_is_interrupted(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.log.write_text('{"event":"ready"}\nnot JSON \x1b[2J\n', encoding="utf-8")

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holon.cli.service.daemon_logs.time.sleep", interrupted)
    for form, expected in (
        (("--json",), '{"event":"ready"}\n{"message":"not JSON \\u001b[2J"}\n'),
        ((), "last failure  none known\n"),
    ):
        arguments = ["daemon", "logs", "--follow", "--home", str(files.home), *form]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 130
        assert expected in done.stdout
        assert "\x1b" not in done.stdout


def test_a_failure_in_a_file_is_told_without_the_advice_to_look_at_the_logs(
    files: RunFiles,
) -> None:
    FailureFiles(files).note(FailurePhase.STARTUP, "no room", now=START)
    told = shown(files)
    assert f"last failure  {START.isoformat(timespec='seconds')} startup: no room\n" in told
    assert str(files.startup_failure) in told
    assert "holon daemon logs" not in told
    looked = CliRunner().invoke(main, ["daemon", "status", "--home", str(files.home)])
    assert "startup: no room; see holon daemon logs\n" in looked.stdout
