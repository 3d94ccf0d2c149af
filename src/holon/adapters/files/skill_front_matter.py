"""The front matter of a SKILL.md.

Owns:  finding it, and reading from it what a catalog shows: the skill's name and description.
Rule 1: other people write these files. What follows the public form loads, with quotes, folded and
        literal blocks, lists, nested metadata, a byte order mark, any line ends; fields that mean
        nothing here are passed over.
Rule 2: it is data. Only plain YAML is read: no tags that make objects, no aliases, bounded in bytes
        and depth.
Rule 3: a colon inside an unquoted description is not YAML, and very common. Where YAML fails, the
        two fields are read line by line.
"""

import re
from collections.abc import Mapping
from typing import Final

from holon.model.errors import BadInputError
from holon.model.limits import (
    SKILL_DESCRIPTION_CHARS_MAX,
    SKILL_HEAD_BYTES_MAX,
    SKILL_HEAD_DEPTH_COUNT_MAX,
    SKILL_NAME_CHARS_MAX,
)
from holon.model.record import Record

_FENCE: Final = re.compile(r"---[ \t]*")
_PLAIN_FIELD: Final = re.compile(r"(name|description):[ \t]+(\S.*)")
_BLOCK_MARKS: Final = ("|", ">", "&", "*", "!", "[", "{", '"', "'")


class BadFrontMatterError(BadInputError):
    """A SKILL.md does not say what skill it is."""

    code = "bad_front_matter"


class FrontMatter(Record, frozen=True, kw_only=True):
    """What a SKILL.md says about itself. Without a name, its folder names it."""

    name: str | None
    description: str
    description_cut: bool = False


def read_front_matter(content: bytes) -> FrontMatter:
    """Return the front matter of a file that begins like this, or raise BadFrontMatterError."""
    fields = _fields(_head(content))
    name = fields.get("name")
    if name is not None and not _is_name(name):
        raise BadFrontMatterError(
            f"its name is not a line of text of at most {SKILL_NAME_CHARS_MAX} characters"
        )
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        raise BadFrontMatterError("its front matter has no description")
    told = " ".join(description.split())
    return FrontMatter(
        name=name.strip() if isinstance(name, str) else None,
        description=told[:SKILL_DESCRIPTION_CHARS_MAX],
        description_cut=len(told) > SKILL_DESCRIPTION_CHARS_MAX,
    )


def _head(content: bytes) -> str:
    """Return the lines between the two fences."""
    cut = content[:SKILL_HEAD_BYTES_MAX]
    # What is cut may end inside a character; whether the rest is UTF-8 is not our business.
    text = cut.decode("utf-8-sig", errors="replace" if len(content) > len(cut) else "strict")
    lines = text.splitlines()
    if not lines or _FENCE.fullmatch(lines[0]) is None:
        raise BadFrontMatterError("it has no front matter: its first line is not ---")
    for place, line in enumerate(lines[1:], start=1):
        if _FENCE.fullmatch(line) is not None:
            return "\n".join(lines[1:place])
    if len(content) > len(cut):
        raise BadFrontMatterError(f"its front matter has more than {SKILL_HEAD_BYTES_MAX} bytes")
    raise BadFrontMatterError("its front matter has no end: there is no second line ---")


def _is_name(name: object) -> bool:
    if not isinstance(name, str):
        return False
    stripped = name.strip()
    return bool(stripped) and stripped.isprintable() and len(stripped) <= SKILL_NAME_CHARS_MAX


def _fields(head: str) -> Mapping[object, object]:
    import yaml  # takes a while, and most prompts find every skill remembered

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _require_plain(head, loader)
        value = yaml.load(head, Loader=loader)  # one of the two safe loaders
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        plain = _line_by_line(head)
        if "description" not in plain:
            raise BadFrontMatterError(f"its front matter is not YAML: {_short(error)}") from error
        return plain
    if not isinstance(value, dict):
        raise BadFrontMatterError("its front matter is not a list of fields")
    return value


def _require_plain(head: str, loader: type) -> None:
    """Refuse what grows when it is read: aliases, and nesting without end."""
    import yaml

    depth = 0
    for event in yaml.parse(head, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise BadFrontMatterError("its front matter uses an alias, which is not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > SKILL_HEAD_DEPTH_COUNT_MAX:
            raise BadFrontMatterError("its front matter is nested too deeply")


def _line_by_line(head: str) -> dict[object, object]:
    found: dict[object, object] = {}
    for line in head.splitlines():
        match = _PLAIN_FIELD.fullmatch(line)
        if match is not None and not match.group(2).startswith(_BLOCK_MARKS):
            found.setdefault(match.group(1), match.group(2).strip())
    return found


def _short(error: Exception) -> str:
    problem = getattr(error, "problem", None)
    return str(problem or type(error).__name__)[:120]
