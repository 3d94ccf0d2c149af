"""The last failure of a start and of a shutdown, kept until one succeeds.

Owns:  `startup_failure.json` and `shutdown_failure.json` in the run folder.
Rule 1: failing to write a failure never hides the failure itself.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from holon.adapters.system.run_files import RunFiles, UnsafePathError, put_in_place, read_own
from holon.model.text_size import one_line
from holon.projections.runtime_status import FailurePhase, LastFailure, newest_failure

SEE_LOGS: Final = "holon daemon logs"


@dataclass(frozen=True, slots=True)
class FailureFiles:
    """The failures of one home."""

    files: RunFiles

    def note(self, phase: FailurePhase, summary: str, *, now: datetime) -> LastFailure:
        """Write a failure down, in place of an earlier one of its phase."""
        failure = LastFailure(
            occurred_at=now, summary=one_line(summary), phase=phase, detail_hint=SEE_LOGS
        )
        try:
            put_in_place(self.path_of(phase), msgspec.json.encode(failure) + b"\n")
        except (OSError, UnsafePathError):
            return failure
        return failure

    def path_of(self, phase: FailurePhase) -> Path:
        """Where failures of a phase are."""
        if phase is FailurePhase.STARTUP:
            return self.files.startup_failure
        return self.files.shutdown_failure

    def of(self, phase: FailurePhase) -> LastFailure | None:
        """The failure of a phase, if one is known."""
        content = read_own(self.path_of(phase))
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=LastFailure)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None

    def newest(self) -> LastFailure | None:
        """The failure that is known last."""
        return newest_failure(self.of(FailurePhase.STARTUP), self.of(FailurePhase.SHUTDOWN))

    def clear(self) -> None:
        """It went well since."""
        for path in (self.files.startup_failure, self.files.shutdown_failure):
            if read_own(path) is not None:
                with suppress(OSError):  # a read-only disk: the failure is reported again
                    path.unlink(missing_ok=True)
