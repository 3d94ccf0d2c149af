"""The chat prompt of a local model.

Owns:  the two profiles and the choice between them; which tools and messages a local model is
       shown, and in which words.
Rule 1: a very small model gets a short system text, worked examples instead of instructions, one
        tool, and messages without their frame.
Rule 2: any other model gets what every provider gets, as far as its context reaches.
Rule 3: the newest message is always shown; older ones are dropped from the front until the rest
        fits the context. A single message that is too long loses its middle.
Rule 4: a call is shown in exactly the form the grammar writes, so that a model reading its own
        calls learns the right form.
Rule 5: the text before the conversation depends on the profile and the tools only, so the engine's
        prefix cache applies.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from holon.decide.providers.prompt_layout import layout_of
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    text_of,
    tool_uses_of,
)
from holon.model.turns.tools import ToolSpec
from holon.model.values import CallId, JsonValue

COMMAND_TOOL: Final = "ExecCommand"
REST_TOOL: Final = "Sleep"

_COMMAND: Final = '{"tool": "ExecCommand", "arguments": {"cmd": "%s"}}'
_REST: Final = '{"tool": "Sleep", "arguments": {}}'
_FENCED: Final = re.compile(
    r"\[[^\n]*\]\n(?:[a-z]+: [^\n]*\n)+<(?P<fence>body-[0-9a-f]+)>\n(?P<body>.*)\n</(?P=fence)>",
    re.DOTALL,
)
_TELLING: Final = ("stdout_preview", "stderr_preview", "output", "message")
_NOTHING: Final = "(nothing)"
_CUT: Final = "\n…\n"
_MESSAGE_TOKENS: Final = 8  # what a chat template puts around a message
_BYTES_PER_TOKEN: Final = 3  # taken low: too short a chat is better than a refused one
_MESSAGE_TOKENS_MIN: Final = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One worked exchange that is put in front of the conversation, while its tool is offered."""

    asked: str
    answered: str
    tool: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """What a model of some size can bear."""

    context_tokens: int
    output_tokens_max: int
    tools_count_max: int
    text_chars_max: int | None  # of one text argument
    result_chars_max: int  # of one tool result
    required_arguments_only: bool
    calls_per_turn_max: int | None
    system_text: str | None  # in the place of the frame
    command_text: str = ""  # after it, while commands can be run
    # A model that is taught by example is offered one tool: the first of these that there is.
    taught_tools: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()


# The wording was found by trial with smollm2-135m: longer instructions make it answer worse.
SMALL: Final = Profile(
    context_tokens=1_024,
    output_tokens_max=128,
    tools_count_max=3,
    text_chars_max=400,
    result_chars_max=600,
    required_arguments_only=True,
    calls_per_turn_max=1,
    system_text="You are a helpful assistant. Answer in one short sentence.",
    command_text=" To run a command, reply with JSON.",
    taught_tools=(COMMAND_TOOL, REST_TOOL),
    examples=(
        Example(asked="What is the capital of Italy?", answered="The capital of Italy is Rome."),
        Example(asked="Run the command: date", answered=_COMMAND % "date", tool=COMMAND_TOOL),
        Example(asked="Go to sleep.", answered=_REST, tool=REST_TOOL),
        Example(asked="Say hi.", answered="Hi! How can I help you?"),
        Example(
            asked="Please run: ls -l /tmp", answered=_COMMAND % "ls -l /tmp", tool=COMMAND_TOOL
        ),
        Example(asked="Please sleep now.", answered=_REST, tool=REST_TOOL),
        Example(asked="How many days are in a week?", answered="There are seven days in a week."),
        Example(
            asked="Use ExecCommand to run `whoami` and tell me what it prints.",
            answered=_COMMAND % "whoami",
            tool=COMMAND_TOOL,
        ),
    ),
)

GENERAL: Final = Profile(
    context_tokens=16_384,
    output_tokens_max=2_048,
    tools_count_max=12,
    text_chars_max=None,
    result_chars_max=8_000,
    required_arguments_only=False,
    calls_per_turn_max=None,
    system_text=None,
)


def profile_for(model: str) -> Profile:
    """Return the profile of a model by its name; a user's own file counts as capable."""
    return GENERAL if model.startswith("/") else SMALL


class ChatLine(NamedTuple):
    """One message of the chat."""

    role: str
    content: str


class LocalChat(NamedTuple):
    """What the model is shown, and which calls it may answer with.

    Where it has seen calls and may make none, it has to be kept to words.
    """

    lines: tuple[ChatLine, ...]
    tools: tuple[ToolSpec, ...]
    keep_to_words: bool
    left_out_count: int


def chat_of(request: ProviderRequest, profile: Profile, *, shrink: int = 1) -> LocalChat:
    """Return the chat for a request; `shrink` divides the room for the conversation."""
    tools = offered_tools(request.tools, profile)
    opening = [*_opening(request, profile, tools)]
    spoken = [*_spoken(request, profile)]
    room = profile.context_tokens - profile.output_tokens_max - sum(map(_tokens_of, opening))
    fitting = _newest_that_fit(spoken, max(_MESSAGE_TOKENS_MIN, room // shrink))
    may_call = _calls_are_left(request.conversation, profile)
    return LocalChat(
        lines=(*opening, *fitting),
        tools=tools if may_call else (),
        keep_to_words=bool(tools) and not may_call,
        left_out_count=len(spoken) - len(fitting),
    )


def offered_tools(tools: Sequence[ToolSpec], profile: Profile) -> tuple[ToolSpec, ...]:
    """Return the tools offered to a model of this profile."""
    for taught in profile.taught_tools:
        if matching := tuple(tool for tool in tools if tool.name == taught):
            return matching
    first = sorted(
        tools, key=lambda tool: tool.name != COMMAND_TOOL
    )  # a stable sort: the others keep their order
    return tuple(first[: profile.tools_count_max])


def _opening(
    request: ProviderRequest, profile: Profile, tools: tuple[ToolSpec, ...]
) -> Iterator[ChatLine]:
    names = {tool.name for tool in tools}
    taught = bool(names.intersection(profile.taught_tools))
    examples = [each for each in profile.examples if taught and each.tool in (None, *names)]
    if profile.system_text is not None:
        system = profile.system_text + (profile.command_text if COMMAND_TOOL in names else "")
    else:
        system = "\n\n".join(block.text for block in layout_of(request).system)
    if tools and not examples:
        system = f"{system}\n\n{_instructions(tools)}".strip()
    if system:
        yield ChatLine("system", system)
    for example in examples:
        yield ChatLine("user", example.asked)
        yield ChatLine("assistant", example.answered)


def _instructions(tools: tuple[ToolSpec, ...]) -> str:
    lines = [
        f"- {tool.name}: {tool.description.splitlines()[0] if tool.description else ''}"
        f" Arguments: {msgspec.json.encode(_field_names(tool.input_schema)).decode()}"
        for tool in tools
    ]
    form = '{"tool": NAME, "arguments": {…}}'
    return "\n".join((f"To use a tool, reply with only this JSON: {form}. Tools:", *lines))


def _field_names(schema: JsonValue) -> list[str]:
    fields = schema.get("properties") if isinstance(schema, dict) else None
    return list(fields) if isinstance(fields, dict) else []


def _spoken(request: ProviderRequest, profile: Profile) -> Iterator[ChatLine]:
    plain = profile.system_text is not None
    conversation = request.conversation if plain else layout_of(request).conversation
    names: dict[CallId, str] = {}
    for message in conversation:
        match message:
            case AssistantMessage(blocks=blocks):
                uses = tool_uses_of(blocks)
                names.update((use.call_id, use.name) for use in uses)
                parts = [text_of(blocks), *(_written(use) for use in uses)]
                yield ChatLine("assistant", "\n".join(part for part in parts if part) or "…")
            case UserMessage(blocks=blocks):
                texts = [
                    _result(block, names.get(block.call_id, ""), profile)
                    if isinstance(block, ToolResultBlock)
                    else (plain_words(block.text) if plain else block.text)
                    for block in blocks
                ]
                yield ChatLine("user", "\n\n".join(texts))


def _written(use: ToolUseBlock) -> str:
    name = msgspec.json.encode(use.name).decode()
    arguments = msgspec.json.format(msgspec.json.encode(use.input), indent=0).decode()
    return f'{{"tool": {name}, "arguments": {arguments}}}'


def plain_words(text: str) -> str:
    """Return the text of a message without the fence lines that name its sender."""
    fenced = _FENCED.fullmatch(text.strip())
    return fenced["body"] if fenced is not None else text


def _result(block: ToolResultBlock, name: str, profile: Profile) -> str:
    text = _readable_text(block.content).strip() or _NOTHING
    shown = _shortened(text, profile.result_chars_max)
    source = "The command printed:" if name == COMMAND_TOOL else f"The tool {name} answered:"
    return f"{source}\n{shown}"


def _readable_text(content: str) -> str:
    """The readable part of a result: what a command printed, or what an error says."""
    try:
        envelope = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return content
    texts = [text for text in _telling_texts(envelope) if text.strip()]
    is_silent_command = any(key in content for key in _TELLING)
    return "\n".join(texts) if texts or is_silent_command else content


def _telling_texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _telling_texts(each)
    if not isinstance(value, dict):
        return
    for key, each in value.items():
        if isinstance(each, str) and key in _TELLING:
            yield each
        else:
            yield from _telling_texts(each)


def _calls_are_left(conversation: Sequence[ConversationMessage], profile: Profile) -> bool:
    """Whether the model may call again in this turn; a very small one would never stop."""
    if profile.calls_per_turn_max is None:
        return True
    calls = 0
    for message in reversed(conversation):
        if isinstance(message, AssistantMessage):
            calls += len(tool_uses_of(message.blocks))
        elif any(isinstance(block, TextBlock) for block in message.blocks):
            break
    return calls < profile.calls_per_turn_max


def _newest_that_fit(lines: list[ChatLine], room: int) -> list[ChatLine]:
    if not lines:
        return []
    newest = lines[-1]
    fitting = [ChatLine(newest.role, _shortened(newest.content, room * _BYTES_PER_TOKEN))]
    room -= _tokens_of(fitting[0])
    for line in reversed(lines[:-1]):
        room -= _tokens_of(line)
        if room < 0:
            break
        fitting.append(line)
    while len(fitting) > 1 and fitting[-1].role == "assistant":  # a chat begins with the user
        fitting.pop()
    return fitting[::-1]


def _tokens_of(line: ChatLine) -> int:
    return _MESSAGE_TOKENS + len(line.content.encode()) // _BYTES_PER_TOKEN


def _shortened(text: str, bytes_max: int) -> str:
    """Take out the middle: how a text begins and how it ends says most about it."""
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    head, tail = data[: bytes_max * 2 // 3], data[-(bytes_max // 3) :]
    return head.decode(errors="ignore") + _CUT + tail.decode(errors="ignore")
