"""MemorySearch and MemoryGet as a model calls them."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from holon.model.commits import AppendTranscript, ClaimMessage, OpenTurn, QueueMessage
from holon.model.turns.tools import ToolError, ToolOk, ToolRefused
from holon.model.turns.transcript import IncomingMessage
from holon.model.values import JsonValue, MessageId, TurnId
from holon.tools.memory import MemoryGet, MemorySearch
from holon.tools.tool import Tool, ToolScene
from holon.tools.workspaces.apply_patch import ApplyPatch
from tests.runtime.test_memory_indexer import Shelf
from tests.support.builders import MAIN, START, a_message, a_turn, an_agent, an_entry
from tests.support.hosts import tool_ports
from tests.support.sequential_ids import SequentialIds

FIELDS = {
    "kind",
    "source_ref",
    "scope_kind",
    "workspace_id",
    "agent_id",
    "source_path",
    "title",
    "updated_at",
    "metadata",
    "authority_class",
}


class Bench:
    """The tools of an agent with a memory."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.ports = tool_ports(
            reads=shelf.store.reads,
            ids=SequentialIds(),
            files=shelf.host.files,
            recall=shelf.memory,
        )
        self.scene = ToolScene(
            agent_id=MAIN,
            turn_id=TurnId("turn_1"),
            message_id=MessageId("msg_1"),
            effect_id="turn_1.1.0",
            now=START,
            agent_home=str(shelf.agent_home),
            execution_root=str(shelf.agent_home),
        )

    async def result(self, tool: Tool, **arguments: JsonValue) -> JsonValue:
        done = (await tool.run(arguments, self.scene, self.ports)).outcome
        assert isinstance(done, ToolOk), done
        return done.result

    async def in_a_turn_of_the_operator(self) -> None:
        """Let the scene be a turn that answers the operator, and nobody else."""
        turn, message = a_turn(), a_message()
        heard = an_entry(turn, position=0, data=IncomingMessage(message=message))
        await self.shelf.make(
            QueueMessage(message=message),
            ClaimMessage(agent_id=MAIN, message_id=message.id, generation=1, passed_over=0),
            OpenTurn(turn=turn),
            AppendTranscript(entry=heard),
        )

    async def error(self, tool: Tool, **arguments: JsonValue) -> ToolError:
        done = (await tool.run(arguments, self.scene, self.ports)).outcome
        assert isinstance(done, ToolRefused), done
        return done.error


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    shelf = Shelf(tmp_path / "home")
    await shelf.make(an_agent())
    yield Bench(shelf)
    await shelf.indexes.close()
    await shelf.store.close()


@pytest.mark.requirement("memory-index:result-fields")
async def test_a_hit_and_its_text_have_exactly_these_fields(bench: Bench) -> None:
    await bench.shelf.brief("brief_1", "The kiln reached cone six at noon.")
    found = await bench.result(MemorySearch(), query="kiln")
    (hit,) = found["results"]
    assert set(hit) == FIELDS | {"snippet", "score"}
    text = await bench.result(MemoryGet(), source_ref=hit["source_ref"])
    assert set(text) == FIELDS | {"content", "truncated"}
    assert {name: hit[name] for name in FIELDS} == {name: text[name] for name in FIELDS}
    assert text["content"] == "The kiln reached cone six at noon."
    assert text["truncated"] is False
    assert hit["score"] > 0


@pytest.mark.requirement("memory-index:limits")
async def test_how_much_is_shown_is_bounded(bench: Bench) -> None:
    for n in range(12):
        await bench.shelf.brief(f"brief_{n}", "glaze " + "x" * 13_000)
    assert len((await bench.result(MemorySearch(), query="glaze"))["results"]) == 10
    assert len((await bench.result(MemorySearch(), query="glaze", limit=11))["results"]) == 11
    text = await bench.result(MemoryGet(), source_ref="brief:brief_1")
    assert (len(text["content"]), text["truncated"]) == (12_000, True)
    whole = await bench.result(MemoryGet(), source_ref="brief:brief_1", max_chars=50_000)
    assert (len(whole["content"]), whole["truncated"]) == (13_006, False)
    for tool, arguments in (
        (MemorySearch(), {"query": "glaze", "limit": 51}),
        (MemorySearch(), {"query": "glaze", "limit": 0}),
        (MemorySearch(), {"query": ""}),
        (MemorySearch(), {"query": "*" * 10_000}),
        (MemorySearch(), {}),
        (MemoryGet(), {"source_ref": "brief:brief_1", "max_chars": 50_001}),
        (MemoryGet(), {"source_ref": "brief:brief_1", "max_chars": 0}),
    ):
        assert (await bench.error(tool, **arguments)).kind == "invalid_tool_input", arguments


@pytest.mark.requirement("memory-index:opaque-ref")
@pytest.mark.parametrize(
    ("source_ref", "kind"),
    [
        ("brief:brief_none", "memory_source_not_found"),
        ("work_item:work_1", "memory_source_not_found"),
        ("memory/self.md", "invalid_tool_input"),
        ("/etc/passwd", "invalid_tool_input"),
        ("agent_memory:../../secret", "invalid_tool_input"),
        ("https://example.org/", "invalid_tool_input"),
    ],
)
async def test_a_reference_that_search_did_not_give_is_refused(
    bench: Bench, source_ref: str, kind: str
) -> None:
    error = await bench.error(MemoryGet(), source_ref=source_ref)
    assert (error.kind, error.field) == (kind, "source_ref")
    assert "search" in (error.hint or "")


@pytest.mark.requirement("memory-index:scope")
async def test_the_model_may_ask_for_all_workspaces(bench: Bench) -> None:
    await bench.shelf.brief("brief_1", "clay", workspace_id="ws_pottery")
    assert (await bench.result(MemorySearch(), query="clay"))["results"] == []
    found = await bench.result(MemorySearch(), query="clay", include_all_workspaces=True)
    assert [hit["workspace_id"] for hit in found["results"]] == ["ws_pottery"]


async def test_what_could_not_be_searched_is_a_note(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.runtime.memory.indexer.MEMORY_FEED_SEARCH_COUNT_MAX", 1)
    monkeypatch.setattr("holon.runtime.memory.indexer.MEMORY_FEED_COUNT", 1)
    for n in range(3):
        await bench.shelf.brief(f"brief_{n}", "slip")
    outcome = (await MemorySearch().run({"query": "slip"}, bench.scene, bench.ports)).outcome
    assert isinstance(outcome, ToolOk)
    assert "2 records are not in it yet" in outcome.notes[0]


async def test_a_host_without_an_index_refuses_by_its_code(bench: Bench) -> None:
    ports = tool_ports(reads=bench.shelf.store.reads, ids=SequentialIds())
    for tool, arguments in (
        (MemorySearch(), {"query": "x"}),
        (MemoryGet(), {"source_ref": "brief:x"}),
    ):
        outcome = (await tool.run(arguments, bench.scene, ports)).outcome
        assert isinstance(outcome, ToolRefused)
        assert outcome.error.kind == "unsupported_runtime_capability"


@pytest.mark.requirement("memory-index:file-repair")
async def test_a_patch_to_a_memory_file_has_it_looked_at(bench: Bench) -> None:
    told: list[tuple[str, list[str]]] = []

    class Listening:
        def files_changed(self, agent_id: str, root: str, paths: list[str]) -> None:
            told.append((root, list(paths)))

    ports = tool_ports(
        reads=bench.ports.reads,
        ids=bench.ports.ids,
        files=bench.ports.files,
        recall=Listening(),
    )
    patch = "*** Begin Patch\n*** Add File: memory/self.md\n+I like clay\n*** End Patch\n"
    await bench.in_a_turn_of_the_operator()
    done = await ApplyPatch().run({"patch": patch}, bench.scene, ports)
    assert isinstance(done.outcome, ToolOk)
    assert told == [(bench.scene.execution_root, ["memory/self.md"])]
    found = await bench.result(MemorySearch(), query="clay")
    assert found["results"][0]["source_ref"] == "agent_memory:self"


def test_results_survive_json() -> None:
    spec = MemorySearch().spec
    assert msgspec.json.decode(msgspec.json.encode(spec.input_schema)) == spec.input_schema
