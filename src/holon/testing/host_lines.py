"""Lines to and from a host process.

Owns:  numbering what is asked, matching answers to it, and keeping what was said unasked. Threads
       may share one.
Rule 1: an answer that was never read was never given: whoever asks gets HostGoneError instead.
"""

import json
import subprocess
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

import msgspec

from holon.testing.host_commands import Answer, Command, Note

ANSWER_S_MAX: Final = 30.0


class HostGoneError(Exception):
    """The process ended before it answered."""


class HostLines:
    """The two pipes of a host process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.unclaimed: SimpleQueue[Answer] = SimpleQueue()  # nobody waits for these
        self._lock = threading.Lock()
        self._last_id = 0
        self._waiting: dict[int, SimpleQueue[Answer | None]] = {}
        self._notes: list[Note] = []
        self._news = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, name="host-stdout", daemon=True)
        self._reader.start()

    def ask(self, command: Command, *, wait_s: float = ANSWER_S_MAX) -> Answer:
        """Send a command and return its answer, or raise HostGoneError."""
        inbox: SimpleQueue[Answer | None] = SimpleQueue()
        number = self.send(command, inbox)
        try:
            answer = inbox.get(timeout=wait_s)
        except Empty:
            raise HostGoneError(f"no answer within {wait_s} s") from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if answer is None:
            raise HostGoneError("the process ended")
        return answer

    def send(self, command: Command, inbox: "SimpleQueue[Answer | None] | None" = None) -> int:
        """Send a command under a fresh number; its answer goes to `inbox`."""
        with self._lock:
            if self._is_over:
                raise HostGoneError("the process ended")
            self._last_id += 1
            number = self._last_id
            if inbox is not None:
                self._waiting[number] = inbox
            line = msgspec.json.encode(msgspec.structs.replace(command, id=number))
            self._write(line + b"\n")
        return number

    def write_raw(self, line: bytes) -> None:
        """Send any bytes at all."""
        with self._lock:
            self._write(line)

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise HostGoneError("the process ended") from None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                break  # cut off by a kill: never said
            self._take(line)
        with self._lock:
            self._is_over = True
            waiting, self._waiting = self._waiting, {}
        for inbox in waiting.values():
            inbox.put(None)
        with self._news:
            self._news.notify_all()

    def _take(self, line: bytes) -> None:
        if "note" in json.loads(line):
            with self._news:
                self._notes.append(msgspec.json.decode(line, type=Note))
                self._news.notify_all()
            return
        answer = msgspec.json.decode(line, type=Answer)
        with self._lock:
            inbox = self._waiting.get(answer.id) if answer.id is not None else None
        if inbox is not None:
            inbox.put(answer)
        else:
            self.unclaimed.put(answer)

    def wait_note(self, fits: Callable[[Note], bool], *, wait_s: float = ANSWER_S_MAX) -> Note:
        """Return the first note that fits, past or to come, or raise HostGoneError."""
        deadline = time.monotonic() + wait_s
        with self._news:
            while True:
                found = next((note for note in self._notes if fits(note)), None)
                if found is not None:
                    return found
                left = deadline - time.monotonic()
                if left <= 0 or self._is_over:
                    raise HostGoneError("the process ended" if self._is_over else "nothing came")
                self._news.wait(left)

    def notes(self) -> tuple[Note, ...]:
        """Everything the host has said without being asked."""
        with self._news:
            return tuple(self._notes)

    def end_input(self) -> None:
        """Say that nothing more will be asked."""
        assert self.process.stdin is not None
        with self._lock:
            self.process.stdin.close()

    def close(self, *, wait_s: float = ANSWER_S_MAX) -> None:
        """Let go of the pipes of a process that has ended."""
        self._reader.join(wait_s)
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:
                continue  # what was not sent to a killed process is nobody's loss
