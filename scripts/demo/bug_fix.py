"""A chapter on real work: an agent finds a failing test, patches the code and sees it pass.

Owns:  the story of one `holon run` in a small git repository. Only the model is rehearsed: the
       commands, the patches, the tests and the diff are real.
Rule 1: what the agent saw is shown as it was recorded, and looked at again without the agent.
"""

import os
import shutil
from pathlib import Path
from typing import Final

import msgspec

from holon.model.turns.transcript import RecordedCall
from holon.model.values import JsonValue
from scripts.demo.command_line import check_home, home_in, ran, run_once, scripted
from scripts.demo.looking import turns_of
from scripts.demo.narrator import REHEARSALS, Narrator, StoryBrokenError

REPOSITORY: Final = REHEARSALS / "duration-parser"
TESTS: Final = ("python3", "-m", "unittest")
_CALLS: Final = ["ExecCommandBatch", "ExecCommand", "ApplyPatch", "ApplyPatch", "ExecCommand"]
_BORN: Final = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T09:00:00Z",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "2026-01-01T09:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def tell_of_a_bug_fix(folder: Path, say: Narrator) -> Path:
    """Tell the chapter; returns the repository with the fix in it."""
    say.chapter("An agent fixes a bug in a git repository")
    repository = make_repository(folder)
    before = ran_in(repository, *TESTS)
    say.check(before[0] != 0, f"the tests fail: {before[1].splitlines()[-1]}")
    text = "The tests fail. Find out why and fix it."
    options = ("--workspace-root", str(repository), *scripted("fix-a-bug"))
    told = run_once(folder, say, text, *options)
    _show_calls(home_in(folder), str(told["agent_id"]), say)
    status = told["final_status"]
    say.check(status == "completed", f"{status}: “{told['final_text']}”")
    _look_again(repository, say)
    check_home(home_in(folder), say)
    return repository


def make_repository(folder: Path) -> Path:
    """Make a git repository of the bundled files, the same commit each time."""
    repository = folder / "repository"
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY, repository, ignore=leave_out)
    for command in (
        ("git", "init", "-q", "-b", "main"),
        ("git", "add", "."),
        ("git", "commit", "-q", "-m", "Read durations"),
    ):
        code, said = ran_in(repository, *command)
        if code != 0:
            raise StoryBrokenError(f"{' '.join(command)}: {said}")
    return repository


def ran_in(repository: Path, *command: str) -> tuple[int, str]:
    """Run a command in the repository; returns its exit code and all it wrote."""
    done = ran(repository.parent, *command, cwd=repository, added=_BORN)
    return done.returncode, done.stdout + done.stderr


def _show_calls(home: Path, agent_id: str, say: Narrator) -> None:
    calls = [call for turn in turns_of(home, agent_id) for call in turn.calls]
    names = [each.call.name for each in calls]
    say.check(names == _CALLS, f"its calls: {', '.join(names)}")
    looked, failing, *patches, passing = calls
    say.check(_result(looked)["failed_count"] == 0, "it has read the code and its tests")
    _show_tests(failing, say)
    say.check(_result(failing)["exit_status"] == 1, "it has seen the tests fail")
    say.check(not any(_is_refused(each) for each in patches), "its patches apply, in both forms")
    _show_tests(passing, say)
    say.check(_result(passing)["exit_status"] == 0, "it has seen the tests pass")


def _show_tests(ran_tests: RecordedCall, say: Narrator) -> None:
    """Show the part of a test run that says what is wrong, and how it ended."""
    lines = str(_result(ran_tests)["stderr_preview"]).splitlines()
    say.tell(" ".join(TESTS))
    told = ("FAIL", "AssertionError", "Ran ", "OK")
    say.quote("\n".join(line for line in lines if line.startswith(told)))


def _look_again(repository: Path, say: Narrator) -> None:
    """See without the agent that the files are what it said."""
    say.tell("git diff")
    _, diff = ran_in(repository, "git", "diff")
    say.quote(diff)
    _, status = ran_in(repository, "git", "status", "--porcelain")
    say.check(status == " M durations.py\n", f"one file has changed: {status.strip()}")
    code, said = ran_in(repository, *TESTS)
    last = said.rstrip().splitlines()[-1]
    say.check((code, last) == (0, "OK"), f"and without the agent the tests pass, too: {last}")


def _is_refused(call: RecordedCall) -> bool:
    return call.receipt is None or call.receipt.is_error


def _result(call: RecordedCall) -> dict[str, JsonValue]:
    """Return what the model read about a call."""
    if call.receipt is None or call.receipt.is_error:
        raise StoryBrokenError(f"{call.call.name} failed: {call.receipt}")
    found: dict[str, dict[str, JsonValue]] = msgspec.json.decode(call.receipt.content)
    return found["result"]
