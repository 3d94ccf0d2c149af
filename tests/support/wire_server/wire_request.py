"""Parsed requests of the wire server, the same for every wire, and refusals.

Owns:  the parsed request, the refusal, and the small readers that refuse malformed values.
Rule 1: a parsed request holds the conversation in Holon's own form, so that one script serves all
        wires.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import msgspec

from holon.model.turns.conversation import (
    AssistantBlock,
    AssistantMessage,
    ConversationMessage,
    ThinkingBlock,
    UserBlock,
    UserMessage,
)
from holon.model.values import JsonValue

JsonObject: TypeAlias = dict[str, JsonValue]


class WireRefusal(Exception):
    """The server will not answer. `code` and `param` are the wire's; so are the `details`."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        details: Mapping[str, str | int] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.details = dict(details or {})


class RawRequest(NamedTuple):
    """A request as it came in: its JSON, its headers, and the responses it may go on from."""

    body: JsonObject
    headers: Mapping[str, str]
    stored: Mapping[str, tuple[JsonValue, ...]]


class Piece(NamedTuple):
    """A part of the prompt in the order the model reads it; `marked` ends a prefix to cache."""

    data: bytes
    marked: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedRequest:
    """One request, understood."""

    model: str
    stream: bool
    system: str
    conversation: tuple[ConversationMessage, ...]
    tools: tuple[str, ...]
    pieces: tuple[Piece, ...]
    cache_key: str
    caches_marked: bool = False  # only what is marked is cached, as Anthropic does it
    freeform_tools: frozenset[str] = frozenset()
    usage_in_stream: bool = True
    seals_thinking: bool = False  # the client asked for sealed reasoning
    empty_output_at_end: bool = False  # the last event repeats no output, as Codex does it
    stores: bool = False
    items: tuple[JsonValue, ...] = ()  # the whole input, for a response that goes on from it
    echoed: JsonObject = field(default_factory=dict)  # parameters the answer repeats


class ConversationBuilder:
    """Gathers a conversation in which neighbours of one side become one message."""

    def __init__(self) -> None:
        self._messages: list[ConversationMessage] = []

    def heard(self, *blocks: UserBlock) -> None:
        """Add what the model is told."""
        if self._messages and isinstance(last := self._messages[-1], UserMessage):
            self._messages[-1] = UserMessage(blocks=(*last.blocks, *blocks))
        elif blocks:
            self._messages.append(UserMessage(blocks=blocks))

    def said(self, *blocks: AssistantBlock) -> None:
        """Add what the model said."""
        if self._messages and isinstance(last := self._messages[-1], AssistantMessage):
            self._messages[-1] = AssistantMessage(blocks=(*last.blocks, *blocks))
        elif blocks:
            self._messages.append(AssistantMessage(blocks=blocks))

    def thought(self) -> None:
        """Add reasoning nobody can read."""
        self.said(ThinkingBlock(text=""))

    def done(self) -> tuple[ConversationMessage, ...]:
        """Return the conversation."""
        return tuple(self._messages)


def pieces_of(values: Iterable[JsonValue]) -> tuple[Piece, ...]:
    """Return values as prompt pieces without marks."""
    return tuple(Piece(msgspec.json.encode(value)) for value in values)


def object_at(value: JsonValue, where: str) -> JsonObject:
    """Return an object, or refuse the request."""
    if not isinstance(value, dict):
        raise WireRefusal(f"Invalid type for '{where}': expected an object.", param=where)
    return value


def list_at(value: JsonValue, where: str) -> list[JsonValue]:
    """Return an array, or refuse the request."""
    if not isinstance(value, list):
        raise WireRefusal(f"Invalid type for '{where}': expected an array.", param=where)
    return value


def text_at(value: JsonValue, where: str) -> str:
    """Return text, or refuse the request."""
    if not isinstance(value, str):
        raise WireRefusal(f"Invalid type for '{where}': expected a string.", param=where)
    return value


def decoded(arguments: str) -> JsonValue:
    """Return a call's arguments as JSON, or as the text they are."""
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments
