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
# These codes win over the status; the others count only where there is no status.
_OVER_STATUS: Final = (ContextTooLongError, UsageLimitedError)
_BY_STATUS: Final[Mapping[int, type[ProviderError]]] = {
    401: AuthRejectedError,
    402: UsageLimitedError,
    403: AuthRejectedError,
    408: ProviderTimeoutError,
    429: RateLimitedError,
    501: RequestRejectedError,  # unsupported by the server: a retry cannot succeed
    504: ProviderTimeoutError,
    505: RequestRejectedError,
    522: ProviderTimeoutError,
    524: ProviderTimeoutError,
}
# Compiled on first use: most runs see no refusal.
_TOO_LONG: Final = (
    r"maximum context length|prompt is too long|exceeds? (?:the|this model's) context"
    r"|exceeds? (?:the )?(?:available |maximum )?context|exceed context limit|input is too long"
    r"|context (?:length|window|size) (?:is )?exceeded|maximum prompt length"
    r"|exceeds the maximum number of (?:input )?tokens"
    r"|reduce the length of the (?:messages|prompt)"
)
_EXHAUSTED: Final = (
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
# Where a refusal names the parameter; the first match counts.
_NAMED: Final = (
    # One pydantic error, printed as JSON or as Python.
    rf"extra_forbidden[\"'], ?[\"']loc[\"']: ?[\[(][\"']body[\"'], ?[\"']{_NAME}",
    r"un(?:supported|recognized|known|expected) (?:request )?"
    r"(?:parameter|argument|field|property|option|key|name)(?:s|\(s\))?(?: supplied| provided)?"
    rf"[\s:]{{1,4}}[\"'`]?{_NO_NAME}{_NAME}",
    rf"[\"'`]{_NAME}[\"'`]"
    rf"|\b(?:parameter|argument|field|property|option)[\s:]{{1,4}}{_NO_NAME}{_NAME}",
)
# These mean that the value is refused, not the parameter.
_ABOUT_A_VALUE: Final = (
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
    """The content of a provider's error, in any of its shapes."""

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
    parsed = _parsed_body(body)
    kind = _kind_of(parsed, status)
    wait = _first_wait(parsed, headers, kind, now=now)
    sentence = _sentence(f"HTTP {status}", parsed, is_html=is_html(body))
    flags = FailureFlags(
        status=status,
        is_redirect=300 <= status < 400,
        is_timeout=kind is ProviderTimeoutError,
    )
    full_diagnostics = msgspec.structs.replace(
        diagnostics, status=status, flags=flags, retry_after_ms=wait
    )
    error = kind(
        sentence,
        hint=_hint(kind, status, parsed, diagnostics),
        retry_after_ms=wait,
        diagnostics=full_diagnostics,
    )
    if isinstance(error, RequestRejectedError) and status in _NAMES_PARAMETERS:
        error.unsupported = _unsupported_name(parsed, body)
    return error


def _unsupported_name(parsed: RefusalBody, body: bytes) -> str | None:
    """Return the top-level parameter that a refusal calls unsupported."""
    text = parsed.message or body[:_SCANNED_BYTES_MAX].decode("utf-8", "replace")
    text = text[:_SCANNED_BYTES_MAX]
    is_coded = any(code in _UNSUPPORTED_CODES for code in parsed.codes)
    is_worded = re.search(_UNSUPPORTED, text, re.IGNORECASE)
    if not is_coded and (not is_worded or re.search(_ABOUT_A_VALUE, text, re.IGNORECASE)):
        return None
    name = parsed.fields.get("param")
    if not isinstance(name, str) or not name:
        # Most words of a sentence could be names, and it often names the alternatives too.
        match = next(filter(None, (re.search(each, text, re.IGNORECASE) for each in _NAMED)), None)
        name = "" if match is None else next(filter(None, match.groups()))
    return re.split(r"[.\[]", name.removeprefix("body."), maxsplit=1)[0] or None


def refusal_inside_200(value: JsonValue) -> ProviderError | None:
    """Return the error inside a 200 answer or stream event, if there is one."""
    if not isinstance(value, dict) or not value.get("error"):
        return None
    return refusal_of(value["error"])


def refusal_of(error: JsonValue, *, now: datetime | None = None) -> ProviderError:
    """Return the error for an error object without a status (streams, `failed`)."""
    parsed = _parsed_error(error)
    kind = _kind_of(parsed, parsed.status)
    from holon.adapters.providers.reset_times import error_reset_ms

    wait = error_reset_ms(parsed.fields, now=now)
    return kind(
        _sentence("an error inside the answer", parsed, is_html=False),
        hint=_hint(kind, parsed.status, parsed, None),
        retry_after_ms=wait,
    )


def not_json(body: bytes, diagnostics: TransportDiagnostics) -> UnreadableResponseError:
    """Return the error for a 2xx body that should have been JSON."""
    content = "an HTML page" if is_html(body) else "something that is not JSON"
    flags = FailureFlags(is_decode=True, status=diagnostics.status)
    return UnreadableResponseError(
        f"the provider answered with {content}",
        hint="check the provider's base URL: this does not look like its API",
        diagnostics=msgspec.structs.replace(diagnostics, flags=flags),
    )


def is_html(body: bytes) -> bool:
    """Whether a body is a web page: a proxy's error page, a login page, or a wrong address."""
    return _HTML.match(body[:4_096]) is not None


def redacted_line(text: str) -> str:
    """Return foreign text as one bounded line with key-like text masked."""
    bounded = beginning_of(text, chars_max=4 * PROVIDER_MESSAGE_CHARS_MAX)
    bounded = bounded.encode("utf-8", "replace").decode()
    line = " ".join(_KEY_LIKE.sub("[redacted]", bounded).split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return beginning_of(line, chars_max=PROVIDER_MESSAGE_CHARS_MAX)


def _parsed_body(body: bytes) -> RefusalBody:
    try:
        value = decode_json(body, "the error")
    except UnreadableResponseError:
        return RefusalBody(message="" if is_html(body) else body.decode("utf-8", "replace"))
    if isinstance(value, list) and value:
        value = value[0]  # one Google-style gateway wraps its error in a list
    if not isinstance(value, dict):
        return RefusalBody(message=value if isinstance(value, str) else "")
    return _parsed_error(value.get("error") or value)


def _parsed_error(error: JsonValue) -> RefusalBody:
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


def _kind_of(parsed: RefusalBody, status: int | None) -> type[ProviderError]:
    """Return the error class. The first matching rule wins."""
    coded = next((_BY_CODE[code] for code in parsed.codes if code in _BY_CODE), None)
    if coded is not None and (status is None or issubclass(coded, _OVER_STATUS)):
        return coded if coded is not RequestRejectedError else _by_message(parsed, coded)
    if status in _MESSAGE_COUNTS_FOR:
        return _by_message(parsed, RequestRejectedError)
    by_status = _BY_STATUS.get(status or 0)
    if by_status is not None:
        return by_status
    return ProviderOverloadedError if (status or 0) >= 500 else RequestRejectedError


def _by_message(parsed: RefusalBody, otherwise: type[ProviderError]) -> type[ProviderError]:
    if re.search(_TOO_LONG, parsed.message, re.IGNORECASE):
        return ContextTooLongError
    return UsageLimitedError if re.search(_EXHAUSTED, parsed.message, re.IGNORECASE) else otherwise


def _first_wait(
    parsed: RefusalBody,
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

    from_error = error_reset_ms(parsed.fields, now=now)
    if from_error is not None and kind is UsageLimitedError:
        return from_error
    from_header = retry_after_ms(headers, now=now)
    if from_header is not None or from_error is not None:
        return from_header if from_header is not None else from_error
    is_limit = kind in (RateLimitedError, UsageLimitedError)
    return limit_reset_ms(headers, now=now) if is_limit else None


def _sentence(how: str, parsed: RefusalBody, *, is_html: bool) -> str:
    if is_html:
        return f"the provider answered {how} with an HTML page instead of JSON"
    message = redacted_line(parsed.message)
    code = redacted_line(parsed.codes[0]) if parsed.codes else ""
    label = f"{how}, {code}" if code else how
    return (
        f"the provider answered {label}: {message}" if message else f"the provider answered {label}"
    )


def _hint(
    kind: type[ProviderError],
    status: int | None,
    parsed: RefusalBody,
    diagnostics: TransportDiagnostics | None,
) -> str | None:
    model = (diagnostics.model_ref if diagnostics is not None else None) or "the model"
    if kind is not RequestRejectedError:
        return None
    if status is not None and 300 <= status < 400:
        return "the base URL redirects, which Holon does not follow; configure the final address"
    if "model_not_found" in parsed.codes or status == 404:
        return f"check that the provider knows {model} and that its base URL is right"
    return None
