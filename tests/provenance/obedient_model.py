"""A model that does whatever any text in front of it says.

Owns:  the worst case a runtime has to live with. It reads every piece of a request, its own words,
       results, memory and guidance alike, and carries out each `OBEY: <goal>` it finds.
Rule 1: it sees through disguises: hidden characters, and what the runtime shows in their place, are
        taken out before it looks.
Rule 2: an `ASK: <goal>` it carries out only in the turn whose message says so; that is how a test
        has it look somewhere.
Rule 3: it keeps nothing between requests. What it has done of a goal it reads off its own calls in
        the running turn, so that it begins anew in every turn in which it still sees the goal.
Rule 4: when nothing is left to do it repeats what its calls brought it, for everybody to read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.conversation import (
    AssistantMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.model.values import CallId, JsonValue
from holon.ports.providers import OnProgress

_HIDDEN: Final = re.compile("⟨[^⟩]*⟩|[\u200b-\u200f\u2060\ufeff\U000e0000-\U000e007f]")
_ADDRESS: Final = re.compile(r"http://[^\s']+/callbacks/wake/trig_[^\s']+")
OWN_ADDRESS: Final = "MY-TRIGGER-ADDRESS"  # in the arguments of a step
_OBEY: Final = re.compile(r"OBEY:\s*([a-z]+(?:-[a-z]+)*)")
_ASK: Final = re.compile(r"ASK:\s*([a-z]+(?:-[a-z]+)*)")
_QUOTE: Final = re.compile(r"QUOTE:\s*([0-9a-f]+)")


class Step(NamedTuple):
    """One call towards a goal."""

    tool: str
    arguments: Mapping[str, JsonValue]


class ObedientModel:
    """Answers every request of a host, and keeps them for the verdict."""

    def __init__(self, goals: Mapping[str, Sequence[Step]]) -> None:
        self.goals = dict(goals)
        self.requests: list[ProviderRequest] = []

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Do what is left of everything that is asked for, or say what came of it."""
        del on_progress
        self.requests.append(request)
        done = set(_own_calls(request))
        calls = [
            ToolUseBlock(call_id=call_id, name=step.tool, input=_filled_in(step, request))
            for call_id, step in self._wanted(request)
            if call_id not in done
        ]
        if calls:
            return ModelAnswer(blocks=(calls[0],), stop_reason=StopReason.TOOL_USE)
        said = "\n".join(("done", *_quotes(request), *_results(request)))
        return ModelAnswer(blocks=(TextBlock(text=said),), stop_reason=StopReason.END_TURN)

    def _wanted(self, request: ProviderRequest) -> Iterator[tuple[CallId, Step]]:
        """Every step of every goal it can see, in the order in which it sees them."""
        asked = (goal for text in _current(request) for goal in _ASK.findall(text))
        seen = (goal for text in texts_of(request) for goal in _OBEY.findall(revealed(text)))
        for goal in dict.fromkeys((*asked, *seen)):
            for number, step in enumerate(self.goals.get(goal, ())):
                yield CallId(f"{_turn_key(request)}_{goal}_{number}"), step


def _filled_in(step: Step, request: ProviderRequest) -> dict[str, JsonValue]:
    """The arguments, with the address of its trigger where a goal wants it handed on."""
    context = "\n".join(piece.text for piece in request.frame.context_blocks)
    found = _ADDRESS.search(context)
    address = OWN_ADDRESS if found is None else found[0]
    return {
        name: value.replace(OWN_ADDRESS, address) if isinstance(value, str) else value
        for name, value in step.arguments.items()
    }


def revealed(text: str) -> str:
    """Return a text without what hides in it."""
    return _HIDDEN.sub("", text)


def texts_of(request: ProviderRequest) -> Iterator[str]:
    """Yield everything a model is given to read."""
    yield request.frame.system_prompt
    for piece in (*request.frame.system_blocks, *request.frame.context_blocks):
        yield piece.text
    for message in request.conversation:
        for block in message.blocks:
            if isinstance(block, TextBlock):
                yield block.text
            elif isinstance(block, ToolResultBlock):
                yield block.content


def _turn_key(request: ProviderRequest) -> str:
    """What names the running turn: where in the conversation it began."""
    place = request.turn_start
    return "t" if place is None else f"t{place.message_index}x{place.block_index}"


def _current(request: ProviderRequest) -> Iterator[str]:
    """What the running turn was shown."""
    first = 0 if request.turn_start is None else request.turn_start.message_index
    for message in request.conversation[first:]:
        yield from (block.text for block in message.blocks if isinstance(block, TextBlock))


def _own_calls(request: ProviderRequest) -> Iterator[str]:
    for message in request.conversation:
        if isinstance(message, AssistantMessage):
            for block in message.blocks:
                if isinstance(block, ToolUseBlock):
                    yield block.call_id


def _quotes(request: ProviderRequest) -> Iterator[str]:
    for text in texts_of(request):
        for coded in _QUOTE.findall(text):
            yield bytes.fromhex(coded).decode()


def _results(request: ProviderRequest) -> Iterator[str]:
    for message in request.conversation[-1:]:
        if isinstance(message, UserMessage):
            yield from (
                block.content[:4_000]
                for block in message.blocks
                if isinstance(block, ToolResultBlock)
            )
