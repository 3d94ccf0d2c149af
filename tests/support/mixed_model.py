"""A model for real hosts under load: quick, verbose, occasionally wrong.

Owns:  its answers, drawn from a seed and from the conversation, and nothing else. A wire server
       sends them (see tests.support.wire_server).
Rule 1: what it starts comes to an end: only input from outside leads to follow-ups and rests, so
        that a host left alone becomes idle.
Rule 2: a transient failure happens once per place, so that no circuit stays open for long.
"""

from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from holon.adapters.providers.scripted.script import ScriptLine
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    UserMessage,
)
from holon.model.turns.turn import StopReason
from tests.support.mixed_commands import command_round
from tests.support.scripted_provider import ScriptedCall, ScriptedRound

_LATENCIES_MS: Final = (0, 0, 1, 5, 20, 60)
_OUTSIDE: Final = ("kind: operator_prompt", "kind: webhook_event")
_ROUNDS_COUNT_MAX: Final = 3
_COMMANDS_SHARE: Final = 0.65
_FAILED_SHARE: Final = 0.03
_FAILURES: Final = (
    ScriptedRound(text="Noted.", fail="server_error", fail_times=1),
    ScriptedRound(text="Noted.", fail="rate_limited", fail_times=1),
    ScriptedRound(text="Noted.", fail="connection", fail_times=1),
    ScriptedRound(text="Noted.", fail="invalid_response", fail_times=1),
    ScriptedRound(fail="request_rejected"),
)


def mixed_model(seed: int) -> Callable[[tuple[ConversationMessage, ...]], ScriptLine]:
    """Return a model that answers at random, from a seed and the conversation."""

    def said_to(conversation: tuple[ConversationMessage, ...]) -> ScriptLine:
        said, round_count = _newest_message(conversation)
        chance = Random(f"{seed}:{round_count}:{said}")
        after_ms = chance.choice(_LATENCIES_MS)
        line = _drawn(chance, said, round_count, conversation)
        return ScriptLine(msgspec.structs.replace(line, after_ms=after_ms), round_count)

    return said_to


def _drawn(
    chance: Random, said: str, round_count: int, conversation: tuple[ConversationMessage, ...]
) -> ScriptedRound:
    if chance.random() < _FAILED_SHARE:
        return chance.choice(_FAILURES)
    starts_more = round_count < _ROUNDS_COUNT_MAX and any(kind in said for kind in _OUTSIDE)
    if not starts_more:
        return ScriptedRound(text="Noted.")
    if chance.random() < _COMMANDS_SHARE:
        return command_round(chance, conversation)
    return _line(chance)


def _line(chance: Random) -> ScriptedRound:
    dice = chance.random()
    if dice < 0.30:
        return ScriptedRound(text="Done.")
    if dice < 0.60:
        return ScriptedRound(text="Later, then.", calls=(_follow_up(chance),))
    if dice < 0.70:
        return ScriptedRound(calls=(_follow_up(chance), _follow_up(chance)))
    if dice < 0.84:
        return ScriptedRound(calls=(_rest(chance),))
    if dice < 0.90:
        return ScriptedRound(calls=(ScriptedCall(name="Imagine", input={"a": 1}),))
    if dice < 0.95:
        return ScriptedRound(text="and then", stop_reason=StopReason.MAX_TOKENS)
    return ScriptedRound(calls=(_follow_up(chance),), stop_reason=StopReason.MAX_TOKENS)


def _follow_up(chance: Random) -> ScriptedCall:
    priority = chance.choice(("next", "normal", "background"))
    text = f"look again at {chance.randrange(1_000)}"
    return ScriptedCall(name="Enqueue", input={"text": text, "priority": priority})


def _rest(chance: Random) -> ScriptedCall:
    duration_ms = chance.choice((0, 30, 200, 600))
    return ScriptedCall(name="Sleep", input={"reason": "tired", "duration_ms": duration_ms})


def _newest_message(conversation: tuple[ConversationMessage, ...]) -> tuple[str, int]:
    """What was said last from outside the turn, and how many rounds ago."""
    rounds = 0
    for message in reversed(conversation):
        match message:
            case AssistantMessage():
                rounds += 1
            case UserMessage(blocks=blocks):
                texts = [b.text for b in blocks if isinstance(b, TextBlock) and "kind: " in b.text]
                if texts:
                    return texts[-1], rounds
    return "", rounds
