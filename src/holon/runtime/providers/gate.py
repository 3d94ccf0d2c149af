"""What the agents of one host know together about providers.

Owns:  the circuit of every route and the retry budget of every account. All of it in memory: a
       host that starts trusts everybody again. Failures are passed on to whoever keeps notes.
Rule 1: one route is one model reference, one budget one account, whichever agents use them.
Rule 2: the maps are bounded; what was touched longest ago is forgotten first.
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


class LastFailure(Record, frozen=True, kw_only=True):
    """The newest failure of a provider, as a doctor shows it."""

    model_ref: str
    failure_kind: str
    summary: str
    failed_at: Instant


FailureListener: TypeAlias = Callable[[str, LastFailure], None]


def unnoticed(provider: str, failure: LastFailure) -> None:
    """Nobody keeps notes of failures."""


CircuitListener: TypeAlias = Callable[[ModelRef, Circuit], None]


def unheard(route: ModelRef, circuit: Circuit) -> None:
    """Nobody minds who is given a rest."""


class _Recent(Generic[_Key, _Kept]):
    """What differs from the usual; it forgets what was written longest ago."""

    def __init__(self, default: _Kept) -> None:
        self._default = default
        self._rows: Lru[_Key, _Kept] = Lru(PROVIDER_ROUTES_KEPT_COUNT_MAX)

    def get(self, key: _Key) -> _Kept:
        kept = self._rows.peek(key)
        return self._default if kept is None else kept

    def put(self, key: _Key, kept: _Kept) -> None:
        if kept == self._default:
            self._rows.pop(key)
        else:
            self._rows.put(key, kept)


class ProviderGate:
    """Shared by every agent of a host; used from its event loop alone."""

    def __init__(
        self, notice: FailureListener = unnoticed, moved: CircuitListener = unheard
    ) -> None:
        self._notice = notice
        self._moved = moved  # told when a route is given a rest, and when it is back
        self._circuits: _Recent[ModelRef, Circuit] = _Recent(CLOSED)
        self._budgets: _Recent[str, RetryBudget] = _Recent(FULL_BUDGET)
        self._answered: _Recent[ModelRef, bool] = _Recent(default=False)

    def enter(self, route: ModelRef, *, now_ms: int, has_fallback: bool) -> CircuitPermit:
        """Say how a route may be asked now; a probe must `leave`."""
        circuit, found = circuit_permit(
            self._circuits.get(route), now_ms=now_ms, has_fallback=has_fallback
        )
        self._circuits.put(route, circuit)
        return found

    def leave(self, route: ModelRef, *, now_ms: int) -> None:
        """Let go of a probe, whether it had an outcome or was broken off."""
        self._circuits.put(route, after_abandoned_probe(self._circuits.get(route), now_ms=now_ms))

    def is_resting(self, route: ModelRef) -> bool:
        """Whether a route is to be left alone, as far as possible."""
        return not isinstance(self._circuits.get(route), CircuitClosed)

    def note_success(self, route: ModelRef, *, account: str) -> None:
        """An attempt was answered."""
        self._move(route, after_answer())
        self._answered.put(route, True)
        self._budgets.put(account, after_success(self._budgets.get(account)))

    def has_answered(self, route: ModelRef) -> bool:
        """Whether the route has given a good answer before."""
        return self._answered.get(route)

    def note_failure(
        self, route: ModelRef, failure: LastFailure, *, retryable: bool, now_ms: int
    ) -> None:
        """An attempt failed."""
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
        """A candidate could not be asked at all, which says nothing about its route."""
        self._notice(route.provider, failure)

    def may_retry(self, account: str) -> bool:
        """Whether the account has a retry left."""
        return not self._budgets.get(account).is_spent

    def spend_retry(self, account: str) -> None:
        """A retry is about to be sent."""
        self._budgets.put(account, after_retry(self._budgets.get(account)))
