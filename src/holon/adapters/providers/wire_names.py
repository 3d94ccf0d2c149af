"""Names a model or another provider made up, as every wire takes them.

Owns:  what stands for a name that holds characters a wire refuses, or too many of them.
Rule 1: a name that is fine stays as it is; any other has one stand-in, and no two share it.
"""

import hashlib
import re
from typing import Final

_REFUSED_CHARACTER: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS_MAX: Final = 64


def plain_name(name: str) -> str:
    """Return a name that every wire takes."""
    if name and len(name) <= _NAME_CHARS_MAX and not _REFUSED_CHARACTER.search(name):
        return name
    told_apart = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{_REFUSED_CHARACTER.sub('_', name)[:48]}_{told_apart}"
