"""What each refusal means, in the shapes the providers write it."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.refusals import (
    not_json,
    redacted_line,
    refusal_inside_200,
    refusal_of,
    refused,
)
from holon.model.limits import PROVIDER_MESSAGE_CHARS_MAX
from holon.model.providers.attempts import (
    AuthRejectedError,
    ContextTooLongError,
    Disposition,
    ExchangeStage,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    RateLimitedError,
    RequestRejectedError,
    TransportDiagnostics,
    UsageLimitedError,
)
from holon.model.values import JsonValue

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SEEN = TransportDiagnostics(stage=ExchangeStage.RESPONSE_BODY, model_ref="openai/gpt-5.4")


def refusal(
    status: int, value: JsonValue = None, headers: dict[str, str] | None = None
) -> ProviderError:
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return refused(status, headers or {}, body, diagnostics=SEEN, now=NOW)


@pytest.mark.requirement("provider-http:auth-fails-fast")
@pytest.mark.requirement("provider-http:statuses-are-classified")
@pytest.mark.parametrize(
    ("status", "kind", "disposition"),
    [
        (400, RequestRejectedError, Disposition.FAIL_FAST),
        (401, AuthRejectedError, Disposition.FAIL_FAST),
        (402, UsageLimitedError, Disposition.FAIL_FAST),
        (403, AuthRejectedError, Disposition.FAIL_FAST),
        (404, RequestRejectedError, Disposition.FAIL_FAST),
        (408, ProviderTimeoutError, Disposition.RETRYABLE),
        (409, RequestRejectedError, Disposition.FAIL_FAST),
        (413, RequestRejectedError, Disposition.FAIL_FAST),
        (422, RequestRejectedError, Disposition.FAIL_FAST),
        (429, RateLimitedError, Disposition.RETRYABLE),
        (500, ProviderOverloadedError, Disposition.RETRYABLE),
        (501, RequestRejectedError, Disposition.FAIL_FAST),
        (502, ProviderOverloadedError, Disposition.RETRYABLE),
        (503, ProviderOverloadedError, Disposition.RETRYABLE),
        (504, ProviderTimeoutError, Disposition.RETRYABLE),
        (505, RequestRejectedError, Disposition.FAIL_FAST),
        (529, ProviderOverloadedError, Disposition.RETRYABLE),
        (307, RequestRejectedError, Disposition.FAIL_FAST),
    ],
)
def test_a_status_alone_has_its_class(
    status: int, kind: type[ProviderError], disposition: Disposition
) -> None:
    error = refusal(status)
    assert type(error) is kind
    assert error.disposition is disposition
    assert error.diagnostics is not None
    assert error.diagnostics.status == status
    assert error.diagnostics.flags is not None
    assert error.diagnostics.flags.status == status
    assert error.diagnostics.flags.is_redirect is (status == 307)
    assert f"HTTP {status}" in error.message


@pytest.mark.requirement("provider-http:context-length-is-told-apart")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "context_length_exceeded", "type": "invalid_request_error"}),
        (400, {"message": "This model's maximum context length is 8192 tokens. However, …"}),
        (400, {"message": "Your input exceeds the context window of this model."}),
        (400, {"type": "invalid_request_error", "message": "prompt is too long: 210 > 200"}),
        (400, {"message": "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}),
        (400, {"type": "exceed_context_size_error", "message": "the request exceeds …"}),
        (400, {"code": 400, "message": "the request exceeds the available context size"}),
        (400, {"message": "The input token count exceeds the maximum number of tokens allowed"}),
        (413, {"message": "Input is too long for requested model."}),
        (500, {"code": "context_length_exceeded"}),
    ],
)
def test_a_conversation_too_long_is_recognized(status: int, error: JsonValue) -> None:
    found = refusal(status, {"error": error})
    assert type(found) is ContextTooLongError
    assert found.ends_turn


def test_a_rate_limit_that_talks_of_tokens_is_no_context_error() -> None:
    error = {"message": "Request too large: maximum context length", "type": "tokens"}
    assert type(refusal(429, {"error": error})) is RateLimitedError


@pytest.mark.parametrize(
    ("error", "wait_ms"),
    [
        ({"type": "usage_limit_reached", "resets_in_seconds": 90}, 90_000),
        ({"type": "usage_limit_reached", "resets_at": int(NOW.timestamp()) + 3_600}, 3_600_000),
        ({"code": "insufficient_quota", "message": "You exceeded your current quota"}, None),
    ],
)
def test_a_used_up_account_is_told_from_a_busy_one(error: JsonValue, wait_ms: int | None) -> None:
    found = refusal(429, {"error": error})
    assert type(found) is UsageLimitedError
    assert found.retry_after_ms == wait_ms
    assert found.diagnostics is not None
    assert found.diagnostics.retry_after_ms == wait_ms


def test_an_anthropic_account_without_credit_is_used_up() -> None:
    error = {"type": "invalid_request_error", "message": "Your credit balance is too low to …"}
    assert type(refusal(400, {"type": "error", "error": error})) is UsageLimitedError


def test_retry_after_is_on_the_error_and_in_the_diagnostics() -> None:
    for status in (429, 503, 529):
        found = refusal(status, headers={"retry-after": "7"})
        assert found.retry_after_ms == 7_000
        assert found.diagnostics is not None
        assert found.diagnostics.retry_after_ms == 7_000


def test_an_unknown_model_is_named_in_the_hint() -> None:
    error = {"code": "model_not_found", "message": "The model `gpt-9` does not exist"}
    found = refusal(404, {"error": error})
    assert "model_not_found: The model `gpt-9` does not exist" in found.message
    assert "openai/gpt-5.4" in (found.hint or "")


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><html>", b"\n <html lang='en'>", b"<HTML>"])
def test_a_web_page_is_called_one(body: bytes) -> None:
    assert "an HTML page instead of JSON" in refusal(502, body).message
    assert "an HTML page" in not_json(body, SEEN).message
    assert "base URL" in (not_json(body, SEEN).hint or "")


@pytest.mark.parametrize(
    "value",
    [
        "plain words",
        {"error": "plain words"},
        {"message": "plain words"},
        {"detail": "plain words"},
        {"error": {"message": "plain words"}},
        {"type": "error", "error": {"message": "plain words"}},
        [{"error": {"message": "plain words"}}],
        b"plain words",
    ],
)
def test_the_provider_s_words_are_found_in_any_shape(value: JsonValue) -> None:
    assert refusal(400, value).message == "the provider answered HTTP 400: plain words"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, ProviderOverloadedError),
        ({"type": "rate_limit_error"}, RateLimitedError),
        ({"code": "rate_limit_exceeded"}, RateLimitedError),
        ({"code": "server_is_overloaded"}, ProviderOverloadedError),
        ({"code": "slow_down"}, ProviderOverloadedError),
        ({"code": "insufficient_quota"}, UsageLimitedError),
        ({"code": "context_length_exceeded"}, ContextTooLongError),
        ({"code": "invalid_prompt"}, RequestRejectedError),
        ({"type": "authentication_error"}, AuthRejectedError),
        ({"type": "invalid_request_error", "message": "prompt is too long"}, ContextTooLongError),
        ({"code": 502, "message": "upstream"}, ProviderOverloadedError),
        ({"code": 429}, RateLimitedError),
        ({"message": "something else"}, RequestRejectedError),
        ("just text", RequestRejectedError),
        (True, RequestRejectedError),
    ],
)
def test_an_error_inside_a_200_has_its_class(error: JsonValue, kind: type[ProviderError]) -> None:
    found = refusal_inside_200({"error": error})
    assert type(found) is kind


@pytest.mark.parametrize("value", [{}, {"error": None}, {"error": {}}, [], "error", None])
def test_an_answer_without_an_error_holds_none(value: JsonValue) -> None:
    assert refusal_inside_200(value) is None


@pytest.mark.requirement("provider-http:no-secret-in-errors")
@pytest.mark.parametrize(
    "told",
    [
        "Incorrect API key provided: sk-proj-abcdef123456.",
        "bad header Authorization: Bearer abcdef123456",
        "token eyJhbGciOiJIUzI1NiIsInR5cCI6.abcdef123456 expired",
    ],
)
def test_what_looks_like_a_key_is_not_repeated(told: str) -> None:
    assert "abcdef123456" not in refusal(401, {"error": {"message": told}}).message


def test_a_long_message_becomes_one_bounded_line() -> None:
    line = redacted_line("a\nb\t\x07" + " word" * 10_000)
    assert line.startswith("a b ? word")
    assert PROVIDER_MESSAGE_CHARS_MAX - len("word ") <= len(line) <= PROVIDER_MESSAGE_CHARS_MAX


def test_a_word_that_is_cut_is_left_out_since_it_may_be_a_secret() -> None:
    secret = "xy0123456789" * 10  # nothing that looks like a key
    line = redacted_line("because " * 48 + secret)
    assert line == "because " * 48 + "…"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "code", "type", "message", "resets_at", "detail", "x"]), inner
        )
    ),
    max_leaves=10,
)


@given(
    status=st.integers(300, 599),
    body=st.binary(max_size=60) | JSON.map(msgspec.json.encode),
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]), st.text()
    ),
)
def test_any_refusal_becomes_a_provider_error(
    status: int, body: bytes, headers: dict[str, str]
) -> None:
    error = refused(status, headers, body, diagnostics=SEEN, now=NOW)
    assert isinstance(error, ProviderError)
    assert "\n" not in error.message
    assert error.retry_after_ms is None or error.retry_after_ms >= 0


@given(error=JSON)
def test_any_error_object_becomes_a_provider_error(error: JsonValue) -> None:
    assert isinstance(refusal_of(error, now=NOW), ProviderError)


_REPR = (
    "[{'type': 'extra_forbidden', 'loc': ('body', 'include'),"
    " 'msg': 'Extra inputs are not permitted', 'input': ['reasoning']}]"
)


@pytest.mark.requirement("provider-wire:a-refused-parameter-is-dropped-once")
@pytest.mark.parametrize(
    ("message", "param", "name"),
    [
        ("Unsupported parameter: 'store'. Do not include it.", "store", "store"),
        ("Unsupported parameter: 'reasoning.effort' is not supported.", "reasoning.effort",
         "reasoning"),
        ("Encrypted content is not supported with this model.", "include", "include"),
        ("Unknown parameter: 'input[0].x'.", "input[0].x", "input"),
        ("Unsupported parameter(s): `top_p`", None, "top_p"),
        ("Unsupported parameter: 'top_p' is not supported. Use 'seed' instead.", "", "top_p"),
        ("Unrecognized request argument supplied: top_p", None, "top_p"),
        ("Unrecognized request arguments supplied: top_p, seed", None, "top_p"),
        ('Invalid JSON payload. Unknown name "top_p": Cannot find field.', None, "top_p"),
        ("body.top_p: property 'body.top_p' is unsupported", None, "top_p"),
        ("the parameter top_p is not supported by this model", None, "top_p"),
        ("this parameter is not supported: 'top_p'", None, "top_p"),
        ("Additional properties are not allowed ('top_p' was unexpected)", None, "top_p"),
        ("`top_p` is not allowed. Supported parameters: seed, include", None, "top_p"),
        ("`top_p` is not allowed; use the parameter include", None, "top_p"),
        (_REPR, None, "include"),
        ("Images are not supported. Please include text only", None, None),
        ("max_tokens is not allowed to be greater than 4096", "max_tokens", None),
        ("'max_tokens' is not allowed to exceed 4096", None, None),
        ("Unsupported value: 'high' is not supported", "reasoning.effort", None),
        ("something is wrong with 'top_p'", "top_p", None),
    ],
)  # fmt: skip
def test_a_refusal_of_a_parameter_names_the_one_it_is_about(
    message: str, param: str | None, name: str | None
) -> None:
    error = refusal(400, {"error": {"message": message, "param": param}})
    assert isinstance(error, RequestRejectedError)
    assert error.unsupported == name


@pytest.mark.requirement("provider-wire:a-refused-parameter-is-dropped-once")
def test_a_code_alone_says_that_a_parameter_is_unsupported() -> None:
    told: JsonValue = {"code": "unknown_parameter", "param": "top_p", "message": "the value is odd"}
    error = refusal(400, {"error": told})
    assert isinstance(error, RequestRejectedError)
    assert error.unsupported == "top_p"


@pytest.mark.requirement("provider-wire:a-refused-parameter-is-dropped-once")
@pytest.mark.parametrize(
    "unit", ["unknown parameter ", "'a", "field:  ", "extra_forbidden', 'loc': "]
)
def test_finding_the_name_is_bounded(unit: str) -> None:
    error = refusal(400, {"error": {"message": "is not supported " + unit * 100_000}})
    assert isinstance(error, RequestRejectedError)
    assert len(error.unsupported or "") < 200
