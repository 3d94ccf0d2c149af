"""Compaction: bounds, changes and events of conversations that were shortened.

Owns:  the bounds of compaction and token estimates; the member of the union `Change`
       (model/commits) that moves an agent's context; the events of compaction, within a turn and
       between turns.
"""

from typing import Final, TypeAlias

from holon.model.agents import AgentContext
from holon.model.limits import HISTORY_TURNS_COUNT_DEFAULT, KIB, RETENTION_TURNS_COUNT_MIN
from holon.model.record import Record
from holon.model.values import AgentId, TurnId

# Earlier turns.
HISTORY_TURNS_COUNT_MAX: Final = 2 * HISTORY_TURNS_COUNT_DEFAULT  # the older half is dropped then
HISTORY_TURNS_READ_COUNT_MAX: Final = 48  # however many were not dropped
HISTORY_HIGH_PERCENT: Final = 50  # of the conversation's budget: earlier turns above it are dropped
HISTORY_LOW_PERCENT: Final = 25  # down to this
HISTORY_BYTES_MAX: Final = 256 * KIB  # before that, whatever a large model would take

# The running turn.
COMPACTION_KEEP_PERCENT: Final = 50  # of the budget, once it has overflowed
COMPACTION_RESERVE_BYTES: Final = 2 * KIB  # two recaps at their shortest, a checkpoint request
COMPACTION_TAIL_COUNT_MIN: Final = 2  # newest rounds, shown in full wherever they fit
RECAP_BYTES_MAX: Final = 8 * KIB  # each: of the turn, and of the turns before it
RECAP_PERCENT: Final = 8  # of the budget, each
RECAP_PREVIEW_CHARS_MAX: Final = 160
RECAP_OPERATOR_CHARS_MAX: Final = 600
RECAP_CALLS_COUNT_MAX: Final = 8  # of one round
CHECKPOINT_BYTES_MAX: Final = 4 * KIB

# Token estimates.
CALIBRATION_TOKEN_BYTES_MIN: Final = 2
CALIBRATION_TOKEN_BYTES_MAX: Final = 6
CALIBRATION_REQUEST_BYTES_MIN: Final = 2 * KIB  # a smaller one is no evidence about tokens
CALIBRATION_STRAY_PERCENT: Final = 10  # how far the mean may move before it is used

assert HISTORY_TURNS_COUNT_MAX <= HISTORY_TURNS_READ_COUNT_MAX <= RETENTION_TURNS_COUNT_MIN
assert HISTORY_LOW_PERCENT < HISTORY_HIGH_PERCENT


class RememberContext(Record, tag=True, frozen=True, kw_only=True):
    """Let earlier turns go: from now on requests begin with this recap and this turn."""

    agent_id: AgentId
    context: AgentContext


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
