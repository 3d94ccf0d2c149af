"""Failpoints that fail: the process kills or terminates itself, or an error is raised.

Owns:  the grammar of HOLON_FAILPOINTS, `round.after_commit=kill@3;admit.before_commit=raise`: a
       point, the action, and the visit at which it happens.
Rule 1: a process that terminates itself stays at the failpoint until it is cancelled there, or,
        where the point is shielded, until the waiting caller has been cancelled.
Rule 2: an unknown point or action is an error, so that a misspelt test cannot pass by accident.
"""

import os
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import anyio

from holon.model.errors import BadInputError
from holon.model.limits import HTTP_LAST_REPLIES_MS_MAX, SECOND_MS
from holon.ports.failpoint import Failpoint


class FailpointError(Exception):
    """Raised at a failpoint armed with `raise`."""


class FailAction(StrEnum):
    """What happens at an armed failpoint."""

    KILL = "kill"
    RAISE = "raise"
    TERM = "term"


@dataclass(frozen=True, slots=True)
class Armed:
    """One armed failpoint."""

    action: FailAction
    from_visit: int


def parse_failpoints(text: str) -> dict[Failpoint, Armed]:
    """Read the value of HOLON_FAILPOINTS."""
    armed: dict[Failpoint, Armed] = {}
    for part in (part.strip() for part in text.split(";")):
        if not part:
            continue
        name, _, action = part.partition("=")
        what, _, visit = action.partition("@")
        try:
            armed[Failpoint(name)] = Armed(FailAction(what), int(visit or "1"))
        except ValueError:
            raise BadInputError(
                f"HOLON_FAILPOINTS: {part!r} is not a failpoint",
                hint="write <point>=kill|raise|term[@visit], separated by ';'",
            ) from None
    return armed


class ArmedFailpoints:
    """Fails where it was told to, and counts every visit."""

    def __init__(self, armed: Mapping[Failpoint, Armed]) -> None:
        self._armed = armed
        self.visits: Counter[Failpoint] = Counter()

    async def reach(self, point: Failpoint) -> None:
        """Fail if this visit is the one."""
        self.visits[point] += 1
        armed = self._armed.get(point)
        if armed is None or self.visits[point] != armed.from_visit:
            return
        match armed.action:
            case FailAction.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case FailAction.RAISE:
                raise FailpointError(point.value)
            case FailAction.TERM:
                os.kill(os.getpid(), signal.SIGTERM)
                await anyio.sleep(2 * HTTP_LAST_REPLIES_MS_MAX / SECOND_MS)
