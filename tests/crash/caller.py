"""Whoever asks something of a host that keeps being killed.

Owns:  a thread that asks for one thing after another, each until it is answered, across any number
       of lives of the host.
Rule 1: whoever stops an agent starts it again, so that everybody's requests can be taken in the
        end.
"""

import threading
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from holon.model.values import JsonValue
from tests.crash.stage import RETRY_S, Ledger, Stage
from tests.support.served_host import Reply, Request

AGENTS: Final = ("ada", "bob", "cyd", "dee")
STOPPED_NOW_AND_THEN: Final = "dee"
PAUSE_S_MEAN: Final = 0.02


class Caller(threading.Thread):
    """One caller; what it may ask for comes with a weight."""

    def __init__(self, name: str, stage: Stage, ledger: Ledger, chance: Random) -> None:
        super().__init__(name=name, daemon=True)
        self.stage = stage
        self.ledger = ledger
        self.chance = chance
        self._count = 0

    def actions(self) -> Mapping[Callable[[], None], int]:
        """What it may ask for, and how often."""
        raise AssertionError("a caller has something to ask")

    def run(self) -> None:
        """Ask for one thing after another until the stage closes."""
        chosen = self.actions()
        while self.stage.may_act():
            self._count += 1
            self.chance.choices(list(chosen), list(chosen.values()))[0]()
            self.pause()

    def pause(self) -> None:
        """Let a moment pass."""
        self.stage.is_closing.wait(self.chance.expovariate(1 / PAUSE_S_MEAN))

    @property
    def key(self) -> str:
        """What the request of the moment is repeated under."""
        return f"{self.name}-{self._count}"

    def agent(self) -> str:
        """Draw whom to ask."""
        return self.chance.choice(AGENTS)

    def ask(self, request: Request) -> Reply:
        """Ask until there is an answer; half of the time over TCP."""
        reply = self.stage.ask(request, over_tcp=self.chance.random() < 0.5)
        if not reply.ok:
            self.ledger.refusals[reply.code] += 1
        return reply

    def control(self, rest: str, body: JsonValue = None, *, key: str | None = None) -> Reply:
        """Ask as the operator does."""
        return self.ask(Request(path=f"/control/agents/{rest}", body=body, key=key))

    def admit(self, request: Request) -> None:
        """Repeat until it is in, and note what was said; a stopped agent will be started."""
        while not (reply := self.ask(request)).ok:
            if reply.code != "agent_stopped":
                self.ledger.problems.append(f"{request} was refused: {reply.body!r}")
                return
            time.sleep(RETRY_S)
        assert request.key is not None
        self.ledger.acknowledge(request.key, reply)
