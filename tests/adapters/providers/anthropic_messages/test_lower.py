"""Requests as they go over the wire."""

from typing import Any

import msgspec
import pytest

from holon.adapters.providers.anthropic_messages.request import RequestMemo, lower
from holon.adapters.providers.wire_request import ContextEditing
from holon.model.providers.prompt_frame import PromptFrame
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ThinkingBlock,
    UserMessage,
)
from tests.adapters.providers.anthropic_messages.sample_requests import (
    ORIGIN,
    TOOLS,
    body_of,
    call,
    endpoint,
    request,
    result,
    said,
    thought,
    user,
)
from tests.adapters.providers.anthropic_messages.sdk_judge import judge

BARE = PromptFrame(system_prompt="")
MARK = {"cache_control": {"type": "ephemeral"}}


def _messages(*conversation: ConversationMessage) -> Any:
    body = body_of(request(*conversation, frame=BARE))
    judge(body)
    for message in body["messages"]:
        for block in message["content"]:
            block.pop("cache_control", None)
    return body["messages"]


def _text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


ROUND = AssistantMessage(
    blocks=(
        thought("First…"),
        ThinkingBlock(text="", signature="sealed", redacted=True, origin=ORIGIN),
        TextBlock(text="On it."),
        call("toolu_1", asked={"reason": "rest"}),
    )
)


@pytest.mark.requirement("provider-anthropic:full-request")
def test_a_whole_request_looks_like_this() -> None:
    asked = request(
        user("Do it."),
        ROUND,
        UserMessage(blocks=(result("toolu_1", "no", is_error=True), TextBlock(text="And?"))),
        tools=TOOLS[:1],
    )
    body = body_of(asked)
    judge(body)
    assert list(body) == ["model", "max_tokens", "tools", "system", "messages"]
    assert body == {
        "model": "claude-x",
        "max_tokens": 8192,
        "tools": [
            {
                "name": "Sleep",
                "description": TOOLS[0].description,
                "input_schema": TOOLS[0].input_schema,
            }
        ],
        "system": [
            _text("You are an agent."),
            {**_text("Stable rules."), **MARK},
            _text("Agent facts."),
            {**_text("More agent facts."), **MARK},
        ],
        "messages": [
            {"role": "user", "content": [_text("Do it.")]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "First…", "signature": "sig"},
                    {"type": "redacted_thinking", "data": "sealed"},
                    _text("On it."),
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "Sleep",
                        "input": {"reason": "rest"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": "no",
                        "is_error": True,
                    },
                    {**_text("And?"), **MARK},
                ],
            },
        ],
    }


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.example", "https://api.example/v1/messages"),
        ("https://api.example/", "https://api.example/v1/messages"),
        ("https://api.example/v1", "https://api.example/v1/messages"),
        ("https://api.example/v1/", "https://api.example/v1/messages"),
        ("https://api.example/anthropic", "https://api.example/anthropic/v1/messages"),
    ],
)
def test_the_address_may_hold_the_version_or_not(base_url: str, url: str) -> None:
    assert (
        lower(endpoint(base_url=base_url), request(user("a")), RequestMemo(endpoint())).url == url
    )


def test_headers_name_the_version_and_each_beta_once() -> None:
    plain = lower(endpoint(), request(user("a")), RequestMemo(endpoint()))
    assert plain.headers == {"anthropic-version": "2023-06-01", "accept": "application/json"}
    assert plain.notes == ()
    full = lower(
        endpoint(
            betas=("one", "two", "one"),
            context_editing=ContextEditing(),
            stream=True,
        ),
        request(user("a")),
        RequestMemo(endpoint()),
    )
    assert full.headers == {
        "anthropic-version": "2023-06-01",
        "accept": "text/event-stream",
        "anthropic-beta": "one,two,context-management-2025-06-27",
    }


def test_options_of_the_endpoint_reach_the_body() -> None:
    body = body_of(request(user("a")), stream=True, output_tokens_max=99, reasoning_effort="high")
    judge(body)
    assert body["stream"] is True
    assert body["max_tokens"] == 99
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": "high"}
    assert list(body)[-1] == "messages"


def test_without_a_system_part_or_tools_none_is_sent() -> None:
    body = body_of(request(user("a"), frame=BARE))
    judge(body)
    assert list(body) == ["model", "max_tokens", "messages"]


@pytest.mark.requirement("provider-anthropic:thinking-goes-home")
@pytest.mark.parametrize("origin", [None, "anthropic_messages:other", "openai_responses:anthropic"])
def test_foreign_thinking_is_not_sent(origin: str | None) -> None:
    mixed = AssistantMessage(blocks=(thought(origin=origin), TextBlock(text="b")))
    assert _messages(user("a"), mixed, user("c"))[1]["content"] == [_text("b")]


@pytest.mark.requirement("provider-anthropic:alternation")
def test_a_message_of_nothing_but_foreign_thinking_disappears_and_its_neighbours_join() -> None:
    alone = AssistantMessage(blocks=(thought(origin="openai_codex:openai-codex"),))
    assert _messages(user("a"), alone, user("c")) == [
        {"role": "user", "content": [_text("a"), _text("c")]}
    ]


NOTHING = _text("(nothing was said)")
ALTERNATIONS = [
    (
        "neighbours join",
        (user("a"), user("b"), said("c"), said("d"), user("e")),
        [["a", "b"], ["c", "d"], ["e"]],
    ),
    ("the assistant began", (said("a"), user("b")), [[NOTHING["text"]], ["a"], ["b"]]),
    ("the assistant ended", (user("a"), said("b")), [["a"], ["b"], [NOTHING["text"]]]),
    (
        "a blank message between",
        (user("a"), said("b"), user(" "), said("c"), user("d")),
        [["a"], ["b", "c"], ["d"]],
    ),
    ("an empty message", (user("a"), AssistantMessage(blocks=()), user("b")), [["a", "b"]]),
    ("nothing at all", (), [[NOTHING["text"]]]),
]


@pytest.mark.requirement("provider-anthropic:alternation")
@pytest.mark.parametrize(
    ("conversation", "texts"),
    [row[1:] for row in ALTERNATIONS],
    ids=[row[0] for row in ALTERNATIONS],
)
def test_roles_alternate_and_begin_and_end_with_the_user(
    conversation: tuple[ConversationMessage, ...], texts: list[list[str]]
) -> None:
    messages = _messages(*conversation)
    assert [[block["text"] for block in message["content"]] for message in messages] == texts
    roles = [message["role"] for message in messages]
    assert roles == [("user", "assistant")[index % 2] for index in range(len(roles))]


def test_tool_results_come_first_in_their_message() -> None:
    answered = UserMessage(blocks=(TextBlock(text="also"), result("c"), result("d")))
    calls = AssistantMessage(blocks=(call("c"), call("d")))
    content = _messages(user("a"), calls, answered)[2]["content"]
    assert [block["type"] for block in content] == ["tool_result", "tool_result", "text"]


@pytest.mark.parametrize("call_id", ["functions.Sleep:0", "", "ü", "x" * 200, "a b"])
def test_ids_of_other_providers_are_made_plain_and_still_match(call_id: str) -> None:
    messages = _messages(
        user("a"),
        AssistantMessage(blocks=(call(call_id), call("toolu_ok"))),
        UserMessage(blocks=(result(call_id), result("toolu_ok"))),
    )
    ids = [block["id"] for block in messages[1]["content"]]
    assert ids == [block["tool_use_id"] for block in messages[2]["content"]]
    assert ids[1] == "toolu_ok"
    assert ids[0].replace("_", "").replace("-", "").isalnum()
    assert ids[0].isascii()
    assert len(ids[0]) <= 64


def test_arguments_that_are_no_object_are_sent_as_one() -> None:
    broken = AssistantMessage(blocks=(call("c", asked='{"a":'),))
    content = _messages(user("a"), broken, UserMessage(blocks=(result("c"),)))[1]["content"]
    assert content[0]["input"] == {"unreadable_arguments": '{"a":'}


def test_thinking_without_a_signature_is_sent_back_without_one() -> None:
    bare, words = ThinkingBlock(text="hm", origin=ORIGIN), TextBlock(text="so be it")
    body = body_of(request(user("a"), AssistantMessage(blocks=(bare, words)), user("b")))
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm"}


@pytest.mark.requirement("provider-anthropic:cut-off-thinking-stays-away")
@pytest.mark.parametrize("signature", [None, ""])
def test_a_thought_that_was_cut_off_before_its_signature_is_not_sent(
    signature: str | None,
) -> None:
    cut = ThinkingBlock(text="Let me", signature=signature, origin=ORIGIN)
    alone, behind = (cut,), (thought(), TextBlock(text="b"), cut)
    assert _messages(user("a"), AssistantMessage(blocks=alone), user("c")) == [
        {"role": "user", "content": [_text("a"), _text("c")]}
    ]
    sent = _messages(user("a"), AssistantMessage(blocks=behind), user("c"))
    assert [block["type"] for block in sent[1]["content"]] == ["thinking", "text"]


def test_the_catalog_is_encoded_again_when_it_changes() -> None:
    memo = RequestMemo(endpoint())
    one, two = request(user("a"), tools=TOOLS[:1]), request(user("a"), tools=TOOLS)
    names = [
        [tool["name"] for tool in msgspec.json.decode(lower(endpoint(), asked, memo).body)["tools"]]
        for asked in (one, two, one)
    ]
    assert names == [["Sleep"], [tool.name for tool in TOOLS], ["Sleep"]]
