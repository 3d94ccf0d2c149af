"""A pytest plugin: tests are collected once and run by forked workers, with `--workers N`.

Owns:  the workers: what each is given to run, what it reports, and how its end is handled.
Rule 1: the collection is inherited. A worker is a fork of the process that collected, so an item is
        named by its index in `session.items`, which is the same list in all of them.
Rule 2: the parent runs no test and has one thread: it can fork a worker at any moment.
Rule 3: the parent distributes modules, a few tests at a time. When no module is left, a worker
        takes half of what another one has not been sent yet. All of this is decided in the parent.
Rule 4: the reports of a worker are replayed in the parent, one whole test after the other. To every
        other plugin (terminal, JUnit, durations, maxfail) a run looks as it does without workers.
Rule 5: a worker ends its session as pytest does, so what is left open at the end fails the run. It
        then exits without the exit handlers it inherited: those belong to the parent.
"""

import enum
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Literal, NoReturn, TypeAlias

import pytest
from _pytest import junitxml
from _pytest.capture import CaptureManager
from _pytest.outcomes import Exit
from _pytest.terminal import TerminalReporter

# Each of these shows its work on the terminal, or stops at a prompt, while a test runs.
IN_PROCESS_OPTIONS: Final = (
    "collectonly",
    "usepdb",
    "trace",
    "setupshow",
    "setuponly",
    "setupplan",
)

# A worker is sent tests for about this long, and never fewer than two: it must know the next test
# to decide which fixtures to keep.
AHEAD_S: Final = 0.25
AHEAD_COUNT_MIN: Final = 2
AHEAD_COUNT_MAX: Final = 32

# How often to look for dead workers: a process that one left behind may hold its channel open.
CHECK_S: Final = 1.0

# How long workers may take to end, before they are interrupted, and then before they are killed.
PATIENCE_S: Final = 5.0
INTERRUPTED_PATIENCE_S: Final = 0.5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--workers`."""
    parser.getgroup("general").addoption(
        "--workers",
        type=_worker_count,
        default=0,
        metavar="N",
        help="run tests in N forked processes; 'auto' is one more than there are processors, "
        "0 runs them in this one (default)",
    )


def _worker_count(text: str) -> int:
    if text == "auto":
        # One more, since many tests wait for real processes most of their time.
        return 1 + (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    count = int(text)
    if count < 0:
        raise ValueError(text)
    return count


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what was collected in workers, or leave it to pytest."""
    options = session.config.option
    count: int = options.workers
    failed = session.testsfailed and not options.continue_on_collection_errors
    if not count or failed or not session.items:
        return None
    if any(getattr(options, name, False) for name in IN_PROCESS_OPTIONS):
        return None
    if threading.active_count() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate())
        raise pytest.UsageError(f"collecting started threads ({names}): no worker can be forked")
    _WorkerPool(session).run(min(count, len(session.items)))
    return True


# What passes between the processes.


class _Order(enum.Enum):
    """What a worker is sent instead of tests."""

    NO_MORE = enum.auto()  # run what you have, and end
    STOP = enum.auto()  # end after the test that runs


Channel: TypeAlias = "Connection[Any, Any]"  # generic for the type checker only
Warned: TypeAlias = tuple[warnings.WarningMessage, Literal["config", "collect", "runtest"], str]


@dataclass(frozen=True, kw_only=True)
class _Ran:
    """A test was run."""

    index: int
    reports: list[dict[str, Any]]
    warned: list[Warned]
    should_fail: bool | str
    should_stop: bool | str


@dataclass(frozen=True, kw_only=True)
class _Ended:
    """The worker has ended its session, and will run nothing any more."""

    warned: list[Warned]
    interrupted: bool = False
    exit_reason: str | None = None
    exit_code: int | None = None
    error: str | None = None


class _ParentGoneError(Exception):
    """The channel to the parent is closed: there is no one left to report to."""


# The child's side.


class _Worker:
    """A forked process. It runs the tests it is sent, in the order in which it is sent them."""

    def __init__(self, session: pytest.Session, channel: Channel, name: str) -> None:
        self._session = session
        self._config = session.config
        self._channel = channel
        self._name = name
        self._reports: list[dict[str, Any]] = []
        self._warned: list[Warned] = []
        self._listening = False

    def run(self) -> NoReturn:
        """Run tests until there are no more; the process ends here."""
        status = 1
        try:
            self._work()
            status = 0
        except _ParentGoneError:
            pass
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _work(self) -> None:
        interrupted = False
        ended: Exit | None = None
        errors: list[str] = []
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            self._settle_in()
            self._run_tests()
        except KeyboardInterrupt:
            interrupted = True
        except Exit as exit_:
            ended = exit_
        except Exception:  # noqa: BLE001  # a hook failed: the parent shows it as an internal error
            errors.append(traceback.format_exc())
        # The first interrupt ends the tests. Another one must not end what cleans up after them.
        signal.signal(signal.SIGINT, lambda *_: None)
        try:
            self._end_session()
        except Exception:  # noqa: BLE001  # what was left open raises here; the parent shows it
            errors.append(traceback.format_exc())
        self._send(
            _Ended(
                warned=self._warned,
                interrupted=interrupted,
                exit_reason=ended.msg if ended else None,
                exit_code=ended.returncode if ended else None,
                error="\n".join(errors) or None,
            )
        )

    def _settle_in(self) -> None:
        """Part with what must not be shared with the parent or with another worker."""
        plugins = self._config.pluginmanager
        for name in ("terminalprogress-plugin", "terminalreporter"):
            if plugins.has_plugin(name):
                plugins.unregister(name=name)
        junitxml.pytest_unconfigure(self._config)  # the parent writes the file

        # A captured stream is a file, and a fork shares its position.
        capture = plugins.get_plugin("capturemanager")
        if isinstance(capture, CaptureManager):
            capture.stop_global_capturing()
            capture.start_global_capturing()
            capture.suspend_global_capture()

        factory: pytest.TempPathFactory = self._config._tmp_path_factory  # type: ignore[attr-defined]  # as its fixture does
        self._config.option.basetemp = str(factory.getbasetemp() / self._name)
        self._config._tmp_path_factory = pytest.TempPathFactory.from_config(  # type: ignore[attr-defined]
            self._config, _ispytest=True
        )

        plugins.register(self)  # the warnings of collecting are repeated to it
        self._listening = True

    def _run_tests(self) -> None:
        items = self._session.items
        waiting: deque[int] = deque()
        more = True
        while True:
            while (more and len(waiting) < AHEAD_COUNT_MIN) or self._channel.poll():
                order = self._receive()
                if order is _Order.STOP:
                    return
                if order is _Order.NO_MORE:
                    more = False
                else:
                    waiting.extend(order)
            if not waiting:
                return
            index = waiting.popleft()
            item = items[index]
            next_item = items[waiting[0]] if waiting else None
            item.ihook.pytest_runtest_protocol(item=item, nextitem=next_item)
            self._send(
                _Ran(
                    index=index,
                    reports=self._reports,
                    warned=self._warned,
                    should_fail=self._session.shouldfail,
                    should_stop=self._session.shouldstop,
                )
            )
            self._reports, self._warned = [], []
            if self._session.shouldfail or self._session.shouldstop:
                return

    def _end_session(self) -> None:
        """End the session as pytest does."""
        os.chdir(self._session.startpath)
        status = pytest.ExitCode.TESTS_FAILED if self._session.testsfailed else pytest.ExitCode.OK
        self._config.hook.pytest_sessionfinish(session=self._session, exitstatus=status)
        self._config._ensure_unconfigure()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report for the parent."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.append(data)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: Literal["config", "collect", "runtest"],
        nodeid: str,
    ) -> None:
        """Keep a warning for the parent."""
        if self._listening:
            self._warned.append((_portable(warning_message), when, nodeid))

    def _receive(self) -> Any:
        try:
            return self._channel.recv()
        except (EOFError, OSError) as error:
            raise _ParentGoneError from error

    def _send(self, message: _Ran | _Ended) -> None:
        data = pickle.dumps(message)
        try:
            self._channel.send_bytes(data)
        except OSError as error:
            raise _ParentGoneError from error


def _portable(warning: warnings.WarningMessage) -> warnings.WarningMessage:
    """Return the warning without what another process cannot read."""
    message: Warning | str = warning.message
    category = warning.category
    try:
        pickle.loads(pickle.dumps((message, category)))
    except Exception:  # noqa: BLE001  # a class of warnings may fail to be copied in any way
        message, category = f"{category.__name__}: {message}", UserWarning
    return warnings.WarningMessage(message, category, warning.filename, warning.lineno)


# The parent's side.


@dataclass(kw_only=True, eq=False)
class _WorkerHandle:
    """A worker, as the parent sees it."""

    pid: int
    channel: Channel
    unsent: deque[int] = field(default_factory=deque)  # of the module it is at
    unfinished: deque[int] = field(default_factory=deque)  # sent; the first is the one that runs
    test_s: float = AHEAD_S  # how long its tests take at present
    no_more: bool = False
    status: int | None = None  # how the process ended

    def send(self, order: _Order | tuple[int, ...]) -> None:
        """Send tests, or an order. What a dead worker was sent is found in `unfinished`."""
        try:
            self.channel.send(order)
        except OSError:
            return

    def is_dead(self) -> bool:
        """Say whether the process has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def reap(self) -> str:
        """Wait for the end of the process; how it ended."""
        self.channel.close()
        status = os.waitpid(self.pid, 0)[1] if self.status is None else self.status
        code = os.waitstatus_to_exitcode(status)
        return f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit status {code}"


class _WorkerPool:
    """All workers of a session, and what is not yet given to one of them."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._config = session.config
        self._workers: list[_WorkerHandle] = []
        self._hired = 0
        self._unreported = len(session.items)
        by_module = groupby(
            range(len(session.items)), key=lambda at: session.items[at].nodeid.partition("::")[0]
        )
        self._modules: deque[deque[int]] = deque(deque(indices) for _, indices in by_module)

    def run(self, count: int) -> None:
        """Run all tests by so many workers."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if isinstance(terminal, TerminalReporter) and not terminal.showlongtestinfo:
            terminal.showfspath = False  # tests of several modules come in between one another
        try:
            for _ in range(count):
                self._start_worker()
            while self._workers:
                for worker in self._ready():
                    self._handle_message(worker)
            if self._unreported:
                raise RuntimeError(f"{self._unreported} tests were handed out and not run")
        except KeyboardInterrupt:
            # From a terminal the workers got the same signal, and are ending by themselves.
            self._dismiss(patience_s=INTERRUPTED_PATIENCE_S)
            raise
        except BaseException:
            self._dismiss(patience_s=PATIENCE_S)
            raise

    # Giving

    def _start_worker(self) -> None:
        self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
        sys.stdout.flush()  # what is still in a buffer would be written by both
        sys.stderr.flush()
        ours, theirs = Pipe()
        name = f"worker{self._hired}"
        # An interrupt in the child must not unwind the parent's stack there: it waits until `run`.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        pid = os.fork()
        if pid == 0:
            ours.close()
            for worker in self._workers:
                worker.channel.close()
            _Worker(self._session, theirs, name).run()
        theirs.close()
        worker = _WorkerHandle(pid=pid, channel=ours)
        self._hired += 1
        self._workers.append(worker)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self._feed(worker)

    def _feed(self, worker: _WorkerHandle) -> None:
        """Send the worker some tests, if it will soon have none."""
        ahead = min(AHEAD_COUNT_MAX, max(AHEAD_COUNT_MIN, int(AHEAD_S / max(worker.test_s, 1e-6))))
        while not worker.no_more and len(worker.unfinished) <= ahead // 2:
            if not worker.unsent and self._find_work(worker):
                ahead = AHEAD_COUNT_MIN  # how long these take is not known yet
            count = max(1, ahead - len(worker.unfinished))
            batch = tuple(worker.unsent.popleft() for _ in range(min(count, len(worker.unsent))))
            worker.unfinished.extend(batch)
            worker.no_more = not batch
            worker.send(batch or _Order.NO_MORE)

    def _find_work(self, worker: _WorkerHandle) -> bool:
        """Give the worker the next module, or half of what another one was not sent yet."""
        worker.test_s = AHEAD_S
        if self._modules:
            worker.unsent = self._modules.popleft()
            return True
        busiest = max(self._workers, key=lambda other: len(other.unsent) * other.test_s)
        half = len(busiest.unsent) // 2
        unsent = list(busiest.unsent)
        busiest.unsent, worker.unsent = deque(unsent[:half]), deque(unsent[half:])
        return bool(worker.unsent)

    # Hearing

    def _ready(self) -> Iterator[_WorkerHandle]:
        """Yield each worker that has said something, or is dead."""
        ready = wait([worker.channel for worker in self._workers], timeout=CHECK_S)
        for worker in list(self._workers):
            if worker.channel in ready or (not ready and worker.is_dead()):
                yield worker

    def _handle_message(self, worker: _WorkerHandle) -> None:
        try:
            # A dead worker whose channel is open, and empty, will say nothing more.
            message = worker.channel.recv() if worker.channel.poll() else None
        except (EOFError, OSError):
            message = None
        match message:
            case _Ran():
                self._take_report(worker, message)
            case _Ended():
                self._handle_death(worker)
                self._take_end(message)
            case _:
                self._take_crash(worker, self._handle_death(worker))

    def _take_report(self, worker: _WorkerHandle, ran: _Ran) -> None:
        worker.unfinished.remove(ran.index)
        worker.test_s = (worker.test_s + sum(report["duration"] for report in ran.reports)) / 2
        self._feed(worker)  # first of all: the worker may be waiting for it
        item = self._session.items[ran.index]
        read = self._config.hook.pytest_report_from_serializable
        self._replay(item, [read(config=self._config, data=data) for data in ran.reports])
        self._warn(ran.warned)
        session = self._session
        session.shouldfail = session.shouldfail or ran.should_fail
        session.shouldstop = session.shouldstop or ran.should_stop
        self._stop_if_due()

    def _replay(self, item: pytest.Item, reports: list[pytest.TestReport]) -> None:
        self._unreported -= 1
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _warn(self, warned: list[Warned]) -> None:
        for message, when, nodeid in warned:
            self._config.hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": message,
                    "when": when,
                    "nodeid": nodeid,
                    "location": None,
                }
            )

    def _stop_if_due(self) -> None:
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _take_end(self, end: _Ended) -> None:
        self._warn(end.warned)
        if end.error is not None:
            raise RuntimeError(f"a worker failed:\n{end.error}")
        if end.exit_reason is not None:
            raise Exit(end.exit_reason, end.exit_code)
        if end.interrupted:
            raise KeyboardInterrupt

    def _take_crash(self, worker: _WorkerHandle, how: str) -> None:
        """Fail the test that killed its worker, and give the others to a new one."""
        if not worker.unfinished:
            raise RuntimeError(f"a worker died after its last test: {how}")
        item = self._session.items[worker.unfinished.popleft()]
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords=dict.fromkeys(item.keywords, 1),
            outcome="failed",
            longrepr=f"the worker died while it ran {item.nodeid}: {how}",
            when="call",
        )
        for rest in (worker.unsent, worker.unfinished):
            if rest:
                self._modules.appendleft(rest)
        self._replay(item, [report])
        self._stop_if_due()
        if self._modules or not self._workers:
            self._start_worker()

    # Ending

    def _handle_death(self, worker: _WorkerHandle) -> str:
        """Forget a worker; how it ended."""
        self._workers.remove(worker)
        return worker.reap()

    def _dismiss(self, *, patience_s: float) -> None:
        """End all workers, with more and more force."""
        for worker in self._workers:
            worker.send(_Order.STOP)
        self._see_off(patience_s)
        for force in (signal.SIGINT, signal.SIGKILL):
            for worker in self._workers:
                os.kill(worker.pid, force)
            self._see_off(PATIENCE_S)

    def _see_off(self, patience_s: float) -> None:
        """Bury the workers that end in time; what they still say is not heard."""
        until = time.monotonic() + patience_s
        while self._workers and (left_s := until - time.monotonic()) > 0:
            ready = wait([worker.channel for worker in self._workers], timeout=min(left_s, CHECK_S))
            for worker in list(self._workers):
                if worker.channel not in ready:
                    if worker.is_dead():
                        self._handle_death(worker)
                    continue
                try:
                    if isinstance(worker.channel.recv(), _Ended):
                        self._handle_death(worker)
                except (EOFError, OSError):
                    self._handle_death(worker)
