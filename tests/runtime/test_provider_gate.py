"""What the agents of a host know together about providers, and how little of it is kept."""

from holon.decide.providers.routes import CircuitPermit
from holon.model.limits import PROVIDER_ROUTES_KEPT_COUNT_MAX
from holon.model.providers.models import ModelRef, parse_model_ref
from holon.runtime.providers.gate import LastFailure, ProviderGate
from tests.support.manual_clock import DAWN

ONE, TWO = parse_model_ref("lab/one"), parse_model_ref("lab/two")


def a_failure(ref: ModelRef, kind: str = "timeout") -> LastFailure:
    return LastFailure(model_ref=str(ref), failure_kind=kind, summary="late", failed_at=DAWN)


def wear_out(gate: ProviderGate, ref: ModelRef) -> None:
    for _ in range(5):
        gate.note_failure(ref, a_failure(ref), retryable=True, now_ms=0)


def test_routes_of_one_provider_rest_on_their_own() -> None:
    gate = ProviderGate()
    wear_out(gate, ONE)
    assert gate.is_resting(ONE)
    assert not gate.is_resting(TWO)
    assert gate.enter(ONE, now_ms=0, has_fallback=True) is CircuitPermit.PASSED_OVER
    assert gate.enter(TWO, now_ms=0, has_fallback=True) is CircuitPermit.FREE
    gate.note_success(ONE, account="lab")
    assert not gate.is_resting(ONE)


def test_every_failure_is_passed_on_with_its_provider() -> None:
    noticed: list[tuple[str, LastFailure]] = []
    gate = ProviderGate(notice=lambda *told: noticed.append(told))
    gate.note_failure(ONE, a_failure(ONE), retryable=True, now_ms=0)
    gate.note_refusal(TWO, a_failure(TWO, "model_unavailable"))
    gate.note_success(TWO, account="lab")
    assert noticed == [("lab", a_failure(ONE)), ("lab", a_failure(TWO, "model_unavailable"))]


def test_what_is_kept_is_bounded_and_the_oldest_is_forgotten_first() -> None:
    gate = ProviderGate()
    refs = [parse_model_ref(f"p{n}/m") for n in range(PROVIDER_ROUTES_KEPT_COUNT_MAX + 1)]
    for ref in refs:
        wear_out(gate, ref)
        gate.spend_retry(ref.provider)
    assert not gate.is_resting(refs[0])
    assert gate.is_resting(refs[1])
    assert gate.is_resting(refs[-1])
