"""The circuit of one route: when a model that keeps failing is left alone for a while.

Owns:  the states of a circuit and every move between them.
Rule 1: PROVIDER_CIRCUIT_FAILURES_COUNT_MAX failures in a row that may pass by themselves open it.
        Any other end of an attempt, a refusal included, shows that somebody is there and closes it.
Rule 2: while a route rests it is passed over, as long as there is somebody else to ask. Whoever has
        nobody else asks it once, without retries: no agent starves.
Rule 3: after the rest one asker probes it. A failed probe doubles the rest, up to
        PROVIDER_CIRCUIT_REST_MS_MAX; a probe that was broken off leaves the place to the next.
Rule 4: moments are monotonic milliseconds: setting the wall clock opens and closes nothing.
"""

from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from holon.model.limits import (
    PROVIDER_CIRCUIT_FAILURES_COUNT_MAX,
    PROVIDER_CIRCUIT_REST_MS_MAX,
    PROVIDER_CIRCUIT_REST_MS_MIN,
)
from holon.model.record import Record


class Closed(Record, tag_field="kind", tag="closed", frozen=True, kw_only=True):
    """The route is in use; so many failures in a row were seen last."""

    failures_count: int = 0


class Resting(Record, tag_field="kind", tag="resting", frozen=True, kw_only=True):
    """The route is left alone until a moment."""

    until_ms: int
    rest_ms: int


class Probing(Record, tag_field="kind", tag="probing", frozen=True, kw_only=True):
    """One asker is finding out whether the route is back."""

    rest_ms: int


Circuit: TypeAlias = Closed | Resting | Probing

CLOSED: Final = Closed()


class Passage(StrEnum):
    """How a route may be asked now."""

    FREE = "free"
    PROBE = "probe"  # once, on behalf of everybody
    ONCE = "once"  # there is nobody else to ask
    PASSED_OVER = "passed_over"


def passage(circuit: Circuit, *, now_ms: int, has_fallback: bool) -> tuple[Circuit, Passage]:
    """Return how the route may be asked, and the circuit once it is asked so."""
    match circuit:
        case Closed():
            return circuit, Passage.FREE
        case Resting(until_ms=until_ms, rest_ms=rest_ms) if now_ms >= until_ms:
            return Probing(rest_ms=rest_ms), Passage.PROBE
        case Resting() | Probing():
            return circuit, Passage.PASSED_OVER if has_fallback else Passage.ONCE
        case _:
            assert_never(circuit)


def after_answer() -> Circuit:
    """Return the circuit of a route that answered, be it with a refusal."""
    return CLOSED


def after_failure(circuit: Circuit, *, now_ms: int) -> Circuit:
    """Return the circuit after a failure that may pass by itself."""
    match circuit:
        case Closed(failures_count=count) if count + 1 < PROVIDER_CIRCUIT_FAILURES_COUNT_MAX:
            return Closed(failures_count=count + 1)
        case Closed():
            return _rested(PROVIDER_CIRCUIT_REST_MS_MIN, now_ms)
        case Probing(rest_ms=rest_ms):
            return _rested(min(2 * rest_ms, PROVIDER_CIRCUIT_REST_MS_MAX), now_ms)
        case Resting():
            return circuit  # asked out of need: that must not put the probe off for ever
        case _:
            assert_never(circuit)


def after_broken_off_probe(circuit: Circuit, *, now_ms: int) -> Circuit:
    """Return the circuit when the asker that probed it went away without an outcome."""
    match circuit:
        case Probing(rest_ms=rest_ms):
            return Resting(until_ms=now_ms, rest_ms=rest_ms)
        case Closed() | Resting():
            return circuit
        case _:
            assert_never(circuit)


def _rested(rest_ms: int, now_ms: int) -> Resting:
    return Resting(until_ms=now_ms + rest_ms, rest_ms=rest_ms)
