"""Finds the row a request is for.

Owns:  matching of paths and methods against the table, with and without the `/api` prefix.
Rule 1: no trailing slash and no double one. A segment may be percent-encoded and is decoded once,
        after the path was cut: what comes of it is one name, never two. One that would hold a
        slash, a control character or no UTF-8, or that is a dot or two, names nothing.
Rule 2: the address of a capability is matched as it is written: it has one spelling.
Rule 3: a path that exists for other methods is told apart from one that does not exist.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from urllib.parse import unquote

from holon.http.route import Access, Route

PlaneT = TypeVar("PlaneT")
PREFIX: Final = "api"
_ESCAPED: Final = re.compile("(?:[^%]|%[0-9A-Fa-f]{2})*")


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
        written = _segments(path)
        read = written if "%" not in path else tuple(map(_decoded, written))
        here = [
            *self._found_in(read, as_written=False),
            *self._found_in(written, as_written=True),
        ]
        if not here:
            return NoSuchPath()
        exact = (found for found in here if found.route.method == method)
        return next(exact, None) or WrongMethod(tuple(sorted({f.route.method for f in here})))

    def _found_in(self, segments: tuple[str, ...], *, as_written: bool) -> Iterator[Found[PlaneT]]:
        if len(segments) > 1 and segments[0] == PREFIX:
            segments = segments[1:]
        for pattern, route in self._by_shape.get(_shape(segments), ()):
            params = _params(pattern, segments)
            if params is not None and as_written is (route.access is Access.CAPABILITY):
                yield Found(route, params)


def _decoded(segment: str) -> str:
    """Return what a segment stands for, or nothing (which no row has) when it may not be that."""
    if "%" not in segment:
        return segment
    if _ESCAPED.fullmatch(segment) is None:
        return ""
    try:
        text = unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return ""
    return "" if text in (".", "..") or "/" in text or not text.isprintable() else text


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
