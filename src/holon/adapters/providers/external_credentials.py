"""Credentials that other programs provide: a credential program, and the Codex CLI login file.

Owns:  running the program (command line, exit status, timeout), caching its secret and renewing it
       after a refusal; reading the login file: access token, account, expiry.
Rule 1: the program is started directly, never through a shell, and its whole output is the secret.
Rule 2: a program that is too slow or writes too much is killed with everything it started.
Rule 3: its output is never part of an error message: it may be half a secret.
Rule 4: a refused secret is not used again: the program is run at once. When it returns another
        secret, the request may be retried under the ordinary retry rules and records; otherwise the
        refusal stands.
Rule 5: the login file is only read. Renewing the login is left to the program that made it, whose
        refresh token works once.
Rule 6: no message quotes the login file.
"""

import base64
import binascii
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio.abc import Process

from holon.adapters.providers.credentials import Secret, credential_headers
from holon.model.limits import (
    CREDENTIAL_BYTES_MAX,
    CREDENTIAL_KEPT_MS_MAX,
    CREDENTIAL_PROCESS_MS_MAX,
    CREDENTIALS_FILE_BYTES_MAX,
)
from holon.model.providers.attempts import AuthRejectedError, ModelUnavailableError
from holon.model.providers.models import ProviderAuth, TransportKind
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.turn import ModelAnswer
from holon.ports.clock import Clock
from holon.ports.providers import OnProgress, Provider

if TYPE_CHECKING:
    from holon.adapters.providers.credentials import Credentials

_MS_NS: Final = 1_000_000
LOGIN_HINT: Final = "run `codex login`"
_CLAIMS: Final = "https://api.openai.com/auth"


def words_of(command: str | None) -> tuple[str, ...]:
    """Return the words of a command as it is configured, or raise ModelUnavailableError."""
    try:
        words = tuple(shlex.split(command or ""))
    except ValueError:
        words = ()
    if not words:
        raise ModelUnavailableError(
            "the credential program is not set, or its quotes do not match",
            hint="name the program and its arguments with --credential-external",
        )
    return words


async def secret_from(
    words: Sequence[str], environ: Mapping[str, str], *, wait_ms: int = CREDENTIAL_PROCESS_MS_MAX
) -> str:
    """Return the output of a credential program, or raise a ProviderError."""
    program = words[0]
    status: int | None = None
    try:
        process = await anyio.open_process(
            list(words),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environ,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ModelUnavailableError(
            f"the credential program {program!r} cannot be started: {error}",
            hint="check that it is installed and executable",
        ) from error
    try:
        with anyio.fail_after(wait_ms / 1_000):
            output = await _output_of(process, program)
            status = await process.wait()
    except TimeoutError:
        raise AuthRejectedError(
            f"the credential program {program!r} printed nothing within {wait_ms} ms",
            hint="run it in a terminal: it may be waiting for input",
        ) from None
    finally:
        await _end(process, was_heard=status is not None)
    if status != 0:
        raise AuthRejectedError(
            f"the credential program {program!r} ended with status {status}",
            hint="run it in a terminal to see why",
        )
    return output.decode("utf-8", errors="replace").strip()


async def _output_of(process: Process, program: str) -> bytes:
    assert process.stdout is not None
    output = bytearray()
    async for chunk in process.stdout:
        output += chunk
        if len(output) > CREDENTIAL_BYTES_MAX:
            raise AuthRejectedError(
                f"the credential program {program!r} printed more than a secret",
                hint="it should print the secret and nothing else",
            )
    return bytes(output)


async def _end(process: Process, *, was_heard: bool) -> None:
    if not was_heard:  # its children may hold the pipe open, though it has ended itself
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with anyio.CancelScope(shield=True):
        await process.wait()
        await process.aclose()


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
        """Run the program again, unless another request has; return whether the secret changed."""
        current = self.in_use
        if current is None or current == refused:
            self._secret = None  # also when the program fails
            current = await self._ask()
        return current != refused

    async def _ask(self) -> Secret:
        asked_ns = self._clock.monotonic_ns()
        self._secret = secret = await self._credentials.run_program(self._auth)
        self._asked_ns = asked_ns
        return secret


class RenewingProvider:
    """Asks another provider, and has its secret renewed when that is refused."""

    def __init__(self, provider: Provider, authorization: ProgramAuthorization) -> None:
        self._provider = provider
        self._authorization = authorization

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Return what the other provider says."""
        await self._authorization.headers()  # so that it is known what this request carries
        carried = self._authorization.in_use
        try:
            return await self._provider.answer(request, on_progress)
        except AuthRejectedError as refused:
            if not await self._authorization.has_other_than(carried):
                raise
            raise CredentialRenewedError(
                refused.message,
                hint="the credential program has another secret now: it is tried next",
                diagnostics=refused.diagnostics,
                usage=refused.usage,
            ) from refused


class _Tokens(msgspec.Struct, frozen=True, kw_only=True):
    access_token: str
    account_id: str | None = None


class _LoginFile(msgspec.Struct, frozen=True, kw_only=True):
    tokens: _Tokens | None = None


class _AccountClaims(msgspec.Struct, frozen=True, kw_only=True):
    chatgpt_account_id: str | None = None


class _Claims(msgspec.Struct, frozen=True, kw_only=True):
    exp: float | None = None
    auth: _AccountClaims | None = msgspec.field(default=None, name=_CLAIMS)


class CodexLogin(msgspec.Struct, frozen=True, kw_only=True):
    """A signed-in account."""

    access_token: str
    account_id: str | None
    expires_at: datetime | None

    def __repr__(self) -> str:
        return "CodexLogin(<secret>)"


def login_path(external: str | None, environ: Mapping[str, str], user_home: Path) -> Path:
    """Return the file an `external_cli` credential means, or raise ModelUnavailableError."""
    if external in (None, "", "codex", "codex_cli", "codex-cli"):
        kept_in = environ.get("CODEX_HOME")
        return (Path(kept_in) if kept_in else user_home / ".codex") / "auth.json"
    assert external is not None
    if external.startswith("~/"):
        return user_home / external[2:]
    if external.startswith("/"):
        return Path(external)
    raise ModelUnavailableError(
        f"no login is known of a program called {external!r}",
        hint="use `codex`, or the absolute path of a file it wrote",
    )


def read_login(path: Path, now: datetime) -> CodexLogin:
    """Return the login in a file, or raise the ProviderError that says what to do."""
    try:
        with path.open("rb") as file:
            content = file.read(CREDENTIALS_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise ModelUnavailableError(f"there is no login at {path}", hint=LOGIN_HINT) from None
    except OSError as error:
        raise ModelUnavailableError(
            f"the login at {path} cannot be read: {error.strerror}", hint="check its permissions"
        ) from error
    return parse_login(content, now, where=str(path))


def parse_login(content: bytes, now: datetime, *, where: str) -> CodexLogin:
    """Return the login a document holds; an ended or damaged one is an AuthRejectedError."""
    try:
        tokens = msgspec.json.decode(content, type=_LoginFile).tokens
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # The decoder's own words may quote a token.
        raise AuthRejectedError(f"the login at {where} is damaged", hint=LOGIN_HINT) from None
    if tokens is None or not tokens.access_token:
        raise AuthRejectedError(f"no login found at {where}", hint=LOGIN_HINT)
    claims = _claims_of(tokens.access_token)
    claimed = claims.auth.chatgpt_account_id if claims.auth else None
    login = CodexLogin(
        access_token=tokens.access_token,
        account_id=tokens.account_id or claimed,
        expires_at=_instant(claims.exp),
    )
    if login.expires_at is not None and login.expires_at <= now:
        ended = login.expires_at.isoformat(timespec="seconds")
        raise AuthRejectedError(f"the login at {where} ended {ended}", hint=LOGIN_HINT)
    return login


def _claims_of(token: str) -> _Claims:
    """Read what a token says of itself, unchecked: that is for the provider to do."""
    parts = token.split(".")
    if len(parts) != 3:
        return _Claims()
    try:
        body = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(body, type=_Claims)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return _Claims()


def _instant(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
