"""Tool arguments: tolerant decoding into strict structs, and the schema shown to the model.

Owns:  decoding a call's input into its argument struct, deriving the JSON schema from it, and
       loading the descriptions in tools/guidance/*.md, which never live in Python strings.
Rule 1: `leniently` wraps a tool's `run`: near misses are adjusted to the schema, and the result has
        a note on each adjustment. Behind it everything is strict.
Rule 2: unknown fields, wrong types and missing fields are refused with the field's name, the
        expected form, and what to do.
Rule 3: null in an optional field means that it was omitted: under a strict schema a model has no
        other way to say so.
"""

import pkgutil
import re
from collections.abc import Callable, Coroutine, Mapping
from functools import cache, wraps
from typing import Final, Protocol, TypeVar, cast

import msgspec

from holon.decide.providers.schemas import arguments_from_strict
from holon.model.text_size import cut
from holon.model.turns.tools import ToolOk, ToolRefused, ToolSpec
from holon.model.values import JsonValue
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse

Arguments = TypeVar("Arguments", bound=msgspec.Struct)
_FIELD_CHARS_MAX: Final = 120
_PLACE: Final = re.compile(r" - at `\$\.?(?P<place>[^`]*)`$")
_FIELD: Final = re.compile(r"(?:missing required|contains unknown) field `(?P<field>[^`]*)`")
Run = TypeVar("Run", bound=Callable[..., Coroutine[None, None, ToolExecution]])


def guidance_for(name: str) -> str:
    """Return the description of one tool."""
    return guidance_file(f"{name}.md")


def guidance_file(name: str) -> str:
    """Return one file of the guidance folder."""
    text = pkgutil.get_data("holon.tools", f"guidance/{name}")
    assert text is not None, "the guidance is part of the package"
    return text.decode("utf-8").strip()


class Offered(Protocol):
    """What `leniently` needs of a tool."""

    @property
    def spec(self) -> ToolSpec:
        """How the tool is offered to a model."""
        ...


def leniently(*aliases: tuple[str, str], drops_unknown: bool = True) -> Callable[[Run], Run]:
    """Wrap a tool's `run`: adjust its arguments to the schema, and note each adjustment.

    `aliases` pairs alternative names with field names. A tool whose result the model does not
    read at once sets `drops_unknown=False` and so refuses unknown fields: a note would be late.
    """

    def before(run: Run) -> Run:
        @wraps(run)
        async def lenient(
            self: Offered, arguments: JsonValue, scene: ToolScene, ports: ToolPorts
        ) -> ToolExecution:
            # A local import: all tools are built at every start, and few are called.
            from holon.decide.providers.lenient_arguments import coerce_arguments

            coerced = coerce_arguments(
                arguments, self.spec.input_schema, aliases=aliases, drops_unknown=drops_unknown
            )
            return _noted(await run(self, coerced.value, scene, ports), coerced.notes)

        return cast("Run", lenient)

    return before


def _noted(execution: ToolExecution, notes: tuple[str, ...]) -> ToolExecution:
    if not notes:
        return execution
    match execution.outcome:
        case ToolOk() as done:
            done = msgspec.structs.replace(done, notes=(*notes, *done.notes))
            return msgspec.structs.replace(execution, outcome=done)
        case ToolRefused(error=error) as refused:
            if error.details is None:
                error = msgspec.structs.replace(error, details={"notes": list(notes)})
            return msgspec.structs.replace(
                execution, outcome=msgspec.structs.replace(refused, error=error)
            )


def decode_arguments(value: JsonValue, into: type[Arguments]) -> Arguments | ToolExecution:
    """Return the decoded arguments, or a refusal that explains what is wrong with them."""
    schema = schema_of(into)
    try:
        return msgspec.convert(arguments_from_strict(value, schema), into)
    except msgspec.ValidationError as problem:
        text = str(problem)
        field = _field_of(text)
        hint = _hint(schema, field)
        return refuse("invalid_tool_input", text, hint=hint, field=field and _shown(field))


def _field_of(text: str) -> str | None:
    """The field a validation error is about: its path, and the field it names there."""
    located, named = _PLACE.search(text), _FIELD.search(text)
    place = located["place"] if located else ""
    field = named["field"] if named else ""
    return ".".join(part for part in (place, field) if part) or None


def _hint(schema: JsonValue, field: str | None) -> str:
    from holon.decide.providers.schemas import expected_form, schema_at

    wanted = schema if field is None else schema_at(schema, field)
    what = "the arguments are" if field is None else f"{_shown(field)} is"
    if field is not None and wanted is None:  # unknown: list the known fields
        return f"leave {_shown(field)} out; the arguments are {expected_form(schema)}"
    return f"call the tool again; {what} {expected_form(wanted)}"


def _shown(field: str) -> str:
    """Shorten a field name for an error: the model chose it, and it may be long."""
    return cut(field, chars_max=_FIELD_CHARS_MAX)


@cache
def schema_of(arguments: type[msgspec.Struct]) -> JsonValue:
    """Return the JSON schema of an argument struct, without references."""
    (schema,), components = msgspec.json.schema_components([arguments])
    return _inlined(schema, components)


def _inlined(schema: JsonValue, components: Mapping[str, JsonValue]) -> JsonValue:
    """Replace every reference by its component; argument structs are not recursive."""
    match schema:
        case {"$ref": str() as path, **beside}:
            target = components[path.rsplit("/", 1)[-1]]
            return {**_inlined(target, components), **_inlined(beside, components)}
        case dict():
            return {name: _inlined(part, components) for name, part in schema.items()}
        case list():
            return [_inlined(part, components) for part in schema]
        case _:
            return schema
