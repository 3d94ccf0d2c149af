"""A command's result in a size that its receipt takes whole.

Owns:  how large a result with output in it may get, and showing less output where it is larger.
Rule 1: output is budgeted in bytes, but one byte that is no text takes three in JSON, and a control
        character six. A receipt cuts what is too large without knowing what it holds, and the file
        of output that is shown whole is dropped: so the cut is made here, where both are known.
"""

from typing import Final, Protocol

import msgspec

from holon.model.json_value import JsonValue
from holon.model.limits import KIB, TOOL_RESULT_BYTES_MAX

ROOM_BYTES: Final = TOOL_RESULT_BYTES_MAX - 32 * KIB  # beside the result stand its notes
_JSON_BYTES_PER_BYTE_MAX: Final = 6
_FRAME_BYTES: Final = 16 * KIB  # of a result without its output
_SHOWN_BYTES_MIN: Final = 256


class Showing(Protocol):
    """A result, but for how much of the output it shows."""

    def __call__(self, *, bytes_max: int) -> dict[str, JsonValue]:
        """Return the result with so many bytes of output."""
        ...


def fitting_result(
    shown: Showing, *, bytes_max: int, room_bytes: int = ROOM_BYTES
) -> dict[str, JsonValue]:
    """Return the result that shows as much output as asked for, or as fits into the room."""
    result = shown(bytes_max=bytes_max)
    if _JSON_BYTES_PER_BYTE_MAX * bytes_max + _FRAME_BYTES <= room_bytes:
        return result  # whatever it is, it fits
    while bytes_max > _SHOWN_BYTES_MIN and len(msgspec.json.encode(result)) > room_bytes:
        bytes_max //= 2
        result = shown(bytes_max=bytes_max)
    return result
