"""The yardstick of the admission bench: a group-commit writer with nothing around it.

Owns:  the least code that makes the rows of an admission durable for concurrent callers: a thread,
       a queue, one transaction for whatever waits, and futures that are resolved after COMMIT.
"""

import asyncio
import queue
import threading
from typing import Final, NamedTuple

import apsw

from holon.adapters.sqlite.named_queries import named_queries
from holon.model.limits import GROUP_COMMIT_COUNT_MAX

Value = str | int | None


_NEXT_SEQ: Final = """
insert into event_heads (agent_id, last_seq) values (?1, 1)
on conflict (agent_id) do update set last_seq = last_seq + 1
returning last_seq
"""


class AdmissionRows(NamedTuple):
    """Everything one admission writes, encoded beforehand."""

    commit: tuple[Value, ...]
    message: tuple[Value, ...]
    agent_id: str
    at: int
    event: str


_Waiting = tuple[AdmissionRows, "asyncio.Future[None]"]


class BareWriter:
    """Inserts admissions in groups."""

    def __init__(self, connection: apsw.Connection) -> None:
        log, messages = named_queries("log"), named_queries("messages")
        self._insert_commit: Final = log["remember_commit"]
        self._insert_message: Final = messages["queue_message"]
        self._insert_event: Final = log["append_event"]
        self._connection = connection
        self._cursor = connection.cursor()
        self._items: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    async def insert(self, rows: AdmissionRows) -> None:
        """Return once the rows are durable."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._items.put((rows, done))
        await done

    def close(self) -> None:
        """End the thread."""
        self._items.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (first := self._items.get()) is not None:
            group = [first]
            while len(group) < GROUP_COMMIT_COUNT_MAX:
                try:
                    following = self._items.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    self._items.put(None)
                    break
                group.append(following)
            self._write(group)
            self._loop.call_soon_threadsafe(_resolve, group)

    def _write(self, group: list[_Waiting]) -> None:
        run = self._cursor.execute
        run("begin immediate")
        for rows, _ in group:
            run(self._insert_commit, rows.commit)
            run(self._insert_message, rows.message)
            ((seq,),) = run(_NEXT_SEQ, (rows.agent_id,)).fetchall()
            run(self._insert_event, (rows.agent_id, seq, rows.at, rows.event))
        run("commit")


def _resolve(group: list[_Waiting]) -> None:
    for _, done in group:
        done.set_result(None)
