"""Classify a provider's error response as one ProviderError.

Owns:  the classification of every response that is not a result, including an error inside a 200.
Rule 1: the error code of the body decides before the status does; the message is read last, and
        only for what no code tells: that the conversation is too long, or that the account is
        exhausted.
Rule 2: what is quoted of a provider's message is one bounded line with key-like text masked.
Rule 3: pure: the moment from which a reset counts is an argument.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from holon.adapters.providers.wire_answer import decode_json
from holon.decide.text.bounded import beginning_of
from holon.model.limits import PROVIDER_MESSAGE_CHARS_MAX
from holon.model.providers.attempts import (
    AuthRejectedError,
    ContextTooLongError,
    FailureFlags,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    RateLimitedError,
    RequestRejectedError,
    TransportDiagnostics,
    UnreadableResponseError,
    UsageLimitedError,
)
from holon.model.record import Record
from holon.model.values import JsonValue

_BY_CODE: Final[Mapping[str, type[ProviderError]]] = {
    "context_length_exceeded": ContextTooLongError,
    "context_window_exceeded": ContextTooLongError,
    "model_context_window_exceeded": ContextTooLongError,
    "exceed_context_size_error": ContextTooLongError,
    "usage_limit_reached": UsageLimitedError,
    "usage_not_included": UsageLimitedError,
    "insufficient_quota": UsageLimitedError,
    "billing_error": UsageLimitedError,
    "billing_hard_limit_reached": UsageLimitedError,
    "rate_limit_exceeded": RateLimitedError,
    "rate_limit_error": RateLimitedError,
    "server_is_overloaded": ProviderOverloadedError,
    "slow_down": ProviderOverloadedError,
    "overloaded_error": ProviderOverloadedError,
    "overloaded": ProviderOverloadedError,
    "server_error": ProviderOverloadedError,
    "internal_server_error": ProviderOverloadedError,
    "api_error": ProviderOverloadedError,
    "timeout_error": ProviderTimeoutError,
    "authentication_error": AuthRejectedError,
    "permission_error": AuthRejectedError,
    "invalid_api_key": AuthRejectedError,
    "invalid_prompt": RequestRejectedError,
    "invalid_request_error": RequestRejectedError,
    "not_found_error": RequestRejectedError,
    "model_not_found": RequestRejectedError,
    "request_too_large": RequestRejectedError,
}
# These say more than any status; the other codes only count where there is no status to go by.
_OVER_STATUS: Final = (ContextTooLongError, UsageLimitedError)
_BY_STATUS: Final[Mapping[int, type[ProviderError]]] = {
    401: AuthRejectedError,
    402: UsageLimitedError,
    403: AuthRejectedError,
    408: ProviderTimeoutError,
    429: RateLimitedError,
    501: RequestRejectedError,  # asking again changes nothing about what a server cannot do
    504: ProviderTimeoutError,
    505: RequestRejectedError,
    522: ProviderTimeoutError,
    524: ProviderTimeoutError,
}
# Compiled when something was refused, which most runs never see.
_TOO_LONG: Final = (
    r"maximum context length|prompt is too long|exceeds? (?:the|this model's) context"
    r"|exceeds? (?:the )?(?:available |maximum )?context|exceed context limit|input is too long"
    r"|context (?:length|window|size) (?:is )?exceeded|maximum prompt length"
    r"|exceeds the maximum number of (?:input )?tokens"
    r"|reduce the length of the (?:messages|prompt)"
)
_USED_UP: Final = (
    r"credit balance is too low|exceeded your current quota|insufficient (?:balance|credits)"
)
_UNSUPPORTED: Final = (
    r"unsupported (?:parameter|argument|field|property|option)"
    r"|un(?:recognized|known|expected) (?:request )?(?:parameter|argument|field|property|key|name)"
    r"|(?:is|are) (?:not supported|unsupported|not permitted|not allowed)"
    r"|extra_forbidden|additional propert"
)
_UNSUPPORTED_CODES: Final = frozenset({"unsupported_parameter", "unknown_parameter"})
_NAMES_PARAMETERS: Final = (400, 422)
_SCANNED_BYTES_MAX: Final = 4_096
_NAME: Final = r"([A-Za-z_][A-Za-z0-9_.\[\]]{1,127})"
_NO_NAME: Final = r"(?!(?:is|are|was|not|in|of|for|to|by|with|on|at|that|which|and|or)\b)"
# Where a refusal has the name of the parameter that it is about; the first that fits holds.
_NAMED: Final = (
    # One entry of what pydantic has to say, as JSON or as Python writes it.
    rf"extra_forbidden[\"'], ?[\"']loc[\"']: ?[\[(][\"']body[\"'], ?[\"']{_NAME}",
    r"un(?:supported|recognized|known|expected) (?:request )?"
    r"(?:parameter|argument|field|property|option|key|name)(?:s|\(s\))?(?: supplied| provided)?"
    rf"[\s:]{{1,4}}[\"'`]?{_NO_NAME}{_NAME}",
    rf"[\"'`]{_NAME}[\"'`]"
    rf"|\b(?:parameter|argument|field|property|option)[\s:]{{1,4}}{_NO_NAME}{_NAME}",
)
# These say that the parameter is fine and its value is not.
_OF_A_VALUE: Final = (
    r"\bvalues?\b|\b(?:greater|larger|higher|more|less|smaller|lower|fewer) than\b"
    r"|\bexceed|\bat (?:most|least)\b"
)
_MESSAGE_COUNTS_FOR: Final = (None, 400, 413, 422)
_KEY_LIKE: Final = re.compile(
    r"\b(?:sk|xai|gsk|ghp|github_pat)[-_][A-Za-z0-9_*.-]{6,}"
    r"|\beyJ[A-Za-z0-9_.-]{10,}|\bBearer\s+\S+",
    re.IGNORECASE,
)
_HTML: Final = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|body)\b", re.I | re.S)

_NO_FIELDS: Final[Mapping[str, JsonValue]] = {}


class RefusalBody(Record, frozen=True, kw_only=True):
    """What a provider's error says, whichever shape it has."""

    codes: tuple[str, ...] = ()
    message: str = ""
    status: int | None = None  # gateways put the upstream's status into the error
    fields: Mapping[str, JsonValue] = _NO_FIELDS


def refused(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    diagnostics: TransportDiagnostics,
    now: datetime | None = None,
) -> ProviderError:
    """Return the error for an answer with any status but 2xx. Header names are in lower case."""
    told = _told_in(body)
    kind = _kind_of(told, status)
    wait = _first_wait(told, headers, kind, now=now)
    sentence = _sentence(f"HTTP {status}", told, is_html=is_html(body))
    flags = FailureFlags(
        status=status,
        is_redirect=300 <= status < 400,
        is_timeout=kind is ProviderTimeoutError,
    )
    seen = msgspec.structs.replace(diagnostics, status=status, flags=flags, retry_after_ms=wait)
    error = kind(
        sentence,
        hint=_hint(kind, status, told, diagnostics),
        retry_after_ms=wait,
        diagnostics=seen,
    )
    if isinstance(error, RequestRejectedError) and status in _NAMES_PARAMETERS:
        error.unsupported = _unsupported_name(told, body)
    return error


def _unsupported_name(told: RefusalBody, body: bytes) -> str | None:
    """Return the parameter that a refusal calls unsupported, without what lies inside of it."""
    text = told.message or body[:_SCANNED_BYTES_MAX].decode("utf-8", "replace")
    text = text[:_SCANNED_BYTES_MAX]
    is_coded = any(code in _UNSUPPORTED_CODES for code in told.codes)
    is_worded = re.search(_UNSUPPORTED, text, re.IGNORECASE)
    if not is_coded and (not is_worded or re.search(_OF_A_VALUE, text, re.IGNORECASE)):
        return None
    about = told.fields.get("param")
    if not isinstance(about, str) or not about:
        # A sentence holds many words that are also names, and often names what may be sent instead.
        found = next(filter(None, (re.search(each, text, re.IGNORECASE) for each in _NAMED)), None)
        about = "" if found is None else next(filter(None, found.groups()))
    return re.split(r"[.\[]", about.removeprefix("body."), maxsplit=1)[0] or None


def refusal_inside_200(value: JsonValue) -> ProviderError | None:
    """Return the error an otherwise successful answer or stream event holds, if it holds one."""
    if not isinstance(value, dict) or not value.get("error"):
        return None
    return refusal_of(value["error"])


def refusal_of(error: JsonValue, *, now: datetime | None = None) -> ProviderError:
    """Return the error an error object stands for, when no status tells (streams, `failed`)."""
    told = _told_of(error)
    kind = _kind_of(told, told.status)
    from holon.adapters.providers.reset_times import error_reset_ms

    wait = error_reset_ms(told.fields, now=now)
    return kind(
        _sentence("an error inside the answer", told, is_html=False),
        hint=_hint(kind, told.status, told, None),
        retry_after_ms=wait,
    )


def not_json(body: bytes, diagnostics: TransportDiagnostics) -> UnreadableResponseError:
    """Return the error for a 2xx body that should have been JSON."""
    what = "an HTML page" if is_html(body) else "something that is not JSON"
    flags = FailureFlags(is_decode=True, status=diagnostics.status)
    return UnreadableResponseError(
        f"the provider answered with {what}",
        hint="check the provider's base URL: this does not look like its API",
        diagnostics=msgspec.structs.replace(diagnostics, flags=flags),
    )


def is_html(body: bytes) -> bool:
    """Whether a body is a web page: a proxy's error page, a login page, or a wrong address."""
    return _HTML.match(body[:4_096]) is not None


def keyless_line(text: str) -> str:
    """Return foreign text as one bounded line without anything that looks like a key."""
    bounded = beginning_of(text, chars_max=4 * PROVIDER_MESSAGE_CHARS_MAX)
    bounded = bounded.encode("utf-8", "replace").decode()
    line = " ".join(_KEY_LIKE.sub("[redacted]", bounded).split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return beginning_of(line, chars_max=PROVIDER_MESSAGE_CHARS_MAX)


def _told_in(body: bytes) -> RefusalBody:
    try:
        value = decode_json(body, "the error")
    except UnreadableResponseError:
        return RefusalBody(message="" if is_html(body) else body.decode("utf-8", "replace"))
    if isinstance(value, list) and value:
        value = value[0]  # one Google-style gateway wraps its error in a list
    if not isinstance(value, dict):
        return RefusalBody(message=value if isinstance(value, str) else "")
    return _told_of(value.get("error") or value)


def _told_of(error: JsonValue) -> RefusalBody:
    if not isinstance(error, dict):
        return RefusalBody(message=error if isinstance(error, str) else "")
    codes = tuple(error[key] for key in ("code", "type") if isinstance(error.get(key), str))
    number = error.get("code")
    is_status = isinstance(number, int) and not isinstance(number, bool) and 400 <= number < 600
    texts = (error.get(key) for key in ("message", "detail", "error_description", "msg"))
    return RefusalBody(
        codes=codes,
        message=next((text for text in texts if isinstance(text, str)), ""),
        status=number if is_status else None,
        fields=error,
    )


def _kind_of(told: RefusalBody, status: int | None) -> type[ProviderError]:
    """Name the class. First matching rule wins; read top to bottom."""
    coded = next((_BY_CODE[code] for code in told.codes if code in _BY_CODE), None)
    if coded is not None and (status is None or issubclass(coded, _OVER_STATUS)):
        return coded if coded is not RequestRejectedError else _by_message(told, coded)
    if status in _MESSAGE_COUNTS_FOR:
        return _by_message(told, RequestRejectedError)
    known = _BY_STATUS.get(status or 0)
    if known is not None:
        return known
    return ProviderOverloadedError if (status or 0) >= 500 else RequestRejectedError


def _by_message(told: RefusalBody, otherwise: type[ProviderError]) -> type[ProviderError]:
    if re.search(_TOO_LONG, told.message, re.IGNORECASE):
        return ContextTooLongError
    return UsageLimitedError if re.search(_USED_UP, told.message, re.IGNORECASE) else otherwise


def _first_wait(
    told: RefusalBody,
    headers: Mapping[str, str],
    kind: type[ProviderError],
    *,
    now: datetime | None,
) -> int | None:
    from holon.adapters.providers.reset_times import (
        error_reset_ms,
        limit_reset_ms,
        retry_after_ms,
    )

    named = error_reset_ms(told.fields, now=now)
    if named is not None and kind is UsageLimitedError:
        return named
    asked = retry_after_ms(headers, now=now)
    if asked is not None or named is not None:
        return asked if asked is not None else named
    is_limit = kind in (RateLimitedError, UsageLimitedError)
    return limit_reset_ms(headers, now=now) if is_limit else None


def _sentence(how: str, told: RefusalBody, *, is_html: bool) -> str:
    if is_html:
        return f"the provider answered {how} with an HTML page instead of JSON"
    said = keyless_line(told.message)
    code = keyless_line(told.codes[0]) if told.codes else ""
    label = f"{how}, {code}" if code else how
    return f"the provider answered {label}: {said}" if said else f"the provider answered {label}"


def _hint(
    kind: type[ProviderError],
    status: int | None,
    told: RefusalBody,
    diagnostics: TransportDiagnostics | None,
) -> str | None:
    model = (diagnostics.model_ref if diagnostics is not None else None) or "the model"
    if kind is not RequestRejectedError:
        return None
    if status is not None and 300 <= status < 400:
        return "the base URL redirects, which Holon does not follow; configure the final address"
    if "model_not_found" in told.codes or status == 404:
        return f"check that the provider knows {model} and that its base URL is right"
    return None
