"""Tells a bug from what somebody further out has to hear of.

Owns:  what every boundary around one agent lets through.
Rule 1: a store that failed and a lane that was fenced are no bugs, however many task groups have
        wrapped them. The store comes first: the host ends with it.
Rule 2: a cancellation is not seen here: it is no Exception, and a group that holds one is none.
Rule 3: where no lane runs, `bug_noted` is the boundary: a bug is noted and held back, and a fence
        is one. It tries nothing again; what was left undone is the business of whoever asks next.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Self

from holon.model.errors import StoreError
from holon.ports.journal import About, Journal, LogLevel
from holon.runtime.turn_writer import LaneFencedError


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
