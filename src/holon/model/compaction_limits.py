"""Bounds of a conversation that outgrows what a prompt leaves it, by name.

Owns:  the numbers of compaction and of token estimates; every other one is in model/limits.
"""

from typing import Final

from holon.model.limits import HISTORY_TURNS_COUNT_DEFAULT, KIB, RETENTION_TURNS_COUNT_MIN

# Earlier turns.
HISTORY_TURNS_COUNT_MAX: Final = 2 * HISTORY_TURNS_COUNT_DEFAULT  # the older half is let go then
HISTORY_TURNS_READ_COUNT_MAX: Final = 48  # however many were not let go of
HISTORY_HIGH_PERCENT: Final = 50  # of the conversation's budget: earlier turns above it are let go
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
CALIBRATION_REQUEST_BYTES_MIN: Final = 2 * KIB  # a smaller one says nothing about tokens
CALIBRATION_STRAY_PERCENT: Final = 10  # so far the mean may move before it is used

assert HISTORY_TURNS_COUNT_MAX <= HISTORY_TURNS_READ_COUNT_MAX <= RETENTION_TURNS_COUNT_MIN
assert HISTORY_LOW_PERCENT < HISTORY_HIGH_PERCENT
