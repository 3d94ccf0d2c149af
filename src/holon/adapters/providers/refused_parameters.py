"""Optional request parameters that a provider has refused.

Owns:  learning them from refusals, and their diagnostics.
Rule 1: only a parameter that an answer can do without is dropped, and only the one a refusal names:
        one parameter per refusal.
Rule 2: a parameter counts as refused once a request without it succeeded. That holds for all models
        of the provider until this process ends.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol, TypeVar

import msgspec

from holon.model.providers.attempts import (
    ContextTooLongError,
    RequestRejectedError,
    TransportDiagnostics,
)
from holon.model.turns.turn import ModelAnswer

_LEARNED: Final = "the provider refused `{}`: it is left out from now on"
_TRIED: Final = "the provider refused `{}`: the request was sent again without it"
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
    """Shared by all transports of a resolver."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}

    def of(self, provider: str) -> frozenset[str]:
        """Return the parameters no longer sent to a provider."""
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
            lowered = lower(self.of(provider).union(dropped))
            try:
                answer = await send(lowered)
            except RequestRejectedError as error:
                name = _droppable(error, sent=lowered.optional)
                if name is None:
                    error.diagnostics = _noted(error.diagnostics, _TRIED, dropped)
                    raise
                dropped.append(name)  # terminates: each attempt sends one parameter less
            else:
                self._learn(provider, dropped)
                diagnostics = _noted(answer.diagnostics, _LEARNED, dropped)
                return msgspec.structs.replace(answer, diagnostics=diagnostics)

    def _learn(self, provider: str, dropped: Collection[str]) -> None:
        known = self.of(provider)
        for name in dropped:
            if name not in known:
                _log.warning("provider %s refuses `%s`: it is left out from now on", provider, name)
        if dropped:
            self._names[provider] = known.union(dropped)


def _droppable(error: RequestRejectedError, *, sent: Collection[str]) -> str | None:
    """Return the parameter a refusal is about, if it was sent and an answer can do without it."""
    if isinstance(error, ContextTooLongError) or error.unsupported not in sent:
        return None
    return error.unsupported


def _noted(
    diagnostics: TransportDiagnostics | None, note: str, dropped: Collection[str]
) -> TransportDiagnostics | None:
    """Return what is known of an exchange with a remark on each parameter it was sent without."""
    if diagnostics is None or not dropped:
        return diagnostics
    notes = (note.format(name) for name in dropped)
    return msgspec.structs.replace(diagnostics, notes=(*diagnostics.notes, *notes))
