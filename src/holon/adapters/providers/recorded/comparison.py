"""Whether a request is the one on record, and how it differs.

Owns:  the lines a request is compared by, and the translation of ids between two runs.
Rule 1: ids and moments are fresh in every run. They are compared by place: the first id of a kind
        in one run stands for the first in the other. Everything else has to be equal.
Rule 2: a played answer speaks of this run: ids of the recorded run are replaced by their partners.
"""

import difflib
import re
from collections.abc import Iterator
from typing import Final

from holon.adapters.providers.recorded.exchange import RecordedRequest
from holon.model.ids import IdPrefix
from holon.model.json_value import JsonValue
from holon.model.limits import RECORDED_DIFFERENCE_LINES_COUNT_MAX
from holon.model.text_size import cut
from holon.wire import codec

_KINDS: Final = "|".join(IdPrefix)
_ID: Final = re.compile(rf"\b(?P<kind>{_KINDS})_[0-9a-z]{{26}}(?![0-9a-z])")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_LINE_CHARS_MAX: Final = 160


def difference_between(recorded: RecordedRequest, asked: RecordedRequest) -> str | None:
    """Return how the request asked now differs from the one on record, or nothing."""
    ours, theirs = _familiar(recorded), _familiar(asked)
    if ours == theirs:
        return None
    lines = difflib.unified_diff(ours, theirs, "recorded", "asked", n=1, lineterm="")
    shown = [_bounded(line) for line in lines]
    left_out = len(shown) - RECORDED_DIFFERENCE_LINES_COUNT_MAX
    if left_out > 0:
        shown[RECORDED_DIFFERENCE_LINES_COUNT_MAX:] = [f"… and {left_out} more lines"]
    return "\n".join(shown)


def _bounded(line: str) -> str:
    return cut(line, chars_max=_LINE_CHARS_MAX)


def partners_of(recorded: RecordedRequest, asked: RecordedRequest) -> dict[str, str]:
    """Return which id of this run stands for which id on record. The requests are alike."""
    return dict(zip(_ids_in(recorded), _ids_in(asked), strict=True))


def translated(value: JsonValue, partners: dict[str, str]) -> JsonValue:
    """Return the same JSON with ids of the recorded run replaced by their partners."""
    match value:
        case str():
            return _ID.sub(lambda found: partners.get(found.group(), found.group()), value)
        case list():
            return [translated(each, partners) for each in value]
        case dict():
            return {key: translated(each, partners) for key, each in value.items()}
        case _:
            return value


def _ids_in(request: RecordedRequest) -> list[str]:
    text = "\n".join(_lines_of("", codec.json_of(request)))
    return list(dict.fromkeys(found.group() for found in _ID.finditer(text)))


def _familiar(request: RecordedRequest) -> list[str]:
    """The request as lines, with ids and moments named by their place."""
    places: dict[str, int] = {}

    def placed(found: re.Match[str]) -> str:
        return f"<{found['kind']} {places.setdefault(found.group(), len(places) + 1)}>"

    lines = _lines_of("", codec.json_of(request))
    return [_MOMENT.sub("<moment>", _ID.sub(placed, line)) for line in lines]


def _lines_of(path: str, value: JsonValue) -> Iterator[str]:
    """Every leaf with the path to it; a text line by line, so that a difference is easy to see."""
    match value:
        case dict() if value:
            for key in sorted(value):
                yield from _lines_of(f"{path}.{key}" if path else key, value[key])
        case list() if value:
            for at, each in enumerate(value):
                yield from _lines_of(f"{path}[{at}]", each)
        case str():
            for line in value.split("\n"):
                yield f"{path}: {line}"
        case _:
            yield f"{path} = {codec.encode(value).decode()}"
