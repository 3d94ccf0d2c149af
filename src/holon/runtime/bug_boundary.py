"""Tells a bug from what somebody further out has to hear of.

Owns:  what every boundary around one agent lets through.
Rule 1: a store that failed and a lane that was fenced are no bugs, however many task groups have
        wrapped them. The store comes first: the host ends with it.
Rule 2: a cancellation is not seen here: it is no Exception, and a group that holds one is none.
"""

from collections.abc import Iterator

from holon.model.errors import StoreError
from holon.runtime.turn_writer import LaneFencedError


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
