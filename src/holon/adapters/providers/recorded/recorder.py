"""Writing down what a model was asked and what it said.

Owns:  the provider that asks another one and records the exchange.
Rule 1: the answer goes through unchanged; only the file is redacted.
Rule 2: failures are recorded like answers. A cancelled exchange has not ended and leaves no file.
Rule 3: an exchange that cannot be written is a failure: a recording with holes would replay wrong.
"""

from pathlib import Path

import anyio.to_thread

from holon.adapters.providers.recorded.exchange import (
    RecordedExchange,
    failure_of,
    request_of,
    write_exchange,
)
from holon.adapters.system.private_file import FileUnusableError
from holon.model.answer import ModelAnswer
from holon.model.model_ref import ModelRef
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_errors import ModelUnavailableError, ProviderError
from holon.ports.provider import Hear, Provider
from holon.ports.redactor import Redactor


class RecordingProvider:
    """Asks another provider, and keeps a record."""

    def __init__(
        self, provider: Provider, model_ref: ModelRef, *, directory: Path, redactor: Redactor
    ) -> None:
        self._provider = provider
        self._model_ref = model_ref
        self._directory = directory
        self._redactor = redactor

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return what the other provider says, once it is on record."""
        try:
            answer = await self._provider.answer(request, hear)
        except ProviderError as error:
            await self._record(request, error)
            raise
        await self._record(request, answer)
        return answer

    async def _record(self, request: ProviderRequest, end: ModelAnswer | ProviderError) -> None:
        exchange = RecordedExchange(
            format="holon-exchange-1",
            model_ref=str(self._model_ref),
            request=request_of(request),
            answer=end if isinstance(end, ModelAnswer) else None,
            failure=failure_of(end) if isinstance(end, ProviderError) else None,
        )
        try:
            await anyio.to_thread.run_sync(
                write_exchange, self._directory, exchange, self._redactor
            )
        except FileUnusableError as error:
            raise ModelUnavailableError(
                f"the exchange could not be recorded: {error}",
                hint="check the folder named by HOLON_PROVIDER_RECORD",
            ) from error
