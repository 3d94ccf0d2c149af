"""`holon daemon logs`: bounded, harmless, and never through a link."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from holon.adapters.system.log_file import open_log
from holon.adapters.system.run_files import RunFiles, UnsafePlaceError
from holon.cli.main import main
from holon.daemon.log_tail import log_report
from holon.model.limits import (
    DAEMON_LOG_BYTES_MAX,
    DAEMON_LOG_LINE_CHARS_MAX,
    DAEMON_LOG_LINES_COUNT_MAX,
    DAEMON_LOG_READ_BYTES_MAX,
)
from tests.daemon.driving import failure


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
    with pytest.raises(UnsafePlaceError, match="symbolic link"):
        open_log(files.log)
    assert elsewhere.read_text(encoding="utf-8") == "secret\n"


def test_a_large_log_is_moved_aside_when_the_next_runtime_starts(files: RunFiles) -> None:
    with files.log.open("wb") as log:
        log.truncate(DAEMON_LOG_BYTES_MAX + 1)
    os.close(open_log(files.log))
    assert files.log.stat().st_size == 0
    assert files.log.with_name("daemon.log.1").stat().st_size == DAEMON_LOG_BYTES_MAX + 1
