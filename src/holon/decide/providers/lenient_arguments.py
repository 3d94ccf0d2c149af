"""Lenient tool arguments: coercion of arguments that nearly fit the schema.

Owns:  coercing a call's arguments towards the tool's schema before they are decoded strictly, and a
       note on every coercion, so that the model learns the exact form.
Rule 1: only what does not fit is changed. A value the schema takes stays as it is, so no valid
        input ever becomes another one.
Rule 2: one pass is enough: a coerced value fits, and coercing it again changes nothing.
Rule 3: a value with one plain reading is read that way; everything else is left for the strict
        decoder to refuse. Nothing is guessed.
Rule 4: notes are few and short, whatever the input.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from holon.decide.providers.schemas import accepts, branches_of, is_of_kind, kinds_of
from holon.model.errors import NotJsonError
from holon.model.limits import ARGUMENT_NOTES_COUNT_MAX, JSON_DEPTH_MAX
from holon.model.record import Record
from holon.model.text_size import cut
from holon.model.values import JsonValue, require_json

# What a model calls a field, and what the field is called: the first pair that fits counts.
Aliases: TypeAlias = tuple[tuple[str, str], ...]

_ENVELOPES: Final = ("arguments", "input", "parameters", "args")
_QUOTED_CHARS_MAX: Final = 40
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.0{1,18})?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?")


class Coerced(Record, frozen=True, kw_only=True):
    """Coerced arguments, and notes on what was read differently."""

    value: JsonValue
    notes: tuple[str, ...] = ()


def coerce_arguments(
    value: JsonValue, schema: JsonValue, *, aliases: Aliases = (), drops_unknown: bool = True
) -> Coerced:
    """Bend arguments towards their schema, as far as their meaning is plain."""
    bending = _Coercion(aliases, drops_unknown=drops_unknown)
    meant = bending.root(value, schema)
    return Coerced(value=meant, notes=_bounded(bending.notes))


class _Coercion:
    """One pass over one call's arguments, and the notes it leaves."""

    def __init__(self, aliases: Aliases, *, drops_unknown: bool) -> None:
        self._aliases = aliases
        self._drops_unknown = drops_unknown
        self.notes: list[str] = []

    def root(self, value: JsonValue, schema: JsonValue) -> JsonValue:
        """The arguments as a whole: out of their wrappings, then field by field."""
        if not isinstance(schema, dict):
            return value
        for _ in range(JSON_DEPTH_MAX):
            inner = self._unwrapped(value, schema)
            if inner is None:
                break
            value = inner
        return self.within(value, schema, "")

    def _unwrapped(self, value: JsonValue, schema: Mapping[str, JsonValue]) -> JsonValue:
        """The value with one wrapping less, or None when it has none."""
        match value:
            case None | "" if not schema.get("required"):
                self.notes.append("no arguments were given; they were read as {}")
                return {}
            case str():
                inner = _decoded(value)
                if isinstance(inner, dict | str):
                    self.notes.append("the arguments came as JSON inside a text; send the object")
                    return inner
                return None
            case dict():
                return self._out_of_envelope(value, schema)
            case _:
                return None

    def _out_of_envelope(
        self, value: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]
    ) -> JsonValue:
        fields = schema.get("properties", {})
        for name in _ENVELOPES:
            inner = value.get(name)
            beside = (self._name_of(other, fields) for other in value if other != name)
            if inner is None or name in fields or any(each is not None for each in beside):
                continue
            inner = _decoded(inner) if isinstance(inner, str) else inner
            if isinstance(inner, dict):
                self.notes.append(f"the arguments were wrapped in {name!r}; send its fields alone")
                return inner
        return None

    def value(self, value: JsonValue, schema: JsonValue, place: str) -> JsonValue:
        """One value at one place."""
        branches = branches_of(schema)
        fitting = [branch for branch in branches if accepts(value, branch)]
        if fitting:
            return self.within(value, fitting[0], place) if len(fitting) == 1 else value
        for branch in branches:
            coerced = self._coerced(value, branch, place)
            if coerced is not None:
                return coerced.value
        return value

    def within(self, value: JsonValue, schema: JsonValue, place: str) -> JsonValue:
        """What is inside a value of the right kind."""
        match value:
            case dict() if isinstance(schema.get("properties"), dict):
                return self._fields(value, schema, place)
            case list() if "items" in schema:
                items = schema["items"]
                return [self.value(each, items, f"{place}[{i}]") for i, each in enumerate(value)]
            case _:
                return value

    def _fields(
        self, value: Mapping[str, JsonValue], schema: Mapping[str, JsonValue], place: str
    ) -> JsonValue:
        fields = schema["properties"]
        drops = self._drops_unknown and schema.get("additionalProperties") is False
        kept: dict[str, JsonValue] = {}
        for name, part in value.items():
            known = self._name_of(name, fields)
            taken = known is not None and known != name and (known in value or known in kept)
            if known is None or taken:
                if drops:
                    self.notes.append(f"there is no field {_quoted(_at(place, name))}; ignored")
                else:
                    kept[name] = part
                continue
            if known != name:
                self.notes.append(f"{_quoted(name)} was read as {known!r}")
            kept[known] = self.value(part, fields[known], _at(place, known))
        return kept

    def _name_of(self, name: str, fields: Mapping[str, JsonValue]) -> str | None:
        """The field a name stands for: itself, an alias, or another spelling of the same name."""
        if name in fields:
            return name
        for alias, meant in self._aliases:
            if alias == name and meant in fields:
                return meant
        return _same_name(name, fields)

    def _coerced(self, value: JsonValue, schema: JsonValue, place: str) -> "_CoercedValue | None":
        if isinstance(value, str):
            bent = _read_text(value, schema)
            if bent is not None:
                self.notes.append(f"{place}: the text {_quoted(value)} was read as {bent.form}")
                return _CoercedValue(value=self.within(bent.value, schema, place), form=bent.form)
        if isinstance(value, float) and value.is_integer() and is_of_kind(schema, "integer"):
            self.notes.append(f"{place}: {value} was read as a whole number")
            return _CoercedValue(value=int(value), form="a whole number")
        if is_of_kind(schema, "array") and value is not None and not isinstance(value, list):
            return self._alone(value, schema, place)
        return None

    def _alone(
        self, value: JsonValue, schema: Mapping[str, JsonValue], place: str
    ) -> "_CoercedValue | None":
        """A single value where a list of such values is wanted."""
        trial = _Coercion(self._aliases, drops_unknown=self._drops_unknown)
        items = schema.get("items")
        each = trial.value(value, items, f"{place}[0]")
        if not any(accepts(each, branch) for branch in branches_of(items)):
            return None
        self.notes.extend((f"{place}: one value was read as a list of one", *trial.notes))
        return _CoercedValue(value=[each], form="a list of one")


class _CoercedValue(Record, frozen=True, kw_only=True):
    """A value in its right form, and what to call that form."""

    value: JsonValue
    form: str


def _read_text(text: str, schema: JsonValue) -> _CoercedValue | None:
    """Read a text as the type the schema requires. The first fitting reading wins."""
    if isinstance(values := schema.get("enum"), list):
        same = _same_name(text, [each for each in values if isinstance(each, str)])
        return None if same is None else _CoercedValue(value=same, form=repr(same))
    trimmed, kinds = text.strip(), kinds_of(schema)
    if "integer" in kinds and _WHOLE_NUMBER.fullmatch(trimmed):
        return _CoercedValue(value=int(trimmed.partition(".")[0]), form="a number")
    if "number" in kinds and _NUMBER.fullmatch(trimmed):
        return _CoercedValue(value=float(trimmed), form="a number")
    if "boolean" in kinds and trimmed.lower() in ("true", "false"):
        return _CoercedValue(value=trimmed.lower() == "true", form="a boolean")
    if "null" in kinds and trimmed.lower() in ("null", "none", ""):
        return _CoercedValue(value=None, form="null")
    return _read_structure(text, schema)


def _read_structure(text: str, schema: Mapping[str, JsonValue]) -> _CoercedValue | None:
    decoded = _decoded(text)
    if is_of_kind(schema, "array") and isinstance(decoded, list):
        return _CoercedValue(value=decoded, form="a list")
    if is_of_kind(schema, "object"):
        if isinstance(decoded, dict):
            return _CoercedValue(value=decoded, form="an object")
        needed, fields = schema.get("required", []), schema.get("properties", {})
        if len(needed) == 1 and accepts(text, fields[needed[0]]) and text.strip():
            return _CoercedValue(
                value={needed[0]: text}, form=f"an object with {needed[0]!r} alone"
            )
    return None


def _decoded(text: str) -> JsonValue:
    """The JSON in a text, or nothing when it holds none."""
    try:
        decoded = msgspec.json.decode(text)
        require_json(decoded)
    except (msgspec.DecodeError, NotJsonError, RecursionError, UnicodeEncodeError):
        return None
    return decoded


def _same_name(name: str, known: Iterable[str]) -> str | None:
    """The one known name that differs only in case and punctuation."""
    same = [each for each in known if _squashed(each) == _squashed(name)]
    return same[0] if len(same) == 1 else None


def _squashed(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _quoted(text: str) -> str:
    return repr(cut(text, chars_max=_QUOTED_CHARS_MAX))


def _bounded(notes: list[str]) -> tuple[str, ...]:
    if len(notes) <= ARGUMENT_NOTES_COUNT_MAX:
        return tuple(notes)
    kept = notes[: ARGUMENT_NOTES_COUNT_MAX - 1]
    return (*kept, f"and {len(notes) - len(kept)} more of this kind")
