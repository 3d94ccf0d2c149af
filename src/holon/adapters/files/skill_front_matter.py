"""Read the YAML front matter of a SKILL.md.

Owns:  finding the front matter, and reading the name and description a catalog shows.
Rule 1: the files are written by third parties. What follows the public format loads: quotes, folded
        and literal blocks, lists, nested metadata, a byte order mark, any line ends; unknown fields
        are ignored. Empty lines and HTML comments may precede it, as generators leave them.
Rule 2: the input is bounded in bytes and depth. PyYAML parses it and constructs nothing: no tag
        makes an object, and an alias stands for one text or for nothing, so none expands. A field
        is text however it looks: `2048`, `yes` and `2026-02-31` are not numbers or dates.
Rule 3: where the whole is not YAML, each wanted field is parsed alone. Where that is not YAML
        either (most often a colon in unquoted text), its lines are its text. The same holds where
        YAML parses what was not meant: a first word with `!` or `&` that marks nothing, and a line
        with a colon below the field's name.
Rule 4: a skill needs a description, since agents choose skills by it. An unusable name is reported
        and dropped: then the folder names the skill.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

import yaml

from holon.model.errors import BadInputError
from holon.model.limits import (
    SKILL_DESCRIPTION_CHARS_MAX,
    SKILL_HEAD_BYTES_MAX,
    SKILL_HEAD_DEPTH_COUNT_MAX,
    SKILL_NAME_CHARS_MAX,
)
from holon.model.record import Record

_FIELDS: Final = ("name", "description")
_BEFORE: Final = re.compile(r"(?:\s+|<!--.*?-->)*", re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n?|\n")
_FENCE: Final = re.compile(r"---[ \t]*")
_END: Final = re.compile(r"(?:---|\.\.\.)[ \t]*")
_NO_UTF8: Final = re.compile("[\udc80-\udcff]")  # what such a byte is decoded to
_FIELD: Final = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|)")
_BLOCK_MARK: Final = re.compile(r"[|>][-+0-9]*[ \t]*(?:#.*)?")
_COMMENT: Final = re.compile(r"[ \t]*#.*")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_YAML_TAGS: Final = "tag:yaml.org,2002:"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_FORM: Final = "begin it with a line ---, the lines name: … and description: …, and a line ---"


class BadFrontMatterError(BadInputError):
    """A SKILL.md does not say what skill it is."""

    code = "bad_front_matter"


class BadYamlError(BadInputError):
    """A text is not YAML with named fields."""

    code = "bad_yaml"


class FrontMatter(Record, frozen=True, kw_only=True):
    """The metadata of a SKILL.md, with remarks about it.

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
    description = " ".join(fields.get("description", "").split())
    if not description:
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
    if len(description) > SKILL_DESCRIPTION_CHARS_MAX:
        remarks.append(
            f"only the first {SKILL_DESCRIPTION_CHARS_MAX} characters of its description count"
        )
    return FrontMatter(
        name=name or None,
        description=description[:SKILL_DESCRIPTION_CHARS_MAX],
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


def text_fields(text: str, names: Collection[str]) -> dict[str, str]:
    """Return those of the wanted fields that are a text, or raise BadYamlError if it has none."""
    try:
        return _parsed(text, names)
    except BadYamlError:
        rescued: dict[str, str] = {}
        for name, lines in _pieces(text):
            if name not in names or name in rescued:
                continue
            try:
                value = _parsed("\n".join(lines), names).get(name)
            except BadYamlError:
                value = _as_written(lines)
            if value:
                rescued[name] = value
        if not rescued:
            raise
        return rescued


def _parsed(text: str, names: Collection[str]) -> dict[str, str]:
    nodes: list[yaml.NodeEvent | None] = []  # keys and values in turn
    anchored: dict[str | None, yaml.NodeEvent] = {}
    aliased: set[str | None] = set()
    for depth, event in _nodes(text):
        node: yaml.NodeEvent | None = event
        if isinstance(event, yaml.AliasEvent):
            aliased.add(event.anchor)
            node = anchored.get(event.anchor, event)
            node = None if isinstance(node, yaml.CollectionStartEvent) else node
        elif event.anchor is not None:
            anchored[event.anchor] = event
        if depth == 1:
            nodes.append(node)
    fields: dict[str, str] = {}
    unquoted: dict[str, bool] = {}
    for key, value in zip(nodes[::2], nodes[1::2], strict=True):
        name = _text_of(key)
        if name is not None and name in names:
            unquoted[name] = _is_unquoted(value, aliased)
            if (text_value := _text_of(value)) is not None:
                fields[name] = text_value
    written = {name: _as_written(lines) for name, lines in _pieces(text) if unquoted.get(name)}
    return fields | {name: text_value for name, text_value in written.items() if text_value}


def _nodes(text: str) -> Iterator[tuple[int, yaml.NodeEvent]]:
    """Yield what a document consists of, with its depth; keys stand before their values."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if not isinstance(event, yaml.NodeEvent):
                continue
            if depth == 0 and isinstance(event, yaml.SequenceStartEvent):
                raise BadYamlError("it is a list, not fields")
            if depth == 0 and _text_of(event) is not None:
                raise BadYamlError("it is a text, not fields")
            yield depth, event
            depth += isinstance(event, yaml.CollectionStartEvent)
            if depth > SKILL_HEAD_DEPTH_COUNT_MAX:
                raise BadYamlError("it is nested too deeply")
    except yaml.YAMLError as error:
        raise BadYamlError(_where(error)) from error


def _text_of(node: yaml.NodeEvent | None) -> str | None:
    if not isinstance(node, yaml.ScalarEvent) or (not node.style and node.value in _NULLS):
        return None
    return node.value


def _is_unquoted(node: yaml.NodeEvent | None, aliased: Collection[str | None]) -> bool:
    """Whether a text was meant that YAML takes for more, since it is not in quotes."""
    match node:
        case yaml.ScalarEvent(style=None | "", tag=tag, anchor=anchor):
            is_tagged = tag is not None and not tag.startswith(_YAML_TAGS)
            is_anchored = anchor is not None and anchor not in aliased
            return is_tagged or (is_anchored and _text_of(node) is not None)
        case yaml.CollectionStartEvent(flow_style=flow_style):
            return not flow_style
        case _:
            return isinstance(node, yaml.AliasEvent)  # of an anchor that is not there


def _pieces(text: str) -> list[tuple[str, list[str]]]:
    """Return the fields of a text, each with the lines up to the next one."""
    pieces: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        match = _FIELD.fullmatch(line)
        if match is not None:
            pieces.append((match.group(1), [line]))
        elif pieces:
            pieces[-1][1].append(line)
    return pieces


def _as_written(lines: list[str]) -> str:
    """Return the text of a field that follows no rule, in one line."""
    match = _FIELD.fullmatch(lines[0])
    first = "" if match is None else (match.group(2) or "").strip()
    if _BLOCK_MARK.fullmatch(first) is not None:
        first = ""
    rest = [each.strip() for each in lines[1:] if _COMMENT.fullmatch(each) is None]
    joined = " ".join(each for each in (first, *rest) if each)
    for quote in ('"', "'"):
        if len(joined) > 1 and joined.startswith(quote) and joined.endswith(quote):
            return joined[1:-1].replace("\\" + quote, quote)
    return joined


def _where(error: yaml.YAMLError) -> str:
    """Return what the parser met and in which line of the text, counted from 1."""
    problem = str(getattr(error, "problem", None) or type(error).__name__)[:120]
    mark = getattr(error, "problem_mark", None)
    line = getattr(mark, "line", None)
    return problem if line is None else f"{problem}, in its line {line + 1}"
