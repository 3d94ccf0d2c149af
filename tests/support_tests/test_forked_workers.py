"""A run with `--workers` is a run without them, except that it is faster and outlives its tests."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.long

ROOT: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = (sys.executable, "-m", "pytest", "-p", "tests.support.forked_workers")
WORKERS: Final = pytest.mark.parametrize("workers", ["0", "3"])

ALL_OUTCOMES: Final = """
import warnings
import pytest

@pytest.fixture
def broken():
    raise LookupError("the fixture is broken")

@pytest.fixture
def breaking():
    yield
    raise LookupError("the fixture breaks")

@pytest.mark.parametrize("number", range(50))
def test_passing(number, tmp_path):
    print("not shown")

def test_failing():
    print("shown")
    assert {"one": 1} == {"one": 2}

@pytest.mark.skip(reason="not today")
def test_skipped(): ...

@pytest.mark.xfail(strict=True)
def test_failing_as_expected():
    assert False

@pytest.mark.xfail(strict=True)
def test_passing_against_expectations(): ...

def test_with_a_broken_fixture(broken): ...

def test_with_a_breaking_fixture(breaking): ...

def test_warning():
    warnings.warn("be careful")
"""
COUNTS: Final = {
    "passed": "52",
    "failed": "2",
    "skipped": "1",
    "xfailed": "1",
    "errors": "2",
    "warning": "1",
}


class Run(NamedTuple):
    """What a run of pytest came to."""

    code: int
    output: str

    @property
    def counts(self) -> dict[str, str]:
        last = self.output.strip().splitlines()[-1]
        return {kind: count for count, kind in re.findall(r"(\d+) ([a-z]+)", last)}


def environment() -> dict[str, str]:
    # No plugin of another package: each run starts in half the time.
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def run(folder: Path, *arguments: str, **modules: str) -> Run:
    """Run pytest in a folder with these modules."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    # A file, not a pipe: what a worker leaves behind would hold that open.
    with (folder / "output").open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [*COMMAND, f"--basetemp={folder / 'base'}", *arguments],
            cwd=folder,
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return Run(done.returncode, (folder / "output").read_text(encoding="utf-8"))


@WORKERS
def test_every_outcome_is_counted_and_shown(tmp_path: Path, workers: str) -> None:
    ran = run(tmp_path, "--workers", workers, test_all=ALL_OUTCOMES)
    assert (ran.code, ran.counts | COUNTS) == (pytest.ExitCode.TESTS_FAILED, ran.counts)
    assert "assert {'one': 1} == {'one': 2}" in ran.output
    assert "the fixture is broken" in ran.output
    assert "the fixture breaks" in ran.output
    assert "UserWarning: be careful" in ran.output
    assert "[XPASS(strict)]" in ran.output
    assert "shown" in ran.output
    assert "not shown" not in ran.output


def test_files_and_times_are_written_as_without_workers(tmp_path: Path) -> None:
    cases = []
    for workers in ("0", "3"):
        arguments = ("--junitxml=all.xml", "--durations=2", "-vv", "--workers", workers)
        ran = run(tmp_path, *arguments, test_all=ALL_OUTCOMES)
        assert "slowest 2 durations" in ran.output
        found = ElementTree.parse(tmp_path / "all.xml").iter("testcase")
        cases.append(sorted((case.get("name"), *(child.tag for child in case)) for case in found))
    assert cases[0] == cases[1]
    assert len(cases[0]) == 57


def test_tests_are_collected_once_and_each_is_run_once(tmp_path: Path) -> None:
    source = """
import pytest

def say(text):
    with open("said", "a") as file:
        file.write(text + "\\n")

say("collected")

@pytest.mark.parametrize("number", range(100))
def test_(number):
    say(str(number))
"""
    ran = run(tmp_path, "--workers", "3", test_one=source, test_two=source)
    assert ran.code == pytest.ExitCode.OK
    said = Counter((tmp_path / "said").read_text(encoding="utf-8").split())
    assert set(said.values()) == {2}
    assert len(said) == 101


def test_each_worker_has_its_own_session_and_folder(tmp_path: Path) -> None:
    source = """
import os
import pytest

@pytest.fixture(scope="session")
def mine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine", numbered=False)
    (folder / str(os.getpid())).touch()
    yield folder
    (folder / "ended").touch()

@pytest.mark.parametrize("number", range(20))
def test_(number, mine, tmp_path):
    assert (mine / str(os.getpid())).exists()
    assert tmp_path.parent == mine.parent
"""
    ran = run(tmp_path, "--workers", "2", test_one=source)
    assert ran.code == pytest.ExitCode.OK
    folders = sorted(path.parent.name for path in (tmp_path / "base").glob("*/mine"))
    assert folders == ["worker0", "worker1"]
    assert all((tmp_path / "base" / folder / "mine" / "ended").exists() for folder in folders)


def test_a_fixture_of_a_module_is_made_once_by_a_worker(tmp_path: Path) -> None:
    source = """
import pytest

@pytest.fixture(scope="module")
def made(request):
    print("made for", request.module.__name__)

@pytest.mark.parametrize("number", range(100))
def test_(number, made): ...
"""
    modules = {f"test_{name}": source for name in ("one", "two", "three")}
    ran = run(tmp_path, "--workers", "1", "-s", **modules)
    assert ran.code == pytest.ExitCode.OK
    assert ran.output.count("made for") == 3


LEAVING_A_PROCESS: Final = """
    child = os.fork()
    if child:
        open("child", "w").write(str(child))
        os._exit(7)
    # It holds what the worker had open: also the channel to the parent.
    signal.alarm(60)
    signal.pause()
"""


@pytest.mark.parametrize(
    ("death", "how"),
    [
        pytest.param("os.kill(os.getpid(), 9)", "signal 9 (Killed)", id="killed"),
        pytest.param("os._exit(0)", "exit status 0", id="exit"),
        pytest.param(LEAVING_A_PROCESS, "exit status 7", id="leaving a process"),
    ],
)
def test_a_worker_that_dies_fails_one_test_and_loses_none(
    tmp_path: Path, death: str, how: str
) -> None:
    source = f"""
import os, signal
import pytest

@pytest.mark.parametrize("number", range(60))
def test_before(number): ...

def test_deadly():
    {death}

@pytest.mark.parametrize("number", range(60))
def test_after(number): ...
"""
    ran = run(tmp_path, "--workers", "2", test_one=source)
    assert ran.code == pytest.ExitCode.TESTS_FAILED
    assert ran.counts == {"failed": "1", "passed": "120"}
    assert f"the worker died while it ran test_one.py::test_deadly: {how}" in ran.output
    if death is LEAVING_A_PROCESS:
        os.kill(int((tmp_path / "child").read_text(encoding="utf-8")), signal.SIGKILL)


@WORKERS
def test_failures_end_the_run_at_the_bound(tmp_path: Path, workers: str) -> None:
    source = """
import pytest

@pytest.mark.parametrize("number", range(500))
def test_(number):
    assert number < 5
"""
    ran = run(tmp_path, "--maxfail=3", "--workers", workers, test_one=source)
    assert ran.code == pytest.ExitCode.TESTS_FAILED
    assert ran.counts["failed"] == "3"
    assert "stopping after 3 failures" in ran.output


ENDINGS: Final = [
    pytest.param("raise KeyboardInterrupt", 2, "KeyboardInterrupt", id="interrupt"),
    pytest.param("pytest.exit('enough', returncode=9)", 9, "enough", id="exit"),
    pytest.param("request.session.shouldstop = 'that is all'", 2, "that is all", id="stop"),
]


@WORKERS
@pytest.mark.parametrize(("ending", "code", "reason"), ENDINGS)
def test_a_test_that_ends_the_run_ends_it_for_all(
    tmp_path: Path, workers: str, ending: str, code: int, reason: str
) -> None:
    source = f"""
import pytest

def test_the_end(request):
    {ending}

@pytest.mark.parametrize("number", range(5000))
def test_(number): ...
"""
    ran = run(tmp_path, "--workers", workers, test_one=source)
    assert ran.code == code
    assert reason in ran.output
    assert int(ran.counts.get("passed", 0)) < 5000


def test_an_interrupt_ends_all_workers_and_what_they_opened(tmp_path: Path) -> None:
    source = """
import os, signal
import pytest

@pytest.fixture(scope="session")
def opened(tmp_path_factory):
    yield tmp_path_factory.mktemp("opened")
    os.write(int(os.environ["TOLD"]), b"-")

@pytest.mark.parametrize("number", range(2))
def test_waiting(number, opened):
    os.write(int(os.environ["TOLD"]), b"+")
    signal.pause()
"""
    (tmp_path / "test_one.py").write_text(source, encoding="utf-8")
    (tmp_path / "test_two.py").write_text(source, encoding="utf-8")
    read, write = os.pipe()
    running = subprocess.Popen(
        [*COMMAND, "-q", "--workers=2"],
        cwd=tmp_path,
        env={**environment(), "TOLD": str(write)},
        pass_fds=[write],
        # What a shell starts in the background ignores interrupts, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    with running, os.fdopen(read, "rb") as told:
        assert told.read(2) == b"++"
        running.send_signal(signal.SIGINT)  # to the parent only, unlike from a terminal
        assert told.read() == b"--"  # and then its end: no worker holds the other end any more
        output, _ = running.communicate()
    assert running.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in output


@WORKERS
def test_what_is_left_open_fails_the_run(tmp_path: Path, workers: str) -> None:
    source = """
class Left:
    def __del__(self):
        raise ResourceWarning("left open")

def test_leaving(request):
    left = Left()
    left.itself = left  # so that only a search for garbage finds it
"""
    ran = run(tmp_path, "-W", "error", "--workers", workers, test_one=source)
    assert ran.code != pytest.ExitCode.OK
    assert "left open" in ran.output


def test_a_hook_that_fails_in_a_worker_is_shown_as_an_internal_error(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_runtest_protocol(item):\n    raise LookupError('a bug')\n", encoding="utf-8"
    )
    ran = run(tmp_path, "--workers", "2", test_one="def test_(): ...\n")
    assert ran.code == pytest.ExitCode.INTERNAL_ERROR
    assert "LookupError: a bug" in ran.output


def test_nothing_is_forked_beside_a_thread(tmp_path: Path) -> None:
    source = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True, name="left-behind").start()

def test_(): ...
"""
    ran = run(tmp_path, "--workers", "2", test_one=source)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "left-behind" in ran.output


@pytest.mark.parametrize("source", ["", "raise LookupError\n"], ids=["none", "broken"])
def test_where_nothing_can_be_run_pytest_says_so(tmp_path: Path, source: str) -> None:
    without = run(tmp_path, test_one=source)
    ran = run(tmp_path, "--workers", "2", test_one=source)
    assert ran.code == without.code != pytest.ExitCode.OK
    assert ran.counts == without.counts
