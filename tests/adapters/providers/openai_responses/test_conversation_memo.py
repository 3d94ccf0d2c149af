"""What an encoded conversation shares with the one before it."""

from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.openai_responses.request import (
    ConversationMemo,
    EncodedInput,
    Item,
    ItemStyle,
    Progress,
    items_of,
)
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    UserMessage,
)
from holon.model.values import AgentId
from tests.adapters.providers.openai_responses.canned import (
    OPENAI,
    every_block,
    result,
    sealed_by,
    use,
    user,
)

MAIN: Final = AgentId("main")
STYLE: Final = ItemStyle(thinking_origin=OPENAI.thinking_origin, freeform={"ApplyPatch": "patch"})


class Lowering:
    """Lowers, and counts how often it had to."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(
        self, message: ConversationMessage, before: ConversationMessage | None
    ) -> list[Item]:
        self.count += 1
        return items_of(message, STYLE, before=before)


def afresh(conversation: tuple[ConversationMessage, ...]) -> list[Item]:
    items = []
    before: ConversationMessage | None = None
    for message in conversation:
        items += items_of(message, STYLE, before=before)
        before = message
    return items


def whole(conversation: tuple[ConversationMessage, ...]) -> bytes:
    return msgspec.json.encode({"model": "m", "input": afresh(conversation)})


def encoded_by(
    memo: ConversationMemo,
    conversation: tuple[ConversationMessage, ...],
    lowering: Lowering,
    *,
    is_continued: bool = False,
) -> EncodedInput:
    return memo.encoded(
        b'{"model":"m"}',
        MAIN,
        conversation,
        lowering,
        freeform=STYLE.freeform,
        is_continued=is_continued,
    )


@pytest.mark.parametrize("is_continued", [False, True])
def test_a_growing_conversation_is_lowered_once(is_continued: bool) -> None:
    memo, lowering = ConversationMemo(), Lowering()
    messages = (*every_block(OPENAI), AssistantMessage(blocks=(sealed_by(OPENAI),)), user("x"))
    for count in range(len(messages) + 1):
        shown = messages[:count]
        assert encoded_by(memo, shown, lowering, is_continued=is_continued).body == whole(shown)
    assert lowering.count == len(messages)


def test_progress_counts_every_item_but_reasoning() -> None:
    conversation = (*every_block(OPENAI), AssistantMessage(blocks=(sealed_by(OPENAI),)))
    encoded = encoded_by(ConversationMemo(), conversation, Lowering(), is_continued=True)
    items = [msgspec.Raw(msgspec.json.encode(item)) for item in afresh(conversation)]
    assert [item for message in encoded.messages for item in message.items] == items
    assert encoded.messages[-1].progress == Progress().behind(items)
    counted = sum(item["type"] != "reasoning" for item in afresh(conversation))
    assert encoded.messages[-1].progress.count == counted < len(items)


def test_what_was_handed_out_does_not_change_with_the_next_request() -> None:
    memo, lowering = ConversationMemo(), Lowering()
    first = encoded_by(memo, (user("a"), user("b")), lowering, is_continued=True)
    body, messages = bytes(first.body), tuple(first.messages)
    encoded_by(memo, (user("a"), user("c"), user("d")), lowering, is_continued=True)
    assert first.body == body
    assert first.messages == messages


_POOL: Final[tuple[ConversationMessage, ...]] = (
    user("a"),
    user("b"),
    AssistantMessage(blocks=(TextBlock(text="c"), sealed_by(OPENAI))),
    AssistantMessage(blocks=(use("c1", "ExecCommand", {}),)),
    UserMessage(blocks=(result("c1"), TextBlock(text="d"))),
    UserMessage(blocks=()),
)


@given(
    conversations=st.lists(
        st.tuples(st.lists(st.sampled_from(_POOL), max_size=6), st.booleans()), max_size=6
    )
)
def test_whatever_came_before_the_bytes_are_those_of_lowering_afresh(
    conversations: list[tuple[list[ConversationMessage], bool]],
) -> None:
    memo, lowering = ConversationMemo(), Lowering()
    for messages, is_copied in conversations:
        conversation = tuple(
            msgspec.structs.replace(message) if is_copied else message for message in messages
        )
        assert encoded_by(memo, conversation, lowering).body == whole(conversation)
