"""Text fields out of YAML that people wrote by hand.

Owns:  the text of a few named fields at the top level, from YAML and from what was meant as YAML.
Rule 1: it is data. Nothing is built from it: what is read are the parser's events, so a tag makes
        no object. An alias stands for a single text or for nothing, so none makes anything grow.
        Bytes are the caller's to bound; depth is bounded here.
Rule 2: a field is text however it looks: `2048`, `yes` and `2026-02-31` are not numbers or dates.
Rule 3: where the whole is not YAML, each wanted field is read by itself: a slip in another field
        does no harm. Where a field is not YAML either (a colon, a bracket or quotes inside a text
        nobody quoted are very common), its lines are its text.
Rule 4: what YAML would understand and nobody meant is text as well: a first word with `!` or `&`
        that marks nothing, and a line with a colon below the field's name.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from holon.model.errors import BadInputError
from holon.model.limits import SKILL_HEAD_DEPTH_COUNT_MAX

_FIELD: Final = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|)")
_BLOCK_MARK: Final = re.compile(r"[|>][-+0-9]*[ \t]*(?:#.*)?")
_COMMENT: Final = re.compile(r"[ \t]*#.*")
_YAML_TAGS: Final = "tag:yaml.org,2002:"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


class BadYamlError(BadInputError):
    """A text is not YAML with named fields."""

    code = "bad_yaml"


def text_fields(text: str, wanted: Collection[str]) -> Mapping[str, str]:
    """Return those of the wanted fields that are a text, or raise BadYamlError if it has none."""
    try:
        return _parsed(text, wanted)
    except BadYamlError:
        rescued = _one_by_one(text, wanted)
        if not rescued:
            raise
        return rescued


def _parsed(text: str, wanted: Collection[str]) -> dict[str, str]:
    import yaml  # takes a while, and most prompts find every skill remembered

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # only its parser is used
    walk = _Walk(wanted)
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                walk.forget(event.anchor)
                walk.enter(
                    is_mapping=isinstance(event, yaml.MappingStartEvent),
                    is_block=not event.flow_style,
                )
            elif isinstance(event, yaml.CollectionEndEvent):
                walk.leave()
            elif isinstance(event, yaml.ScalarEvent):
                is_null = not event.style and event.value in _NULLS
                told = None if is_null else event.value
                is_own_tag = event.tag is not None and not event.tag.startswith(_YAML_TAGS)
                walk.mark(event.anchor, told)
                walk.value(
                    told,
                    anchor=None if event.style else event.anchor,
                    is_prose=is_own_tag and not event.style,
                )
            elif isinstance(event, yaml.AliasEvent):
                walk.alias(event.anchor or "")
    except yaml.YAMLError as error:
        raise BadYamlError(_where(error)) from error
    return walk.found | _written(text, walk.prose)


def _written(text: str, names: Collection[str]) -> dict[str, str]:
    """Return the lines of some fields as their texts; of a name that is there twice the last."""
    if not names:
        return {}
    told = {name: _as_written(lines) for name, lines in _pieces(text) if name in names}
    return {name: each for name, each in told.items() if each}


class _Walk:
    """Where in a document the parser is: only what stands at its top level counts."""

    def __init__(self, wanted: Collection[str]) -> None:
        self.found: dict[str, str] = {}
        self._wanted = wanted
        self._depth = 0
        self._is_key = True
        self._key: str | None = None
        self._prose: set[str] = set()
        self._marked: dict[str, str | None] = {}  # what an alias may stand for
        self._anchors: dict[str, str] = {}  # of wanted fields
        self._aliased: set[str] = set()

    @property
    def prose(self) -> frozenset[str]:
        """The wanted fields whose lines are their texts, once all was read."""
        pointless = {key for key, each in self._anchors.items() if each not in self._aliased}
        return frozenset(self._prose | pointless)

    def enter(self, *, is_mapping: bool, is_block: bool) -> None:
        if self._depth == 0 and not is_mapping:
            raise BadYamlError("it is a list, not fields")
        if self._depth == 1:
            self._turn(None, is_prose=is_block)
        self._depth += 1
        if self._depth > SKILL_HEAD_DEPTH_COUNT_MAX:
            raise BadYamlError("it is nested too deeply")

    def leave(self) -> None:
        self._depth -= 1

    def value(self, text: str | None, *, anchor: str | None, is_prose: bool) -> None:
        if self._depth == 0 and text is not None:
            raise BadYamlError("it is a text, not fields")
        if self._depth == 1:
            self._turn(text, anchor=anchor, is_prose=is_prose)

    def mark(self, anchor: str | None, text: str | None) -> None:
        if anchor is not None:
            self._marked[anchor] = text

    def forget(self, anchor: str | None) -> None:
        self.mark(anchor, None)

    def alias(self, anchor: str) -> None:
        self._aliased.add(anchor)
        if self._depth == 1:
            self._turn(self._marked.get(anchor), is_prose=anchor not in self._marked)

    def _turn(self, text: str | None, *, anchor: str | None = None, is_prose: bool = False) -> None:
        key, is_key, self._is_key = self._key, self._is_key, not self._is_key
        if is_key:
            self._key = text
        elif key is not None and key in self._wanted:
            self._prose.discard(key)
            self._anchors.pop(key, None)
            if is_prose:
                self._prose.add(key)
            if text is not None:
                self.found[key] = text
                if anchor is not None:
                    self._anchors[key] = anchor


def _one_by_one(text: str, wanted: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, lines in _pieces(text):
        if name not in wanted or name in found:
            continue
        try:
            value = _parsed("\n".join(lines), wanted).get(name)
        except BadYamlError:
            value = _as_written(lines)
        if value:
            found[name] = value
    return found


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
    told = " ".join(each for each in (first, *rest) if each)
    for quote in ('"', "'"):
        if len(told) > 1 and told.startswith(quote) and told.endswith(quote):
            return told[1:-1].replace("\\" + quote, quote)
    return told


def _where(error: Exception) -> str:
    """Return what the parser met and in which line of the text, counted from 1."""
    problem = str(getattr(error, "problem", None) or type(error).__name__)[:120]
    mark = getattr(error, "problem_mark", None)
    line = getattr(mark, "line", None)
    return problem if line is None else f"{problem}, in its line {line + 1}"
