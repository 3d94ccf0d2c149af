"""News about providers reach the journal: failures, a rest, and the return."""

from pathlib import Path

import pytest

from holon.adapters.providers.last_failures import LastFailureLog
from holon.model.limits import PROVIDER_CIRCUIT_FAILURES_COUNT_MAX
from holon.model.providers.models import parse_model_ref
from holon.runtime.providers.gate import LastFailure, ProviderGate
from holon.serve.providers import ProviderJournal
from tests.runtime.notes import Notes
from tests.support.manual_clock import DAWN

ROUTE = parse_model_ref("openai/gpt-5.4")
FAILURE = LastFailure(
    model_ref=str(ROUTE), failure_kind="server_error", summary="it said 500", failed_at=DAWN
)


@pytest.mark.requirement("journal:providers-are-told-of")
def test_failures_are_told_and_a_breaker_only_when_it_moves(tmp_path: Path) -> None:
    notes = Notes()
    news = ProviderJournal(LastFailureLog(tmp_path), notes)
    gate = ProviderGate(notice=news.failed, moved=news.moved)
    for _ in range(PROVIDER_CIRCUIT_FAILURES_COUNT_MAX + 2):
        gate.note_failure(ROUTE, FAILURE, retryable=True, now_ms=0)
    gate.note_success(ROUTE, account="a")
    gate.note_success(ROUTE, account="a")
    told = [note.event for note in notes.lines]
    assert told.count("provider_failed") == PROVIDER_CIRCUIT_FAILURES_COUNT_MAX + 2
    assert [event for event in told if event != "provider_failed"] == [
        "provider_rests",
        "provider_back",
    ]
    assert notes.of("provider_failed")[0].about == {
        "provider": "openai",
        "model_ref": "openai/gpt-5.4",
        "failure_kind": "server_error",
    }
