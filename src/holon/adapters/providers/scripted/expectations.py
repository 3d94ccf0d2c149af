"""What a script insists on, held against what the model was shown.

Owns:  the sentence that names an unmet expectation.
Rule 1: the first expectation that is not met is named, with what was expected and what was shown.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from holon.adapters.providers.scripted.script import Expectation, texts_of, words_of
from holon.model.conversation import (
    AssistantMessage,
    ConversationMessage,
    ToolResultBlock,
    UserMessage,
    tool_uses_of,
)
from holon.model.text_size import cut

_SHOWN_CHARS_MAX: Final = 300


class Shown(NamedTuple):
    """What a request shows the model."""

    system: str
    conversation: Sequence[ConversationMessage]
    tools: Sequence[str]


def unmet_by(expect: Expectation, shown: Shown) -> str | None:
    """Return what is missing, or None when the model was shown what the script expects."""
    return next(_problems(expect, shown), None)


def _problems(expect: Expectation, shown: Shown) -> Iterator[str]:
    said = _newest_words(shown.conversation)
    for text in texts_of(expect.says):
        if text not in said:
            yield f"expected the newest user message to say {text!r}; shown: {_bounded(said)}"
    for text in texts_of(expect.not_says):
        if text in said:
            yield f"expected the newest user message not to say {text!r}; shown: {_bounded(said)}"
    for name in texts_of(expect.tools):
        if name not in shown.tools:
            yield f"expected the tool {name!r} to be offered; offered: {', '.join(shown.tools)}"
    for text in texts_of(expect.system_says):
        if text not in shown.system:
            yield f"expected the system prompt to say {text!r}; shown: {_bounded(shown.system)}"
    yield from _result_problems(expect, shown.conversation)


def _result_problems(
    expect: Expectation, conversation: Sequence[ConversationMessage]
) -> Iterator[str]:
    for name, texts in expect.result_of.items():
        result = _newest_result(conversation, name)
        if result is None:
            yield f"expected a result of {name!r}; there is none"
            continue
        for text in texts_of(texts):
            if text not in result:
                yield f"expected the result of {name!r} to say {text!r}; shown: {_bounded(result)}"


def _newest_words(conversation: Sequence[ConversationMessage]) -> str:
    users = (message for message in reversed(conversation) if isinstance(message, UserMessage))
    return next((words for message in users if (words := words_of(message))), "")


def _newest_result(conversation: Sequence[ConversationMessage], name: str) -> str | None:
    results: dict[str, str] = {}
    for message in reversed(conversation):
        if isinstance(message, AssistantMessage):
            for use in reversed(tool_uses_of(message.blocks)):
                if use.name == name and use.call_id in results:
                    return results[use.call_id]
            results.clear()  # an id names a call of its own round and of no earlier one
        else:
            answers = (block for block in message.blocks if isinstance(block, ToolResultBlock))
            results.update((block.call_id, block.content) for block in answers)
    return None


def _bounded(text: str) -> str:
    return repr(cut(text, chars_max=_SHOWN_CHARS_MAX))
