"""The server refuses what the real ones refuse, in their own words and forms."""

from typing import Any

import httpx2
import pytest

from holon.adapters.providers.scripted.script import Expectation, Script, ScriptedRound
from holon.model.providers.models import TransportKind
from tests.support.wire_server.server import open_wire_server
from tests.support_tests.wire_server.bodies import (
    ALL,
    CHAT,
    CODEX,
    MESSAGES,
    OWN_PATHS,
    RESPONSES,
    body_for,
    headers_for,
    plain_client,
    post,
)
from tests.support_tests.wire_server.clients import HELLO, LOOK, SCHEMA

LOOSE: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "string"}}}
NESTED: dict[str, Any] = {**SCHEMA, "properties": {"at": {"type": "array", "items": LOOSE}}}
USER: Any = {"role": "user", "content": "look"}
CALL: Any = {"type": "function_call", "call_id": "c1", "name": "Look", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "c1", "output": "seen"}
CHAT_CALL: Any = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "Look", "arguments": "{}"}}
    ],
}
CHAT_RESULT: Any = {"role": "tool", "tool_call_id": "c1", "content": "seen"}
USE: Any = {"type": "tool_use", "id": "c1", "name": "Look", "input": {}}
RESULT: Any = {"type": "tool_result", "tool_use_id": "c1", "content": "seen"}
USED: Any = {"role": "assistant", "content": [USE]}
MARK: Any = {"cache_control": {"type": "ephemeral"}}


def said(*blocks: Any) -> dict[str, Any]:
    """A user message of blocks."""
    return {"role": "user", "content": list(blocks)}


def function(**changes: object) -> dict[str, Any]:
    """A function tool of the Responses wire."""
    return {"type": "function", "name": "Look", "parameters": SCHEMA, "strict": True, **changes}


RESPONSES_CASES: list[tuple[dict[str, Any], str]] = [
    ({"colour": "red"}, "Unknown parameter: 'colour'"),
    ({"messages": []}, "Unknown parameter: 'messages'"),
    ({"model": None}, "Missing required parameter: 'model'"),
    ({"input": None}, "Missing required parameter: 'input'"),
    ({"max_output_tokens": 1}, "below minimum"),
    ({"input": [USER, CALL]}, "No tool output found for function call c1"),
    ({"input": [USER, OUTPUT]}, "No tool call found for function call output"),
    ({"input": [USER, OUTPUT, CALL]}, "No tool call found for function call output"),
    ({"input": [{**USER, "mood": 1}]}, "Unknown parameter: 'input[0].mood'"),
    ({"input": [{"type": "song"}]}, "Invalid value: 'song'"),
    ({"input": [{"role": "robot", "content": "x"}]}, "Invalid value: 'robot'"),
    (
        {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]},
        "Supported values are: 'output_text'",
    ),
    (
        {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}, USER], "store": False},
        "Items are not persisted",
    ),
    ({"previous_response_id": "resp_9"}, "Previous response with id 'resp_9' not found"),
    ({"tools": [function(parameters=LOOSE)]}, "'additionalProperties' is required"),
    ({"tools": [function(parameters=NESTED)]}, "'additionalProperties' is required"),
    ({"tools": [function(parameters={**SCHEMA, "required": []})]}, "Missing 'at'"),
    ({"tools": [function(name="Look here")]}, "does not match pattern"),
    ({"tools": [function(), function()]}, "given twice"),
    ({"tools": [function(type="magic")]}, "Invalid value: 'magic'"),
    ({"tools": [function(parameters={"type": "string"})]}, "'type: \"object\"'"),
]
CHAT_CASES: list[tuple[dict[str, Any], str]] = [
    ({"input": "x"}, "Unrecognized request argument supplied: input"),
    ({"messages": []}, "Missing required parameter: 'messages'"),
    ({"messages": [USER, CHAT_CALL]}, "did not have response messages: c1"),
    ({"messages": [USER, CHAT_CALL, USER, CHAT_RESULT]}, "did not have response messages: c1"),
    ({"messages": [USER, CHAT_RESULT]}, "must be a response to a preceeding message"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "Invalid value: 'robot'"),
    ({"messages": [{"role": "user", "content": None}]}, "got null"),
    ({"messages": [{**USER, "mood": 1}]}, "'mood' was unexpected"),
    ({"stream_options": {"include_usage": True}}, "only allowed when 'stream' is enabled"),
    ({"max_tokens": 5, "max_completion_tokens": 5}, "at the same time"),
]
MESSAGES_CASES: list[tuple[dict[str, Any], str]] = [
    ({"prompt_cache_key": "x"}, "prompt_cache_key: Extra inputs are not permitted"),
    ({"max_tokens": None}, "max_tokens: Field required"),
    ({"max_tokens": 0}, "greater than or equal to 1"),
    ({"messages": []}, "at least one message"),
    ({"messages": [USED, said(RESULT)]}, 'first message must use the "user" role'),
    ({"messages": [USER, USER]}, 'multiple "user" roles in a row'),
    ({"messages": [USER, {"role": "assistant", "content": "x"}]}, "must end with a user"),
    ({"messages": [USER, USED, USER]}, "without `tool_result` blocks immediately after: c1"),
    ({"messages": [said(RESULT)]}, "unexpected `tool_use_id`"),
    ({"messages": [USER, USED, said(RESULT, RESULT)]}, "single result"),
    (
        {"messages": [USER, USED, said({"type": "text", "text": "x"}, RESULT)]},
        "must come first",
    ),
    ({"messages": [USER, {"role": "assistant", "content": [USE, USE]}, said(RESULT)]}, "unique"),
    ({"messages": [said({"type": "text", "text": " "})]}, "non-whitespace text"),
    ({"messages": [said()]}, "non-empty content"),
    ({"messages": [said(USE)]}, "can not be in user messages"),
    ({"messages": [said({"type": "song"})]}, "Input tag 'song'"),
    ({"messages": [said({"type": "text", "text": "x", "mood": 1})]}, "Extra inputs"),
    ({"system": [{"type": "text", "text": f"{i}", **MARK} for i in range(5)]}, "maximum of 4"),
    ({"context_management": {"edits": []}}, "context_management: Extra inputs"),
    ({"thinking": {"type": "enabled", "budget_tokens": 1}}, "1024"),
    ({"tools": [{"name": "Look", "parameters": SCHEMA}]}, "parameters: Extra inputs"),
]
CASES = [
    *((RESPONSES, change, words) for change, words in RESPONSES_CASES),
    *((CHAT, change, words) for change, words in CHAT_CASES),
    *((MESSAGES, change, words) for change, words in MESSAGES_CASES),
]


@pytest.mark.requirement("provider-scripted:a-broken-request-is-refused-as-a-provider-would")
@pytest.mark.parametrize(("kind", "change", "words"), CASES)
async def test_a_broken_request_is_refused_in_the_wires_own_form(
    kind: TransportKind, change: dict[str, Any], words: str
) -> None:
    async with open_wire_server(HELLO) as server, plain_client() as client:
        refused = await post(client, server, kind, **change)
        answered = await post(client, server, kind)
    assert refused.status_code in (400, 404)
    error = refused.json()["error"]
    assert words in error["message"]
    assert error["type"] in ("invalid_request_error", "not_found_error")
    assert answered.status_code == 200


@pytest.mark.parametrize("kind", ALL)
async def test_a_missing_or_wrong_key_is_not_let_in(kind: TransportKind) -> None:
    async with open_wire_server(HELLO, api_key="sk-right") as server, plain_client() as client:

        async def status(key: str | None) -> httpx2.Response:
            url = server.base_url(kind) + OWN_PATHS[kind]
            return await client.post(url, json=body_for(kind), headers=headers_for(kind, key=key))

        missing, wrong, right = [await status(key) for key in (None, "sk-wrong", "sk-right")]
    assert [missing.status_code, wrong.status_code, right.status_code] == [401, 401, 200]
    if kind is MESSAGES:
        assert wrong.json()["error"]["type"] == "authentication_error"
    else:
        assert wrong.json()["error"]["code"] == "invalid_api_key"


async def test_a_server_without_keys_lets_everybody_in() -> None:
    async with open_wire_server(HELLO, needs_key=False) as server, plain_client() as client:
        url = server.base_url(CHAT) + OWN_PATHS[CHAT]
        assert (await client.post(url, json=body_for(CHAT))).status_code == 200


async def test_paths_and_methods_nobody_serves_are_not_found() -> None:
    async with open_wire_server(HELLO) as server, plain_client() as client:
        root = f"http://127.0.0.1:{server.port}"
        assert (await client.post(f"{root}/v2/responses", json={})).status_code == 404
        assert (await client.get(f"{root}/v1/responses")).status_code == 405
        bad = await client.post(
            f"{root}/v1/responses", content=b"{", headers=headers_for(RESPONSES)
        )
        assert bad.status_code == 400
        for path in ("/responses", "/chat/completions"):
            kind = CHAT if "chat" in path else RESPONSES
            reply = await client.post(root + path, json=body_for(kind), headers=headers_for(kind))
            assert reply.status_code == 200


async def test_every_request_is_on_record() -> None:
    async with open_wire_server(HELLO) as server, plain_client() as client:
        for kind in ALL:
            await post(client, server, kind)
    assert [request.path for request in server.requests] == [
        "/v1/responses",
        "/backend-api/codex/responses",
        "/v1/chat/completions",
        "/v1/messages",
    ]
    for request, kind in zip(server.requests, ALL, strict=True):
        assert request.method == "POST"
        assert request.json == body_for(kind)
        assert headers_for(kind).items() <= request.headers.items()


@pytest.mark.parametrize("kind", ALL)
async def test_an_unmet_expectation_is_a_refusal_that_says_so(kind: TransportKind) -> None:
    line = ScriptedRound(text="fine", expect=Expectation(says="a tree"))
    async with open_wire_server(Script(rounds=(line,))) as server, plain_client() as client:
        refused = await post(client, server, kind)
    assert refused.status_code == 400
    assert "expected the newest user message to say 'a tree'; shown: 'look'" in refused.text


@pytest.mark.parametrize("kind", ALL)
async def test_system_words_tools_and_results_are_heard_on_every_wire(
    kind: TransportKind,
) -> None:
    expect = Expectation(
        says="look", system_says="careful", tools="Look", result_of={"Look": "seen"}
    )
    script = Script(rounds=(LOOK.rounds[0], ScriptedRound(text="fine", expect=expect)))
    rounds: dict[TransportKind, dict[str, Any]] = {
        RESPONSES: {"instructions": "Be careful.", "input": [USER, CALL, OUTPUT]},
        CODEX: {
            "input": [USER, CALL, OUTPUT],
            "tools": [function()],
        },
        CHAT: {
            "messages": [
                {"role": "system", "content": "Be careful."},
                USER,
                CHAT_CALL,
                CHAT_RESULT,
            ]
        },
        MESSAGES: {"system": "Be careful.", "messages": [USER, USED, said(RESULT)]},
    }
    async with open_wire_server(script) as server, plain_client() as client:
        reply = await post(client, server, kind, **rounds[kind])
    assert reply.status_code == 200, reply.text
    assert "fine" in reply.text
