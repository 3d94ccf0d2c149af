"""One model round: ask the provider, and have every attempt on record.

Owns:  turning a provider's answer or error into a turn input with its attempt timeline.
Rule 1: a provider error is a value from here on; the turn decides what it means.
"""

from holon.decide.failure_artifact import failure_of
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_attempt import AttemptOutcome, ProviderAttempt
from holon.model.provider_errors import ProviderError
from holon.model.turn import ModelFailed, ModelSpoke
from holon.ports.clock import Clock
from holon.ports.provider import Provider


async def ask_provider(
    provider: Provider, request: ProviderRequest, *, clock: Clock
) -> ModelSpoke | ModelFailed:
    """Return the next round, or why there is none."""
    started_at = clock.now()
    try:
        return await provider.answer(request)
    except ProviderError as error:
        attempt = ProviderAttempt(
            provider="scripted",
            model_ref="scripted",
            attempt=1,
            attempt_max=1,
            started_at=started_at,
            completed_at=clock.now(),
            outcome=AttemptOutcome.FAIL_FAST_ABORTED,
            failure_kind=error.code,
        )
        return ModelFailed(failure=failure_of(error, attempts=(attempt,)), attempts=(attempt,))
