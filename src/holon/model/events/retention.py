"""Retention: which records are kept, and for how long.

Owns:  the retention policy and the report of one pruning step.
Rule 1: retention is on by default and never touches what is not finished.
Rule 2: events are removed at the old end only; what remains is a contiguous suffix whose first
        sequence number is known.
"""

from holon.model import limits
from holon.model.record import Record


class RetentionPolicy(Record, frozen=True, kw_only=True):
    """How much finished history a runtime keeps."""

    age_ms: int = limits.RETENTION_AGE_MS_DEFAULT
    bytes_max: int = limits.RETENTION_BYTES_MAX_DEFAULT
    events_count_min: int = limits.RETENTION_EVENTS_COUNT_MIN
    turns_count_min: int = limits.RETENTION_TURNS_COUNT_MIN
    commit_ids_kept_ms: int = limits.COMMIT_IDS_KEPT_MS_MIN
    batch_count: int = limits.RETENTION_BATCH_COUNT


class PruneReport(Record, frozen=True, kw_only=True):
    """What one pruning step removed. `more` means another step would remove more."""

    rows_removed: int
    database_bytes: int
    more: bool
