"""Tools as models see them are a promise: a change to one is a diff somebody reads.

`tool_schemas.relaxed.json` and `tool_schemas.strict.json` hold what emission makes of every tool's
arguments, `tool_frames.json` what each wire puts around it, read off whole requests. The prose of a
tool is its guidance file and is reviewed there. After a change that is meant, write them anew and
commit the difference:

    HOLON_REFRESH_SNAPSHOTS=1 .venv/bin/python -m pytest tests/surfaces
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import pytest

from holon.adapters.providers import openai_codex as codex_lower
from holon.adapters.providers.anthropic_messages import request as anthropic_lower
from holon.adapters.providers.catalog import builtin_catalog, provider_route
from holon.adapters.providers.openai_chat import request as chat_lower
from holon.adapters.providers.openai_codex import OutputReplay
from holon.adapters.providers.openai_responses import request as responses_lower
from holon.adapters.providers.resolver import endpoint_of
from holon.adapters.providers.wire_request import Endpoint
from holon.decide.providers.schemas import emit_schema, emitted_problems
from holon.model.providers.models import (
    ModelRef,
    ModelSetting,
    ProviderResolverSettings,
    ProviderSetting,
    SchemaMode,
    TransportKind,
)
from holon.model.providers.prompt_frame import PromptFrame, ProviderRequest
from holon.model.turns.conversation import TextBlock, UserMessage
from holon.model.turns.tools import ToolSpec
from holon.model.values import AgentId, JsonValue
from holon.tools.registry import local_registry

HERE: Final = Path(__file__).resolve().parent
SPECS: Final = {spec.name: spec for spec in local_registry().specs}
SCHEMA_FIELDS: Final = ("parameters", "input_schema")
ASKED: Final = ProviderRequest(
    agent_id=AgentId("main"),
    frame=PromptFrame(system_prompt="You are Holon."),
    conversation=(UserMessage(blocks=(TextBlock(text="hello"),)),),
    tools=tuple(SPECS.values()),
)


def responses_body(endpoint: Endpoint) -> bytes:
    return responses_lower.lower(endpoint, ASKED, responses_lower.RequestMemo()).body


def codex_body(endpoint: Endpoint) -> bytes:
    memo = responses_lower.RequestMemo()
    return codex_lower.lower(endpoint, ASKED, memo, OutputReplay()).body


def chat_body(endpoint: Endpoint) -> bytes:
    return chat_lower.lower(endpoint, ASKED, chat_lower.RequestMemo()).body


def anthropic_body(endpoint: Endpoint) -> bytes:
    return anthropic_lower.lower(endpoint, ASKED, anthropic_lower.RequestMemo(endpoint)).body


WIRES: Final[Mapping[TransportKind, Callable[[Endpoint], bytes]]] = {
    TransportKind.OPENAI_RESPONSES: responses_body,
    TransportKind.OPENAI_CODEX_RESPONSES: codex_body,
    TransportKind.OPENAI_CHAT_COMPLETIONS: chat_body,
    TransportKind.ANTHROPIC_MESSAGES: anthropic_body,
}
FREEFORM: Final = frozenset({TransportKind.OPENAI_RESPONSES, TransportKind.OPENAI_CODEX_RESPONSES})
EVERY_WIRE: Final = pytest.mark.parametrize("wire", WIRES, ids=str)
EVERY_MODE: Final = pytest.mark.parametrize("mode", SchemaMode, ids=str)


def offered(
    wire: TransportKind, mode: SchemaMode, *, freeform: bool = False
) -> dict[str, dict[str, JsonValue]]:
    """Return each tool of a request as the wire frames it, without the envelope Chat adds."""
    endpoint = Endpoint(
        provider="acme",
        model="m1",
        transport=wire,
        base_url="http://127.0.0.1:1/v1",
        schema_mode=mode,
        freeform_tools=freeform,
    )
    tools = msgspec.json.decode(WIRES[wire](endpoint))["tools"]
    plain = [{**tool, **tool.pop("function", {})} for tool in tools]
    return {tool["name"]: tool for tool in plain}


def schema_in(tool: Mapping[str, JsonValue]) -> JsonValue:
    return next((tool[field] for field in SCHEMA_FIELDS if field in tool), None)


def reviewed(name: str, found: JsonValue) -> None:
    """Compare with the snapshot, or write it when asked to."""
    path = HERE / name
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("HOLON_REFRESH_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs: see this file's docstring"


@pytest.mark.requirement("tool-schemas:emissions-are-reviewed")
@EVERY_MODE
def test_what_emission_makes_of_every_tool_is_the_reviewed_schema(mode: SchemaMode) -> None:
    emitted = {name: emit_schema(spec.input_schema, mode) for name, spec in SPECS.items()}
    reviewed(f"tool_schemas.{mode}.json", emitted)


@pytest.mark.requirement("tool-schemas:emissions-are-reviewed")
def test_what_each_wire_puts_around_a_tool_is_the_reviewed_frame() -> None:
    frames: dict[str, JsonValue] = {}
    for wire in WIRES:
        for mode in SchemaMode:
            for freeform in (False, True) if wire in FREEFORM else (False,):
                title = f"{wire} {mode}{' freeform' if freeform else ''}"
                frames[title] = _frames(offered(wire, mode, freeform=freeform))
    reviewed("tool_frames.json", frames)


def _frames(tools: Mapping[str, dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """The tools by the frame they share; what is reviewed elsewhere is only named."""
    shared: dict[str, list[str]] = {}
    for name, tool in tools.items():
        told = {**tool, "name": "…", "description": "…"}
        told |= {field: "…" for field in SCHEMA_FIELDS if field in tool}
        if "format" in tool:
            told["format"] = {**tool["format"], "definition": "…"}
        shared.setdefault(json.dumps(told, ensure_ascii=False), []).append(name)
    return {", ".join(names): json.loads(frame) for frame, names in shared.items()}


@pytest.mark.requirement("tool-schemas:requests-carry-the-whole-matrix")
@EVERY_WIRE
@EVERY_MODE
@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.name)
def test_a_request_offers_the_tool_under_the_rules_of_its_mode(
    spec: ToolSpec, mode: SchemaMode, wire: TransportKind
) -> None:
    tool = offered(wire, mode)[spec.name]
    takes_bounds = wire is not TransportKind.ANTHROPIC_MESSAGES
    assert tool["description"] == spec.description
    assert schema_in(tool) == emit_schema(spec.input_schema, mode, takes_bounds=takes_bounds)
    assert emitted_problems(schema_in(tool), mode) == ()
    if wire is TransportKind.ANTHROPIC_MESSAGES and mode is SchemaMode.RELAXED:
        assert "strict" not in tool  # compatible servers know no such word
    else:
        assert tool["strict"] is (mode is SchemaMode.STRICT)


@pytest.mark.requirement("schema-mode:relaxed-unless-the-operator-says-strict")
@EVERY_WIRE
def test_tools_go_out_relaxed_until_the_operator_asks_for_strict(wire: TransportKind) -> None:
    ref = ModelRef(provider="mine", model="m1")

    def mode(provider: SchemaMode | None, model: SchemaMode | None) -> SchemaMode:
        settings = ProviderResolverSettings(
            providers={
                "mine": ProviderSetting(
                    transport=wire, base_url="http://127.0.0.1:1", schema_mode=provider
                )
            },
            models={str(ref): ModelSetting(schema_mode=model)},
        )
        return endpoint_of(provider_route("mine", settings), ref, settings).schema_mode

    assert mode(None, None) is SchemaMode.RELAXED
    assert mode(SchemaMode.STRICT, None) is SchemaMode.STRICT
    assert mode(SchemaMode.STRICT, SchemaMode.RELAXED) is SchemaMode.RELAXED
    assert mode(None, SchemaMode.STRICT) is SchemaMode.STRICT


@pytest.mark.requirement("schema-mode:relaxed-unless-the-operator-says-strict")
def test_no_provider_of_the_catalog_is_strict_by_itself() -> None:
    settings = ProviderResolverSettings()
    for provider in builtin_catalog().providers:
        route = provider_route(provider, settings)
        assert route.schema_mode is SchemaMode.RELAXED, provider


@pytest.mark.requirement("schema-mode:a-wire-is-told-only-what-its-strict-mode-takes")
def test_a_strict_tool_on_the_anthropic_wire_tells_its_bounds_in_words() -> None:
    taken = ("minimum", "maximum", "minItems", "maxItems", "exclusiveMinimum", "minLength")
    for name, tool in offered(TransportKind.ANTHROPIC_MESSAGES, SchemaMode.STRICT).items():
        for word in taken:
            assert f'"{word}":' not in json.dumps(schema_in(tool)), (name, word)
    sleep = offered(TransportKind.ANTHROPIC_MESSAGES, SchemaMode.STRICT)["Sleep"]
    assert "minimum 1" in json.dumps(schema_in(sleep))


@pytest.mark.requirement("tool-schemas:requests-carry-the-whole-matrix")
@EVERY_WIRE
def test_a_request_offers_every_tool_in_the_order_of_the_catalog(wire: TransportKind) -> None:
    assert list(offered(wire, SchemaMode.STRICT)) == list(SPECS)


@pytest.mark.requirement("apply-patch:freeform-where-the-wire-has-it")
@EVERY_WIRE
@EVERY_MODE
def test_a_patch_is_taken_as_plain_text_only_where_the_wire_has_grammars(
    mode: SchemaMode, wire: TransportKind
) -> None:
    tool = offered(wire, mode, freeform=True)["ApplyPatch"]
    if wire in FREEFORM:
        assert tool["type"] == "custom"
        assert tool["format"]["type"] == "grammar"
        assert "*** Begin Patch" in tool["format"]["definition"]
        assert "+++ " in tool["format"]["definition"]
    else:
        assert schema_in(tool)["required"] == ["patch"]
        assert schema_in(tool)["properties"]["patch"]["type"] == "string"
    others = [
        each for name, each in offered(wire, mode, freeform=True).items() if name != "ApplyPatch"
    ]
    assert all(schema_in(each) is not None for each in others)
