"""Forgetting finished history, oldest first, a bounded step at a time.

Owns:  what may be removed, when, and giving the disk space back.
Rule 1: a step removes everything that ended within one window of the log, in all tables, so that
        what remains is all of one age. Events set the pace: whatever happens leaves one.
Rule 2: nothing unfinished goes, nor what the model has yet to see, nor an agent's newest events and
        turns, nor a key or commit id that somebody may still repeat. The schema refuses most of
        these as well. An archived agent has no use for what is newest: its last event stays.
Rule 3: age decides while there is room. Above the cap, windows keep coming until there is room
        again or nothing is left that may go.
Rule 4: the rows of a batch are chosen once, by their keys. What is noted of them and what removes
        them go by those keys, so that neither can mean other rows than the other.
Rule 5: a clock may have stood in the future. What it stamped is as old as the log says: no younger
        than what was written after it.
Rule 6: a step that was undone is taken again: what is done moves only with what is durable.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import apsw

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.checkpoints import truncate_log
from holon.adapters.sqlite.commit_retention import CommitRetention
from holon.adapters.sqlite.database_files import DatabaseFiles
from holon.adapters.sqlite.memory_retention import MemoryRetention
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.decide.keyed_record import KEYED_RECORD_GLOB
from holon.model.instant import to_micros
from holon.model.limits import IDEMPOTENCY_KEPT_MS_MIN
from holon.model.memory_limits import EPISODE_CANDIDATES_COUNT
from holon.model.retention import PruneReport, RetentionPolicy

_FAMILIES: Final = (
    "turns",  # before the messages they answer
    "messages",
    "briefs",
    "tasks",
    "timers",
    "waits",
    "work_items",
    "episodes",
)
_WINDOWS_PER_STEP_COUNT_MAX: Final = 32  # windows that hold nothing to remove are passed over
_VACUUM_PAGES_MAX: Final = 1_024
_ROOM_PERCENT: Final = 95  # prune down to this share of the cap, so that there is room to grow
_FREE_PERCENT_MAX: Final = 10  # free pages kept in the file for reuse
_LONG_AGO: Final = -(2**62)
_FAR_AHEAD: Final = 2**62


class _Window(NamedTuple):
    """A stretch of the log and of time. The last one has nothing to remove behind it."""

    end_seq: int
    high: int
    is_last: bool


class _Span(NamedTuple):
    """A stretch of time, and up to when a key in it is old enough to be forgotten."""

    low: int
    high: int
    keys_until: int


class _Done(NamedTuple):
    """How far a pass has come."""

    seq: int = 0  # in the log
    until: int = _LONG_AGO  # in time
    commit_seq: int = 0
    has_removed: bool = False


class Retention:
    """Prunes one database, on the writer's connection and thread."""

    def __init__(self, connection: apsw.Connection, files: DatabaseFiles | None = None) -> None:
        self._connection = connection
        self._files = files
        self._statements = Statements(connection)
        self._sql = named_queries("retention")
        self._memory = MemoryRetention(self._statements)
        self._commits = CommitRetention(self._statements)
        self._done = _Done()

    def step(self, policy: RetentionPolicy, *, now: datetime) -> PruneReport:
        """Remove one bounded batch; `more` says that another step would go on from here."""
        before = self._connection.total_changes() - self._memory.noted_count
        is_last = self._remove_batch(policy, now=now)
        removed = self._connection.total_changes() - self._memory.noted_count - before
        has_removed = self._done.has_removed or removed > 0
        self._done = self._done._replace(has_removed=has_removed)
        shrunk_fully = self._give_back_pages(policy)
        more = not (is_last and shrunk_fully)
        if not more:
            if has_removed:
                # Only now does the file itself get shorter.
                truncate_log(self._connection, self._files)
            self._done = _Done()
        return PruneReport(rows_removed=removed, database_bytes=self._file_bytes(), more=more)

    def _remove_batch(self, policy: RetentionPolicy, *, now: datetime) -> bool:
        """Remove what one or more windows hold; returns whether nothing to remove is left."""
        done = self._done
        self._statements.run("begin immediate")
        try:
            is_last = self._remove_until_something_went(policy, now=now)
            is_forgotten = self._forget(policy, now=now)
            self._statements.run("commit")
        except BaseException:
            self._done = done
            if self._connection.in_transaction:
                self._statements.run("rollback")
            raise
        return is_last and is_forgotten

    def _remove_until_something_went(self, policy: RetentionPolicy, *, now: datetime) -> bool:
        before = self._connection.total_changes()
        for _ in range(_WINDOWS_PER_STEP_COUNT_MAX):
            window = self._next_window(policy, now=now)
            if not self._clear(window, policy, now=now):
                return False
            if window.is_last:
                return True
            self._done = self._done._replace(seq=window.end_seq, until=window.high)
            if self._connection.total_changes() != before:
                return False
        return False

    def _next_window(self, policy: RetentionPolicy, *, now: datetime) -> _Window:
        is_over = self._used_bytes() > policy.bytes_max * _ROOM_PERCENT // 100
        aged = to_micros(now - timedelta(milliseconds=policy.age_ms))
        asked = (self._done.seq, policy.batch_count, to_micros(now))
        match self._statements.row(self._sql["window_end"], asked):
            case (int() as end_seq, int() as written_by) if is_over or written_by <= aged:
                return _Window(end_seq, written_by, is_last=False)
            case (int() as end_seq, None) if is_over:  # all that came after it is stamped ahead
                return _Window(end_seq, to_micros(now), is_last=False)
            case None if is_over:
                return _Window(self._number("newest_event", ()), _FAR_AHEAD, is_last=True)
        end_seq = self._number("aged_end", (self._done.seq, policy.batch_count, aged))
        return _Window(end_seq, aged, is_last=True)

    def _clear(self, window: _Window, policy: RetentionPolicy, *, now: datetime) -> bool:
        """Remove what a window holds; returns False when the batch was not big enough for it."""
        keys_until = to_micros(now - timedelta(milliseconds=IDEMPOTENCY_KEPT_MS_MIN))
        spans = [_Span(self._done.until, window.high, keys_until)]
        present = to_micros(now)
        ahead = self._number("stamped_ahead", (self._done.seq, window.end_seq, present))
        if ahead:
            spans.append(_Span(present, ahead, ahead if window.high <= keys_until else keys_until))
        is_cleared = all(self._remove_rows(span, policy, now=now) for span in spans)
        if is_cleared:
            self._cut_logs(window, policy)
        return is_cleared

    def _remove_rows(self, span: _Span, policy: RetentionPolicy, *, now: datetime) -> bool:
        """Remove what ended in a stretch of time; returns False when a batch did not hold it."""
        parameters = {
            **span._asdict(),
            "turns_kept": max(1, policy.turns_count_min),  # an agent's last turn says how it is
            "episodes_kept": min(EPISODE_CANDIDATES_COUNT, max(1, policy.turns_count_min)),
            "batch": policy.batch_count,
            "keyed": KEYED_RECORD_GLOB,
        }
        is_cleared = True
        for family in _FAMILIES:
            leaving = self._statements.rows(self._sql[f"leaving_{family}"], parameters)
            if leaving:
                keys = encode([key for (key,) in leaving])
                self._memory.note(family, keys, now=now)
                self._statements.run(self._sql[f"delete_{family}"], (keys,))
            is_cleared = is_cleared and len(leaving) < policy.batch_count
        return is_cleared

    def _cut_logs(self, window: _Window, policy: RetentionPolicy) -> None:
        kept = max(1, policy.events_count_min)  # the newest one carries the numbering on
        found = self._statements.rows(
            self._sql["prunable_events"], (self._done.seq, window.end_seq, kept)
        )
        for agent_id, event_seq in found:
            assert isinstance(agent_id, str), "agent_id is text"
            assert isinstance(event_seq, int), "event_seq is a number"
            self._statements.run(self._sql["raise_floor"], (agent_id, event_seq))
            self._statements.run(self._sql["delete_events"], (agent_id, event_seq))

    def _forget(self, policy: RetentionPolicy, *, now: datetime) -> bool:
        """Forget a batch of ids, keys and marks; returns whether none that may go are left."""
        forgotten = self._commits.forget(self._done.commit_seq, policy, now=now)
        self._done = self._done._replace(commit_seq=forgotten.end_seq)
        more_marks = self._memory.forget(policy.batch_count, now=now)
        return not (forgotten.more or more_marks)

    def _give_back_pages(self, policy: RetentionPolicy) -> bool:
        """Return free pages to the disk, a bounded number; says whether enough went back."""
        page_count, free_count = self._pragma("page_count"), self._pragma("freelist_count")
        page_count_max = policy.bytes_max * _ROOM_PERCENT // 100 // self._pragma("page_size")
        above_cap = max(0, page_count - page_count_max)
        above_reserve = max(0, free_count - page_count * _FREE_PERCENT_MAX // 100)
        wanted = min(free_count, max(above_cap, above_reserve))
        if wanted:
            # Stepped to its end: a pragma that is not read to the end frees a single page.
            self._statements.rows(f"pragma incremental_vacuum({min(wanted, _VACUUM_PAGES_MAX)})")
        return wanted <= _VACUUM_PAGES_MAX

    def _used_bytes(self) -> int:
        return self._file_bytes() - self._pragma("freelist_count") * self._pragma("page_size")

    def _file_bytes(self) -> int:
        return self._pragma("page_count") * self._pragma("page_size")

    def _pragma(self, name: str) -> int:
        return int(str(self._connection.pragma(name)))

    def _number(self, name: str, parameters: tuple[int, ...]) -> int:
        row = self._statements.row(self._sql[name], parameters)
        value = None if row is None else row[0]
        return value if isinstance(value, int) else 0
