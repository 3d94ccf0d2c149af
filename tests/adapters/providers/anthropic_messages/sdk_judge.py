"""The official package as a judge of our requests: does its type of a request take this body?"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from anthropic.types import message_create_params as plain_params
from anthropic.types.beta import message_create_params as beta_params
from pydantic import TypeAdapter


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def judge(body: Any) -> None:
    """Raise unless the body is one the package could have sent."""
    params: Any = beta_params if "context_management" in body else plain_params
    kind = params.MessageCreateParamsNonStreaming
    if body.get("stream", False):
        kind = params.MessageCreateParamsStreaming
    # A key that the package does not know is dropped in validation, at any depth.
    assert _read(_adapter(kind).validate_python(body)) == body


def _read(lazy: Any) -> Any:
    """Return a validated value in full: an iterable is validated only as it is read."""
    if isinstance(lazy, str):
        return lazy
    if isinstance(lazy, Mapping):
        return {key: _read(value) for key, value in lazy.items()}
    return [_read(value) for value in lazy] if isinstance(lazy, Iterable) else lazy
