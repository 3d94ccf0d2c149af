"""What a timeline must say, field by field."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from holon.model.limits import PROVIDER_WAIT_INLINE_MS_MAX
from holon.model.providers.attempts import (
    AttemptOutcome,
    AttemptTimeline,
    Disposition,
    ExchangeStage,
    FailureFlags,
    LeftBecause,
    ProviderAttempt,
)
from tests.providers_over_http.switchboard import Line, SkippingClock
from tests.support.wire_server.server import WireServer

SUCCEEDED = AttemptOutcome.SUCCEEDED
RETRYING = AttemptOutcome.RETRYING
EXHAUSTED = AttemptOutcome.RETRIES_EXHAUSTED
ABORTED = AttemptOutcome.FAIL_FAST_ABORTED

_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """How a failed exchange shows in its attempt. `flags` are those that are up."""

    kind: str
    stage: ExchangeStage
    retryable: bool
    status: int | None = None
    flags: frozenset[str] = frozenset()
    retry_after_ms: int | None = None
    got_head: bool = True
    asked: bool = True

    @property
    def disposition(self) -> Disposition:
        return Disposition.RETRYABLE if self.retryable else Disposition.FAIL_FAST

    @property
    def names_a_far_moment(self) -> bool:
        """Whether nobody waits for the moment it names."""
        return (self.retry_after_ms or 0) > PROVIDER_WAIT_INLINE_MS_MAX

    @property
    def reqwest(self) -> FailureFlags | None:
        """The flags as the seed names them; without an exchange there are none."""
        raised = dict.fromkeys(self.flags, True)
        return FailureFlags(**raised, status=self.status) if self.asked else None


def check_failed(
    attempt: ProviderAttempt,
    failure: Failure,
    line: Line,
    *,
    number: int,
    outcome: AttemptOutcome,
    to_fallback: bool = False,
) -> None:
    """Assert every field of an attempt in vain."""
    found = msgspec.structs.asdict(attempt)
    notes = found.pop("transport_diagnostics")
    started_at, completed_at = found.pop("started_at"), found.pop("completed_at")
    backoff_ms, usage = found.pop("backoff_ms"), found.pop("token_usage")
    duration_ms = found.pop("duration_ms")
    assert found == {
        "provider": line.provider,
        "model_ref": line.ref,
        "attempt": number,
        "max_attempts": 3 if failure.asked else 1,
        "outcome": outcome,
        "failure_kind": failure.kind,
        "disposition": failure.disposition,
        "advanced_to_fallback": to_fallback,
        "left_because": LeftBecause.MOMENT_NAMED if failure.names_a_far_moment else None,
    }
    assert completed_at - started_at == duration_ms * _MS
    assert (duration_ms > 0) is failure.asked
    assert (backoff_ms is not None) is (outcome is RETRYING)
    if backoff_ms is not None:
        assert backoff_ms >= max(500, failure.retry_after_ms or 0)
    assert usage is None or usage.total_tokens > 0
    _check_notes(notes, failure, line)


def _check_notes(notes: Any, failure: Failure, line: Line) -> None:
    assert notes is not None
    found = msgspec.structs.asdict(notes)
    sent, received = found.pop("bytes_sent"), found.pop("bytes_received")
    chain, flags = found.pop("source_chain"), found.pop("flags")
    request_id = "req_script" if failure.got_head else None
    assert found == {
        "stage": failure.stage,
        "provider": line.provider,
        "model_ref": line.ref,
        "url": line.url if failure.asked else None,
        "status": failure.status,
        "request_id": request_id,
        "retry_after_ms": failure.retry_after_ms,
        "continuation": None,
        "notes": (),
    }
    assert flags == failure.reqwest
    assert (sent is not None) is failure.got_head
    assert (received is not None) is failure.asked
    assert all(isinstance(cause, str) and cause for cause in chain)


def check_succeeded(attempt: ProviderAttempt, line: Line, *, number: int) -> None:
    """Assert every field of the attempt that was answered."""
    found = msgspec.structs.asdict(attempt)
    notes, usage = found.pop("transport_diagnostics"), found.pop("token_usage")
    duration_ms = found.pop("duration_ms")
    assert found.pop("completed_at") - found.pop("started_at") == duration_ms * _MS
    assert duration_ms > 0
    assert found == {
        "provider": line.provider,
        "model_ref": line.ref,
        "attempt": number,
        "max_attempts": 3,
        "outcome": SUCCEEDED,
        "failure_kind": None,
        "disposition": None,
        "advanced_to_fallback": False,
        "left_because": None,
        "backoff_ms": None,
    }
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert (notes.stage, notes.status, notes.url) == (ExchangeStage.COMPLETE, 200, line.url)
    assert (notes.provider, notes.model_ref) == (line.provider, line.ref)
    assert (notes.request_id, notes.flags, notes.retry_after_ms) == ("req_script", None, None)
    assert notes.bytes_sent > 0
    assert notes.bytes_received > 0


def check_waits(timeline: AttemptTimeline, clock: SkippingClock) -> None:
    """Assert that what was waited is what is told, and stands in no attempt's duration."""
    told = [each.backoff_ms for each in timeline.attempts if each.backoff_ms is not None]
    assert clock.waits_ms == told
    for before, after in zip(timeline.attempts, timeline.attempts[1:], strict=False):
        pause = after.started_at - before.completed_at
        assert pause >= (before.backoff_ms or 0) * _MS


def check_sent(timeline: AttemptTimeline, server: WireServer) -> None:
    """Assert that each attempt that got an answer tells how much was sent for it."""
    told = [each.transport_diagnostics for each in timeline.attempts]
    sent = [len(request.body) for request in server.requests]
    for notes, size in zip(told, sent, strict=True):
        assert notes is not None
        assert notes.bytes_sent in (None, size)
