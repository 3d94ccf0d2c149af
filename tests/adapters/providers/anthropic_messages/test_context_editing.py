"""The opt-in clearing of old tool uses."""

import msgspec
import pytest

from holon.adapters.providers.anthropic_messages.request import ClearableResults, RequestMemo, lower
from holon.adapters.providers.wire_request import ContextEditing
from holon.model.turns.conversation import AssistantMessage, ConversationMessage, UserMessage
from tests.adapters.providers.anthropic_messages.sample_requests import (
    body_of,
    call,
    endpoint,
    request,
    result,
    rounds,
    user,
)
from tests.adapters.providers.anthropic_messages.sdk_judge import judge

PATCHED = (
    AssistantMessage(blocks=(call("p", name="ApplyPatch"),)),
    UserMessage(blocks=(result("p", "x" * 1_000),)),
)


def eligible_bytes(conversation: tuple[ConversationMessage, ...], editing: ContextEditing) -> int:
    """What is counted when a conversation is seen for the first time."""
    return ClearableResults().eligible_bytes("a", conversation, editing)


@pytest.mark.requirement("provider-anthropic:context-editing-is-opt-in")
def test_nothing_is_said_of_context_management_unless_asked_for() -> None:
    lowered = lower(endpoint(), request(user("a"), *rounds(0, 9)), RequestMemo(endpoint()))
    assert b"context_management" not in lowered.body
    assert "anthropic-beta" not in lowered.headers
    assert lowered.notes == ()


@pytest.mark.requirement("provider-anthropic:context-editing-is-opt-in")
@pytest.mark.parametrize("stream", [False, True])
def test_when_asked_for_the_provider_is_told_what_it_may_clear(stream: bool) -> None:
    editing = ContextEditing(
        trigger_input_tokens=5_000, keep_recent_tool_uses=2, clear_at_least_input_tokens=700
    )
    body = body_of(request(user("a")), context_editing=editing, stream=stream)
    judge(body)
    assert body["context_management"] == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 5_000},
                "keep": {"type": "tool_uses", "value": 2},
                "exclude_tools": ["ApplyPatch"],
                "clear_at_least": {"type": "input_tokens", "value": 700},
            }
        ]
    }
    plain = body_of(request(user("a")), context_editing=ContextEditing())
    judge(plain)
    assert "clear_at_least" not in plain["context_management"]["edits"][0]


@pytest.mark.requirement("provider-anthropic:context-editing-keeps-the-request-whole")
def test_the_conversation_is_sent_whole_all_the_same() -> None:
    asked = request(user("a"), *rounds(0, 9))
    edited = body_of(asked, context_editing=ContextEditing(trigger_input_tokens=1))
    assert edited["messages"] == body_of(asked)["messages"]


@pytest.mark.parametrize(
    ("keep", "eligible"),
    [(0, 7 * len("result 0")), (3, 4 * len("result 0")), (7, 0), (99, 0)],
)
def test_old_results_count_and_recent_ones_do_not(keep: int, eligible: int) -> None:
    editing = ContextEditing(keep_recent_tool_uses=keep)
    assert eligible_bytes((user("a"), *rounds(0, 7)), editing) == eligible


def test_patches_never_count() -> None:
    conversation = (user("a"), *PATCHED, *rounds(0, 4))
    assert eligible_bytes(conversation, ContextEditing(keep_recent_tool_uses=4)) == 0
    assert eligible_bytes(conversation, ContextEditing(keep_recent_tool_uses=3)) == 8


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_counting_on_as_a_conversation_grows_is_counting_it_afresh(keep: int) -> None:
    editing, counted = ContextEditing(keep_recent_tool_uses=keep), ClearableResults()
    conversation = (user("a"), *rounds(0, 3), *PATCHED, *rounds(3, 5))
    shorter = [conversation[:count] for count in range(len(conversation), 0, -3)]
    for shown in (*reversed(shorter), *shorter, (user("b"), *rounds(5, 9))):
        assert counted.eligible_bytes("a", shown, editing) == eligible_bytes(shown, editing)


def test_a_call_id_that_comes_again_counts_each_time_for_itself() -> None:
    conversation = (user("a"), *rounds(0, 1), *rounds(0, 1))
    assert eligible_bytes(conversation, ContextEditing(keep_recent_tool_uses=1)) == 8


@pytest.mark.requirement("provider-anthropic:context-editing-diagnostics")
def test_the_remark_is_a_number_and_repeats_nothing() -> None:
    secret = UserMessage(blocks=(result("c", "tökens: s3cret"),))
    conversation = (user("a"), AssistantMessage(blocks=(call("c"),)), secret)
    note = ClearableResults().note("a", conversation, ContextEditing(keep_recent_tool_uses=0))
    assert note == "context_editing: eligible_tool_result_bytes=15"
    lowered = lower(
        endpoint(context_editing=ContextEditing(keep_recent_tool_uses=0)),
        request(*conversation),
        RequestMemo(endpoint()),
    )
    assert lowered.notes == (note,)
    assert msgspec.json.decode(lowered.body)["context_management"]
