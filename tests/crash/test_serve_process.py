"""The service under fire keeps its home to itself, survives being born, frozen and raced."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.aftermath import problems_after_kill, problems_at_rest
from tests.crash.conftest import StartHost
from tests.crash.followers import Follower
from tests.crash.rest import come_to_rest
from tests.crash.stage import Ledger, Stage
from tests.support.served_host import HostGoneError, Reply, Request, ServedHost

BIRTHS_COUNT = 25
RACERS_COUNT = 3
ROOT = Path(__file__).parents[2]
HELLO = Request(path="/control/agents/main/prompt", body={"text": "hello"})


@pytest.mark.requirement("crash:race-for-a-home")
@pytest.mark.requirement("crash:one-process-per-home")
@pytest.mark.requirement("home:the-lock-refuses-first")
@pytest.mark.parametrize("one_port", [False, True], ids=["any port", "one port"])
def test_of_several_that_race_for_a_home_one_serves_and_the_others_leave_it_alone(
    tmp_path: Path, start_host: StartHost, one_port: bool
) -> None:
    home, said = tmp_path / "home", tmp_path / "stderr"
    options = ("--port", _free_port()) if one_port else ()
    racers = [start_host(home, stderr=said, options=options) for _ in range(RACERS_COUNT)]
    winners = [racer for racer in racers if _is_ready(racer)]
    assert len(winners) == 1
    assert [racer.join() for racer in racers if racer not in winners] == [2] * (RACERS_COUNT - 1)
    told = said.read_text(encoding="utf-8")
    assert told.count("in use by process") == RACERS_COUNT - 1
    assert told.count(f"in use by process {winners[0].pid}") == RACERS_COUNT - 1
    assert "Traceback" not in told
    assert winners[0].ask(HELLO).ok
    winners[0].kill()
    third = start_host(home)
    third.wait_ready()
    assert third.ask(HELLO).ok


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def _is_ready(racer: ServedHost) -> bool:
    try:
        racer.wait_ready()
    except HostGoneError:
        return False
    return True


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


@pytest.mark.requirement("crash:stopped-is-told-how-to-resume")
@pytest.mark.requirement("crash:one-key-one-message")
def test_the_same_key_in_one_breath_and_after_a_kill_is_one_message(
    tmp_path: Path, start_host: StartHost
) -> None:
    home, prompt = tmp_path / "home", Request(path=HELLO.path, body=HELLO.body, key="k")
    host = start_host(home)
    host.wait_ready()
    with ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(host.ask, [prompt] * 8))
    assert host.post("/control/agents/main/stop").ok
    refused = host.ask(HELLO)
    assert refused.code == "agent_stopped"
    assert refused.at("resume_path") == "/control/agents/main/resume"
    host.kill()
    again = start_host(home)
    again.wait_ready()
    assert again.post("/control/agents/main/start").ok
    answers.append(again.ask(prompt))
    assert len({answer.at("message_id") for answer in answers}) == 1
    assert [bool(answer.at("duplicate")) for answer in answers].count(False) == 1
    other = Request(path=HELLO.path, body={"text": "something else"}, key="k")
    assert again.ask(other).code == "idempotency_conflict"
    come_to_rest(again)
    again.terminate()
    told = Ledger(acked={"k": str(answers[0].at("message_id"))})
    assert problems_at_rest(home, told) == []


@pytest.mark.requirement("crash:frozen-and-thawed")
def test_a_service_that_was_frozen_goes_on_and_nothing_is_lost(
    tmp_path: Path, start_host: StartHost
) -> None:
    home, ledger = tmp_path / "home", Ledger()
    host = start_host(home)
    host.wait_ready()
    timer = host.post("/control/agents/main/timers", {"duration_ms": 150, "summary": "look"})
    assert timer.ok
    host.process.send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(4) as crowd:
        prompts = [Request(path=HELLO.path, body=HELLO.body, key=f"k{n}") for n in range(4)]
        asked = [crowd.submit(host.ask, prompt) for prompt in prompts]
        time.sleep(0.5)  # long past what was due
        host.process.send_signal(signal.SIGCONT)
        for prompt, answer in zip(prompts, asked, strict=True):
            ledger.acknowledge(str(prompt.key), answer.result())
    ledger.record(ledger.timers, "timer", ("main", str(timer.at("timer", "id"))))
    state = come_to_rest(host)
    assert state.is_idle
    assert state.rescue_count == 0
    fired = host.get(f"/agents/main/timers/{timer.at('timer', 'id')}")
    assert fired.at("fire_count") == 1
    assert host.terminate() == 0
    assert problems_at_rest(home, ledger) == []


def test_the_judgement_sees_what_was_lost_changed_or_left_undone(
    tmp_path: Path, start_host: StartHost
) -> None:
    home = tmp_path / "home"
    host = start_host(home, failpoints="claim.after_commit=kill@1")
    host.wait_ready()
    with contextlib.suppress(HostGoneError):
        host.ask(HELLO)
    host.join()
    lost = Ledger(acked={"k": "msg_lost"}, timers={"t": ("main", "timer_lost")})
    lost.deliveries["d"] = "main"
    assert any("msg_lost" in problem for problem in problems_after_kill(home, lost))
    at_rest = " ".join(problems_at_rest(home, lost))
    for sign in ("P1 msg_lost", "P1 timer timer_lost", "P2 delivery d", "P3 operator_prompt"):
        assert sign in at_rest
    lost.acknowledge("k", Reply(status=200, body=b'{"message_id": "msg_other"}'))
    assert lost.problems == ["P2 key k gave msg_lost and then msg_other"]
    follower = Follower(Stage(), agent="main", over_tcp=False)
    follower.seen = [(2, "made_up"), (2, "made_up")]
    judged = " ".join(follower.judged(home))
    for sign in ("twice or out of order", "missed", "not in the log"):
        assert sign in judged


def test_a_misspelt_failpoint_does_not_start(tmp_path: Path, start_host: StartHost) -> None:
    said = tmp_path / "stderr"
    host = start_host(tmp_path / "home", failpoints="settle.sometimes=kill", stderr=said)
    assert host.join() == 2
    assert "settle.sometimes" in said.read_text(encoding="utf-8")
