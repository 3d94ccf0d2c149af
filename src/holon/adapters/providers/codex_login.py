"""The login another program keeps: the file of the Codex command line tool.

Owns:  reading that file: the access token, the account it belongs to, and when it ends.
Rule 1: the file is only read. Renewing a login is the business of the program that made it, whose
        refresh token can be used once.
Rule 2: no message quotes the file.
"""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from holon.model.limits import CREDENTIALS_FILE_BYTES_MAX
from holon.model.provider_errors import AuthRejectedError, ModelUnavailableError

LOGIN_HINT: Final = "run `codex login`"
_CLAIMS: Final = "https://api.openai.com/auth"


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
        raise AuthRejectedError(f"nobody is signed in at {where}", hint=LOGIN_HINT)
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
