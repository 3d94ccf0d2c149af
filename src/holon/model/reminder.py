"""How patient the runtime is with a model that says nothing about its work.

Owns:  the policy behind reminders of the current work item.
"""

from holon.model import limits
from holon.model.record import Record


class ReminderPolicy(Record, frozen=True, kw_only=True):
    """After how many rounds a model is reminded. No rounds at all: nobody is ever reminded."""

    rounds_count: int = limits.REMINDER_ROUNDS_COUNT_DEFAULT
    cooldown_rounds_count: int = limits.REMINDER_COOLDOWN_ROUNDS_COUNT_DEFAULT
    tokens_max: int = limits.REMINDER_TOKENS_DEFAULT
