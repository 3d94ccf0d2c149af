"""Readers of the event streams that stay through every life of the host.

Owns:  a follower of one agent or of all, which resumes with the last id it has seen, and the
       judgement over what it saw.
Rule 1: P14: whoever reads steadily sees every event exactly once and in order, over any number of
        lives, and nothing that is not in the log.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.client.event_stream import read_events
from holon.wire.server_sent_events import SseEvent
from tests.crash.stage import RETRY_S, Stage
from tests.support.served_host import HostGoneError, Reply, ServedHost

CATCH_UP_S_MAX: Final = 20.0
ANSWER_BYTES_MAX: Final = 2**20
_SILENCE_S_MAX: Final = 5.0
_CLOSED: Final = "stream_closed"


class Follower(threading.Thread):
    """Reads a stream for as long as the stage is open."""

    def __init__(self, stage: Stage, *, agent: str | None, over_tcp: bool) -> None:
        super().__init__(name=f"follower of {agent or 'all'}", daemon=True)
        self._stage = stage
        self._agent = agent
        self._path = "/events/stream" if agent is None else f"/agents/{agent}/events/stream"
        self._over_tcp = over_tcp
        self._is_over = threading.Event()
        self.seen: list[tuple[int, str]] = []  # id, kind
        self.problems: list[str] = []
        self.stream_count = 0

    def run(self) -> None:
        """Read, across breaks, until told to end."""
        while not self._is_over.is_set():
            host = self._stage.host(wait_s=RETRY_S)
            if host is None:
                continue
            try:
                self._read(host)
            except HostGoneError:
                time.sleep(RETRY_S)

    def end(self) -> None:
        """Let the follower go."""
        self._is_over.set()

    @property
    def last_id(self) -> int:
        """The id of the newest event it has seen."""
        return self.seen[-1][0] if self.seen else 0

    def _read(self, host: ServedHost) -> None:
        with host.stream(
            self._path, last_id=self.last_id, wait_s=_SILENCE_S_MAX, over_tcp=self._over_tcp
        ) as answer:
            if answer.status != 200:
                self._refused(Reply(status=answer.status, body=answer.read(ANSWER_BYTES_MAX)))
                return
            self.stream_count += 1
            for event in read_events(answer):
                self._take(event)
                if self._is_over.is_set():
                    return

    def _refused(self, reply: Reply) -> None:
        if reply.status != 404:  # an agent that is not there yet
            self.problems.append(f"P14 {self.name} was refused: {reply.body!r}")
        time.sleep(RETRY_S)

    def _take(self, event: SseEvent) -> None:
        if event.event == _CLOSED:
            return
        if event.id is None:
            self.problems.append(f"P14 {self.name} got an event without an id: {event}")
            return
        self.seen.append((int(event.id), event.event))

    def catch_up(self, home: Path) -> None:
        """Wait until everything there is has been seen, within bounds."""
        deadline = time.monotonic() + CATCH_UP_S_MAX
        newest = max((seq for seq, _ in self._log(home)), default=0)
        while self.last_id < newest and time.monotonic() < deadline:
            time.sleep(RETRY_S)

    def judged(self, home: Path) -> Iterator[str]:
        """Everything that is wrong with what it saw, held against the log."""
        yield from self.problems
        log = self._log(home)
        if self.seen == log:
            return
        ids = [seq for seq, _ in self.seen]
        if ids != sorted(set(ids)):
            yield f"P14 {self.name} saw events twice or out of order"
        missed, made_up = set(log) - set(self.seen), set(self.seen) - set(log)
        if missed:
            yield f"P14 {self.name} missed {len(missed)} of {len(log)}: {sorted(missed)[:3]}"
        if made_up:
            yield f"P14 {self.name} saw what is not in the log: {sorted(made_up)[:3]}"

    def _log(self, home: Path) -> list[tuple[int, str]]:
        with open_untouched(database_path(home)) as connection:
            rows = _rows_of(connection, self._agent)
            return [(int(str(seq)), str(kind)) for seq, kind in rows]


def _rows_of(connection: apsw.Connection, agent: str | None) -> Iterator[tuple[object, ...]]:
    if agent is None:
        yield from connection.execute(
            "select log_seq, event ->> '$.kind' from events order by log_seq"
        )
    else:
        yield from connection.execute(
            "select event_seq, event ->> '$.kind' from events where agent_id = ? order by 1",
            (agent,),
        )
