"""Provider gate: circuits and retry budgets shared by all agents of a host.

Owns:  the circuit of every route and the retry budget of every account, in memory: a restart closes
       all circuits. Failures are forwarded to a listener.
Rule 1: a route is one model reference, a budget one account, whichever agents use them.
Rule 2: the maps are bounded; the least recently written entry is evicted first.
Rule 3: which model answered is not kept: a fallback belongs to the round that needed it.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeAlias, TypeVar

from holon.decide.providers.routes import (
    CLOSED,
    FULL_BUDGET,
    Circuit,
    CircuitClosed,
    CircuitPermit,
    RetryBudget,
    after_abandoned_probe,
    after_answer,
    after_failure,
    after_retry,
    after_success,
    circuit_permit,
)
from holon.model.limits import PROVIDER_ROUTES_KEPT_COUNT_MAX
from holon.model.lru import Lru
from holon.model.providers.models import ModelRef
from holon.model.record import Record
from holon.model.values import Instant

_Key = TypeVar("_Key", bound=Hashable)
_Kept = TypeVar("_Kept")
CircuitListener: TypeAlias = Callable[[ModelRef, Circuit], None]


class LastFailure(Record, frozen=True, kw_only=True):
    """The newest failure of a provider, as `holon config doctor` shows it."""

    model_ref: str
    failure_kind: str
    summary: str
    failed_at: Instant


FailureListener: TypeAlias = Callable[[str, LastFailure], None]


def ignore_failure(provider: str, failure: LastFailure) -> None:
    """Ignore a failure: the default listener."""


def ignore_circuit(route: ModelRef, circuit: Circuit) -> None:
    """Ignore a circuit change: the default listener."""


class _SparseLru(Generic[_Key, _Kept]):
    """A bounded map of entries that differ from a default; the oldest write is evicted."""

    def __init__(self, default: _Kept) -> None:
        self._default = default
        self._rows: Lru[_Key, _Kept] = Lru(PROVIDER_ROUTES_KEPT_COUNT_MAX)

    def get(self, key: _Key) -> _Kept:
        value = self._rows.peek(key)
        return self._default if value is None else value

    def put(self, key: _Key, value: _Kept) -> None:
        if value == self._default:
            self._rows.pop(key)
        else:
            self._rows.put(key, value)


class ProviderGate:
    """Shared by every agent of a host; used from its event loop alone."""

    def __init__(
        self, notice: FailureListener = ignore_failure, moved: CircuitListener = ignore_circuit
    ) -> None:
        self._notice = notice
        self._moved = moved  # called when a circuit opens or closes
        self._circuits: _SparseLru[ModelRef, Circuit] = _SparseLru(CLOSED)
        self._budgets: _SparseLru[str, RetryBudget] = _SparseLru(FULL_BUDGET)
        self._answered: _SparseLru[ModelRef, bool] = _SparseLru(default=False)

    def enter(self, route: ModelRef, *, now_ms: int, has_fallback: bool) -> CircuitPermit:
        """Return how a route may be called now; a probe must call `leave` afterwards."""
        circuit, allowed = circuit_permit(
            self._circuits.get(route), now_ms=now_ms, has_fallback=has_fallback
        )
        self._circuits.put(route, circuit)
        return allowed

    def leave(self, route: ModelRef, *, now_ms: int) -> None:
        """End a probe, whether it had an outcome or was cancelled."""
        self._circuits.put(route, after_abandoned_probe(self._circuits.get(route), now_ms=now_ms))

    def is_resting(self, route: ModelRef) -> bool:
        """Whether a route's circuit is open: it is skipped while there is a fallback."""
        return not isinstance(self._circuits.get(route), CircuitClosed)

    def note_success(self, route: ModelRef, *, account: str) -> None:
        """Record an answered attempt."""
        self._move(route, after_answer())
        self._answered.put(route, True)
        self._budgets.put(account, after_success(self._budgets.get(account)))

    def has_answered(self, route: ModelRef) -> bool:
        """Whether the route has given a good answer before."""
        return self._answered.get(route)

    def note_failure(
        self, route: ModelRef, failure: LastFailure, *, retryable: bool, now_ms: int
    ) -> None:
        """Record a failed attempt."""
        circuit = self._circuits.get(route)
        moved = after_failure(circuit, now_ms=now_ms) if retryable else after_answer()
        self._move(route, moved)
        self.note_refusal(route, failure)

    def _move(self, route: ModelRef, circuit: Circuit) -> None:
        before = self._circuits.get(route)
        self._circuits.put(route, circuit)
        if isinstance(before, CircuitClosed) != isinstance(circuit, CircuitClosed):
            self._moved(route, circuit)

    def note_refusal(self, route: ModelRef, failure: LastFailure) -> None:
        """Record a candidate that could not be called; its circuit does not change."""
        self._notice(route.provider, failure)

    def may_retry(self, account: str) -> bool:
        """Whether the account has a retry left."""
        return not self._budgets.get(account).is_spent

    def spend_retry(self, account: str) -> None:
        """Take one retry from the account's budget."""
        self._budgets.put(account, after_retry(self._budgets.get(account)))
