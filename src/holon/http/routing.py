"""Finds the row a request is for.

Owns:  matching of paths and methods against the table, with and without the `/api` prefix.
Rule 1: a path matches as it is written: no decoding, no trailing slash, no double one. What names
        things never needs an escape, so an escaped path names nothing.
Rule 2: a path that exists for other methods is told apart from one that does not exist.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from holon.http.route import Route

PlaneT = TypeVar("PlaneT")
PREFIX: Final = "api"


@dataclass(frozen=True, slots=True)
class Found(Generic[PlaneT]):
    """The row, and what its path's names stand for here."""

    route: Route[PlaneT]
    params: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WrongMethod:
    """The path exists; these methods do."""

    allowed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoSuchPath:
    """Nothing is served here."""


class RouteTable(Generic[PlaneT]):
    """Every route of a surface."""

    def __init__(self, routes: Iterable[Route[PlaneT]]) -> None:
        self.routes: Final = tuple(routes)
        self._by_shape: dict[tuple[int, str], list[tuple[tuple[str, ...], Route[PlaneT]]]] = {}
        for route in self.routes:
            segments = _segments(route.path)
            self._by_shape.setdefault(_shape(segments), []).append((segments, route))

    def find(self, method: str, path: str) -> Found[PlaneT] | WrongMethod | NoSuchPath:
        """Return the row for a request, or why there is none."""
        if not path.startswith("/"):
            return NoSuchPath()  # a proxy's way to ask, and not ours
        segments = _segments(path)
        if len(segments) > 1 and segments[0] == PREFIX:
            segments = segments[1:]
        here = [
            Found(route, params)
            for pattern, route in self._by_shape.get(_shape(segments), ())
            if (params := _params(pattern, segments)) is not None
        ]
        if not here:
            return NoSuchPath()
        exact = (found for found in here if found.route.method == method)
        return next(exact, None) or WrongMethod(tuple(sorted({f.route.method for f in here})))


def _segments(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix("/").split("/"))


def _shape(segments: tuple[str, ...]) -> tuple[int, str]:
    """No row begins with a name, so its first segment is as good as a key."""
    return len(segments), segments[0]


def _params(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for expected, given in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            if not given:
                return None
            params[expected[1:-1]] = given
        elif expected != given:
            return None
    return params
