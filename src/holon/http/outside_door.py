"""What holds for those who come from outside.

Owns:  how often triggers may be used, and the secrets webhooks are signed with.
Rule 1: only deliveries whose address was right are counted, so that nobody can shut a trigger by
        guessing at it.
Rule 2: a source that was set up without a usable secret is shut, never open.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from holon.http.rate_limiter import RateLimiter
from holon.model.ids import TriggerId
from holon.model.limits import (
    TRIGGER_BURST_COUNT_MAX,
    TRIGGER_PER_MINUTE_COUNT,
    TRIGGERS_BURST_COUNT_MAX,
    TRIGGERS_PER_SECOND_COUNT,
)
from holon.ports.clock import Clock


@dataclass(frozen=True, kw_only=True, slots=True)
class TriggerRates:
    """How many deliveries are taken: of one trigger, and of all of them."""

    burst: int = TRIGGER_BURST_COUNT_MAX
    per_minute: int = TRIGGER_PER_MINUTE_COUNT
    all_burst: int = TRIGGERS_BURST_COUNT_MAX
    all_per_minute: int = TRIGGERS_PER_SECOND_COUNT * 60


class OutsideDoor:
    """One server's patience with outsiders, and whom of them it knows."""

    def __init__(
        self,
        clock: Clock,
        *,
        webhook_secrets: Mapping[str, bytes | None] | None = None,
        github_signers: Collection[str] = (),
        rates: TriggerRates | None = None,
    ) -> None:
        chosen = rates or TriggerRates()
        self._secrets = dict(webhook_secrets or {})
        self._github_signers = frozenset(github_signers)
        self._each = RateLimiter(clock=clock, burst=chosen.burst, per_minute=chosen.per_minute)
        self._all = RateLimiter(
            clock=clock, burst=chosen.all_burst, per_minute=chosen.all_per_minute
        )

    def delivery_wait_s(self, trigger_id: TriggerId) -> int | None:
        """Count a delivery, or say how long its sender has to wait before the next."""
        wait_s = self._each.wait_s(trigger_id) or self._all.wait_s(None)
        if wait_s is None:
            self._each.count(trigger_id)
            self._all.count(None)
        return wait_s

    def secret_of(self, source: str) -> bytes | None:
        """The secret a source signs with, or nothing when it has none that can be used."""
        return self._secrets.get(source) or None

    def signs_as_github(self, source: str) -> bool:
        """Whether a source was set up for the signatures of GitHub."""
        return source in self._github_signers

    def is_shut(self, source: str) -> bool:
        """Whether a source was set up, but without a secret that can be used."""
        return source in self._secrets and not self._secrets[source]
