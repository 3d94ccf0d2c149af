"""The yardstick of the load benches: a group-commit writer with nothing around it.

Owns:  the least code that makes rows durable for concurrent callers: a thread, a queue, one
       transaction for whatever waits, and futures that are resolved after COMMIT; and the rows of
       an admission and of a delivery.
"""

import asyncio
import queue
import threading
from typing import Final, NamedTuple, Protocol

import apsw

from holon.adapters.sqlite.database.statements import named_queries
from holon.model.limits import GROUP_COMMIT_COUNT_MAX

Value = str | int | None


_NEXT_SEQ: Final = """
insert into event_heads (agent_id, last_seq) values (?1, 1)
on conflict (agent_id) do update set last_seq = last_seq + 1
returning last_seq
"""


class Rows(Protocol):
    """What becomes durable together."""

    def write(self, cursor: apsw.Cursor) -> None:
        """Write it, on the writer's thread."""
        ...


class AdmissionRows(NamedTuple):
    """Everything one admission writes, encoded beforehand."""

    commit: tuple[Value, ...]
    message: tuple[Value, ...]
    agent_id: str
    at: int
    event: str

    def write(self, cursor: apsw.Cursor) -> None:
        """Write the commit, the message and its event."""
        cursor.execute(_INSERT_COMMIT, self.commit)
        cursor.execute(_INSERT_MESSAGE, self.message)
        _write_event(cursor, self.agent_id, self.at, self.event)


class DeliveryRows(NamedTuple):
    """Everything one delivery to a trigger writes."""

    commit: tuple[Value, ...]
    counted: tuple[Value, ...]
    hint: tuple[Value, ...]
    agent_id: str
    at: int
    event: str

    def write(self, cursor: apsw.Cursor) -> None:
        """Write the commit, the count, the hint and the event."""
        cursor.execute(_INSERT_COMMIT, self.commit)
        cursor.execute(_COUNT_DELIVERY, self.counted)
        cursor.execute(_FOLD_HINT, self.hint)
        _write_event(cursor, self.agent_id, self.at, self.event)


_INSERT_COMMIT: Final = named_queries("log")["remember_commit"]
_INSERT_EVENT: Final = named_queries("log")["append_event"]
_INSERT_MESSAGE: Final = named_queries("messages")["queue_message"]
_COUNT_DELIVERY: Final = named_queries("triggers")["count_delivery"]
_FOLD_HINT: Final = named_queries("triggers")["fold_hint"]


def _write_event(cursor: apsw.Cursor, agent_id: str, at: int, event: str) -> None:
    ((seq,),) = cursor.execute(_NEXT_SEQ, (agent_id,)).fetchall()
    cursor.execute(_INSERT_EVENT, (agent_id, seq, at, event, None))  # in no turn


_Waiting = tuple[Rows, "asyncio.Future[None]"]


class BareWriter:
    """Inserts rows in groups."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._items: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    async def insert(self, rows: Rows) -> None:
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
        self._cursor.execute("begin immediate")
        for rows, _ in group:
            rows.write(self._cursor)
        self._cursor.execute("commit")


def _resolve(group: list[_Waiting]) -> None:
    for _, done in group:
        done.set_result(None)
