"""A secret another program hands out, used for a while and asked for anew when it is refused.

Owns:  how long such a secret is used, and what follows a provider's refusal of it.
Rule 1: a refused secret is not used again: the program is asked at once.
Rule 2: where the program has another secret now, the same request may be tried again, by the rules
        and on the record of every other retry. Where it has not, the refusal stands.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from holon.adapters.providers.credential_headers import Secret, credential_headers
from holon.model.answer import ModelAnswer
from holon.model.limits import CREDENTIAL_KEPT_MS_MAX
from holon.model.prompt_frame import ProviderRequest
from holon.model.provider_errors import AuthRejectedError
from holon.model.provider_setting import ProviderAuth, TransportKind
from holon.ports.clock import Clock
from holon.ports.provider import Hear, Provider

if TYPE_CHECKING:
    from holon.adapters.providers.credentials import Credentials

_MS_NS: Final = 1_000_000


class CredentialRenewedError(AuthRejectedError):
    """The credentials were refused, and there are others now."""

    retryable = True


class ProgramAuthorization:
    """Puts a program's secret on requests."""

    def __init__(
        self,
        credentials: "Credentials",
        transport: TransportKind,
        auth: ProviderAuth,
        clock: Clock,
    ) -> None:
        self._credentials = credentials
        self._transport = transport
        self._auth = auth
        self._clock = clock
        self._secret: Secret | None = None
        self._asked_ns = 0

    async def headers(self) -> Mapping[str, str]:
        """Return the headers that carry the secret, asking the program when it is due."""
        secret = self.in_use or await self._ask()
        return credential_headers(self._transport, secret)

    @property
    def in_use(self) -> Secret | None:
        """The secret that requests carry; none while the program has to be asked first."""
        age_ns = self._clock.monotonic_ns() - self._asked_ns
        return self._secret if age_ns < CREDENTIAL_KEPT_MS_MAX * _MS_NS else None

    async def has_other_than(self, refused: Secret | None) -> bool:
        """Ask the program again, unless somebody has; whether it says something else by now."""
        current = self.in_use
        if current is None or current == refused:
            self._secret = None  # whatever becomes of asking
            current = await self._ask()
        return current != refused

    async def _ask(self) -> Secret:
        asked_ns = self._clock.monotonic_ns()
        self._secret = secret = await self._credentials.ask(self._auth)
        self._asked_ns = asked_ns
        return secret


class RenewingProvider:
    """Asks another provider, and has its secret renewed when that is refused."""

    def __init__(self, provider: Provider, authorization: ProgramAuthorization) -> None:
        self._provider = provider
        self._authorization = authorization

    async def answer(self, request: ProviderRequest, hear: Hear) -> ModelAnswer:
        """Return what the other provider says."""
        await self._authorization.headers()  # so that it is known what this request carries
        carried = self._authorization.in_use
        try:
            return await self._provider.answer(request, hear)
        except AuthRejectedError as refused:
            if not await self._authorization.has_other_than(carried):
                raise
            raise CredentialRenewedError(
                refused.message,
                hint="the credential program has another secret now: it is tried next",
                diagnostics=refused.diagnostics,
                usage=refused.usage,
            ) from refused
