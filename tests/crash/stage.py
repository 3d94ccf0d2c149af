"""Where the host of the moment is found, and what the world was told by all of them.

Owns:  the stage, on which one life of the host follows another, and the ledger, which outlives
       every host.
Rule 1: what the ledger holds was read from a whole answer; a request whose answer was cut off is
        sent again, to whichever host there is then.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.support.served_host import HostGoneError, Reply, Request, ServedHost

RETRY_S: Final = 0.01
ACTIONS_PER_LIFE_COUNT_MAX: Final = 40  # more would pile up faster than a short life can serve
_PASSING: Final = frozenset(
    {"storage_full", "storage_busy", "storage_closed", "busy", "shutting_down"}
)


@dataclass(slots=True)
class Ledger:
    """What the outside world was told. Records are kept as (agent, id)."""

    acked: dict[str, str] = field(default_factory=dict)  # idempotency key to message id
    timers: dict[str, tuple[str, str]] = field(default_factory=dict)  # by key, as the next two
    items: dict[str, tuple[str, str]] = field(default_factory=dict)
    tasks: dict[str, tuple[str, str]] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)  # tasks somebody asked to end
    deliveries: dict[str, str] = field(default_factory=dict)  # delivery id to agent
    duplicate_count: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def acknowledge(self, key: str, reply: Reply) -> None:
        """Note which message a key led to; it must be the same one every time."""
        told = str(reply.at("message_id"))
        earlier = self.acked.setdefault(key, told)
        if earlier != told:
            self.problems.append(f"P2 key {key} gave {earlier} and then {told}")
        self.duplicate_count += bool(reply.at("duplicate"))

    def record(self, kept: dict[str, tuple[str, str]], key: str, made: tuple[str, str]) -> None:
        """Note which record a key led to; it must be the same one every time."""
        earlier = kept.setdefault(key, made)
        if earlier != made:
            self.problems.append(f"P2 key {key} gave {earlier} and then {made}")


class Stage:
    """Where the host of the moment can be found; there may be none for a while."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._host: ServedHost | None = None
        self._actions_left = 0
        self.is_closing = threading.Event()

    def set(self, host: ServedHost | None) -> None:
        """Put a host on stage, or take it away."""
        with self._changed:
            self._host = host
            self._actions_left = ACTIONS_PER_LIFE_COUNT_MAX
            self._changed.notify_all()

    def close(self) -> None:
        """Let the clients finish what they are at, and no more."""
        self.is_closing.set()
        with self._changed:
            self._changed.notify_all()

    def may_act(self) -> bool:
        """Wait until the load on the host of the moment leaves room; False when it is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._actions_left > 0 or self.is_closing.is_set())
            self._actions_left -= 1
        return not self.is_closing.is_set()

    def host(self, *, wait_s: float | None = None) -> ServedHost | None:
        """The host of the moment, once there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._host is not None, wait_s)
            return self._host

    def ask(self, request: Request, *, over_tcp: bool = False) -> Reply:
        """Ask whatever host there is until the request is settled one way or the other."""
        while True:
            host = self.host()
            assert host is not None
            try:
                reply = host.ask(request, over_tcp=over_tcp)
            except HostGoneError:
                time.sleep(RETRY_S)
                continue
            if reply.code not in _PASSING:
                return reply
            time.sleep(RETRY_S)
