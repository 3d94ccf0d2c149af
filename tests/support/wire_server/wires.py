"""The four wires by path: how each is parsed, answered and refused.

Owns:  the table of paths, the credential each request must carry, and each wire's error object.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from holon.model.providers.models import TransportKind
from tests.support.wire_server import (
    chat_answer,
    chat_request,
    messages_answer,
    messages_request,
    responses_answer,
    responses_request,
)
from tests.support.wire_server.wire_answer import StreamEvent, WireAnswer
from tests.support.wire_server.wire_request import (
    JsonObject,
    ParsedRequest,
    RawRequest,
    WireRefusal,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """One way of speaking with a model."""

    kind: TransportKind
    base_path: str  # what stands before the wire's own path in a base URL
    read: Callable[[RawRequest], ParsedRequest]
    whole: Callable[[WireAnswer, ParsedRequest], JsonObject]
    events: Callable[[WireAnswer, ParsedRequest], list[StreamEvent]]
    failed: Callable[[WireAnswer, ParsedRequest, JsonObject], list[StreamEvent]]
    error: Callable[[WireRefusal], JsonObject]  # the error itself
    refusal: Callable[[WireRefusal], JsonObject]  # the body around it


_OPENAI_TYPES: Final[Mapping[int, str]] = {
    401: "invalid_request_error",
    403: "permission_error",
    404: "invalid_request_error",
    429: "requests",
    500: "server_error",
    503: "service_unavailable_error",
}
_OPENAI_CODES: Final[Mapping[int, str]] = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_ANTHROPIC_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# Failures of OpenAI's wires as this one calls them.
_ANTHROPIC_NAMES: Final[Mapping[str, str]] = {"usage_limit_reached": "billing_error"}
_ANTHROPIC_MESSAGES: Final[Mapping[str, str]] = {
    "context_length_exceeded": "prompt is too long: 200001 tokens > 200000 maximum"
}


def _openai_error(refusal: WireRefusal) -> JsonObject:
    by_status = "server_error" if refusal.status >= 500 else "invalid_request_error"
    kind = _OPENAI_TYPES.get(refusal.status, by_status)
    return {
        "message": refusal.message,
        "type": refusal.code if refusal.code == "usage_limit_reached" else kind,
        "param": refusal.param,
        "code": refusal.code or _OPENAI_CODES.get(refusal.status),
        **refusal.details,
    }


def _openai_refusal(refusal: WireRefusal) -> JsonObject:
    return {"error": _openai_error(refusal)}


def _codex_refusal(refusal: WireRefusal) -> JsonObject:
    """The backend answers plain mistakes with a detail, and the rest as its neighbours do."""
    if refusal.status == 400 and refusal.code is None:
        return {"detail": refusal.message}
    return _openai_refusal(refusal)


def _anthropic_error(refusal: WireRefusal) -> JsonObject:
    by_status = "api_error" if refusal.status >= 500 else "invalid_request_error"
    kind = _ANTHROPIC_TYPES.get(refusal.status, by_status)
    code = _ANTHROPIC_NAMES.get(refusal.code or "", refusal.code or "")
    is_own = code.endswith("_error")  # `overloaded_error` inside a 200
    message = _ANTHROPIC_MESSAGES.get(code, refusal.message)
    return {"type": code if is_own else kind, "message": message, **refusal.details}


def _anthropic_refusal(refusal: WireRefusal) -> JsonObject:
    error = _anthropic_error(refusal)
    return {"type": "error", "error": error, "request_id": "req_script"}


def _failed_response_error(refusal: WireRefusal) -> JsonObject:
    code = refusal.code or "server_error"
    return {"code": code, "message": refusal.message, **refusal.details}


_RESPONSES: Final = Wire(
    kind=TransportKind.OPENAI_RESPONSES,
    base_path="/v1",
    read=responses_request.read_responses,
    whole=responses_answer.response_of,
    events=responses_answer.events_of,
    failed=responses_answer.failed_events,
    error=_failed_response_error,
    refusal=_openai_refusal,
)
_CODEX: Final = Wire(
    kind=TransportKind.OPENAI_CODEX_RESPONSES,
    base_path="/backend-api/codex",
    read=responses_request.read_codex,
    whole=responses_answer.response_of,
    events=responses_answer.events_of,
    failed=responses_answer.failed_events,
    error=_failed_response_error,
    refusal=_codex_refusal,
)
_CHAT: Final = Wire(
    kind=TransportKind.OPENAI_CHAT_COMPLETIONS,
    base_path="/v1",
    read=chat_request.read_chat,
    whole=chat_answer.completion_of,
    events=chat_answer.chunks_of,
    failed=chat_answer.failed_chunks,
    error=_openai_error,
    refusal=_openai_refusal,
)
_MESSAGES: Final = Wire(
    kind=TransportKind.ANTHROPIC_MESSAGES,
    base_path="",
    read=messages_request.read_messages,
    whole=messages_answer.message_of,
    events=messages_answer.events_of,
    failed=messages_answer.failed_events,
    error=_anthropic_error,
    refusal=_anthropic_refusal,
)

WIRES: Final[Mapping[TransportKind, Wire]] = {
    wire.kind: wire for wire in (_RESPONSES, _CODEX, _CHAT, _MESSAGES)
}
PATHS: Final[Mapping[str, Wire]] = {
    "/responses": _RESPONSES,
    "/v1/responses": _RESPONSES,
    "/chat/completions": _CHAT,
    "/v1/chat/completions": _CHAT,
    "/v1/messages": _MESSAGES,
    "/backend-api/codex/responses": _CODEX,
}


def require_credential(wire: Wire, headers: Mapping[str, str], *, accepted: str | None) -> None:
    """Refuse a request without a credential, or with another than the accepted one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = token if scheme.lower() == "bearer" else ""
    is_anthropic = wire.kind is TransportKind.ANTHROPIC_MESSAGES
    if is_anthropic:
        given = headers.get("x-api-key", "") or given
    if not given:
        missing = (
            "x-api-key header is required" if is_anthropic else "Missing bearer authentication"
        )
        raise WireRefusal(missing, status=401)
    if accepted is not None and given != accepted:
        wrong = "invalid x-api-key" if is_anthropic else "Incorrect API key provided."
        raise WireRefusal(wrong, status=401)
