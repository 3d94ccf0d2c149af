"""Reading JSON that a provider wrote, which may hold anything.

Owns:  decoding, and the small accessors every wire reads an answer with.
Rule 1: whatever is wrong becomes UnreadableResponseError that names the place, never the content.
Rule 2: what was decoded here is exact JSON: no NaN, no lone surrogate, bounded nesting.
Rule 3: tool arguments that are no JSON stay the text they are; the tool layer refuses that text.
"""

from typing import Any, Final

import msgspec

from holon.model.errors import NotJsonError
from holon.model.json_value import JsonValue, require_json
from holon.model.limits import TOOL_ARGUMENTS_BYTES_MAX
from holon.model.provider_errors import UnreadableResponseError

_COUNT_MAX: Final = 2**53  # beyond this not every reader of ours keeps a whole number exact


def decode_json(body: bytes | str, where: str) -> JsonValue:
    """Return the JSON value in `body`, or raise UnreadableResponseError."""
    try:
        value = msgspec.json.decode(body)
        require_json(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError, NotJsonError) as error:
        raise UnreadableResponseError(f"{where} is not JSON ({type(error).__name__})") from None
    return value


def arguments_in(text: str, where: str) -> JsonValue:
    """Return the arguments a model wrote as JSON text; text that is no JSON comes back as it is."""
    if len(text.encode("utf-8", "surrogatepass")) > TOOL_ARGUMENTS_BYTES_MAX:
        raise UnreadableResponseError(
            f"{where} has more than {TOOL_ARGUMENTS_BYTES_MAX} bytes of arguments"
        )
    if not text.strip():
        return {}  # several servers send nothing for a tool that takes nothing
    try:
        return decode_json(text, where)
    except UnreadableResponseError:
        return sound_text(text, where)


def bounded_arguments(value: JsonValue, where: str) -> JsonValue:
    """Return arguments that came as JSON already, or raise when they are too large."""
    if len(msgspec.json.encode(value)) > TOOL_ARGUMENTS_BYTES_MAX:
        raise UnreadableResponseError(
            f"{where} has more than {TOOL_ARGUMENTS_BYTES_MAX} bytes of arguments"
        )
    return value


def sound_text(text: str, where: str) -> str:
    """Return the text, or raise when it holds a lone surrogate."""
    try:
        require_json(text)
    except NotJsonError:
        raise UnreadableResponseError(f"{where} holds text that is not Unicode") from None
    return text


def as_object(value: JsonValue, where: str) -> dict[str, Any]:
    """Return the value as an object."""
    if not isinstance(value, dict):
        raise _unfit(where, "an object", value)
    return value


def as_list(value: JsonValue, where: str) -> list[Any]:
    """Return the value as a list."""
    if not isinstance(value, list):
        raise _unfit(where, "a list", value)
    return value


def text_at(holder: dict[str, Any], key: str, where: str = "the answer") -> str:
    """Return the text under a key that has to be there."""
    value = holder.get(key)
    if not isinstance(value, str):
        raise _unfit(f"`{key}` in {where}", "text", value)
    return value


def optional_text(holder: dict[str, Any], key: str, where: str = "the answer") -> str | None:
    """Return the text under a key, or nothing when it is absent or null."""
    return None if holder.get(key) is None else text_at(holder, key, where)


def name_at(holder: dict[str, Any], key: str, where: str = "the answer") -> str:
    """Return the text under a key that has to be there and must not be empty."""
    value = text_at(holder, key, where)
    if not value:
        raise UnreadableResponseError(f"`{key}` in {where} is empty")
    return value


def count_at(holder: dict[str, Any], key: str, where: str = "the answer") -> int:
    """Return the whole number under a key; absent or null counts as zero."""
    value = holder.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _COUNT_MAX:
        raise _unfit(f"`{key}` in {where}", "a count", value)
    return value


def optional_object(holder: dict[str, Any], key: str, where: str) -> dict[str, Any] | None:
    """Return the object under a key, or nothing when it is absent or null."""
    value = holder.get(key)
    return None if value is None else as_object(value, f"`{key}` in {where}")


def optional_list(holder: dict[str, Any], key: str, where: str) -> list[Any]:
    """Return the list under a key; absent or null counts as empty."""
    value = holder.get(key)
    return [] if value is None else as_list(value, f"`{key}` in {where}")


def _unfit(where: str, wanted: str, value: JsonValue) -> UnreadableResponseError:
    found = "missing or null" if value is None else f"a {type(value).__name__}"
    return UnreadableResponseError(f"{where} should be {wanted} but is {found}")
