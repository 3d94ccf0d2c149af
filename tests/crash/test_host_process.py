"""The host process answers every line, keeps its home to itself and survives being born."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holon.testing import host_commands as ask
from holon.testing.stdin_lines import LINE_BYTES_MAX
from tests.crash.aftermath import problems_after_kill, problems_at_rest
from tests.crash.conftest import StartHost
from tests.crash.load import Ledger, ask_together, result_of
from tests.crash.rest import come_to_rest

BIRTHS_COUNT = 25
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"not json", "bad_syntax", None),
        (b'{"id": 7, "do": "dance"}', "bad_tag", 7),
        (b'{"id": 7, "do": "prompt"}', "bad_shape", 7),
        (b'{"id": "seven", "do": "status"}', "bad_shape", None),
        (b'{"id": 7, "do": "prompt", "agent": "main", "text": "\\ud800"}', "bad_syntax", None),
        (b'{"id": 7, "do": "steer", "agent": "main", "verb": "dance"}', "bad_input", 7),
        (b'{"id": 7, "do": "steer", "agent": "../x", "verb": "stop"}', "bad_id", 7),
        (b"x" * (LINE_BYTES_MAX + 70_000), "bad_syntax", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_line_is_answered_and_the_next_one_is_heard(
    line: bytes, code: str, number: int | None, tmp_path: Path, start_host: StartHost
) -> None:
    host = start_host(tmp_path / "home")
    host.wait_ready()
    host.write_raw(line + b"\n")
    answer = host.unclaimed.get(timeout=30)
    assert answer.refusal is not None
    assert answer.refusal.code == code
    assert answer.id == number
    assert host.ask(ask.Status(id=0)).ok


@pytest.mark.requirement("crash:one-process-per-home")
def test_a_second_host_is_refused_at_once_and_the_first_goes_on(
    tmp_path: Path, start_host: StartHost
) -> None:
    home, said = tmp_path / "home", tmp_path / "stderr"
    first = start_host(home)
    first.wait_ready()
    second = start_host(home, stderr=said)
    assert second.join() == 2
    sentence = said.read_text(encoding="utf-8")
    assert f"in use by process {first.pid}" in sentence
    assert sentence.count("\n") == 1
    assert first.ask(ask.Prompt(id=0, agent="main", text="still there?")).ok
    first.kill()
    third = start_host(home)
    third.wait_ready()


@pytest.mark.requirement("crash:birth-can-be-cut")
def test_a_process_killed_while_it_makes_its_home_leaves_one_that_opens(tmp_path: Path) -> None:
    births = ["--root", str(tmp_path), "--births", str(BIRTHS_COUNT)]
    told = subprocess.run(
        [sys.executable, "-m", "tests.crash.births", *births],
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert told.returncode == 0, told.stderr
    assert told.stderr == b""
    assert json.loads(told.stdout)["cut"] >= BIRTHS_COUNT / 2, "most deaths came in time"


@pytest.mark.requirement("crash:birth-can-be-cut")
def test_a_host_killed_at_its_first_breath_starts_again(
    tmp_path: Path, start_host: StartHost
) -> None:
    home, said = tmp_path / "home", tmp_path / "stderr"
    first = start_host(home, stderr=said)
    first.wait_ready()
    first.kill()
    second = start_host(home, stderr=said)
    second.wait_ready()
    assert second.ask(ask.Prompt(id=0, agent="main", text="hello")).ok
    second.kill()
    assert problems_after_kill(home, Ledger()) == []
    assert said.read_text(encoding="utf-8") == ""


@pytest.mark.requirement("crash:stopped-is-told-how-to-resume")
def test_a_stopped_agent_refuses_with_the_way_to_resume(
    tmp_path: Path, start_host: StartHost
) -> None:
    host = start_host(tmp_path / "home")
    host.wait_ready()
    assert host.ask(ask.Steer(id=0, agent="main", verb="stop")).ok
    refused = host.ask(ask.Prompt(id=0, agent="main", text="hello"))
    assert refused.refusal is not None
    assert refused.refusal.code == "agent_stopped"
    assert refused.refusal.resume_path == "/control/agents/main/control"
    assert host.ask(ask.Steer(id=0, agent="main", verb="resume")).ok
    assert host.ask(ask.Prompt(id=0, agent="main", text="hello")).ok


@pytest.mark.requirement("crash:one-key-one-message")
def test_the_same_key_in_one_breath_and_after_a_kill_is_one_message(
    tmp_path: Path, start_host: StartHost
) -> None:
    home = tmp_path / "home"
    prompt = ask.Prompt(id=0, agent="main", text="once", key="k")
    host = start_host(home)
    host.wait_ready()
    answers = ask_together(host, [prompt] * 8)
    host.kill()
    again = start_host(home)
    again.wait_ready()
    answers.append(again.ask(prompt))
    assert len({result_of(answer)["message_id"] for answer in answers}) == 1
    assert [bool(result_of(answer).get("duplicate")) for answer in answers].count(False) == 1
    other = again.ask(ask.Prompt(id=0, agent="main", text="something else", key="k"))
    assert other.refusal is not None
    assert other.refusal.code == "idempotency_conflict"
    come_to_rest(again, home)
    again.terminate()
    told = Ledger(acked={"k": str(result_of(answers[0])["message_id"])})
    assert problems_at_rest(home, told) == []


def test_the_judgement_sees_what_was_lost_changed_or_left_undone(
    tmp_path: Path, start_host: StartHost
) -> None:
    home = tmp_path / "home"
    host = start_host(home, failpoints="claim.after_commit=kill@1")
    host.wait_ready()
    host.send(ask.Prompt(id=0, agent="main", text="hello"))
    host.join()
    lost = Ledger(acked={"k": "msg_lost"}, timers=["timer_lost"])
    assert any("msg_lost" in problem for problem in problems_after_kill(home, lost))
    at_rest = " ".join(problems_at_rest(home, lost))
    for sign in ("P1 msg_lost", "P1 timer timer_lost", "P3 operator_prompt"):
        assert sign in at_rest
    other = ask.Answer(ok=True, id=1, result={"message_id": "msg_other"})
    lost.acknowledge("k", other)
    assert lost.problems == ["P2 key k gave msg_lost and then msg_other"]


def test_a_misspelt_failpoint_does_not_start(tmp_path: Path, start_host: StartHost) -> None:
    said = tmp_path / "stderr"
    host = start_host(tmp_path / "home", failpoints="settle.sometimes=kill", stderr=said)
    assert host.join() == 2
    assert "settle.sometimes" in said.read_text(encoding="utf-8")
