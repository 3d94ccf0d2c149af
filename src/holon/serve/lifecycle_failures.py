"""Writing down how a service's start or end went wrong.

Owns:  which failures are written down, and when they are forgotten.
Rule 1: a start that succeeds forgets what failed before; so does an end in good order.
Rule 2: a home that somebody else serves is left as it is: that runtime is well.
"""

from collections.abc import Iterator
from types import TracebackType

from holon.adapters.system.failure_files import FailureFiles
from holon.model.errors import HolonError, HomeInUseError
from holon.ports.clock import Clock
from holon.projections.runtime_status import FailurePhase


class LifecycleFailures:
    """Watches one life of a service: `with` it around everything that can fail."""

    def __init__(self, files: FailureFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._phase = FailurePhase.STARTUP

    def started(self) -> None:
        """The start succeeded; what fails from here on is the end."""
        self._files.clear()
        self._phase = FailurePhase.SHUTDOWN

    def __enter__(self) -> "LifecycleFailures":
        """Begin to watch."""
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
            return
        leaf = next(leaves_of(error), error)
        if isinstance(leaf, Exception) and not isinstance(leaf, HomeInUseError):
            self._files.note(self._phase, sentence_of(leaf), now=self._clock.now())


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """Yield what really happened, out of groups within groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error


def sentence_of(error: BaseException) -> str:
    """Return an error in one sentence, with what to do about it."""
    if isinstance(error, HolonError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"
