"""What the audit log says about conversations that were shortened.

Owns:  the events of compaction, within a turn and between turns.
"""

from typing import TypeAlias

from holon.model.ids import TurnId
from holon.model.record import Record


class TurnCompactionApplied(
    Record, tag_field="kind", tag="turn_local_compaction_applied", frozen=True, kw_only=True
):
    """The first rounds of a running turn are shown as a recap from here on."""

    turn_id: TurnId
    through_round: int
    generation: int


class CheckpointRequested(
    Record, tag_field="kind", tag="turn_local_checkpoint_requested", frozen=True, kw_only=True
):
    """The model was asked to write down where it stands; `delta`: only what is new."""

    turn_id: TurnId
    generation: int
    delta: bool


class CheckpointResumed(
    Record,
    tag_field="kind",
    tag="turn_local_checkpoint_resume_requested",
    frozen=True,
    kw_only=True,
):
    """The model gave its checkpoint and was asked to go on."""

    turn_id: TurnId


class TurnBaselineOverBudget(
    Record, tag_field="kind", tag="turn_local_baseline_over_budget", frozen=True, kw_only=True
):
    """What a request must hold does not fit the model; the turn ends."""

    turn_id: TurnId
    needed_tokens: int
    budget_tokens: int


class HistoryCompacted(
    Record, tag_field="kind", tag="history_compacted", frozen=True, kw_only=True
):
    """Turns before this one are shown as a recap from now on."""

    history_from_turn: int
    compression_epoch: int


ContextEvent: TypeAlias = (
    TurnCompactionApplied
    | CheckpointRequested
    | CheckpointResumed
    | TurnBaselineOverBudget
    | HistoryCompacted
)
