"""Forgetting which commits were applied and which deliveries came in.

Owns:  how long the id of a commit and the key of a delivery are remembered.
Rule 1: only we repeat a commit, and do so within moments. A request that a caller's key names is
        repeated by the caller: its id is all that remembers the key, and stays as long as keys do.
Rule 2: what was stamped while the clock stood in the past is as young as what came before it in the
        log. What was stamped ahead is as old as what came after it.
Rule 3: a step looks at one stretch of the commits, in the order they were applied, and says where
        it ended, so that ids that stay never hold up those behind them.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from holon.adapters.sqlite.log_stretches import (
    FAR_AHEAD,
    LONG_AGO,
    LogStretches,
    horizon,
    without,
)
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.decide.keyed_record import KEYED_REQUEST_GLOB
from holon.model.instant import to_micros
from holon.model.limits import IDEMPOTENCY_KEPT_MS_MIN
from holon.model.retention import RetentionPolicy

_KEYED: Final = f"control:{KEYED_REQUEST_GLOB}"


class _Stretch(NamedTuple):
    """Commits up to a place. Behind the last stretch, none are to be forgotten."""

    end_seq: int
    is_last: bool


class Forgotten(NamedTuple):
    """How far the commits were gone through, and whether there is more to forget."""

    end_seq: int
    more: bool


class CommitRetention:
    """Forgets ids and keys, on the writer's connection and thread."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("commit_retention")

    def forget(
        self, after_seq: int, policy: RetentionPolicy, log: LogStretches, *, now: datetime
    ) -> Forgotten:
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
        return Forgotten(end_seq, more=is_full or not stretch.is_last)

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
