"""SQL text by name, from the .sql files beside this module.

Owns:  the form of those files: a line `-- name --` opens a block, the text up to the next such line
       is the statement, and comment lines inside it are for people.
Rule 1: a file is read once; statements keep one constant text, so prepared ones are found again.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

_NAME_LINE: Final = re.compile(r"^-- ([a-z][a-z0-9_]*) --$", re.MULTILINE)


@cache
def named_queries(family: str) -> Mapping[str, str]:
    """Return the statements of queries/<family>.sql by their names."""
    source = Path(__file__).parent / "queries" / f"{family}.sql"
    return split_queries(source.read_text(encoding="utf-8"), family=family)


def split_queries(text: str, *, family: str) -> Mapping[str, str]:
    """Return the named blocks of one file; a name given twice is a mistake in the file."""
    _, *parts = _NAME_LINE.split(text)
    found: dict[str, str] = {}
    for name, block in zip(parts[::2], parts[1::2], strict=True):
        if name in found:
            raise ValueError(f"{family}.sql names {name} twice")
        lines = [line for line in block.splitlines() if not line.lstrip().startswith("--")]
        found[name] = "\n".join(lines).strip().removesuffix(";")
    return MappingProxyType(found)
