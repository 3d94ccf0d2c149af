"""Where cached prefixes end."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.anthropic_messages.cache_markers import (
    conversation_marks,
    system_marks,
)
from holon.model.providers.prompt_frame import (
    ConversationPosition,
    PromptBlock,
    PromptFrame,
    ProviderRequest,
    Stability,
)
from holon.model.turns.conversation import (
    AssistantBlock,
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    UserMessage,
)
from tests.adapters.providers.anthropic_messages.sample_requests import (
    FRAME,
    TOOLS,
    body_of,
    call,
    marked_texts,
    request,
    result,
    said,
    thought,
    user,
)

SYSTEM_ENDS = ["Stable rules.", "More agent facts."]
BARE = PromptFrame(system_prompt="")
ONLY_STABLE = PromptFrame(system_prompt="You are an agent.")
TURN_SCOPED = msgspec.structs.replace(
    FRAME,
    context_blocks=(
        *FRAME.context_blocks,
        PromptBlock(text="It is now.", stability=Stability.TURN_SCOPED),
    ),
)


PLACEMENTS = [
    ("the last words", request(user("a", "b")), [*SYSTEM_ENDS, "b"]),
    (
        "a tool result",
        request(
            user("a"), AssistantMessage(blocks=(call("c"),)), UserMessage(blocks=(result("c"),))
        ),
        [*SYSTEM_ENDS, "done"],
    ),
    (
        "words behind a tool result",
        request(
            user("a"),
            AssistantMessage(blocks=(call("c"),)),
            UserMessage(blocks=(result("c"), TextBlock(text="and"))),
        ),
        [*SYSTEM_ENDS, "and"],
    ),
    ("blank words last", request(user("a", "  \n")), [*SYSTEM_ENDS, "a"]),
    (
        "an empty tool result last",
        request(
            user("a"),
            AssistantMessage(blocks=(call("c"), call("d"))),
            UserMessage(blocks=(result("c"), result("d", ""))),
        ),
        [*SYSTEM_ENDS, "done"],
    ),
    (
        "a user message that is all blank",
        request(user("a"), said("b"), user(" ")),
        [*SYSTEM_ENDS, "b"],
    ),
    (
        "thinking is passed over",
        request(user("a"), AssistantMessage(blocks=(TextBlock(text="b"), thought())), user("")),
        [*SYSTEM_ENDS, "b"],
    ),
    (
        "a call may carry it",
        request(user("a"), AssistantMessage(blocks=(call("c"),)), user("")),
        [*SYSTEM_ENDS, "Sleep"],
    ),
    (
        "the conversation ends with the assistant",
        request(user("a"), said("b")),
        [*SYSTEM_ENDS, "a"],
    ),
    ("nothing was said", request(), SYSTEM_ENDS),
    ("no system", request(user("a"), frame=BARE), ["a"]),
    ("a stable part alone", request(user("a"), frame=ONLY_STABLE), ["You are an agent.", "a"]),
    (
        "tools are covered by the system",
        request(user("a"), frame=ONLY_STABLE, tools=TOOLS),
        ["You are an agent.", "a"],
    ),
    (
        "a second turn",
        request(user("a"), said("b"), user("c"), turn_start=(2, 0)),
        [*SYSTEM_ENDS, "b", "c"],
    ),
    (
        "a turn that opens in a message of results",
        request(
            user("a"),
            AssistantMessage(blocks=(call("c"),)),
            UserMessage(blocks=(result("c"), TextBlock(text="next"))),
            turn_start=(2, 1),
        ),
        [*SYSTEM_ENDS, "done", "next"],
    ),
    ("a first turn", request(user("a"), turn_start=(0, 0)), [*SYSTEM_ENDS, "a"]),
    (
        "turn-scoped text",
        request(user("a"), said("b"), user("c"), frame=TURN_SCOPED, turn_start=(2, 0)),
        [*SYSTEM_ENDS, "b", "c"],
    ),
]


@pytest.mark.requirement("provider-anthropic:markers")
@pytest.mark.parametrize(
    ("asked", "marked"), [row[1:] for row in PLACEMENTS], ids=[row[0] for row in PLACEMENTS]
)
def test_markers_stand_where_a_cached_prefix_ends(
    asked: ProviderRequest, marked: list[str]
) -> None:
    assert marked_texts(body_of(asked)) == marked


def test_of_many_breakpoints_in_the_system_the_last_two_are_marked() -> None:
    block = PromptBlock(text="x", stability=Stability.STABLE, cache_breakpoint=True)
    assert system_marks([block] * 5) == {3, 4}


BLOCKS: st.SearchStrategy[AssistantBlock] = st.sampled_from(
    [TextBlock(text="w"), TextBlock(text=" "), thought(), call("c")]
)
MESSAGES = st.lists(
    st.one_of(
        st.lists(BLOCKS, max_size=3).map(lambda blocks: AssistantMessage(blocks=tuple(blocks))),
        st.sampled_from([user("u"), user(""), user(), UserMessage(blocks=(result("c"),))]),
    ),
    max_size=8,
)


@given(MESSAGES, st.integers(0, 9), st.integers(0, 4))
def test_no_conversation_gets_more_markers_than_the_wire_takes(
    conversation: list[ConversationMessage], message_index: int, block_index: int
) -> None:
    place = ConversationPosition(message_index=message_index, block_index=block_index)
    marks = conversation_marks(conversation, place)
    assert sum(len(blocks) for blocks in marks.values()) <= 2, "the system part has the other two"
    for message, blocks in marks.items():
        assert all(block < len(conversation[message].blocks) for block in blocks)
