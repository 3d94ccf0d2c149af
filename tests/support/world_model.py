"""The random model of the simulation: it rambles, fails, stalls and calls unknown tools.

Owns:  the random provider, and the check that a strict provider would accept every request sent to
       it.
"""

from random import Random
from typing import Final

from holon.decide.turns.conversation import problems_of
from holon.model.limits import PROVIDER_WAIT_INLINE_MS_MAX
from holon.model.providers.attempts import ProviderError
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.model.values import later
from holon.ports.providers import OnProgress
from tests.support.manual_clock import ManualClock
from tests.support.scripted_provider import FAILURES, ScriptedCall, ScriptedRound, spoken
from tests.support.world_commands import WorldCommands

_LATENCIES_MS: Final = (0, 0, 0, 5, 400, 2_000, 15_000)
_SILENCE_MS: Final = 600_000
_COME_BACK_MS: Final = (None, None, 0, 2_500, 90_000, 1_800_000)  # the long ones put a turn off


class WorldModel:
    """Answers at random, from a seed."""

    def __init__(
        self,
        clock: ManualClock,
        chance: Random,
        *,
        follow_up_count_max: int,
        commands: WorldCommands | None = None,
    ) -> None:
        self._clock = clock
        self._commands = commands
        self._chance = chance
        self._follow_ups_left = follow_up_count_max
        self._call_count = 0
        self._has_calmed_down = False
        self.problems: list[str] = []

    def calm_down(self) -> None:
        """Name no more late moments: who waits to see everything end would wait for those, too."""
        self._has_calmed_down = True

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return some round, or fail."""
        del on_progress
        self.problems.extend(problems_of(request.conversation))
        silent = self._chance.random() < 0.01
        latency_ms = _SILENCE_MS if silent else self._chance.choice(_LATENCIES_MS)
        await self._clock.sleep_until(later(self._clock.now(), by_ms=latency_ms))
        if self._chance.random() < 0.06:
            raise self._trouble()
        self._call_count += 1
        acting = self._commands.round(request.conversation) if self._commands is not None else None
        return spoken(acting or self._line(), call_prefix=f"w{self._call_count}")

    def _trouble(self) -> ProviderError:
        failure = FAILURES[self._chance.choice(sorted(FAILURES))]
        come_back_ms = self._chance.choice(_COME_BACK_MS)
        if self._has_calmed_down and come_back_ms is not None:
            come_back_ms = min(come_back_ms, PROVIDER_WAIT_INLINE_MS_MAX)
        return failure("simulated trouble", retry_after_ms=come_back_ms)

    def _line(self) -> ScriptedRound:
        dice = self._chance.random()
        if dice < 0.50:
            return ScriptedRound(text=f"answer {self._call_count}")
        if dice < 0.68:
            return ScriptedRound(text="resting", calls=(self._sleep(),))
        if dice < 0.80:
            return ScriptedRound(calls=self._follow_ups())
        if dice < 0.86:
            return ScriptedRound(calls=(*self._follow_ups(), self._sleep()))
        if dice < 0.92:
            return ScriptedRound(calls=(ScriptedCall(name="Imagine", input={"a": 1}),))
        if dice < 0.97:
            return ScriptedRound(text="and then", stop_reason=StopReason.MAX_TOKENS)
        return ScriptedRound(calls=self._follow_ups(), stop_reason=StopReason.MAX_TOKENS)

    def _sleep(self) -> ScriptedCall:
        duration_ms = self._chance.choice((None, 0, 1_000, 60_000, 1_200_000))
        return ScriptedCall(name="Sleep", input={"reason": "tired", "duration_ms": duration_ms})

    def _follow_ups(self) -> tuple[ScriptedCall, ...]:
        if self._follow_ups_left <= 0:
            return (ScriptedCall(name="Enqueue", input={"text": ""}),)  # refused: text is empty
        self._follow_ups_left -= 1
        priority = self._chance.choice(("interject", "next", "normal", "background"))
        text = f"follow-up {self._follow_ups_left}"
        return (ScriptedCall(name="Enqueue", input={"text": text, "priority": priority}),)
