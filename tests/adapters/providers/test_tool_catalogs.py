"""Encoded tools are remembered, and never mistaken for others."""

import msgspec

from holon.adapters.providers.wire_request import ToolCatalogs
from holon.model.turns.tools import ToolSpec
from holon.model.values import JsonValue


class Lowering:
    """Lowers a tool to its name, and counts how often it had to."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, tool: ToolSpec) -> dict[str, JsonValue]:
        self.count += 1
        return {"name": tool.name}


def tool(name: str) -> ToolSpec:
    return ToolSpec(name=name, description="does it", input_schema={"type": "object"})


def test_the_same_tools_are_lowered_once() -> None:
    catalogs, lowering, tools = ToolCatalogs(), Lowering(), (tool("A"), tool("B"))
    for _ in range(3):
        encoded = catalogs.encoded(tuple(tools), lowering)
        assert msgspec.json.decode(encoded) == [{"name": "A"}, {"name": "B"}]
    assert lowering.count == 2


def test_other_tools_have_another_catalog() -> None:
    catalogs, lowering, a, b = ToolCatalogs(), Lowering(), tool("A"), tool("B")
    for tools in ((a,), (a, b), (b, a), (), (a,)):
        names = [each["name"] for each in msgspec.json.decode(catalogs.encoded(tools, lowering))]
        assert names == [each.name for each in tools]


def test_catalogs_are_bounded_and_the_longest_unused_goes_first() -> None:
    catalogs, lowering = ToolCatalogs(catalogs_max=2), Lowering()
    a, b, c = (tool("A"),), (tool("B"),), (tool("C"),)
    for tools in (a, b, a, c, a):
        catalogs.encoded(tools, lowering)
    assert lowering.count == 3
    catalogs.encoded(b, lowering)
    assert lowering.count == 4
