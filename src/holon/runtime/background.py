"""Wake-up signals for background services, and the boundary that contains bugs.

Owns:  the alarm that services sleep on, and the classification of errors at per-agent boundaries.
Rule 1: a nudge that arrives while the service is busy is kept, never lost.
Rule 2: a store failure and a fenced lane are not bugs, however many task groups wrap them. The
        store error takes precedence: the host ends with it.
Rule 3: a cancellation never counts as a bug: it is no Exception, and neither is a group holding
        one.
Rule 4: outside a lane, `bug_noted` is the boundary: a bug is logged and suppressed, and there a
        fence counts as a bug. Nothing is retried; the next caller deals with what was left undone.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Self

import anyio

from holon.model.errors import StoreError
from holon.ports.clock import Clock
from holon.ports.journal import About, Journal, LogLevel
from holon.runtime.turns.log import LaneFencedError


class Alarm:
    """A level-triggered nudge with an optional deadline."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._nudged = anyio.Event()

    @property
    def is_nudged(self) -> bool:
        """Whether a nudge is kept for the next who goes to sleep."""
        return self._nudged.is_set()

    def nudge(self) -> None:
        """Wake the sleeper, now or the next time it goes to sleep."""
        self._nudged.set()

    async def wait(self, *, until: datetime | None) -> None:
        """Return once nudged, or at `until`; consume the nudge before anything is read."""
        if until is None:
            await self._nudged.wait()
        elif not self._nudged.is_set():
            async with anyio.create_task_group() as race:
                race.start_soon(self._ring_at, until, race.cancel_scope)
                await self._nudged.wait()
                race.cancel_scope.cancel()
        self._nudged = anyio.Event()

    async def _ring_at(self, moment: datetime, race: anyio.CancelScope) -> None:
        await self._clock.sleep_until(moment)
        race.cancel()


class BugBoundary:
    """Notes a bug, and lets the code behind the block go on."""

    def __init__(
        self, journal: Journal, event: str, message: str, about: Mapping[str, About]
    ) -> None:
        self._journal = journal
        self._event = event
        self._message = message
        self._about = about
        self.met_bug = False

    def __enter__(self) -> Self:
        """Go in."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: object
    ) -> bool:
        """Hold back what nobody foresaw, and nothing else."""
        if not isinstance(error, Exception):
            return False
        with suppress(LaneFencedError):  # only a bug can fence when no lane runs
            raise_unless_bug(error)
        self.met_bug = True
        self._journal.note(
            self._event, self._message, level=LogLevel.ERROR, error=error, **self._about
        )
        return True


def bug_noted(journal: Journal, event: str, message: str, **about: About) -> BugBoundary:
    """Leave a block at a bug about one agent; `message` says what is left undone."""
    return BugBoundary(journal, event, message, about)


def raise_unless_bug(error: Exception) -> None:
    """Raise what is no bug; return when nobody foresaw the error."""
    found = tuple(leaves_of(error))
    for kind in (StoreError, LaneFencedError):
        for leaf in found:
            if isinstance(leaf, kind):
                raise leaf


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """Yield what really happened, out of groups within groups."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves_of(each)
    else:
        yield error
