"""Scripts: the rounds of a model that needs no network, and what it expects to be shown.

Owns:  the script's records, the choice of the next round, and the message about an unmet
       expectation.
Rule 1: the newest user message of the running turn that a rule matches chooses the rule; a rule
        without `when` takes turns no other rule matches. Earlier turns are considered only when
        nothing matches, so that a script may continue across turns.
Rule 2: the number of rounds since then chooses the line. A script that runs out repeats its last
        line; a prompt no rule matches is acknowledged, and no more.
Rule 3: the first unmet expectation is named, with what was expected and what was shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from holon.model.limits import DAY_MS, PROVIDER_DEFERRAL_MS_MAX
from holon.model.providers.attempts import (
    AuthRejectedError,
    ContextTooLongError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitedError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
    UsageLimitedError,
)
from holon.model.providers.prompt_frame import ConversationPosition
from holon.model.record import Record
from holon.model.text_size import cut
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    UserMessage,
    tool_uses_of,
)
from holon.model.turns.turn import StopReason
from holon.model.values import JsonValue, require_json, require_unicode

FAILURES: Final[Mapping[str, type[ProviderError]]] = {
    error.code: error
    for error in (
        AuthRejectedError,
        ContextTooLongError,
        ProviderOverloadedError,
        ProviderTimeoutError,
        ProviderUnreachableError,
        RateLimitedError,
        RequestRejectedError,
        UnreadableResponseError,
        UsageLimitedError,
    )
}

Texts: TypeAlias = str | tuple[str, ...]  # one text may be written without a list around it
DelayMs: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=DAY_MS)]
ResetMs: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=PROVIDER_DEFERRAL_MS_MAX)]
_SHOWN_CHARS_MAX: Final = 300


class ScriptedCall(Record, frozen=True, kw_only=True):
    """A tool the model asks for. Without an `id` it gets one from its place in the script."""

    name: str
    input: JsonValue = msgspec.field(default_factory=dict)
    id: str | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a call names a tool")
        require_json(self.input)


class Expectation(Record, frozen=True, kw_only=True):
    """What the model must have been shown for its line to be said."""

    says: Texts = ()  # in the newest user message
    not_says: Texts = ()
    tools: Texts = ()  # offered, by name
    system_says: Texts = ()
    result_of: Mapping[str, Texts] = {}  # in the newest result of the tool of that name


class ScriptedRound(Record, frozen=True, kw_only=True):
    """One line of the script: thinking, words and calls, or a failure; after a while.

    `fail` makes every attempt at the line fail; with `fail_times`, only the first few.
    """

    text: str = ""
    thinking: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    stop_reason: StopReason | None = None
    fail: str | None = None
    fail_times: Annotated[int, msgspec.Meta(ge=1)] | None = None
    retry_after_ms: ResetMs | None = None
    after_ms: DelayMs = 0
    usage: TokenUsage | None = None
    expect: Expectation | None = None

    def __post_init__(self) -> None:
        require_unicode(self.text)
        if self.fail is not None and self.fail not in FAILURES:
            raise ValueError(f"fail is one of {', '.join(sorted(FAILURES))}; not {self.fail!r}")
        if self.fail is None and (self.fail_times or self.retry_after_ms) is not None:
            raise ValueError("fail_times and retry_after_ms belong to a line with fail")
        ids = [call.id for call in self.calls if call.id is not None]
        if len(ids) != len(set(ids)):
            raise ValueError("two calls of one line have the same id")


class ScriptedRule(Record, frozen=True, kw_only=True):
    """The rounds of a turn whose input contains `when`; without it, of any other turn."""

    when: str = ""
    rounds: tuple[ScriptedRound, ...]

    def __post_init__(self) -> None:
        if not self.rounds:
            raise ValueError("a rule has at least one round")


class Script(Record, frozen=True, kw_only=True):
    """Everything the model knows to say. The first rule that fits is taken.

    `rounds` is the short form of one rule without `when`.
    """

    name: str | None = None
    rules: tuple[ScriptedRule, ...] = ()
    rounds: tuple[ScriptedRound, ...] = ()

    def __post_init__(self) -> None:
        if self.rules and self.rounds:
            raise ValueError("a script has rules or rounds, not both")


class ScriptLine(NamedTuple):
    """The next round of a script, and its number."""

    round: ScriptedRound
    number: int


UNDERSTOOD: Final = ScriptedRound(text="Understood.")


def line_for(
    script: Script,
    conversation: Sequence[ConversationMessage],
    *,
    turn_start: ConversationPosition | None = None,
) -> ScriptLine:
    """Return the line a script has for a conversation."""
    opening = _opening_of(conversation, turn_start)
    rounds = 0
    for index in range(len(conversation) - 1, -1, -1):
        message = conversation[index]
        if isinstance(message, AssistantMessage):
            rounds += 1
            continue
        skipped = turn_start.block_index if turn_start and index == opening else 0
        if (rule := _named_rule(script, words_of(message, skipped=skipped))) is not None:
            return _line(rule.rounds, rounds)
        if index == opening and (others := _other_rounds(script)):
            return _line(others, rounds)
    return ScriptLine(UNDERSTOOD, rounds)


def texts_of(texts: Texts) -> tuple[str, ...]:
    """Return one text or several as several."""
    return (texts,) if isinstance(texts, str) else texts


def words_of(message: UserMessage, *, skipped: int = 0) -> str:
    """Return what was said in a user message, without the tool results in it."""
    blocks = message.blocks[skipped:]
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def _line(rounds: tuple[ScriptedRound, ...], number: int) -> ScriptLine:
    return ScriptLine(rounds[min(number, len(rounds) - 1)], number)


def _opening_of(
    conversation: Sequence[ConversationMessage], turn_start: ConversationPosition | None
) -> int | None:
    """Return where the running turn begins; without a mark, the last user text."""
    if turn_start is not None:
        return turn_start.message_index
    newest = range(len(conversation) - 1, -1, -1)
    return next((index for index in newest if _has_words(conversation[index])), None)


def _has_words(message: ConversationMessage) -> bool:
    return isinstance(message, UserMessage) and bool(words_of(message))


def _named_rule(script: Script, text: str) -> ScriptedRule | None:
    return next((rule for rule in script.rules if rule.when and rule.when in text), None)


def _other_rounds(script: Script) -> tuple[ScriptedRound, ...]:
    return script.rounds or next((rule.rounds for rule in script.rules if not rule.when), ())


class ShownPrompt(NamedTuple):
    """The parts of a request that the model sees."""

    system: str
    conversation: Sequence[ConversationMessage]
    tools: Sequence[str]


def unmet_by(expect: Expectation, shown: ShownPrompt) -> str | None:
    """Return what is missing, or None when the model was shown what the script expects."""
    return next(_problems(expect, shown), None)


def _problems(expect: Expectation, shown: ShownPrompt) -> Iterator[str]:
    newest = _newest_words(shown.conversation)
    for text in texts_of(expect.says):
        if text not in newest:
            yield f"expected the newest user message to say {text!r}; shown: {_bounded(newest)}"
    for text in texts_of(expect.not_says):
        if text in newest:
            yield f"expected the newest user message not to say {text!r}; shown: {_bounded(newest)}"
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
