"""Columns that hold numbers.

Owns:  taking them out of a row. What else stands there is a fault of the query, not of the data.
"""

from collections.abc import Sequence


def number(value: object) -> int:
    """Return a column that holds a number."""
    assert isinstance(value, int), "the column holds a number"
    return value


def numbers(row: Sequence[object]) -> list[int]:
    """Return a row whose columns all hold numbers."""
    return [number(value) for value in row]
