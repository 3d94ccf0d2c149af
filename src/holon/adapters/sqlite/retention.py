"""Retention: delete finished history, oldest first, in bounded steps.

Owns:  how long commit ids and delivery keys are remembered; what may be removed and when; returning
       disk space.
Rule 1: a commit id is repeated only by us, within moments. A request with a caller's key is
        repeated by the caller: its commit id is the only trace of that key and stays as long as
        keys do.
Rule 2: what was stamped while the clock was set back is as young as what precedes it in the log;
        what was stamped ahead is as old as what follows it.
Rule 3: a step covers one range of commits in the order they were applied and returns where it
        ended, so ids that stay never hold up those after them.
Rule 4: a step removes everything that ended within one window of the log, from all tables, so that
        what remains has one age. Events set the pace: everything that happens leaves one.
Rule 5: open objects stay, and so do messages the model has not seen, an agent's newest events and
        turns, and keys or commit ids that may still be repeated. The schema refuses to delete most
        of these as well. For an archived agent only its last event stays.
Rule 6: age decides while there is room. Above the size cap, windows are removed until there is room
        again or nothing removable is left.
Rule 7: the rows of a batch are selected once, by key. Recording and deleting both use those keys,
        so they cannot affect different rows.
Rule 8: the clock may have been ahead or behind. A stamp is as old as the log says: no younger than
        what was written after it, and no older than what was written before. So the log is aged as
        far as it holds no young credible stamp (see log_segments), and a row is aged by its stamp
        only when the clock did not return to that time later in the log.
Rule 9: a key is also young when the clock showed its stamp after a moment that is young. Keys
        stamped ahead stay until their part of the log is aged.
Rule 10: a step that was rolled back is repeated: progress moves only with what is durable.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Self

import apsw

from holon.adapters.sqlite.database.checkpoints import truncate_log
from holon.adapters.sqlite.database.database_files import DatabaseFiles
from holon.adapters.sqlite.database.row_codec import encode
from holon.adapters.sqlite.database.statements import Statements, Value, named_queries
from holon.adapters.sqlite.log_segments import (
    FAR_AHEAD,
    LONG_AGO,
    LogSegments,
    Place,
    Span,
    horizon,
    is_behind,
    places,
    without,
)
from holon.adapters.sqlite.memory import MemoryRetention
from holon.decide.queue.idempotency import KEYED_RECORD_GLOB, KEYED_REQUEST_GLOB
from holon.model.events.retention import PruneReport, RetentionPolicy
from holon.model.limits import IDEMPOTENCY_KEPT_MS_MIN
from holon.model.memory.records import EPISODE_CANDIDATES_COUNT
from holon.model.values import to_micros

_KEYED: Final = f"control:{KEYED_REQUEST_GLOB}"
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


class _Stretch(NamedTuple):
    """Commits up to a place. Behind the last stretch, none are to be forgotten."""

    end_seq: int
    is_last: bool


class CommitPruning(NamedTuple):
    """How far commits were pruned, and whether more can be."""

    end_seq: int
    more: bool


class CommitRetention:
    """Forgets ids and keys, on the writer's connection and thread."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("commit_retention")

    def forget(
        self, after_seq: int, policy: RetentionPolicy, log: LogSegments, *, now: datetime
    ) -> CommitPruning:
        """Forget a batch of each kind; the commits are gone through from `after_seq` on."""
        present, batch_count = to_micros(now), policy.batch_count
        ids_until, keys_until = (
            _ago(now, policy.commit_ids_kept_ms),
            _ago(now, IDEMPOTENCY_KEPT_MS_MIN),
        )
        stretch = self._stretch(after_seq, batch_count, ids_until, present)
        young = log.in_the_past_since(ids_until, present=present)
        for span in without((LONG_AGO, FAR_AHEAD), young):
            asked = (after_seq, stretch.end_seq, _KEYED, *span)
            self._statements.run(self._sql["delete_commits"], asked)
        is_full = False
        for span in without(
            (LONG_AGO, keys_until), log.in_the_past_since(keys_until, present=present)
        ):
            asked = (after_seq, stretch.end_seq, _KEYED, *span)
            self._statements.run(self._sql["delete_keyed_commits"], asked)
            self._statements.run(self._sql["delete_trigger_deliveries"], (batch_count, *span))
            is_full = is_full or self._statements.connection.changes() >= batch_count
        end_seq = after_seq if stretch.is_last else stretch.end_seq
        return CommitPruning(end_seq, more=is_full or not stretch.is_last)

    def _stretch(self, after_seq: int, batch_count: int, until: int, present: int) -> _Stretch:
        asked = (after_seq, batch_count, horizon(present))
        match self._statements.row(self._sql["commits_end"], asked):
            case (int() as end_seq, int() as by) if by <= until:
                return _Stretch(end_seq, is_last=False)
            case _:
                row = self._statements.row(self._sql["old_end"], (*asked, until))
                end = None if row is None else row[0]
                return _Stretch(end if isinstance(end, int) else after_seq, is_last=True)


def _ago(now: datetime, kept_ms: int) -> int:
    return to_micros(now - timedelta(milliseconds=kept_ms))


class _Moments(NamedTuple):
    """What the believed present makes of stamps."""

    present: int
    horizon: int  # up to here, stamps are credible
    aged: int  # what is older goes by its age
    keys_until: int  # what is older has keys that need not be remembered

    @classmethod
    def at(cls, now: datetime, policy: RetentionPolicy) -> Self:
        present = to_micros(now)
        aged = to_micros(now - timedelta(milliseconds=policy.age_ms))
        keys_until = to_micros(now - timedelta(milliseconds=IDEMPOTENCY_KEPT_MS_MIN))
        return cls(present, horizon(present), aged, keys_until)


class _Window(NamedTuple):
    """The next events of the log, and up to which stamp rows go with them.

    The last one has nothing to remove behind it.
    """

    events: Sequence[Place]
    end: Place  # its last event, or where it begins when it has none
    high: int
    is_last: bool
    is_aged: bool = False


class _Done(NamedTuple):
    """How far a pass has come."""

    end: Place = (0, LONG_AGO)  # in the log
    until: int = LONG_AGO  # in time
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
        self._stretches = LogSegments(self._statements, self._sql["next_events"])
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
            is_read = self._stretches.catch_up()
            is_last = is_read and self._remove_until_something_went(policy, now=now)
            is_forgotten = is_read and self._forget(policy, now=now)
            self._statements.run("commit")
        except BaseException:
            self._done = done
            if self._connection.in_transaction:
                self._statements.run("rollback")
            raise
        return is_last and is_forgotten

    def _remove_until_something_went(self, policy: RetentionPolicy, *, now: datetime) -> bool:
        before = self._connection.total_changes()
        moments = _Moments.at(now, policy)
        for _ in range(_WINDOWS_PER_STEP_COUNT_MAX):
            window = self._next_window(policy, moments)
            if not self._clear(window, policy, moments, now=now):
                return False
            if window.is_last:
                return True
            self._done = self._done._replace(end=window.end, until=window.high)
            if self._connection.total_changes() != before:
                return False
        return False

    def _next_window(self, policy: RetentionPolicy, moments: _Moments) -> _Window:
        is_over = self._used_bytes() > policy.bytes_max * _ROOM_PERCENT // 100
        asked = (self._done.end[0], policy.batch_count)
        events = places(self._statements.rows(self._sql["next_events"], asked))
        present = moments.present
        reached = self._stretches.reached(events, present=present)
        if len(events) == policy.batch_count:
            written_by = self._stretches.written_by(events[-1], reached[-1], present=present)
            is_aged = written_by is not None and written_by <= moments.aged
            if is_over or is_aged:
                # Where nothing says when it was written, rows of the present go at most.
                high = present if written_by is None else written_by
                return _Window(events, events[-1], high, is_last=False, is_aged=is_aged)
        elif is_over:
            return _Window(events, (events or [self._done.end])[-1], FAR_AHEAD, is_last=True)
        aged = _aged(events, reached, moments)
        end = (aged or [self._done.end])[-1]
        return _Window(aged, end, moments.aged, is_last=True, is_aged=True)

    def _clear(
        self, window: _Window, policy: RetentionPolicy, moments: _Moments, *, now: datetime
    ) -> bool:
        """Remove what a window holds; returns False when the batch was not big enough for it."""
        is_cleared = all(
            self._remove_rows(span, policy, keys_until=keys_until, now=now)
            for span, keys_until in self._spans(window, moments)
        )
        if is_cleared:
            self._cut_logs(window, policy)
        return is_cleared

    def _spans(self, window: _Window, moments: _Moments) -> Iterator[tuple[Span, int]]:
        """Name the stamps of rows that go with a window; and up to when their keys go as well."""
        stamps = [stamp for _, stamp in window.events]
        low = min([self._done.until, *(stamp - 1 for stamp in stamps)])
        later = self._stretches.after(window.end, below=window.high)
        young = self._stretches.in_the_past_since(moments.keys_until, present=moments.present)
        if young:
            for span in without((low, window.high), later):
                yield span, LONG_AGO
        for span in without((low, window.high), [*later, *young]):
            yield span, moments.keys_until
        if ahead := [stamp for stamp in stamps if stamp > moments.horizon]:
            has_old_keys = window.is_aged and window.high <= moments.keys_until
            later = self._stretches.after(window.end, below=max(ahead))
            for span in without((min(ahead) - 1, max(ahead)), later):
                yield span, max(ahead) if has_old_keys else moments.keys_until

    def _remove_rows(
        self, span: Span, policy: RetentionPolicy, *, keys_until: int, now: datetime
    ) -> bool:
        """Remove what ended in a span of time; returns False when a batch did not hold it."""
        parameters: dict[str, Value] = {
            "low": span[0],
            "high": span[1],
            "keys_until": keys_until,
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
            self._sql["prunable_events"], (self._done.end[0], window.end[0], kept)
        )
        for agent_id, event_seq in found:
            assert isinstance(agent_id, str), "agent_id is text"
            assert isinstance(event_seq, int), "event_seq is a number"
            self._statements.run(self._sql["raise_floor"], (agent_id, event_seq))
            self._statements.run(self._sql["delete_events"], (agent_id, event_seq))

    def _forget(self, policy: RetentionPolicy, *, now: datetime) -> bool:
        """Forget a batch of ids, keys and marks; returns whether none that may go are left."""
        commit_seq = self._done.commit_seq
        forgotten = self._commits.forget(commit_seq, policy, self._stretches, now=now)
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


def _aged(events: Sequence[Place], reached: Sequence[int], moments: _Moments) -> Sequence[Place]:
    """Return those of the events that are aged: up to one that shows it, none of them young."""
    count = 0
    for number, ((_, stamp), highest) in enumerate(zip(events, reached, strict=True), start=1):
        if highest > moments.aged:
            break
        if stamp <= moments.horizon and not is_behind(stamp, highest):
            count = number
    return events[:count]
