"""The contract suite leaves out no part of the port.

Every kind of change and of expectation has a row in test_every_change.py and in
test_every_expectation.py, which compare their tables with the unions. Here every read of every room
and every operation of the store is looked for in the text of the suite. It is not recorded while
the tests run, because several processes share them.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_type_hints

from holon.ports.reads import StoreReads
from holon.ports.store import Store


def rooms() -> Mapping[str, type]:
    """The rooms of the reads, and the protocol of each."""
    members = vars(StoreReads).items()
    return {
        name: get_type_hints(member.fget)["return"]
        for name, member in members
        if isinstance(member, property)
    }


def methods_of(protocol: type) -> set[str]:
    """What a protocol asks for."""
    return {name for name in vars(protocol) if not name.startswith("_")}


def reads_of_the_port() -> set[str]:
    """Every read, by room."""
    return {f"{room}.{name}" for room, protocol in rooms().items() for name in methods_of(protocol)}


def named_in(text: str) -> Iterator[str]:
    """Pairs of attributes of which the second is called, such as `tasks.open_tasks`."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=room), attr=name)):
                yield f"{room}.{name}"
            case _:
                pass


def used_of_the_store(text: str) -> Iterator[str]:
    """What is used of something called `store`."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(value=ast.Name(id="store" | "empty_store"), attr=name):
                yield name
            case _:
                pass


def the_suite() -> list[str]:
    """The text of every module of the suite."""
    return [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")]


def test_every_read_of_every_room_is_tried() -> None:
    tried = {name for text in the_suite() for name in named_in(text)}
    assert sorted(reads_of_the_port() - tried) == []


def test_every_operation_of_the_store_is_tried() -> None:
    tried = {name for text in the_suite() for name in used_of_the_store(text)}
    assert sorted(methods_of(Store) - tried) == []


def test_a_read_that_is_not_tried_is_missed() -> None:
    text = "async def test(store): await store.reads.tasks.open_tasks()"
    left = reads_of_the_port() - set(named_in(text))
    assert "tasks.open_tasks" not in left
    assert {"tasks.task", "queue.message"} <= left
    assert "prune" in methods_of(Store) - set(used_of_the_store(text))
