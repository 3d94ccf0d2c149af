"""Timers, wake hints, waits and external triggers.

Owns:  the reads for the timer dispatcher, each a range of a partial index from its early end; the
       trigger reads, one lookup per delivery (trigger, agent, duplicate); the rows of `timers`,
       `wake_hints`, `waits`, `external_triggers` and `trigger_deliveries`, and the hints deliveries
       leave.
Rule 1: deliveries commute: each increments a count and merges its hint into the pending one, so no
        delivery is decided again because of another.
Rule 2: the merge in SQL keeps what the merge of `decide/wake/hints.py` keeps. A new body never
        keeps the content type of the one it replaced.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias, assert_never

from holon.adapters.sqlite.database.row_codec import (
    HINTS,
    TimerRow,
    WaitRow,
    encode,
    micros_or_none,
    timer_record,
    wait_record,
)
from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Row,
    Statements,
    at_most,
    named_queries,
    number,
)
from holon.model.agents import AgentStatus
from holon.model.commits import (
    CancelTimer,
    CreateTimer,
    CreateTrigger,
    DeliverTrigger,
    FireTimer,
    MoveTrigger,
    MoveWait,
    OpenWait,
    ParkWakeHint,
    RescheduleTimer,
    TakeWakeHints,
)
from holon.model.events.reads import (
    DueTimer,
)
from holon.model.limits import (
    BUDGET_WINDOW_MS,
    SURFACE_PAGE_COUNT_MAX,
    USAGE_STEP_MS,
)
from holon.model.values import (
    AgentId,
    Instant,
    TimerId,
    TriggerId,
    WorkItemId,
    from_micros,
    to_micros,
)
from holon.model.wake import (
    EarlierDelivery,
    ExternalTrigger,
    TimerRecord,
    TimerStatus,
    TriggerDeliveryMode,
    TriggerStatus,
    TriggerTarget,
    WaitRecord,
    WakeDisposition,
    WakeHint,
)
from holon.ports.reads import DuePlace

_LAST: Final = 2**63 - 1  # later than every moment
_FIRST: Final = -1  # earlier than every moment

_LONGEST_HOLD: Final = timedelta(milliseconds=BUDGET_WINDOW_MS + USAGE_STEP_MS)
WakeChange: TypeAlias = (
    CreateTimer
    | FireTimer
    | RescheduleTimer
    | CancelTimer
    | ParkWakeHint
    | TakeWakeHints
    | OpenWait
    | MoveWait
)
TriggerChange: TypeAlias = CreateTrigger | MoveTrigger | DeliverTrigger


class SqliteWakeReads(ReadSession):
    """What wakes agents: timers, waits and external triggers."""

    async def next_due_at(self, *, after: datetime) -> datetime | None:
        """The earliest timer slot, wait deadline or activation moment later than `after`."""
        found = self._one("next_due", (to_micros(after),))
        moment = None if found is None else found[0]
        return from_micros(moment) if isinstance(moment, int) else None

    async def is_anything_due(self, now: datetime) -> bool:
        """Whether a timer, wait or activation may have come due. One look, and mostly the last."""
        found = self._one("anything_due", (to_micros(now), to_micros(now + _LONGEST_HOLD)))
        return found is not None and bool(found[0])

    async def due_timers(
        self, now: datetime, *, limit: int, after: DuePlace | None = None
    ) -> Sequence[DueTimer]:
        """Active timers of agents that are not stopped whose slot has come, earliest first."""
        return _due_timers(self._all("due_timers", (to_micros(now), limit, *_place(after))))

    async def due_timers_of(
        self, agent_id: AgentId, now: datetime, *, limit: int
    ) -> Sequence[DueTimer]:
        """The same of one agent."""
        return _due_timers(self._all("due_timers_of", (agent_id, to_micros(now), limit)))

    async def timers_ahead(
        self, now: datetime, *, limit: int, after: TimerId | None = None
    ) -> Sequence[TimerRecord]:
        """Active timers that were armed or fired last at a moment later than `now`, by their id."""
        second = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        found = self._all("timers_ahead", (to_micros(now), second, limit, after or ""))
        return [timer_record(TimerRow._make(row)) for row in found]

    async def due_waits(
        self, now: datetime, *, limit: int, after: DuePlace | None = None
    ) -> Sequence[WaitRecord]:
        """Active waits of agents that are not stopped whose deadline has come, earliest first."""
        found = self._all("due_waits", (to_micros(now), limit, *_place(after)))
        return [wait_record(WaitRow._make(row)) for row in found]

    async def due_waits_of(
        self, agent_id: AgentId, now: datetime, *, limit: int
    ) -> Sequence[WaitRecord]:
        """The same of one agent."""
        found = self._all("due_waits_of", (agent_id, to_micros(now), limit))
        return [wait_record(WaitRow._make(row)) for row in found]

    async def due_activations(
        self, now: datetime, *, limit: int, since: datetime | None = None
    ) -> Sequence[AgentId]:
        """Idle agents whose work was held back until a moment that has come."""
        longest = to_micros(now + _LONGEST_HOLD)
        earliest = -1 if since is None else to_micros(since)
        found = self._all("due_activations", (to_micros(now), limit, longest, earliest))
        return [AgentId(str(row[0])) for row in found]

    async def timer(self, timer_id: TimerId) -> TimerRecord | None:
        """One timer."""
        found = self._one("timer", (timer_id,))
        return None if found is None else timer_record(TimerRow._make(found))

    async def waits_on(self, source_id: str) -> Sequence[WaitRecord]:
        """Open waits that this source ends."""
        return self._waits("waits_on", source_id)

    async def item_waits(self, work_item_id: WorkItemId) -> Sequence[WaitRecord]:
        """Open waits this work item owns."""
        return self._waits("item_waits", work_item_id)

    async def timers_page(
        self, agent_id: AgentId, *, after: TimerId | None, limit: int
    ) -> Sequence[TimerRecord]:
        """Timers of an agent: active ones, soonest first; then ended ones, newest first."""
        with self._moment():
            return self.listed_timers(agent_id, after, limit=at_most(limit, SURFACE_PAGE_COUNT_MAX))

    async def trigger_of(self, agent_id: AgentId) -> ExternalTrigger | None:
        """The external trigger of an agent, whatever its status."""
        found = self._one("trigger_of", (agent_id,))
        return None if found is None else _trigger(found)

    async def trigger_target(
        self, trigger_id: TriggerId, *, source_key: str, delivery_key: str | None
    ) -> TriggerTarget | None:
        """A trigger and its agent, as far as one delivery needs them."""
        found = self._one("trigger_target", (trigger_id, source_key, delivery_key))
        if found is None:
            return None
        status, archived, queued, parked, is_parked, earlier, digest = found[9:]
        return TriggerTarget(
            trigger=_trigger(found[:9]),
            agent_status=AgentStatus(str(status)),
            is_archived=bool(archived),
            queued_count=number(queued),
            parked_count=number(parked),
            is_parked=bool(is_parked),
            earlier=None if earlier is None else _earlier(earlier, digest),
        )

    def listed_timers(
        self, agent_id: AgentId, after: TimerId | None, *, limit: int
    ) -> list[TimerRecord]:
        """Timers of an agent: active ones, then ended ones; the caller holds the transaction."""
        is_active, moment = self._cursor_place("timer_place", agent_id, after)
        rows: list[Row] = []
        if is_active:
            start = (_FIRST, "") if after is None else (moment, after)
            rows += self._all("active_timers_page", (agent_id, *start, limit))
        start = (_LAST, "") if is_active or after is None else (moment, after)
        rows += self._all(
            "ended_timers_page", (agent_id, *start, at_most(limit - len(rows), limit))
        )
        return [timer_record(TimerRow._make(row)) for row in rows]

    def some_waits(self, agent_id: AgentId, *, limit: int) -> list[WaitRecord]:
        """Open waits of an agent; the caller holds the transaction."""
        found = self._all("some_open_waits", (agent_id, limit))
        return [wait_record(WaitRow._make(row)) for row in found]

    def hints(self, agent_id: AgentId) -> list[WakeHint]:
        """Parked wake hints of an agent; the caller holds the transaction."""
        return [HINTS.decode(str(row[0])) for row in self._all("hints", (agent_id,))]

    def _waits(self, name: str, key: str) -> list[WaitRecord]:
        return [wait_record(WaitRow._make(row)) for row in self._all(name, (key,))]


def _place(after: DuePlace | None) -> tuple[int, str | None]:
    if after is None:
        return -1, None
    moment = to_micros(after.moment)
    return (moment + 1, None) if after.id is None else (moment, after.id)


def _due_timers(found: Sequence[Row]) -> list[DueTimer]:
    return [
        DueTimer(timer=timer_record(TimerRow._make(columns)), tick_pending=bool(tick_pending))
        for *columns, tick_pending in found
    ]


def _trigger(row: Row) -> ExternalTrigger:
    trigger_id, agent_id, mode, status, epoch, created_at, revoked_at, delivered_at, count = row
    return ExternalTrigger(
        external_trigger_id=TriggerId(str(trigger_id)),
        target_agent_id=AgentId(str(agent_id)),
        delivery_mode=TriggerDeliveryMode(str(mode)),
        status=TriggerStatus(str(status)),
        epoch=number(epoch),
        created_at=from_micros(number(created_at)),
        revoked_at=_moment(revoked_at),
        last_delivered_at=_moment(delivered_at),
        delivery_count=number(count),
    )


def _earlier(disposition: object, digest: object) -> EarlierDelivery:
    return EarlierDelivery(
        disposition=WakeDisposition(str(disposition)),
        content_digest=None if digest is None else str(digest),
    )


def _moment(value: object) -> Instant | None:
    return from_micros(value) if isinstance(value, int) else None


class WakeChanges:
    """Writes what changes about the reasons an agent wakes."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("wake")

    def write(self, change: WakeChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case CreateTimer():
                self._create_timer(change, at=at)
            case FireTimer():
                self._fire_timer(change, at=at)
            case RescheduleTimer():
                slots = to_micros(change.slot), to_micros(change.next_fire_at)
                self._statements.change_one(
                    self._sql["reschedule_timer"],
                    (change.timer_id, change.agent_id, *slots),
                    missing="timers_slot_is_current",
                )
            case CancelTimer(agent_id=agent_id, timer_id=timer_id):
                self._statements.change_one(
                    self._sql["cancel_timer"],
                    (timer_id, agent_id, at),
                    missing="timers_row_missing",
                )
            case ParkWakeHint():
                self._park_hint(change)
            case TakeWakeHints(agent_id=agent_id, source_keys=source_keys):
                for key in source_keys:
                    self._statements.change_one(
                        self._sql["take_wake_hint"],
                        (agent_id, key),
                        missing="wake_hints_row_missing",
                    )
            case OpenWait():
                self._open_wait(change, at=at)
            case MoveWait():
                self._move_wait(change, at=at)
            case _:
                assert_never(change)

    def _create_timer(self, change: CreateTimer, *, at: int) -> None:
        timer = change.timer
        self._statements.run(
            self._sql["create_timer"],
            (
                timer.id,
                timer.agent_id,
                timer.status.value,
                micros_or_none(timer.next_fire_at),
                micros_or_none(timer.last_fired_at),
                timer.fire_count,
                None if timer.status is TimerStatus.ACTIVE else at,
                encode(timer),
            ),
        )

    def _fire_timer(self, change: FireTimer, *, at: int) -> None:
        self._statements.change_one(
            self._sql["fire_timer"],
            (
                change.timer_id,
                change.agent_id,
                to_micros(change.slot),
                at,
                micros_or_none(change.next_fire_at),
            ),
            missing="timers_slot_is_current",
        )

    def _park_hint(self, change: ParkWakeHint) -> None:
        hint = change.hint
        self._statements.run(
            self._sql["park_wake_hint"],
            (
                hint.agent_id,
                hint.source_key,
                hint.revision,
                to_micros(hint.created_at),
                encode(hint),
            ),
        )

    def _open_wait(self, change: OpenWait, *, at: int) -> None:
        wait = change.wait
        ended_at = None if wait.state.is_open else micros_or_none(wait.ended_at) or at
        self._statements.run(
            self._sql["open_wait"],
            (
                wait.id,
                wait.agent_id,
                wait.kind.value,
                wait.state.value,
                wait.work_item_id,
                wait.source_id,
                micros_or_none(wait.deadline_at),
                wait.triggered_by,
                ended_at,
                encode(wait),
            ),
        )

    def _move_wait(self, change: MoveWait, *, at: int) -> None:
        self._statements.change_one(
            self._sql["move_wait"],
            (change.wait_id, change.agent_id, change.state.value, change.triggered_by, at),
            missing="waits_row_missing",
        )


class TriggerChanges:
    """Writes what changes about external triggers."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("triggers")

    def write(self, change: TriggerChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case CreateTrigger():
                self._create(change)
            case MoveTrigger():
                self._statements.change_one(
                    self._sql["move_trigger"],
                    (
                        change.external_trigger_id,
                        change.agent_id,
                        change.from_epoch,
                        change.epoch,
                        change.status.value,
                        at,
                    ),
                    missing="external_triggers_epoch_is_current",
                )
            case DeliverTrigger():
                self._deliver(change, at=at)
            case _:
                assert_never(change)

    def _create(self, change: CreateTrigger) -> None:
        trigger = change.trigger
        self._statements.run(
            self._sql["create_trigger"],
            (
                trigger.external_trigger_id,
                trigger.target_agent_id,
                trigger.delivery_mode.value,
                trigger.status.value,
                trigger.epoch,
                to_micros(trigger.created_at),
                micros_or_none(trigger.revoked_at),
                micros_or_none(trigger.last_delivered_at),
                trigger.delivery_count,
            ),
        )

    def _deliver(self, change: DeliverTrigger, *, at: int) -> None:
        hint = change.hint
        self._statements.change_one(
            self._sql["count_delivery"],
            (change.external_trigger_id, hint.agent_id, change.epoch, at),
            missing="external_triggers_epoch_is_current",
        )
        if change.delivery_key is not None:
            self._statements.run(
                self._sql["remember_delivery"],
                (
                    change.external_trigger_id,
                    change.delivery_key,
                    at,
                    change.disposition.value,
                    change.content_digest,
                ),
            )
        self._statements.run(
            self._sql["fold_hint"],
            (hint.agent_id, hint.source_key, to_micros(hint.created_at), encode(hint)),
        )
