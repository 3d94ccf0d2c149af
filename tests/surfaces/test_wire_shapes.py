"""The names on the wire are a promise: a change to one is a diff somebody reads.

`event_shapes.snap` lists every event kind with its fields, `record_shapes.snap` every other record.
After a change that is meant, write them anew and commit the difference:

    HOLON_REFRESH_SNAPSHOTS=1 .venv/bin/python -m pytest tests/surfaces
"""

import os
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec import inspect

from holon.http.table import ROUTES
from holon.model.events.event import Event
from holon.model.providers.attempts import AttemptTimeline, ProviderAttempt, TransportDiagnostics
from holon.model.providers.prompt_frame import PromptCache
from holon.model.record import Record
from holon.model.turns.tools import ToolError
from holon.model.turns.turn import LivenessOnly, Reentry
from holon.projections.agents.summary import (
    AgentStateView,
    AgentSummary,
    ClosureView,
    ContinuationView,
)
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


def answered() -> set[type[msgspec.Struct]]:
    """Return every record that is part of an answer of the control plane."""
    found: set[type[msgspec.Struct]] = set()
    ahead = [inspect.type_info(route.returns) for route in ROUTES if route.returns is not None]
    while ahead:
        match ahead.pop():
            case inspect.StructType(cls=cls, fields=fields) if cls not in found:
                found.add(cls)
                ahead += [field.type for field in fields]
            case inspect.UnionType(types=types):
                ahead += types
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                ahead.append(item)
            case inspect.DictType(value_type=value):
                ahead.append(value)
            case _:
                continue
    return found


@pytest.mark.requirement("http:flags-are-there-when-false")
def test_no_answer_leaves_out_a_flag_because_it_is_false() -> None:
    left_out = {
        f"{record.__qualname__}.{field.name}"
        for record in answered()
        if record.__struct_config__.omit_defaults
        for field in msgspec.structs.fields(record)
        if field.default is False
    }
    assert left_out == set()
    assert msgspec.json.encode(TransportDiagnostics()) == b'{"stage":"complete"}'
    assert b'"retryable":false' in msgspec.json.encode(ToolError(kind="k", message="m"))


REQUIRED = (
    (ProviderAttempt, "advanced_to_fallback"),
    (AttemptTimeline, "attempts"),
    (AttemptTimeline, "requested_model_ref"),
    (TransportDiagnostics, "stage"),
    (Reentry, "matched_waiting_reason"),
    (Reentry, "evidence"),
    (LivenessOnly, "evidence"),
    (ContinuationView, "evidence"),
    (ClosureView, "evidence"),
    (PromptCache, "working_memory_revision"),
    (PromptCache, "compression_epoch"),
    (AgentStateView, "tool_latency"),
    (AgentStateView, "attached_workspaces"),
    (AgentStateView, "working_memory"),
    (AgentSummary, "loaded_agents_md"),
    (AgentSummary, "attached_workspaces"),
)


@pytest.mark.requirement("http:required-fields-are-there-when-empty")
@pytest.mark.parametrize(("record", "name"), REQUIRED)
def test_what_the_specification_requires_is_there_also_when_it_is_empty(
    record: type[Record], name: str
) -> None:
    (field,) = [each for each in msgspec.structs.fields(record) if each.name == name]
    assert field.default is msgspec.NODEFAULT, "a plain default is left out of an answer"
