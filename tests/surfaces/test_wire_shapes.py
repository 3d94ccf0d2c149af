"""The names on the wire are a promise: a change to one is a diff somebody reads.

`event_shapes.snap` lists every event kind with its fields, `record_shapes.snap` every other record.
After a change that is meant, write them anew and commit the difference:

    HOLON_REFRESH_SNAPSHOTS=1 .venv/bin/python -m pytest tests/surfaces
"""

import os
from pathlib import Path
from typing import get_args

import pytest
from msgspec import inspect

from holon.model.event import Event
from holon.model.record import Record
from tests.wire.record_strategies import model_records

HERE = Path(__file__).resolve().parent
EVENTS: tuple[type[Record], ...] = get_args(Event)
OTHERS = tuple(record for record in model_records() if record not in EVENTS)


def shape_of(record: type[Record]) -> str:
    """Return one block of text: the record's tag, then its fields with type and optionality."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    tagged = "" if info.tag is None else f" {info.tag_field}={info.tag}"
    fields = [
        f"    {field.encode_name}{'' if field.required else '?'}: {_words(field.type)}"
        for field in info.fields
    ]
    return "\n".join([f"{record.__qualname__}{tagged}", *fields])


def _words(info: inspect.Type) -> str:
    match info:
        case inspect.StructType(cls=cls):
            return cls.__qualname__
        case inspect.EnumType(cls=enum):
            return "(" + " | ".join(str(member.value) for member in enum) + ")"
        case inspect.UnionType(types=types):
            return " | ".join(_words(part) for part in types)
        case inspect.VarTupleType(item_type=item):
            return f"[{_words(item)}]"
        case inspect.DictType(value_type=value):
            return f"{{{_words(value)}}}"
        case _:
            return type(info).__name__.removesuffix("Type").lower()


@pytest.mark.requirement("wire:names-are-reviewed")
@pytest.mark.parametrize(
    ("name", "records"), [("event_shapes.snap", EVENTS), ("record_shapes.snap", OTHERS)]
)
def test_wire_shapes_are_the_reviewed_ones(name: str, records: tuple[type[Record], ...]) -> None:
    found = "\n\n".join(sorted(shape_of(record) for record in records)) + "\n"
    path = HERE / name
    if os.environ.get("HOLON_REFRESH_SNAPSHOTS"):
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8"), f"{name} differs: see this file's docstring"


@pytest.mark.requirement("audit:event-kinds-are-stable-names")
def test_every_event_kind_is_named_once_in_snake_case() -> None:
    kinds = [str(event.__struct_config__.tag) for event in EVENTS]
    assert len(set(kinds)) == len(kinds)
    assert all(kind.replace("_", "").isalpha() and kind == kind.lower() for kind in kinds)
