"""A `holon serve` process of a drill or a story: started, called over HTTP, killed.

Owns:  one process of the service from its start to its end. Threads may share it.
Rule 1: without failpoints it is the command itself, `holon serve`; with them it is the same service
        under tests.support.serve_process.
Rule 2: a process is ended by its own id alone; it leads its own process group. The processes it
        started are not in that group and stay: the test that drives a host ends them.
Rule 3: a response is an acknowledgement. One that broke off is none, and raises HostGoneError.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from holon.adapters.system.run_files import RunPaths
from holon.client.connection import Connection, HttpResponse, connection_errors
from holon.client.endpoint import Endpoint, TcpEndpoint, UnixEndpoint
from holon.model.errors import HolonError
from holon.model.values import JsonValue

ANSWER_S_MAX: Final = 30.0
MARKER: Final = "LC_HOLON_HOME"  # a name that passes down to commands and their supervisors
_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024


class HostGoneError(Exception):
    """The host ended before it said what was waited for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """Something to ask of a host. A `key` makes it safe to repeat."""

    method: str = "POST"
    path: str
    body: JsonValue | bytes = None  # bytes go as they are, anything else as JSON
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A whole answer."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.status in range(200, 300)

    @property
    def code(self) -> str:
        """Why it was declined."""
        return "" if self.ok else str(self.told.get("code", self.status))

    @property
    def told(self) -> dict[str, JsonValue]:
        """The object that was answered."""
        try:
            found = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return {}
        return found if isinstance(found, dict) else {}

    def at(self, *names: str) -> JsonValue:
        """What the answer holds under these names, one inside the other."""
        found: JsonValue = self.told
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found


class ServedHost:
    """A service from its start to its end."""

    def __init__(
        self,
        home: Path,
        *,
        environ: Mapping[str, str],
        failpoints: str | None = None,
        options: Sequence[str] = (),
        stderr: Path | None = None,
    ) -> None:
        """Start it. Whatever it starts, however it leaves, carries the marker of its home."""
        armed = (
            ["-m", "tests.support.serve_process"]
            if failpoints is not None
            else ["-m", "holon", "serve", "--port", "0", "--json"]
        )
        own = {"HOLON_HOME": str(home), "HOLON_FAILPOINTS": failpoints or "", MARKER: str(home)}
        self.home = home
        self.started_at = time.monotonic()
        self._http_addr: str | None = None
        self._token: str | None = None
        with (stderr or Path(os.devnull)).open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *armed, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**_surroundings(), "HOME": str(home), **environ, **own},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    def wait_ready(self, *, wait_s: float = ANSWER_S_MAX) -> None:
        """Return once the host has recovered and answers."""
        said = self.process.stdout
        assert said is not None
        ready, _, _ = select.select([said], [], [], wait_s)
        line = said.readline() if ready else b""
        if not line.endswith(b"\n"):
            raise HostGoneError("it never said that it is ready")
        told = msgspec.json.decode(line)
        if not told["ok"]:
            raise HostGoneError(f"it did not start: {told['error']}")
        self._http_addr = str(told["http_addr"])

    def endpoint(self, *, over_tcp: bool = False) -> Endpoint:
        """Where it is to be found: at its socket file, or at its address with its token."""
        paths = RunPaths(self.home)
        if not over_tcp:
            return UnixEndpoint(paths.socket)
        if self._http_addr is None:
            raise HostGoneError("it has no address yet")
        if self._token is None:
            self._token = paths.token.read_text(encoding="ascii").strip()
        host, _, port = self._http_addr.rpartition(":")
        return TcpEndpoint(host=host, port=int(port), token=self._token)

    def ask(
        self, request: Request, *, over_tcp: bool = False, wait_s: float = ANSWER_S_MAX
    ) -> Reply:
        """Ask, and return the whole answer; raises HostGoneError when there is none."""
        with self._asked(request, over_tcp=over_tcp, wait_s=wait_s) as answer:
            return Reply(status=answer.status, body=answer.read(_ANSWER_BYTES_MAX))

    def post(self, path: str, body: JsonValue | bytes = None, *, key: str | None = None) -> Reply:
        """Ask for something to be done."""
        return self.ask(Request(path=path, body=body, key=key))

    def get(self, path: str) -> Reply:
        """Look at something."""
        return self.ask(Request(method="GET", path=path))

    @contextlib.contextmanager
    def stream(
        self, path: str, *, last_id: int, wait_s: float, over_tcp: bool = False
    ) -> Iterator[HttpResponse]:
        """Give the stream of events that goes on after an id while the block runs."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last_id)}
        request = Request(method="GET", path=path, headers=headers)
        with self._asked(request, over_tcp=over_tcp, wait_s=wait_s) as answer:
            yield answer

    @contextlib.contextmanager
    def _asked(self, request: Request, *, over_tcp: bool, wait_s: float) -> Iterator[HttpResponse]:
        try:
            endpoint = self.endpoint(over_tcp=over_tcp)
            connection = Connection(endpoint, timeout_s=wait_s)
            with contextlib.closing(connection), connection_errors(endpoint):
                headers, body = _sendable(request)
                yield connection.send(request.method, request.path, headers=headers, body=body)
        except (HolonError, OSError) as error:
            raise HostGoneError(str(error)) from None

    def kill(self) -> int:
        """End the process and its group at once; returns its exit code."""
        with contextlib.suppress(ProcessLookupError):  # it was faster
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.join()

    def terminate(self) -> int:
        """Ask the process to end in good order; returns its exit code."""
        self.process.terminate()
        return self.join()

    def join(self, *, wait_s: float = ANSWER_S_MAX) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(timeout=wait_s)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


def _surroundings() -> dict[str, str]:
    """Where programs and our own code are found, and nothing else of whoever drives the host."""
    return {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}


def _sendable(request: Request) -> tuple[dict[str, str], bytes]:
    headers = {"Connection": "close", **request.headers}
    if request.key is not None:
        headers["Idempotency-Key"] = request.key
    if request.body is None or isinstance(request.body, bytes):
        return headers, request.body or b""
    return {"Content-Type": "application/json", **headers}, msgspec.json.encode(request.body)
