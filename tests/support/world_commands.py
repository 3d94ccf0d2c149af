"""Commands of a simulated world: virtual time, outages and losses.

Owns:  the shell of a world with commands, what its model runs, and the outages only commands have:
       killed from outside, or lost while no host ran.
Rule 1: everything is drawn from a random stream of its own, so worlds without commands do not
        change.
Rule 2: commands outlive the host; the shell and its state survive every crash.
Rule 3: a model runs a bounded number of commands, so that a world left alone becomes idle.
"""

from datetime import datetime
from random import Random
from typing import Any, Final

from holon.model.turns.conversation import ConversationMessage
from holon.model.values import JsonValue, later
from holon.tools.registry import local_registry
from tests.support.manual_clock import ManualClock
from tests.support.mixed_commands import task_ids_shown
from tests.support.scripted_provider import ScriptedCall, ScriptedRound
from tests.support.scripted_shell import CommandScript, NamedPlaces, ScriptedShell
from tests.support.world_plan import AGENTS, Planned, Steer

HOME: Final = "/world"
_DAY_MS: Final = 86_400_000
COMMANDS: Final = {
    "true": CommandScript(),
    "echo": CommandScript(after_ms=5, stdout=b"said\n"),
    "false": CommandScript(after_ms=20, exit_status=1, stderr=b"no\n"),
    "build": CommandScript(after_ms=4_000, stdout=b"built\n"),
    "test": CommandScript(after_ms=45_000, stdout=b"tested\n"),
    "check": CommandScript(after_ms=240_000, exit_status=2),
    "stubborn": CommandScript(after_ms=900_000, ignores_terminate=True),
    "serve": CommandScript(after_ms=30 * _DAY_MS, stdout=b"serving\n"),
    "gone": CommandScript(cannot_start="there is no such shell"),
}
_COMMANDS_SHARE: Final = 0.45
_COMMANDS_COUNT_MAX: Final = 16
_OUTAGES_COUNT_MAX: Final = 4
_STEERINGS_COUNT_MAX: Final = 8
_VANISHING_SHARE: Final = 0.15  # of the commands that run while the host is down
_YIELDS_MS: Final = (None, 0, 0, 300, 6_000)


def ports_of(commands: "WorldCommands") -> dict[str, Any]:
    """Return the ports of a host whose agents can act."""
    return {
        "tools": local_registry(),
        "shell": commands.shell,
        "places": commands.places,
        "home": HOME,
    }


class WorldCommands:
    """Shell, directories and bad luck of one seed."""

    def __init__(self, clock: ManualClock, chance: Random, *, span_ms: int) -> None:
        self._clock = clock
        self._chance = chance
        self.shell = ScriptedShell(clock, COMMANDS)
        self.places = NamedPlaces()
        self._commands_left = chance.randrange(4, _COMMANDS_COUNT_MAX)
        self._outages: list[datetime] = sorted(
            later(clock.now(), by_ms=chance.randrange(span_ms))
            for _ in range(chance.randrange(_OUTAGES_COUNT_MAX))
        )
        self.vanished: set[str] = set()

    def steering(self, *, span_ms: int) -> tuple[Planned, ...]:
        """The operator takes agents off their lanes while they have commands under way."""
        planned: list[Planned] = []
        for _ in range(self._chance.randrange(_STEERINGS_COUNT_MAX)):
            agent, at_ms = self._chance.choice(AGENTS), self._chance.randrange(span_ms)
            verb = self._chance.choice(("abort", "abort", "stop"))
            planned.append(Planned(at_ms=at_ms, action=Steer(agent=agent, verb=verb)))
            if verb == "stop":
                back_at_ms = at_ms + self._chance.randrange(20_000)
                resume = Steer(agent=agent, verb="resume")
                planned.append(Planned(at_ms=back_at_ms, action=resume))
        return tuple(planned)

    def begin_life(self) -> None:
        """A new host is up. While there was none, some commands were lost with their traces."""
        for process in self.shell.running:
            if process.run_id in self.shell.kept and self._chance.random() < _VANISHING_SHARE:
                self.shell.lose(process.run_id)
                self.vanished.add(process.run_id)
        self.shell.begin_life()

    async def strike(self) -> None:
        """Kill commands from outside, each at its moment."""
        while self._outages:
            await self._clock.sleep_until(self._outages[0])
            self._outages.pop(0)
            running = self.shell.running
            if running:
                self._chance.choice(running).kill_from_outside()

    def round(self, conversation: tuple[ConversationMessage, ...]) -> ScriptedRound | None:
        """Return the next round with commands, if there is one."""
        if self._chance.random() >= _COMMANDS_SHARE:
            return None
        tasks = task_ids_shown(conversation)
        if tasks and self._chance.random() < 0.35:
            return ScriptedRound(calls=(self._about(self._chance.choice(tasks[-3:])),))
        if self._commands_left <= 0:
            return None
        self._commands_left -= 1
        dice = self._chance.random()
        if dice < 0.65:
            return ScriptedRound(calls=(self._command(),))
        if dice < 0.85:
            return ScriptedRound(calls=(self._command(), self._command()))
        return ScriptedRound(calls=(self._batch(),))

    def _command(self) -> ScriptedCall:
        asked: dict[str, JsonValue] = {
            "cmd": self._chance.choice(tuple(COMMANDS)),
            "yield_time_ms": self._chance.choice(_YIELDS_MS),
        }
        if self._chance.random() < 0.3:
            asked["duplicate_policy"] = "start_new"
        return ScriptedCall(name="ExecCommand", input=asked)

    def _batch(self) -> ScriptedCall:
        names = self._chance.sample(tuple(COMMANDS), k=3)
        items: list[JsonValue] = [{"cmd": name, "yield_time_ms": 2_000} for name in names]
        return ScriptedCall(name="ExecCommandBatch", input={"items": items})

    def _about(self, task_id: str) -> ScriptedCall:
        match self._chance.choice(("stop", "stop", "look", "wait")):
            case "stop":
                return ScriptedCall(name="TaskStop", input={"task_id": task_id})
            case "look":
                return ScriptedCall(name="TaskOutput", input={"task_id": task_id})
            case _:
                asked: dict[str, JsonValue] = {"task_id": task_id, "block": True}
                return ScriptedCall(name="TaskOutput", input={**asked, "timeout_ms": 20_000})
