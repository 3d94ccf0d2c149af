"""Our side of the fork server.

Owns:  starting it, asking it for a supervisor, starting it again when it has died, ending it.
Rule 1: it is started by the first command, or before by `prepare`; while it starts, requests wait
        in its socket.
Rule 2: it sees the environment commands see, and nothing else of ours.
Rule 3: nobody waits for it. One that leaves a request without an answer is replaced by the next
        request, and it is killed rather than asked to go: it holds nothing, and what it has made
        lives on, or sees our end of its socket close.
"""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio

from holon.adapters.exec.environment import passed_on

ANSWER_BYTES_MAX: Final = 4 * 1024
ANSWER_S_MAX: Final = 30.0  # of a machine so busy that a fork takes this long, no good is expected
ROOM_AGAIN_S: Final = 0.05  # between two looks at a socket that is full of requests
SERVERS_COUNT_MAX: Final = 2  # tried for one request
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from holon.adapters.exec.fork_server import main; main()"
)
_PACKAGES: Final = str(Path(__file__).resolve().parents[3])
_LIBRARIES: Final = "LD_LIBRARY_PATH"  # an interpreter may need it to start at all


class ForkClient:
    """Asks the fork server of this runtime for supervisors."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = passed_on(environ)
        if _LIBRARIES in environ:
            self._environ[_LIBRARIES] = environ[_LIBRARIES]
        self._socket: socket.socket | None = None
        self.pid: int | None = None

    def prepare(self) -> None:
        """Start the server unless it runs, without waiting for it."""
        if self._socket is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, _PACKAGES]
        with theirs:
            self.pid = os.posix_spawn(
                sys.executable,
                argv,
                self._environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
            )
        self._socket = ours

    async def ask(self, folder: str) -> tuple[bytes | None, int]:
        """Return a supervisor's answer and the pipe it holds, which is the caller's to close.

        Nothing is said when there came to be no supervisor; None when it took too long to tell.
        """
        heard, said = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        answer = None
        try:
            try:
                asked = await self._send(folder, said)
            finally:
                os.close(said)
            # Whether a process was started must be known, so this is not left half done.
            with anyio.move_on_after(ANSWER_S_MAX, shield=True):
                await anyio.wait_readable(heard)
                answer = os.read(heard, ANSWER_BYTES_MAX)
            if answer is None and self._socket is asked:
                self.close()
        except BaseException:
            os.close(heard)
            raise
        return answer, heard

    async def _send(self, folder: str, said: int) -> socket.socket | None:
        """Send a request, if that can be done; return the socket it went by."""
        servers_left = SERVERS_COUNT_MAX
        with anyio.move_on_after(ANSWER_S_MAX, shield=True):
            while servers_left:
                self.prepare()
                assert self._socket is not None
                try:
                    socket.send_fds(self._socket, [os.fsencode(folder)], [said])
                except BlockingIOError:  # hundreds wait there; the others must not wait for them
                    await anyio.sleep(ROOM_AGAIN_S)
                except (BrokenPipeError, ConnectionResetError):
                    self.close()  # it was killed; the next one is as good
                    servers_left -= 1
                else:
                    return self._socket
        return None

    def close(self) -> None:
        """Let the server go. Supervisors and their commands stay."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self.pid is not None:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                    os.kill(self.pid, signal.SIGKILL)
                    os.waitpid(self.pid, 0)
            self.pid = None
