"""What the reference says of a tool's result is what the tool answers: no more and no less."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from holon.model.values import JsonValue
from holon.tools.registry import local_registry
from scripts.reference.tool_page import ResultField, read_results
from tests.surfaces.tool_stories import Told, told_results

NAMES: Final = [spec.name for spec in local_registry().specs]
PLAIN: Final = {"text": str, "number": int, "decimal": float, "truth": bool, "record": dict}
SHAPES: Final = read_results().shapes


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """Every answer of every tool."""
    folder: Path = tmp_path_factory.mktemp("root")
    return list(told_results(folder))


def faults(value: JsonValue, wanted: str, place: str) -> Iterator[str]:
    """Yield where a value is not of the type the reference gives it."""
    if wanted.endswith("?") and value is None:
        return
    kind = wanted.removesuffix("?")
    if kind in PLAIN:
        if type(value) is not PLAIN[kind]:
            yield f"{place}: {value!r} is no {kind}"
    elif kind.startswith("["):
        if not isinstance(value, list):
            yield f"{place}: {value!r} is no list"
            return
        for each in value:
            yield from faults(each, kind[1:-1], f"{place}[]")
    else:
        yield from object_faults(value, SHAPES[kind], place)


def object_faults(value: JsonValue, fields: Sequence[ResultField], place: str) -> Iterator[str]:
    """Yield what an object has that is not told, and what is told that it has not."""
    if not isinstance(value, dict):
        yield f"{place}: {value!r} is no object"
        return
    types = {field.name: field.type for field in fields}
    yield from (f"{place}.{name}: is not in the reference" for name in value if name not in types)
    for name, kind in types.items():
        if name not in value and not kind.endswith("?"):
            yield f"{place}.{name}: is missing"
        if name in value:
            yield from faults(value[name], kind, f"{place}.{name}")


def seen_in(value: JsonValue, fields: Sequence[ResultField], owner: str) -> Iterator[str]:
    """Yield every field that a value shows, under the tool or the shape it belongs to."""
    for field in fields:
        part = value.get(field.name)
        if part is None:
            continue
        yield f"{owner}.{field.name}"
        kind = field.type.removesuffix("?")
        shape = kind.strip("[]")
        if shape in SHAPES:
            for each in part if kind.startswith("[") else (part,):
                yield from seen_in(each, SHAPES[shape], shape)


def test_the_reference_tells_of_every_tool_in_order() -> None:
    assert list(read_results().tools) == NAMES


@pytest.mark.requirement("tools:results-are-as-documented")
@pytest.mark.parametrize("name", NAMES)
def test_a_tool_answers_with_the_fields_the_reference_names(name: str, told: list[Told]) -> None:
    answers = [result for tool, result in told if tool == name]
    assert answers
    fields = read_results().tools[name]
    assert [fault for answer in answers for fault in object_faults(answer, fields, name)] == []


@pytest.mark.requirement("tools:results-are-as-documented")
def test_no_field_is_made_up(told: list[Told]) -> None:
    results = read_results()
    seen = {each for tool, answer in told for each in seen_in(answer, results.tools[tool], tool)}
    written = {
        f"{owner}.{field.name}"
        for part in (results.tools, results.shapes)
        for owner, fields in part.items()
        for field in fields
    }
    assert written - seen == set()


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"task_id": "t", "task_kind": "k"}, "x.status: is missing"),
        ({"task_id": "t", "task_kind": "k", "status": 1}, "x.status: 1 is no text"),
        ({"task_id": "t", "task_kind": "k", "status": "s", "more": 1}, "x.more: is not in the"),
        ([], "x: [] is no object"),
    ],
)
def test_an_answer_that_differs_is_noticed(value: JsonValue, complaint: str) -> None:
    assert any(complaint in fault for fault in faults(value, "task_handle", "x"))
