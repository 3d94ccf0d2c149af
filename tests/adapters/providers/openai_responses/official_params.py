"""The official package's parameter types as the judge of our request bodies.

Owns:  validation that reaches into what the package's types leave to be read lazily.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from openai.types.responses import ResponseCreateParams
from pydantic import TypeAdapter

_PARAMS: Final[TypeAdapter[Any]] = TypeAdapter(ResponseCreateParams)


def judged(body: Mapping[str, Any]) -> Any:
    """Return the body as the package's types read it: a field they do not know is missing in it.

    Raises pydantic's ValidationError for a body the types refuse.
    """
    return _read(_PARAMS.validate_python(body, strict=True))


def _read(value: Any) -> Any:
    """Lists typed as iterables are checked only once they are read, so read everything."""
    if isinstance(value, Mapping):
        return {key: _read(inner) for key, inner in value.items()}
    if isinstance(value, list | Iterator):
        return [_read(inner) for inner in value]
    return value
