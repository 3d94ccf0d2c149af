"""`holon run`, as a person or a script runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.home_lock import database_path

SCRIPT = """
rules:
  - when: look
    rounds:
      - calls: [{name: Enqueue, input: {text: and then that}}]
      - text: I looked.
  - when: fail
    rounds:
      - fail: auth_rejected
  - when: wait
    rounds:
      - fail: usage_limit_reached
        retry_after_ms: 7200000
  - rounds:
      - text: Hello yourself.
"""


def run(home: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    bare = {"PATH": os.environ["PATH"], "HOME": str(home), "HOLON_HOME": str(home / "holon")}
    return subprocess.run(
        [sys.executable, "-m", "holon", "run", *arguments],
        env={**bare, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def scripted(tmp_path: Path) -> str:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT, encoding="utf-8")
    return f"scripted/{path}"


def test_the_answer_is_all_there_is_on_stdout(tmp_path: Path, scripted: str) -> None:
    done = run(tmp_path, "hi", "--model", scripted)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello yourself.\n", "")


def test_what_the_agent_enqueues_for_itself_is_part_of_the_run(
    tmp_path: Path, scripted: str
) -> None:
    done = run(tmp_path, "look", "--model", scripted, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert (told["final_status"], told["message_count"]) == ("completed", 2)
    assert told["tool_calls"] == 1
    home = database_path(tmp_path / "holon")
    assert check_database(home).violations == ()


def test_traces_that_are_asked_for_are_on_stderr(tmp_path: Path, scripted: str) -> None:
    traced = {"HOLON_PROVIDER_HTTP_TRACE": "1", "HOLON_PROVIDER_FAILURE_TRACE": "1"}
    done = run(tmp_path, "hi", "--model", scripted, **traced)
    assert (done.returncode, done.stdout) == (0, "Hello yourself.\n")
    (line,) = done.stderr.splitlines()
    trace = json.loads(line.removeprefix("provider exchange "))
    assert (trace["model_ref"], trace["outcome"]) == (scripted, "succeeded")
    failed = run(tmp_path, "fail", "--model", scripted, HOLON_PROVIDER_FAILURE_TRACE="1")
    (trace,) = [line for line in failed.stderr.splitlines() if line.startswith("provider ")]
    told = json.loads(trace.removeprefix("provider failure "))
    assert told["failure_kind"] == "auth_rejected"


@pytest.mark.requirement("provider-plane:run-shows-the-failure")
def test_a_failed_turn_ends_with_one_and_says_why_on_stderr(tmp_path: Path, scripted: str) -> None:
    done = run(tmp_path, "fail", "--model", scripted)
    assert (done.returncode, done.stdout) == (1, "")
    assert "auth_rejected" in done.stderr
    told = json.loads(run(tmp_path, "fail", "--model", scripted, "--json").stdout)
    assert told["failure_artifact"]["kind"] == "auth_rejected"
    [timeline] = told["provider_attempt_timeline"]
    assert [each["outcome"] for each in timeline["attempts"]] == ["fail_fast_aborted"]


def test_a_used_up_account_puts_the_run_off_instead_of_failing_it(
    tmp_path: Path, scripted: str
) -> None:
    done = run(tmp_path, "wait", "--model", scripted, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["final_status"]) == (0, "waiting")
    assert told["waiting_reason"] == "awaiting_timer"
    assert "Put off until" in told["final_text"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("hi", "--model", "nonsense"), "model.default"),
        (("hi", "--agent", "../x", "--model", "scripted/hello"), "agent"),
        ((), "TEXT"),
    ],
)
def test_bad_usage_ends_with_two_and_changes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert not (tmp_path / "holon" / "state").exists()


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("nobody/m", "nobody"),
        ("scripted/no-such-script", "no-such-script"),
        ("local//nowhere/model.gguf", "model.gguf"),
        ("openai/gpt-5.4", "OPENAI_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_used_fails_the_turn_with_what_to_do(
    tmp_path: Path, model: str, sentence: str
) -> None:
    done = run(tmp_path, "hi", "--model", model)
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
