"""The front matter of a SKILL.md.

Owns:  finding it, and reading from it what a catalog shows: the skill's name and description.
Rule 1: other people write these files. What follows the public form loads, with quotes, folded and
        literal blocks, lists, nested metadata, a byte order mark, any line ends; fields that mean
        nothing here are passed over. Empty lines and HTML comments may stand before it, as
        generators leave them.
Rule 2: it is data, bounded in bytes and depth, and nothing is built from it (yaml_fields).
Rule 3: a skill needs a description, for nobody could choose it without one. A name that cannot be
        used is told and left out: then its folder names it.
"""

import re
from typing import Final

from holon.adapters.files.yaml_fields import BadYamlError, text_fields
from holon.model.errors import BadInputError
from holon.model.limits import (
    SKILL_DESCRIPTION_CHARS_MAX,
    SKILL_HEAD_BYTES_MAX,
    SKILL_NAME_CHARS_MAX,
)
from holon.model.record import Record

_FIELDS: Final = ("name", "description")
_BEFORE: Final = re.compile(r"(?:\s+|<!--.*?-->)*", re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n?|\n")
_FENCE: Final = re.compile(r"---[ \t]*")
_END: Final = re.compile(r"(?:---|\.\.\.)[ \t]*")
_NO_UTF8: Final = re.compile("[\udc80-\udcff]")  # what such a byte is decoded to
_FORM: Final = "begin it with a line ---, the lines name: … and description: …, and a line ---"


class BadFrontMatterError(BadInputError):
    """A SKILL.md does not say what skill it is."""

    code = "bad_front_matter"


class FrontMatter(Record, frozen=True, kw_only=True):
    """What a SKILL.md says about itself, and what is to be told of it.

    Without a name, its folder names it.
    """

    name: str | None
    description: str
    remarks: tuple[str, ...] = ()


def read_front_matter(content: bytes) -> FrontMatter:
    """Return the front matter of a file that begins like this, or raise BadFrontMatterError."""
    head = _head(content)
    try:
        fields = text_fields(head, _FIELDS)
    except BadYamlError as error:
        raise BadFrontMatterError(
            f"its front matter is not YAML fields: {error.message}; "
            "write each as `name: text`, with the text in quotes where it has a colon"
        ) from error
    told = " ".join(fields.get("description", "").split())
    if not told:
        raise BadFrontMatterError(
            "its front matter has no description; add a line description: and say what the skill"
            " does and when to use it"
        )
    name = fields.get("name", "").strip()
    remarks = []
    if not name:
        remarks.append("it has no name; add a line name: with the name of its folder")
    elif not _is_name(name):
        remarks.append(
            f"its name is not a line of at most {SKILL_NAME_CHARS_MAX} characters; shorten it"
        )
        name = ""
    if len(told) > SKILL_DESCRIPTION_CHARS_MAX:
        remarks.append(
            f"only the first {SKILL_DESCRIPTION_CHARS_MAX} characters of its description count"
        )
    return FrontMatter(
        name=name or None,
        description=told[:SKILL_DESCRIPTION_CHARS_MAX],
        remarks=tuple(remarks),
    )


def _head(content: bytes) -> str:
    """Return the lines between the two fences."""
    cut = content[:SKILL_HEAD_BYTES_MAX]
    # What is cut may end inside a character, and whether the body is UTF-8 is not our business:
    # a byte that is none is carried along, and only one in the front matter is held against it.
    text = cut.decode("utf-8-sig", errors="surrogateescape")
    before = _BEFORE.match(text)
    lines = _LINE_END.split(text[before.end() if before is not None else 0 :])
    if _FENCE.fullmatch(lines[0]) is None:
        _require_utf8(lines[0])
        raise BadFrontMatterError(f"it has no front matter: its first line is not ---; {_FORM}")
    for place, line in enumerate(lines[1:], start=1):
        if _END.fullmatch(line) is not None:
            head = "\n".join(lines[1:place])
            _require_utf8(head)
            return head
    if len(content) > len(cut):
        raise BadFrontMatterError(
            f"its front matter has more than {SKILL_HEAD_BYTES_MAX} bytes; end it with a line ---"
        )
    raise BadFrontMatterError(
        "its front matter has no end: there is no second line ---; add one after its last field"
    )


def _require_utf8(text: str) -> None:
    if _NO_UTF8.search(text) is not None:
        raise BadFrontMatterError("it is not UTF-8 text; save it as UTF-8")


def _is_name(name: str) -> bool:
    return name.isprintable() and len(name) <= SKILL_NAME_CHARS_MAX
