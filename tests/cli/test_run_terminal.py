"""`holon run` on a real terminal, and under real signals."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path

pytestmark = pytest.mark.long

SCRIPT = r"""
rules:
  - when: nasty
    rounds:
      - calls: [{name: ExecCommand, input: {cmd: "true '\u001b[2J\u001b]0;owned\u0007'"}}]
      - text: "\e[31mred\e]0;owned\u0007 \e]52;c;aGk=\u0007\u009b2J\u202eend"
  - when: hold
    rounds:
      - calls: [{name: ExecCommand, input: {cmd: "echo x > reached; read line < gate"}}]
      - text: Through the gate.
  - when: detach
    rounds:
      - calls: [{name: ExecCommand, input: {cmd: "read line < gate", yield_time_ms: 0}}]
      - text: It runs.
  - when: stubborn
    rounds:
      - calls:
          - {name: ExecCommand, input: {cmd: "trap '' TERM; exec 3> reached; read l < gate"}}
      - text: Never said.
  - rounds:
      - text: Hello again.
"""


class Terminal:
    """A run whose stderr is a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str, term: str = "xterm") -> None:
        self._screen, slave = pty.openpty()
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holon", "run", *arguments],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "HOLON_HOME": str(folder / "holon"),
                "TERM": term,
            },
            stdout=subprocess.PIPE,
            stderr=slave,
            text=True,
        )
        os.close(slave)

    def until(self, words: str) -> None:
        """Read the screen until it has shown these words."""
        while words not in self.seen:
            assert self._read(), f"the run ended without {words!r}: {self.seen!r}"

    def finish(self) -> tuple[int, str]:
        """Read to the end; return the exit code and what was on stdout."""
        while self._read():
            pass
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out

    def close(self) -> None:
        os.close(self._screen)
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def _read(self) -> bool:
        try:
            piece = os.read(self._screen, 65_536)
        except OSError:
            return False  # nobody holds the other end any more
        self.seen += piece.decode()
        return bool(piece)


@pytest.fixture
def opened() -> Iterator[list[Terminal]]:
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.close()


@pytest.fixture
def flags(tmp_path: Path) -> tuple[str, ...]:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT, encoding="utf-8")
    os.mkfifo(tmp_path / "gate")
    return ("--model", f"scripted/{script}", "--cwd", str(tmp_path))


def rows_left(screen: str) -> list[str]:
    """Play the screen's few control codes; return the rows that are not blank."""
    rows, row = [""], 0
    for piece in re.split(r"(\r\x1b\[2K|\x1b\[1A|\r\n)", screen):
        if piece == "\r\n":
            row += 1
            rows += [""] if row == len(rows) else []
        elif piece == "\x1b[1A":
            row -= 1
        elif piece == "\r\x1b[2K":
            rows[row] = ""
        else:
            rows[row] += piece
    return [each for each in rows if each]


@pytest.mark.requirement("run-once:live-view")
def test_a_terminal_shows_what_goes_on_and_is_clean_afterwards(
    tmp_path: Path, flags: tuple[str, ...], opened: list[Terminal]
) -> None:
    opened.append(terminal := Terminal(tmp_path, "hold", *flags))
    terminal.until("● running `echo x > reached; read line < gate`")
    (tmp_path / "gate").write_text("go\n", encoding="utf-8")
    assert terminal.finish() == (0, "Through the gate.\n")
    assert "tokens" in terminal.seen
    assert rows_left(terminal.seen) == []


@pytest.mark.requirement("run-once:plain-lines")
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_nothing_a_model_writes_steers_the_terminal(
    tmp_path: Path, flags: tuple[str, ...], opened: list[Terminal], term: str
) -> None:
    opened.append(terminal := Terminal(tmp_path, "nasty", *flags, term=term))
    code, out = terminal.finish()
    assert (code, out) == (0, "red end\n")
    ours = re.sub(r"\r\x1b\[2K|\x1b\[1A|\r\n", "", terminal.seen)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", ours)
    if term == "dumb":
        assert "\x1b" not in terminal.seen


@pytest.mark.requirement("run-once:interrupt")
def test_the_first_interrupt_ends_the_turn_and_the_agent_can_go_on(
    tmp_path: Path, flags: tuple[str, ...], opened: list[Terminal]
) -> None:
    opened.append(terminal := Terminal(tmp_path, "hold", *flags))
    terminal.until("● running")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == (130, "")
    told = "".join(rows_left(terminal.seen))
    assert "stopping" in told
    [agent] = re.findall(r"holon run --agent (tmp_run_\w+)", told)
    assert check_database(database_path(tmp_path / "holon")).violations == ()
    again = Terminal(tmp_path, "hi", *flags, "--agent", agent)
    opened.append(again)
    assert again.finish() == (0, "Hello again.\n")


@pytest.mark.requirement("run-once:interrupt")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_tasks_outlive_a_stopped_run_and_are_named(
    tmp_path: Path, flags: tuple[str, ...], opened: list[Terminal], number: int, code: int
) -> None:
    opened.append(terminal := Terminal(tmp_path, "detach", *flags))
    terminal.until("● waiting for `read line < gate`")
    terminal.process.send_signal(number)
    assert terminal.finish() == (code, "")
    told = "".join(rows_left(terminal.seen))
    assert "still running: read line < gate" in told
    [agent] = re.findall(r"--agent (tmp_run_\w+)", told)
    again = Terminal(tmp_path, "hi", *flags, "--agent", agent, "--json")
    opened.append(again)
    (tmp_path / "gate").write_text("go\n", encoding="utf-8")  # blocks until the task reads it
    status, out = again.finish()
    assert (status, json.loads(out)["final_status"]) == (0, "completed")


@pytest.mark.requirement("run-once:interrupt")
def test_an_interrupted_run_is_still_one_object(
    tmp_path: Path, flags: tuple[str, ...], opened: list[Terminal]
) -> None:
    os.mkfifo(tmp_path / "reached")
    opened.append(terminal := Terminal(tmp_path, "hold", *flags, "--json"))
    (tmp_path / "reached").read_text(encoding="utf-8")  # blocks until the command is under way
    terminal.process.send_signal(signal.SIGINT)
    code, out = terminal.finish()
    told = json.loads(out)
    assert (code, told["final_status"]) == (130, "failed")
    assert told["failure_artifact"]["kind"] == "operator_abort"
    assert told["shell_commands"] == 1


@pytest.mark.requirement("run-once:interrupt")
def test_a_second_interrupt_ends_at_once(
    tmp_path: Path, flags: tuple[str, ...], opened: list[Terminal]
) -> None:
    os.mkfifo(tmp_path / "reached")
    opened.append(terminal := Terminal(tmp_path, "stubborn", *flags))
    with open(tmp_path / "reached", encoding="utf-8") as held:  # blocks until the command is there
        terminal.process.send_signal(signal.SIGINT)
        terminal.until("stopping")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.finish() == (130, "")
        assert "Go on with" not in terminal.seen  # it did not wait for the stubborn command
        assert held.read() == ""  # ends when nobody is left to write: the command is gone, too
    opened.append(again := Terminal(tmp_path, "hi", *flags))
    assert again.finish() == (0, "Hello again.\n")
    assert check_database(database_path(tmp_path / "holon")).violations == ()
