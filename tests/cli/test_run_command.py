"""`holon run`, as a person or a script runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import HomeLock, database_path, prepare_home
from holon.adapters.sqlite.store import open_store
from holon.adapters.system.clock import SystemClock
from holon.model.agents import IdentityStatus
from holon.model.values import AgentId
from holon.projections.turns.run_result import RunResult
from holon.serve.compose import open_host
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

pytestmark = pytest.mark.long

SCRIPT = """
rules:
  - when: step by step
    rounds:
      - calls: [{name: ExecCommand, input: {cmd: "true"}}]
      - calls: [{name: ExecCommand, input: {cmd: "true"}}]
      - text: Two steps.
  - when: where
    rounds:
      - calls: [{name: ExecCommand, input: {cmd: "pwd > here.txt"}}]
      - text: There.
  - when: patch it
    rounds:
      - text: Done as asked.
        calls:
          - name: ApplyPatch
            input:
              patch: |
                *** Begin Patch
                *** Add File: notes/a.txt
                +hello
                *** End Patch
          - name: ExecCommandBatch
            input: {items: [{cmd: "true"}, {cmd: "false"}]}
          - name: ExecCommand
            input: {cmd: "true", workdir: /}
      - text: The file is there.
  - when: background
    rounds:
      - calls: [{name: ExecCommand, input: {cmd: "read line < gate", yield_time_ms: 0}}]
      - calls: [{name: ExecCommand, input: {cmd: "echo go > gate"}}]
        text: It runs.
      - text: It runs in the background.
  - when: ended with exit status
    rounds:
      - text: And now it is over.
  - when: leave it
    rounds:
      - calls: [{name: ExecCommand, input: {cmd: "read line < gate", yield_time_ms: 0}}]
      - text: It goes on.
  - when: my answer
    rounds:
      - calls:
          - name: CreateWorkItem
            input: {objective: find out which colour, plan: ask, plan_status: needs_input}
      - text: Which colour?
  - when: capital of France
    rounds:
      - calls:
          - {name: CreateWorkItem, input: {objective: watch it, plan: look, plan_status: ready}}
      - text: Paris.
  - when: watch it
    rounds:
      - text: (nothing new)
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


def run(
    home: Path, *arguments: str, stdin: str | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    bare = {"PATH": os.environ["PATH"], "HOME": str(home), "HOLON_HOME": str(home / "holon")}
    return subprocess.run(
        [sys.executable, "-m", "holon", "run", *arguments],
        env={**bare, **environ},
        input=stdin,
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


def test_the_text_may_be_piped_in(tmp_path: Path, scripted: str) -> None:
    asked = ("-", "--model", scripted)
    assert run(tmp_path, *asked, stdin="step by step\n").stdout == "Two steps.\n"
    empty = run(tmp_path, *asked, stdin="\n")
    assert (empty.returncode, empty.stdout) == (2, "")
    assert "TEXT is empty" in empty.stderr


def test_the_answer_is_printed_though_left_work_has_the_last_word(
    tmp_path: Path, scripted: str
) -> None:
    done = run(tmp_path, "What is the capital of France?", "--model", scripted)
    said = done.stdout.splitlines()
    assert (done.returncode, said[0], said[-1]) == (3, "Paris.", "(nothing new)")
    assert "work is left" in done.stderr
    told = told_by(run(tmp_path, "What is the capital of France?", "--model", scripted, "--json"))
    assert (told["texts"][0], told["final_text"]) == ("Paris.", "(nothing new)")
    assert told["waiting_reason"] == "work_left"


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
    assert (done.returncode, told["final_status"]) == (3, "waiting")
    assert told["waiting_reason"] == "awaiting_timer"
    assert "Deferred until" in told["final_text"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("hi", "--model", "nonsense"), "model.default"),
        (("hi", "--agent", "../x", "--model", "scripted/hello"), "agent"),
        ((), "TEXT"),
        (("",), "TEXT is empty"),
        (("hi\udcff",), "is not UTF-8 text"),
        (("hi", "--max-rounds", "0"), "--max-rounds"),
        (("hi", "--trust", "root"), "--trust"),
        (("hi", "--create-agent"), "--agent"),
        (("hi", "--template", "x"), "--create-agent"),
        (("hi", "--agent", "a", "--create-agent", "--template", "./x"), "selects no template"),
        (("hi", "--cwd", "/no/such/place"), "--cwd"),
        (("hi", "--cwd", "/", "--workspace-root", "/usr"), "not inside the workspace root"),
    ],
)
def test_bad_usage_ends_with_two_and_changes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert not (tmp_path / "holon" / "state").exists()


@pytest.mark.requirement("agent-init:templates-initialize")
def test_a_new_agent_is_made_from_a_template_or_not_at_all(tmp_path: Path, scripted: str) -> None:
    new = ("hi", "--model", scripted, "--agent", "rev", "--create-agent", "--template")
    done = run(tmp_path, *new, "gone")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no template gone" in done.stderr
    assert not (tmp_path / "holon" / "agents" / "rev").exists()
    assert run(tmp_path, *new, "holon-reviewer").stdout == "Hello yourself.\n"
    guidance = (tmp_path / "holon" / "agents" / "rev" / "AGENTS.md").read_text(encoding="utf-8")
    assert guidance.startswith("# Reviewer")


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


def test_what_a_run_suggests_names_the_home_it_was_given(tmp_path: Path, scripted: str) -> None:
    there = ("--home", str(tmp_path / "h"))
    done = run(tmp_path, "hi", "--model", "openai/gpt-5.4", *there)
    assert f"`holon config credentials set --home {there[1]} openai " in done.stderr
    done = run(tmp_path, "What is the capital of France?", "--model", scripted, *there)
    assert f"\n       holon run --home {there[1]} --agent tmp_run_" in done.stderr


def told_by(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one object on stdout."""
    [line] = done.stdout.splitlines()
    told = json.loads(line)
    assert isinstance(told, dict)
    return told


@pytest.mark.requirement("run-once:temporary-agent")
def test_a_run_that_names_nobody_has_an_agent_of_its_own(tmp_path: Path, scripted: str) -> None:
    first, second = (
        told_by(run(tmp_path, "hi", "--model", scripted, "--json", HOLON_AGENT_ID="main"))
        for _ in range(2)
    )
    assert first["agent_id"].startswith("tmp_run_")
    assert first["agent_id"] != second["agent_id"]


@pytest.mark.requirement("run-once:agent-ends-with-its-run")
@pytest.mark.parametrize(("text", "code"), [("hi", 0), ("fail", 1), ("background", 0)])
async def test_a_temporary_agent_is_archived_with_its_run(
    tmp_path: Path, scripted: str, text: str, code: int
) -> None:
    os.mkfifo(tmp_path / "gate")
    placed = ("--model", scripted, "--cwd", str(tmp_path), "--json")
    done = run(tmp_path, text, *placed)
    told = told_by(done)
    assert (done.returncode, told["final_text"] != "") == (code, True)
    assert await status_of(tmp_path, told["agent_id"]) is IdentityStatus.ARCHIVED
    assert (tmp_path / "holon" / "agents" / told["agent_id"]).is_dir(), "its files stay"
    assert check_database(database_path(tmp_path / "holon")).violations == ()
    again = run(tmp_path, "hi", *placed, "--agent", told["agent_id"])
    assert (again.returncode, told_by(again)["final_status"]) == (2, "failed")
    assert "is archived" in again.stderr
    assert "--create-agent" in again.stderr


@pytest.mark.requirement("run-once:agent-ends-with-its-run")
@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("my answer", ()),
        ("wait", ()),
        ("step by step", ("--max-rounds", "1")),
        ("leave it", ("--no-wait-for-tasks",)),
    ],
    ids=["open work", "a message put off", "rounds used up", "a running task"],
)
async def test_a_temporary_agent_with_something_left_stays_in_use(
    tmp_path: Path, scripted: str, text: str, flags: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "gate")
    placed = ("--model", scripted, "--cwd", str(tmp_path), "--json")
    agent = told_by(run(tmp_path, text, *placed, *flags))["agent_id"]
    assert await status_of(tmp_path, agent) is IdentityStatus.ACTIVE
    if text != "leave it":
        return
    (tmp_path / "gate").write_text("go\n", encoding="utf-8")  # blocks until the task reads it
    told = told_by(run(tmp_path, "hi", *placed, "--agent", agent))
    assert (told["final_status"], told["agent_id"]) == ("completed", agent)
    assert await status_of(tmp_path, agent) is IdentityStatus.ARCHIVED, "the last run ends it"


async def status_of(folder: Path, agent_id: str) -> IdentityStatus:
    """Whether the identity is in use, as the closed home says."""
    store = open_store(folder / "holon")
    state = await store.reads.agents.agent(AgentId(agent_id))
    await store.close()
    assert state is not None
    return state.identity.status


@pytest.mark.requirement("run-once:named-agent")
def test_a_named_agent_is_made_only_when_asked_for(tmp_path: Path, scripted: str) -> None:
    unknown = run(tmp_path, "hi", "--model", scripted, "--agent", "ada")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no agent ada" in unknown.stderr
    assert "--create-agent" in unknown.stderr
    for flags in (("--create-agent",), ("--create-agent",), ()):
        done = run(tmp_path, "hi", "--model", scripted, "--agent", "ada", *flags)
        assert (done.returncode, done.stdout) == (0, "Hello yourself.\n")


@pytest.mark.requirement("run-once:one-object")
@pytest.mark.parametrize("field", RunResult.__struct_fields__)
def test_json_has_every_field_of_a_run(complete: dict[str, Any], field: str) -> None:
    assert field in complete


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("complete")
    (folder / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    work = folder / "work"
    work.mkdir()
    model = f"scripted/{folder / 'script.yaml'}"
    return told_by(run(folder, "patch it", "--model", model, "--cwd", str(work), "--json"))


@pytest.mark.requirement("run-once:effects")
def test_json_says_what_was_changed_and_what_was_run(complete: dict[str, Any]) -> None:
    assert (complete["final_status"], complete["final_text"]) == ("completed", "The file is there.")
    assert complete["raw_final_text"] == "The file is there."
    assert complete["changed_files"] == ["notes/a.txt"]
    assert (complete["model_rounds"], complete["tool_calls"]) == (2, 3)
    counted = ("exec_command_items", "batched_exec_command_items", "shell_commands")
    assert [complete[name] for name in counted] == [3, 2, 2]


@pytest.mark.requirement("run-once:one-object")
@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("hi", "--agent", "nobody-here"), "agent_not_usable"),
        (("hi", "--agent", "../x"), "bad_id"),
        (("hi", "--create-agent"), "bad_input"),
        (("",), "bad_input"),
    ],
)
def test_a_run_that_cannot_begin_is_one_object_too(
    tmp_path: Path, scripted: str, arguments: tuple[str, ...], kind: str
) -> None:
    done = run(tmp_path, "--json", "--model", scripted, *arguments)
    told = told_by(done)
    assert (done.returncode, told["final_status"], told["agent_id"]) == (2, "failed", None)
    assert told["failure_artifact"]["kind"] == kind
    assert told["failure_artifact"]["summary"] in done.stderr


def test_a_home_in_use_is_said_in_a_sentence(tmp_path: Path, scripted: str) -> None:
    prepare_home(tmp_path / "holon")
    lock = HomeLock(tmp_path / "holon")
    done = run(tmp_path, "hi", "--model", scripted, "--json")
    lock.release()
    assert (done.returncode, told_by(done)["failure_artifact"]["kind"]) == (2, "home_in_use")
    assert "Traceback" not in done.stderr


def test_a_database_that_cannot_be_read_is_said_in_a_sentence(
    tmp_path: Path, scripted: str
) -> None:
    home = tmp_path / "holon"
    prepare_home(home)
    (database_path(home) / "something").mkdir(parents=True)
    done = run(tmp_path, "hi", "--model", scripted)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"the file at {database_path(home)} is not a Holon database" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("run-once:round-limit")
@pytest.mark.parametrize("flag", ["--max-rounds", "--max-turns"])
def test_a_run_ends_when_its_rounds_are_used_up(tmp_path: Path, scripted: str, flag: str) -> None:
    done = run(tmp_path, "step by step", "--model", scripted, flag, "2", "--json")
    told = told_by(done)
    assert (done.returncode, told["final_status"]) == (1, "max_turns_exceeded")
    assert (told["model_rounds"], told["tool_calls"]) == (2, 2)
    assert told["failure_artifact"]["kind"] == "round_limit"
    assert check_database(database_path(tmp_path / "holon")).violations == ()
    again = run(tmp_path, "hi", "--model", scripted, "--agent", told["agent_id"], flag, "1")
    assert (again.returncode, again.stdout) == (0, "Hello yourself.\n")


def test_as_many_rounds_as_it_takes_are_enough(tmp_path: Path, scripted: str) -> None:
    done = run(tmp_path, "step by step", "--model", scripted, "--max-rounds", "3")
    assert (done.returncode, done.stdout) == (0, "Two steps.\n")


@pytest.mark.requirement("run-once:workspace")
@pytest.mark.parametrize(
    "flags", [("--cwd", "work/sub"), ("--workspace-root", "work", "--cwd", "work/sub")]
)
def test_commands_start_where_cwd_says(
    tmp_path: Path, scripted: str, flags: tuple[str, ...]
) -> None:
    sub = tmp_path / "work" / "sub"
    sub.mkdir(parents=True)
    placed = [str(tmp_path / each) if each.startswith("work") else each for each in flags]
    assert run(tmp_path, "where", "--model", scripted, *placed).returncode == 0
    assert (sub / "here.txt").read_text(encoding="utf-8").strip() == str(sub)


@pytest.mark.requirement("run-once:waits-for-tasks")
def test_a_run_waits_for_its_tasks_and_hears_their_results(tmp_path: Path, scripted: str) -> None:
    os.mkfifo(tmp_path / "gate")
    placed = ("--model", scripted, "--cwd", str(tmp_path), "--json")
    told = told_by(run(tmp_path, "background", *placed))
    assert (told["final_status"], told["final_text"]) == ("completed", "And now it is over.")
    [task] = told["tasks"]
    assert (task["status"], task["command"]["exit_status"]) == ("completed", 0)
    assert told["message_count"] == 2


@pytest.mark.requirement("run-once:operator-wait")
async def test_an_agent_that_waits_for_an_answer_ends_with_three(
    tmp_path: Path, scripted: str
) -> None:
    asked = ("--model", scripted, "--agent", "ada")
    assert run(tmp_path, "my answer", "--create-agent", *asked).returncode == 0
    models = SingleModel(ScriptedProvider(Script(), SystemClock()))
    async with open_host(tmp_path / "holon", models) as host:
        snapshot = await host.reads.agents.snapshot(AgentId("ada"), now=SystemClock().now())
        assert snapshot is not None
        await host.work.focus(snapshot.queued[0].item.id)
    done = run(tmp_path, "hi", *asked)
    assert (done.returncode, done.stdout) == (3, "Hello yourself.\n")
    assert "waits for your answer" in done.stderr
    assert "holon run --agent ada" in done.stderr
    told = told_by(run(tmp_path, "hi", "--json", *asked))
    assert told["waiting_reason"] == "awaiting_operator_input"


@pytest.mark.requirement("run-once:plain-lines")
def test_a_pipe_gets_one_plain_line_a_step(tmp_path: Path, scripted: str) -> None:
    done = run(tmp_path, "step by step", "--model", scripted, TERM="xterm")
    assert done.stderr.splitlines() == ["holon: running `true`"] * 2
    assert done.stdout == "Two steps.\n"
