"""Which parameters of a request a provider has turned away.

Owns:  learning them from refusals, and what is said of it.
Rule 1: only what an answer can do without is left out, and only what the refusal names.
Rule 2: what was learned holds for all models of a provider, until this process ends.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol, TypeVar

import msgspec

from holon.model.answer import ModelAnswer
from holon.model.provider_attempt import TransportDiagnostics
from holon.model.provider_errors import ContextTooLongError, RequestRejectedError

_NOTHING: Final[frozenset[str]] = frozenset()

_log = logging.getLogger(__name__)


class Lowered(Protocol):
    """A request in a wire's form."""

    @property
    def optional(self) -> frozenset[str]:
        """The parameters in it that an answer can do without."""
        ...


_Lowered = TypeVar("_Lowered", bound=Lowered)


class RefusedParameters:
    """Shared by every wire of a plane."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}

    def of(self, provider: str) -> frozenset[str]:
        """Return what a provider is not sent any more."""
        return self._names.get(provider, _NOTHING)

    async def answer(
        self,
        provider: str,
        lower: Callable[[frozenset[str]], _Lowered],
        send: Callable[[_Lowered], Awaitable[ModelAnswer]],
    ) -> ModelAnswer:
        """Return the answer to a request, sent again without a parameter that was refused."""
        dropped = list[str]()
        while True:
            lowered = lower(self.of(provider))
            try:
                answer = await send(lowered)
            except RequestRejectedError as error:
                name = self._learned(provider, error, sent=lowered.optional)
                if name is None:
                    error.diagnostics = _noted(error.diagnostics, dropped)
                    raise
                dropped.append(name)  # what was sent has one name less each time
            else:
                diagnostics = _noted(answer.diagnostics, dropped)
                return msgspec.structs.replace(answer, diagnostics=diagnostics)

    def _learned(
        self, provider: str, error: RequestRejectedError, *, sent: Collection[str]
    ) -> str | None:
        """Return the optional parameter a refusal names, from now on left out, if it names one."""
        if isinstance(error, ContextTooLongError):
            return None
        name = next((name for name in error.unsupported if name in sent), None)
        if name is None:
            return None
        if name not in self.of(provider):
            _log.warning("provider %s refuses `%s`: it is left out from now on", provider, name)
        self._names[provider] = self.of(provider) | {name}
        return name


def _noted(
    diagnostics: TransportDiagnostics | None, dropped: Collection[str]
) -> TransportDiagnostics | None:
    """Return what is known of an exchange with a remark on each parameter it was sent without."""
    if diagnostics is None or not dropped:
        return diagnostics
    notes = (f"the provider refused `{name}`: it is left out from now on" for name in dropped)
    return msgspec.structs.replace(diagnostics, notes=(*diagnostics.notes, *notes))
