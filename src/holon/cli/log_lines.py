"""Lines of a service's log, for people.

Owns:  how a line of JSON becomes text: when, how grave, what, and the ids of what it is about.
Rule 1: a line in any other form is shown as it is: it may come from a crash or an older version.
Rule 2: nothing that comes out moves a terminal: texts are made plain after they were decoded.
"""

import json
from collections.abc import Iterator
from typing import Final

from holon.cli.terminal_text import one_line, plain

_HEAD: Final = ("at", "level", "event", "message")
_UNSAID: Final = frozenset({*_HEAD, "pid", "trace", "logger"})


def shown_lines(line: str) -> Iterator[str]:
    """Yield what a person is shown of one line of the log."""
    told = _object_of(line)
    if told is None:
        yield plain(line)
        return
    about = " ".join(f"{name}={value}" for name, value in told.items() if name not in _UNSAID)
    said = f"{told['event']}: {told['message']}"
    shown = one_line(f"{said} ({about})" if about else said)
    yield f"{_moment(told['at'])} {one_line(str(told['level'])):<7} {shown}"
    for part in str(told.get("trace", "")).splitlines():
        yield f"    {plain(part)}"


def _object_of(line: str) -> dict[str, object] | None:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not all(isinstance(told.get(name), str) for name in _HEAD):
        return None
    return told


def _moment(at: object) -> str:
    """The moment to the second; it is UTC."""
    return one_line(str(at)[:19].replace("T", " "))
