"""`holon onboard`: a report for scripts, questions for a person on a terminal."""

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holon.cli.console import exit_codes

SECRET = "sk-plainly-secret-0123456789"


def surroundings(home: Path, **env: str) -> dict[str, str]:
    return {"HOLON_HOME": str(home), "HOME": str(home), "TERM": "dumb", **env}


def report(home: Path, *arguments: str, **env: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "holon", "onboard", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=surroundings(home, **env),
    )
    assert SECRET not in done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)


class Terminal:
    """A command on a terminal of its own, answered as its questions come."""

    def __init__(self, home: Path, *arguments: str, **env: str) -> None:
        self.shown = ""
        self._near, far = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holon", "onboard", *arguments],
            stdin=far,
            stdout=far,
            stderr=far,
            env=surroundings(home, **env),
            start_new_session=True,
        )
        os.close(far)

    def answer(self, question: str, words: str) -> None:
        """Wait for the question and type the words."""
        begin = len(self.shown)
        while question not in self.shown[begin:]:
            assert self._read(), f"ended before {question!r}: {self.shown}"
        os.write(self._near, f"{words}\n".encode())

    def end(self) -> int:
        """Read to the end and return the exit code."""
        while self._read():
            pass
        os.close(self._near)
        return self._process.wait(timeout=60)

    def _read(self) -> bool:
        assert select.select([self._near], [], [], 60)[0], f"nothing more was said: {self.shown}"
        try:
            piece = os.read(self._near, 4096)
        except OSError:  # how Linux says that the other end is closed
            return False
        self.shown += piece.decode()
        return bool(piece)


@pytest.mark.requirement("provider-plane:missing-credential-is-named")
def test_without_a_terminal_the_report_says_what_is_missing_and_what_comes_next(
    tmp_path: Path,
) -> None:
    code, told = report(tmp_path, HOLON_MODEL="anthropic/claude-sonnet-5-5")
    assert code == exit_codes.FOUND_FAULTS
    assert set(told) == {"status", "sections", "next_actions"}
    assert told["status"] == "needs_setup"
    sections = {one["id"]: one for one in told["sections"]}
    assert sections["model"]["status"] == "missing"
    assert "ANTHROPIC_AUTH_TOKEN is not set" in sections["provider:anthropic"]["detail"]
    commands = [one["command"] for one in told["next_actions"]]
    assert "holon config credentials set anthropic --kind api_key --stdin" in commands


def test_a_configured_home_is_ready(tmp_path: Path) -> None:
    code, told = report(tmp_path, "--json", OPENAI_API_KEY=SECRET)
    assert (code, told["status"]) == (exit_codes.OK, "ready")
    assert [one["command"] for one in told["next_actions"]] == ["holon config doctor --probe"]


def test_settings_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[runtime]\nmax_output_tokens = -1\n", encoding="utf-8")
    code, told = report(tmp_path, OPENAI_API_KEY=SECRET)
    assert (code, told["status"]) == (exit_codes.FOUND_FAULTS, "needs_setup")
    assert told["sections"][0]["status"] == "broken"


def test_on_a_terminal_a_provider_a_key_and_a_model_are_asked_and_kept(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.answer("Provider [1]:", "antropic")
    terminal.answer("did you mean 'anthropic'", "")
    terminal.answer("Key (not shown", SECRET)
    terminal.answer("Model [", "claude-haiku-4-5")
    assert terminal.end() == exit_codes.OK, terminal.shown
    assert SECRET not in terminal.shown
    assert "anthropic/claude-haiku-4-5 is now the default model" in terminal.shown
    assert "still missing" not in terminal.shown
    kept = tmp_path / "credentials.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert SECRET in kept.read_text(encoding="utf-8")
    assert SECRET not in (tmp_path / "config.toml").read_text(encoding="utf-8")
    assert report(tmp_path)[1]["status"] == "ready"


def test_a_server_of_ones_own_is_asked_for_its_address(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.answer("Provider [1]:", "ollama")
    terminal.answer("Base URL [", "http://127.0.0.1:9999/v1")
    terminal.answer("Model:", "qwen3:8b")
    assert terminal.end() == exit_codes.OK, terminal.shown
    written = (tmp_path / "config.toml").read_text(encoding="utf-8")
    assert "http://127.0.0.1:9999/v1" in written
    assert "ollama/qwen3:8b" in written
    assert not (tmp_path / "credentials.json").exists()


def test_breaking_off_changes_nothing(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.answer("Provider [1]:", "1")
    terminal.answer("Key (not shown", SECRET)
    terminal.answer("Model [", "\x04")  # the end of input
    assert terminal.end() == exit_codes.FAILED
    assert "holon: the input ended before the question was answered" in terminal.shown
    assert "Aborted!" not in terminal.shown
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_there_is_not_asked_for(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, OPENAI_API_KEY=SECRET)
    terminal.answer("Provider [1]:", "2")
    terminal.answer("Model [", "")
    assert terminal.end() == exit_codes.OK, terminal.shown
    assert "env OPENAI_API_KEY" in terminal.shown
    assert SECRET not in terminal.shown


def test_what_is_still_missing_is_looked_for_in_the_home_that_was_named(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[runtime]\nmax_output_tokens = -1\n", encoding="utf-8")
    terminal = Terminal(tmp_path, "--home", str(home), OPENAI_API_KEY=SECRET)
    terminal.answer("Provider [1]:", "openai")
    terminal.answer("Model [", "")
    assert terminal.end() == exit_codes.OK, terminal.shown
    assert f"incomplete: run `holon config doctor --home {home}`." in terminal.shown
