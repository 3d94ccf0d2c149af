"""When a route rests, who may ask it meanwhile, and how it comes back."""

import pytest

from holon.decide.providers.routes import (
    CLOSED,
    Circuit,
    CircuitClosed,
    CircuitHalfOpen,
    CircuitOpen,
    CircuitPermit,
    after_abandoned_probe,
    after_answer,
    after_failure,
    circuit_permit,
)
from holon.model.limits import (
    PROVIDER_CIRCUIT_FAILURES_COUNT_MAX,
    PROVIDER_CIRCUIT_REST_MS_MAX,
    PROVIDER_CIRCUIT_REST_MS_MIN,
)

NOW_MS = 1_000
LAST = PROVIDER_CIRCUIT_FAILURES_COUNT_MAX - 1
REST = CircuitOpen(until_ms=2_000, rest_ms=1_500)
PROBE = CircuitHalfOpen(rest_ms=1_500)


@pytest.mark.requirement("provider-retry:circuit")
@pytest.mark.parametrize(
    ("circuit", "now_ms", "has_fallback", "expected"),
    [
        (CLOSED, 0, True, (CLOSED, CircuitPermit.FREE)),
        (
            CircuitClosed(failures_count=LAST),
            0,
            False,
            (CircuitClosed(failures_count=LAST), CircuitPermit.FREE),
        ),
        (REST, 1_999, True, (REST, CircuitPermit.PASSED_OVER)),
        (REST, 1_999, False, (REST, CircuitPermit.ONCE)),
        (REST, 2_000, True, (PROBE, CircuitPermit.PROBE)),
        (REST, 2_000, False, (PROBE, CircuitPermit.PROBE)),
        (PROBE, 9_000, True, (PROBE, CircuitPermit.PASSED_OVER)),
        (PROBE, 9_000, False, (PROBE, CircuitPermit.ONCE)),
    ],
)
def test_who_may_ask_a_route(
    circuit: Circuit, now_ms: int, has_fallback: bool, expected: tuple[Circuit, CircuitPermit]
) -> None:
    assert circuit_permit(circuit, now_ms=now_ms, has_fallback=has_fallback) == expected


@pytest.mark.requirement("provider-retry:circuit")
@pytest.mark.parametrize(
    ("circuit", "expected"),
    [
        (CLOSED, CircuitClosed(failures_count=1)),
        (CircuitClosed(failures_count=LAST - 1), CircuitClosed(failures_count=LAST)),
        (
            CircuitClosed(failures_count=LAST),
            CircuitOpen(
                until_ms=NOW_MS + PROVIDER_CIRCUIT_REST_MS_MIN,
                rest_ms=PROVIDER_CIRCUIT_REST_MS_MIN,
            ),
        ),
        (PROBE, CircuitOpen(until_ms=NOW_MS + 3_000, rest_ms=3_000)),
        (
            CircuitHalfOpen(rest_ms=PROVIDER_CIRCUIT_REST_MS_MAX - 1),
            CircuitOpen(
                until_ms=NOW_MS + PROVIDER_CIRCUIT_REST_MS_MAX,
                rest_ms=PROVIDER_CIRCUIT_REST_MS_MAX,
            ),
        ),
        (REST, REST),
    ],
)
def test_what_a_failure_does_to_a_circuit(circuit: Circuit, expected: Circuit) -> None:
    assert after_failure(circuit, now_ms=NOW_MS) == expected


def test_an_answer_closes_a_circuit() -> None:
    assert after_answer() == CircuitClosed(failures_count=0)


@pytest.mark.parametrize(
    ("circuit", "expected"),
    [
        (PROBE, CircuitOpen(until_ms=NOW_MS, rest_ms=1_500)),
        (REST, REST),
        (CLOSED, CLOSED),
    ],
)
def test_a_probe_that_was_broken_off_leaves_its_place_to_the_next(
    circuit: Circuit, expected: Circuit
) -> None:
    assert after_abandoned_probe(circuit, now_ms=NOW_MS) == expected


def test_rests_double_up_to_the_longest() -> None:
    circuit: Circuit = CircuitClosed(failures_count=LAST)
    rests, now_ms = [], 0
    for _ in range(7):
        circuit = after_failure(circuit, now_ms=now_ms)
        assert isinstance(circuit, CircuitOpen)
        rests.append(circuit.rest_ms)
        now_ms = circuit.until_ms
        circuit, way = circuit_permit(circuit, now_ms=now_ms, has_fallback=True)
        assert way is CircuitPermit.PROBE
    assert rests == [30_000, 60_000, 120_000, 240_000, 300_000, 300_000, 300_000]
