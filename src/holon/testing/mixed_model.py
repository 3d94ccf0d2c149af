"""A model for real hosts under load: quick, talkative, now and then wrong.

Owns:  a provider that draws what it says from a seed and from what it was told, and nothing else.
Rule 1: what it starts comes to an end: follow-ups and rests are asked for only by what came from
        outside, so that a host left alone falls silent.
"""

from random import Random
from typing import Final

from holon.model.answer import ModelAnswer
from holon.model.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    UserMessage,
)
from holon.model.instant import later
from holon.model.prompt_frame import ProviderRequest
from holon.model.turn import StopReason
from holon.ports.clock import Clock
from holon.ports.provider import Hear
from holon.testing.mixed_hands import hands_round
from holon.testing.scripted_provider import FAILURES, ScriptedCall, ScriptedRound, spoken

_LATENCIES_MS: Final = (0, 0, 1, 5, 20, 60)
_OUTSIDE: Final = ("kind: operator_prompt", "kind: webhook_event")
_ROUNDS_COUNT_MAX: Final = 3
_HANDS_SHARE: Final = 0.65


class MixedModel:
    """Answers at random, from a seed and the conversation."""

    def __init__(self, clock: Clock, *, seed: int) -> None:
        self._clock = clock
        self._seed = seed

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return some round, or fail."""
        del hear
        said, round_count = _newest_message(request.conversation)
        chance = Random(f"{self._seed}:{round_count}:{said}")
        latency_ms = chance.choice(_LATENCIES_MS)
        await self._clock.sleep_until(later(self._clock.now(), by_ms=latency_ms))
        if chance.random() < 0.03:
            raise FAILURES[chance.choice(sorted(FAILURES))]("drawn trouble")
        starts_more = round_count < _ROUNDS_COUNT_MAX and any(kind in said for kind in _OUTSIDE)
        line = ScriptedRound(text="Noted.")
        if starts_more and chance.random() < _HANDS_SHARE:
            line = hands_round(chance, request.conversation)
        elif starts_more:
            line = _line(chance)
        return spoken(line, call_prefix=f"m{len(request.conversation)}")


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
