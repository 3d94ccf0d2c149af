"""Writing down the stations of a service's life, and how its start or end went wrong.

Owns:  which failures are written down, and when they are forgotten; the journal's lines about
       beginning and end.
Rule 1: a start that succeeds forgets what failed before; so does an end in good order.
Rule 2: a home that another process serves, or has taken over, is left as it is: that one is well.
"""

from types import TracebackType
from typing import Final

from holon import __version__
from holon.adapters.system.failure_files import FailureFiles
from holon.model.errors import HolonError, HomeInUseError, HomeReplacedError
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.ports.redactor import Redactor
from holon.projections.runtime_status import FailurePhase
from holon.runtime.bug_boundary import leaves_of

_REFUSED: Final = "start_refused"
_ENDED_BADLY: Final = "ended_badly"
LAST_WORDS: Final = frozenset({_REFUSED, _ENDED_BADLY})  # nothing comes after these


class LifecycleFailures:
    """Watches one life of a service: `with` it around everything that can fail."""

    def __init__(
        self, files: FailureFiles, clock: Clock, *, journal: Journal, redactor: Redactor
    ) -> None:
        self._files = files
        self._clock = clock
        self._journal = journal
        self._redactor = redactor
        self._phase = FailurePhase.STARTUP

    def started(self) -> None:
        """The start succeeded; what fails from here on is the end."""
        self._files.clear()
        self._phase = FailurePhase.SHUTDOWN

    def __enter__(self) -> "LifecycleFailures":
        """Begin to watch."""
        self._journal.note("starting", f"holon {__version__} starts")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write a failure down and let it pass."""
        del kind, trace
        if error is None:
            self._files.clear()
            self._journal.note("ended", "ended in good order; what was accepted is kept")
            return
        leaf = next(leaves_of(error), error)
        said = self._redactor.redact(sentence_of(leaf))
        self._journal.note(
            _REFUSED if self._phase is FailurePhase.STARTUP else _ENDED_BADLY,
            said,
            level=LogLevel.ERROR,
            error=None if isinstance(leaf, HolonError) else error,
        )
        is_anothers = isinstance(leaf, HomeInUseError | HomeReplacedError)
        if isinstance(leaf, Exception) and not is_anothers:
            self._files.note(self._phase, said, now=self._clock.now())


def sentence_of(error: BaseException) -> str:
    """Return an error in one sentence, with what to do about it."""
    if isinstance(error, HolonError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"
