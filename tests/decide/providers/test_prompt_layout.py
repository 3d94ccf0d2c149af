"""Where each piece of a request goes, whatever the wire."""

import pytest

from holon.decide.providers.prompt_layout import layout_of
from holon.model.providers.prompt_frame import (
    ConversationPosition,
    PromptBlock,
    PromptFrame,
    ProviderRequest,
    Stability,
)
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from holon.model.values import AgentId, CallId

STABLE, AGENT, TURN = Stability.STABLE, Stability.AGENT_SCOPED, Stability.TURN_SCOPED
CALL = AssistantMessage(blocks=(ToolUseBlock(call_id=CallId("c"), name="Look", input={}),))
RESULT = ToolResultBlock(call_id=CallId("c"), content="seen")


def said(*texts: str) -> UserMessage:
    return UserMessage(blocks=tuple(TextBlock(text=text) for text in texts))


def request(
    frame: PromptFrame,
    *conversation: ConversationMessage,
    start: ConversationPosition | None = None,
) -> ProviderRequest:
    return ProviderRequest(
        agent_id=AgentId("main"),
        frame=frame,
        conversation=conversation,
        tools=(),
        turn_start=start,
    )


def block(text: str, stability: Stability) -> PromptBlock:
    return PromptBlock(text=text, stability=stability)


FRAME = PromptFrame(
    system_prompt="you are",
    system_blocks=(block("house", STABLE), block("repair", TURN), block("me", AGENT)),
    context_blocks=(block("rules", STABLE), block("memory", AGENT), block("news", TURN)),
)


@pytest.mark.requirement("prompt-frame:turn-scoped-text-stands-behind-the-history")
def test_the_system_part_goes_from_what_never_changes_to_what_seldom_does() -> None:
    layout = layout_of(request(FRAME, said("hi")))
    assert [piece.text for piece in layout.system] == ["you are", "house", "rules", "me", "memory"]
    ends = [piece.text for piece in layout.system if piece.cache_breakpoint]
    assert ends == ["rules", "memory"]


@pytest.mark.requirement("prompt-frame:turn-scoped-text-stands-behind-the-history")
def test_turn_scoped_text_stands_where_the_turn_begins_and_stays_there() -> None:
    history = (said("old"), AssistantMessage(blocks=(TextBlock(text="done"),)))
    start = ConversationPosition(message_index=2, block_index=0)
    first = layout_of(request(FRAME, *history, said("new"), start=start)).conversation
    later = layout_of(
        request(FRAME, *history, said("new"), CALL, UserMessage(blocks=(RESULT,)), start=start)
    ).conversation
    assert first == (*history, said("repair", "news", "new"))
    assert later[: len(first)] == first


def test_turn_scoped_text_stands_behind_results_the_message_must_begin_with() -> None:
    opening = UserMessage(blocks=(RESULT, TextBlock(text="new")))
    start = ConversationPosition(message_index=2, block_index=1)
    for place in (start, None):
        found = layout_of(request(FRAME, said("old"), CALL, opening, start=place)).conversation
        texts = [getattr(b, "text", "result") for b in found[-1].blocks]
        assert texts == ["result", "repair", "news", "new"]


@pytest.mark.parametrize("frame", [PromptFrame(system_prompt=" "), PromptFrame(system_prompt="")])
def test_a_frame_without_words_leaves_the_conversation_alone(frame: PromptFrame) -> None:
    layout = layout_of(request(frame, said("hi")))
    assert (layout.system, layout.conversation) == ((), (said("hi"),))


def test_a_conversation_without_the_user_takes_no_turn_scoped_text() -> None:
    assert layout_of(request(FRAME)).conversation == ()
    assert layout_of(request(FRAME, CALL)).conversation == (CALL,)
    at_model = ConversationPosition(message_index=0, block_index=0)
    assert layout_of(request(FRAME, CALL, start=at_model)).conversation == (CALL,)
