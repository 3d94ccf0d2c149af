"""The Sleep tool: rest, optionally until a moment.

Owns:  the Sleep tool. A duration becomes a one-shot timer and a wait of kind `rest`.
Rule 1: a later Sleep replaces an earlier one; a rest whose timer has fired is left alone, because
        its tick is already queued.
Rule 2: duration 0 means no duration: models send it, and it is not worth an error.
"""

from typing import Annotated, Final

import msgspec

from holon.decide.queue.commits import cancel_timer_changes
from holon.model.commits import Change, CreateTimer, Expect, MoveWait, OpenWait, WaitInState
from holon.model.limits import LABEL_CHARS_MAX, SLEEP_DURATION_MS_MAX
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.values import IdPrefix, JsonValue, TimerId, WaitId, later
from holon.model.wake import OneShot, TimerRecord, WaitKind, WaitRecord, WaitState
from holon.tools.arguments import decode_arguments, guidance_for, leniently, schema_of
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene


class SleepArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason and duration of a rest."""

    reason: Annotated[
        Annotated[str, msgspec.Meta(max_length=LABEL_CHARS_MAX)] | None,
        msgspec.Meta(description="Why you rest, in a few words for the operator."),
    ] = None
    duration_ms: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=SLEEP_DURATION_MS_MAX)] | None,
        msgspec.Meta(description="For how many milliseconds; leave it out to rest until woken."),
    ] = None


class Sleep:
    """Ends the turn, and wakes the agent after a duration if one is given."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="Sleep",
            description=guidance_for("sleep"),
            input_schema=schema_of(SleepArguments),
        )

    @leniently(("ms", "duration_ms"), ("why", "reason"), drops_unknown=False)
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Plan the timer and the wait."""
        request = decode_arguments(_without_zero(arguments), SleepArguments)
        if isinstance(request, ToolExecution):
            return request
        reason = request.reason or "nothing left to do"
        changes, expects = await _replaced_rest(scene, ports)
        if request.duration_ms:
            changes = (*changes, *_armed_rest(request.duration_ms, reason, scene, ports))
        return ToolExecution(
            outcome=ToolOk(
                result={"sleeping": True, "duration_ms": request.duration_ms or None},
                ends_turn=True,
                sleep_reason=reason,
            ),
            changes=changes,
            expects=expects,
        )


def _without_zero(arguments: JsonValue) -> JsonValue:
    """Treat a duration of zero as none; the schema requires at least one millisecond."""
    if not isinstance(arguments, dict):
        return arguments
    duration = arguments.get("duration_ms")
    is_zero = isinstance(duration, int | float) and not isinstance(duration, bool) and duration == 0
    return {**arguments, "duration_ms": None} if is_zero else arguments


async def _replaced_rest(
    scene: ToolScene, ports: ToolPorts
) -> tuple[tuple[Change, ...], tuple[Expect, ...]]:
    snapshot = await ports.reads.agents.snapshot(scene.agent_id, now=scene.now)
    changes: tuple[Change, ...] = ()
    expects: tuple[Expect, ...] = ()
    for wait in snapshot.agent_waits if snapshot else ():
        if wait.kind is not WaitKind.REST or wait.state is not WaitState.ACTIVE:
            continue
        timer = await ports.reads.wake.timer(TimerId(wait.source_id or ""))
        if timer is not None and timer.next_fire_at is not None:
            stopped, unmoved = cancel_timer_changes(timer, ())
            changes, expects = (*changes, *stopped), (*expects, *unmoved)
        changes = (
            *changes,
            MoveWait(
                agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.CANCELLED, by="sleep"
            ),
        )
        expects = (*expects, WaitInState(wait_id=wait.id, state=WaitState.ACTIVE))
    return changes, expects


def _armed_rest(
    duration_ms: int, reason: str, scene: ToolScene, ports: ToolPorts
) -> tuple[Change, ...]:
    due_at = later(scene.now, by_ms=duration_ms)
    timer_id = TimerId(ports.ids.fresh(IdPrefix.TIMER))
    wait_id = WaitId(ports.ids.fresh(IdPrefix.WAIT))
    timer = TimerRecord(
        id=timer_id,
        agent_id=scene.agent_id,
        created_at=scene.now,
        anchor_at=due_at,
        schedule=OneShot(),
        next_fire_at=due_at,
        summary=reason,
        wait_id=wait_id,
    )
    wait = WaitRecord(
        id=wait_id,
        agent_id=scene.agent_id,
        kind=WaitKind.REST,
        waiting_for=reason,
        created_at=scene.now,
        deadline_at=due_at,
        source_id=timer_id,
    )
    return (CreateTimer(timer=timer), OpenWait(wait=wait))
