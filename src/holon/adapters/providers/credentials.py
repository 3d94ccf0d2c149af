"""Credential lookup: environment, credentials file, credential program, Codex login.

Owns:  the secret record, which never shows its value; how a secret is put on a request; the lookup
       and its error messages; the list of the host's secret variables and stored credentials.
Rule 1: a secret is read when a request is about to be sent, so a changed key takes effect at once.
Rule 2: every secret is registered for redaction before anything else can see it.
Rule 3: checking whether a credential exists starts no program and uses no network.
Rule 4: an error names exactly what is missing: the variable to set or the command to run.
Rule 5: code that only one source needs is imported where it is used, because every start pays for
        module-level imports.
Rule 6: stored credentials that are not in use are redacted as well: a command could read and print
        them.
Rule 7: a variable is secret by its suffix, or because the catalog or the settings name it as a key.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import msgspec

from holon.adapters.providers.catalog import ProviderRoute, builtin_catalog
from holon.adapters.providers.wire_request import Authorization, NoAuthorization
from holon.adapters.system.secrets import SecretRegistry
from holon.model.errors import HolonError
from holon.model.limits import CREDENTIAL_BYTES_MAX
from holon.model.providers.attempts import AuthRejectedError, ModelUnavailableError, ProviderError
from holon.model.providers.models import (
    CredentialKind,
    CredentialSource,
    ProviderAuth,
    StoredCredential,
    TransportKind,
)
from holon.model.record import Record
from holon.ports.clock import Clock

if TYPE_CHECKING:
    from holon.adapters.providers.external_credentials import ProgramAuthorization

Profiles: TypeAlias = Callable[[], Mapping[str, StoredCredential]]
_NO_AUTH: Final = ProviderAuth()
_KEY_ENDING: Final = "_API_KEY"
_TOKEN_ENDING: Final = "token"  # suffix of the secret fields of a login document


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret, held only while a header is written."""

    value: str
    kind: CredentialKind
    account_id: str | None = None

    def __repr__(self) -> str:
        return f"Secret(kind={self.kind.value!r}, value=<secret>)"


def credential_headers(transport: TransportKind, secret: Secret) -> Mapping[str, str]:
    """Return the headers that carry a secret."""
    if transport is TransportKind.ANTHROPIC_MESSAGES and secret.kind is CredentialKind.API_KEY:
        return {"x-api-key": secret.value}
    headers = {"authorization": f"Bearer {secret.value}"}
    if transport is TransportKind.OPENAI_CODEX_RESPONSES and secret.account_id:
        headers["chatgpt-account-id"] = secret.account_id
    return headers


class _MissingError(ModelUnavailableError):
    """The credential is not configured."""


class CredentialState(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The public facts about a credential, without its secret."""

    source: CredentialSource
    kind: CredentialKind
    name: str  # the variable, the profile, the program or the file
    is_present: bool
    problem: str | None = None
    hint: str | None = None


class BoundCredential(msgspec.Struct, frozen=True, kw_only=True):
    """How a provider's requests are authorized; `account` names the quota they use."""

    authorization: Authorization
    account: str
    renewable: "ProgramAuthorization | None" = (
        None  # the same object, where a refused secret can be renewed
    )


class Credentials:
    """Every credential of a host, looked up by how it is configured."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        profiles: Profiles,
        registry: SecretRegistry,
        clock: Clock,
        user_home: Path,
    ) -> None:
        self._environ = environ
        self._profiles = profiles
        self._registry = registry
        self._clock = clock
        self._user_home = user_home

    def choices(self, route: ProviderRoute) -> tuple[ProviderAuth, ...]:
        """Return where a provider's credential may come from, best first.

        A profile named like the provider needs no further configuration.
        """
        if route.auth_is_chosen:
            return route.auth
        profile = ProviderAuth(
            source=CredentialSource.PROFILE, kind=CredentialKind.API_KEY, profile=route.provider
        )
        return (*route.auth, profile)

    def chosen(self, route: ProviderRoute) -> CredentialState:
        """Return the state of the credential that would be used, or of the one that is missing."""
        auth, error = self._choose(route)
        return _state(auth, error)

    def bind(self, route: ProviderRoute) -> BoundCredential:
        """Return the authorization of a provider's requests, or raise a ProviderError."""
        auth, error = self._choose(route)
        if error is None:
            return self._bound(route, auth)
        kind = AuthRejectedError if isinstance(error, AuthRejectedError) else ModelUnavailableError
        raise kind(
            f"provider {route.provider!r} cannot be used: {error.message}",
            hint=_hint_for(route, auth, error),
        )

    def _choose(self, route: ProviderRoute) -> tuple[ProviderAuth, HolonError | None]:
        """Return the first usable credential; else the most relevant one, with its problem."""
        tried = [(auth, self._problem(auth)) for auth in self.choices(route)]
        usable = next((pair for pair in tried if pair[1] is None), None)
        if usable is not None:
            return usable
        # An unusable credential is more relevant than one that was never set.
        unusable = next((pair for pair in tried if not isinstance(pair[1], _MissingError)), None)
        if unusable is not None:
            return unusable
        if route.credential_optional and not route.auth_is_chosen:
            return _NO_AUTH, None
        return tried[0]

    def _problem(self, auth: ProviderAuth) -> HolonError | None:
        try:
            self._read(auth)
        except HolonError as error:
            return error
        return None

    def _bound(self, route: ProviderRoute, auth: ProviderAuth) -> BoundCredential:
        account = f"{route.provider}:{auth.source.value}:{_name(auth)}"
        if auth.source is CredentialSource.NONE:
            return BoundCredential(authorization=NoAuthorization(), account=route.provider)
        if auth.source is CredentialSource.PROCESS:
            from holon.adapters.providers.external_credentials import ProgramAuthorization

            program = ProgramAuthorization(self, route.transport, auth, self._clock)
            return BoundCredential(authorization=program, account=account, renewable=program)
        stored = _StoredSecretAuthorization(self, route.transport, auth)
        return BoundCredential(authorization=stored, account=account)

    def _read(self, auth: ProviderAuth) -> Secret | None:
        """Return the secret; None where none is needed or a program provides it."""
        match auth.source:
            case CredentialSource.NONE:
                return None
            case CredentialSource.ENV:
                return self._from_environment(auth)
            case CredentialSource.PROFILE:
                return self._from_profile(auth)
            case CredentialSource.EXTERNAL_CLI:
                return self._from_login(auth)
            case CredentialSource.PROCESS:
                self._require_program(auth)
                return None
            case _:
                assert_never(auth.source)

    def _from_environment(self, auth: ProviderAuth) -> Secret:
        if not auth.env:
            raise ModelUnavailableError(
                "no variable is named for its credential", hint="name one with --credential-env"
            )
        value = self._environ.get(auth.env, "").strip()
        if not value:
            raise _MissingError(f"{auth.env} is not set", hint=f"set {auth.env}")
        return self._registered(auth.env, value, auth.kind)

    def _from_profile(self, auth: ProviderAuth) -> Secret:
        stored = self._profiles().get(auth.profile or "")
        if stored is None:
            raise _MissingError(
                f"there is no credential profile {auth.profile!r}",
                hint=f"run `holon config credentials set {auth.profile} --kind api_key --stdin`",
            )
        name = f"credential profile {auth.profile}"
        if stored.kind is CredentialKind.OAUTH and stored.material.lstrip().startswith("{"):
            from holon.adapters.providers.external_credentials import parse_login

            login = parse_login(stored.material.encode(), self._clock.now(), where=name)
            return self._registered(name, login.access_token, stored.kind, login.account_id)
        return self._registered(name, stored.material.strip(), stored.kind)

    def _from_login(self, auth: ProviderAuth) -> Secret:
        from holon.adapters.providers.external_credentials import login_path, read_login

        path = login_path(auth.external, self._environ, self._user_home)
        login = read_login(path, self._clock.now())
        return self._registered("codex login", login.access_token, auth.kind, login.account_id)

    def _require_program(self, auth: ProviderAuth) -> None:
        import shutil

        from holon.adapters.providers.external_credentials import words_of

        program = words_of(auth.external)[0]
        if shutil.which(program, path=self._environ.get("PATH")) is None:
            raise ModelUnavailableError(
                f"the credential program {program!r} cannot be found",
                hint="install it, or give its full path with --credential-external",
            )

    def read_secret(self, auth: ProviderAuth) -> Secret:
        """Return a stored secret, or raise a ProviderError."""
        try:
            secret = self._read(auth)
        except ProviderError:
            raise
        except HolonError as error:
            raise ModelUnavailableError(error.message, hint=error.hint) from error
        assert secret is not None, "this source has no secret to look up"
        return secret

    async def run_program(self, auth: ProviderAuth) -> Secret:
        """Return the secret a program prints, or raise a ProviderError."""
        from holon.adapters.providers.external_credentials import secret_from, words_of

        output = await secret_from(words_of(auth.external), self._environ)
        return self._registered("credential program", output, auth.kind)

    def _registered(
        self, name: str, value: str, kind: CredentialKind, account_id: str | None = None
    ) -> Secret:
        if 0 < len(value) <= CREDENTIAL_BYTES_MAX:
            self._registry.learn(name, value)
        if not 0 < len(value) <= CREDENTIAL_BYTES_MAX or not _is_one_word(value):
            raise AuthRejectedError(
                f"the secret of {name} is empty, too long or not one word",
                hint="give it again, without spaces, quotes or line breaks",
            )
        return Secret(value=value, kind=kind, account_id=account_id)


class _StoredSecretAuthorization:
    """Authorization with a secret that is read from storage for each request."""

    def __init__(
        self, credentials: Credentials, transport: TransportKind, auth: ProviderAuth
    ) -> None:
        self._credentials = credentials
        self._transport = transport
        self._auth = auth

    async def headers(self) -> Mapping[str, str]:
        """Return the headers with the current secret."""
        return credential_headers(self._transport, self._credentials.read_secret(self._auth))


def _is_one_word(value: str) -> bool:
    return all("!" <= character <= "~" for character in value)


def _state(auth: ProviderAuth, error: HolonError | None) -> CredentialState:
    return CredentialState(
        source=auth.source,
        kind=auth.kind,
        name=_name(auth),
        is_present=error is None and auth.source is not CredentialSource.NONE,
        problem=None if error is None else error.message,
        hint=None if error is None else error.hint,
    )


def _name(auth: ProviderAuth) -> str:
    match auth.source:
        case CredentialSource.NONE:
            return ""
        case CredentialSource.ENV:
            return auth.env or ""
        case CredentialSource.PROFILE:
            return auth.profile or ""
        case CredentialSource.EXTERNAL_CLI:
            return auth.external or "codex"
        case CredentialSource.PROCESS:
            # Only the program: its arguments may hold a secret.
            return (auth.external or "").split(" ")[0]
        case _:
            assert_never(auth.source)


def _hint_for(route: ProviderRoute, auth: ProviderAuth, error: HolonError) -> str:
    is_missing = isinstance(error, _MissingError)
    if route.auth_is_chosen or auth.source is not CredentialSource.ENV or not is_missing:
        return error.hint or f"run `holon config providers doctor {route.provider}`"
    variables = " or ".join(auth.env for auth in route.auth if auth.env)
    return (
        f"set {variables}, or run "
        f"`holon config credentials set {route.provider} --kind api_key --stdin`"
    )


def register_stored_secrets(
    registry: SecretRegistry,
    environ: Mapping[str, str],
    profiles: Profiles,
    *,
    variables: Collection[str],
) -> None:
    """Register the secrets of the environment and of the stored credentials."""
    for name in secret_variables(environ, variables=variables):
        registry.learn(name, environ[name])
    try:
        stored = profiles()
    except HolonError:
        return  # reported when a profile is used
    for name, each in stored.items():
        for secret in _secrets_in(each.material):
            registry.learn(f"credential profile {name}", secret)


def secret_variables(environ: Mapping[str, str], *, variables: Collection[str]) -> tuple[str, ...]:
    """Return the names of environment variables that hold keys."""
    catalogued = {auth.env for each in builtin_catalog().providers.values() for auth in each.auth}
    return tuple(
        name
        for name in environ
        if name.endswith(_KEY_ENDING) or name in catalogued or name in variables
    )


def _secrets_in(material: str) -> Iterator[str]:
    """Yield the secrets of a stored credential: the whole, and the tokens of a login."""
    yield material
    try:
        pending = [msgspec.json.decode(material)]
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return
    while pending:
        value = pending.pop()
        for name, part in value.items() if isinstance(value, dict) else ():
            if isinstance(part, str) and name.endswith(_TOKEN_ENDING):
                yield part
            pending.append(part)
