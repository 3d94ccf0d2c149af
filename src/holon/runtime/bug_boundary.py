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
    found = tuple(_leaves(error))
    for kind in (StoreError, LaneFencedError):
        for leaf in found:
            if isinstance(leaf, kind):
                raise leaf


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
