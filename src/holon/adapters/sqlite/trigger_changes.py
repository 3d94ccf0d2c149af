"""Writing changes to external triggers and their deliveries.

Owns:  the rows of `external_triggers` and `trigger_deliveries`, and the hints deliveries leave.
Rule 1: deliveries commute: each counts one up and folds its hint into whatever is parked, so that
        no delivery is ever decided again because of another.
Rule 2: the fold in SQL keeps what the fold of `decide/wake.py` keeps. A new body never stands
        beside the content type of the one it replaced.
"""

from typing import TypeAlias, assert_never

from holon.adapters.sqlite.change_codec import encode, micros_or_none
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.commit import CreateTrigger, DeliverTrigger, MoveTrigger
from holon.model.instant import to_micros

TriggerChange: TypeAlias = CreateTrigger | MoveTrigger | DeliverTrigger


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
