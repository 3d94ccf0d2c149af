"""What is known about providers and models, and what the operator may say instead."""

import msgspec
import pytest

from holon.adapters.providers.catalog import (
    NETWORKLESS,
    ModelInfoSource,
    builtin_catalog,
    is_loopback,
    model_info,
    provider_route,
    request_output_tokens,
)
from holon.adapters.providers.local.prompt import profile_for
from holon.model.providers.attempts import (
    ModelUnavailableError,
    ProviderError,
    TransportUnsupportedError,
)
from holon.model.providers.models import (
    CredentialKind,
    CredentialSource,
    ModelRef,
    ModelSetting,
    ProviderAuth,
    ProviderResolverSettings,
    ProviderSetting,
    SchemaMode,
    TransportKind,
    parse_model_ref,
)

CATALOG = builtin_catalog()
PLAIN = ProviderResolverSettings()
COMPATIBLE = {
    "deepseek",
    "openrouter",
    "zai",
    "bigmodel",
    "minimax",
    "moonshot",
    "qwen",
    "dashscope",
    "xai",
    "mistral",
    "together",
    "fireworks",
    "nvidia",
    "huggingface",
    "litellm",
    "chutes",
    "venice",
    "volcengine",
    "byteplus",
    "xiaomi",
    "stepfun",
}


def said(provider: str, **words: object) -> ProviderResolverSettings:
    return ProviderResolverSettings(providers={provider: ProviderSetting(**words)})  # type: ignore[arg-type]


def test_the_catalog_is_large_and_every_route_in_it_is_sound() -> None:
    assert len(CATALOG.providers) >= 38
    assert set(CATALOG.providers) >= COMPATIBLE
    for provider in CATALOG.providers:
        route = provider_route(provider, PLAIN)
        assert route.warnings == ()
        assert bool(route.base_url) is (route.transport not in NETWORKLESS)
        assert not route.base_url.endswith("/")


@pytest.mark.requirement("provider-plane:compatible-defaults-fit-a-known-contract")
def test_every_builtin_credential_is_a_variable_or_a_known_login() -> None:
    for provider, known in CATALOG.providers.items():
        for auth in known.auth:
            assert auth.source in (CredentialSource.ENV, CredentialSource.EXTERNAL_CLI)
            assert auth.kind in (
                CredentialKind.API_KEY,
                CredentialKind.BEARER_TOKEN,
                CredentialKind.OAUTH,
            )
        named = [auth.env for auth in known.auth if auth.env]
        if provider != "anthropic" and named:
            assert named[0] == f"{provider.upper().replace('-', '_')}_API_KEY"


def test_every_model_belongs_to_a_provider_and_its_numbers_make_sense() -> None:
    for text, known in CATALOG.models.items():
        ref = parse_model_ref(text)
        assert ref.provider in CATALOG.providers
        info = model_info(ref, PLAIN)
        assert info.source is ModelInfoSource.BUILTIN_CATALOG
        assert 0 < info.input_tokens_max <= info.context_window_tokens
        assert 0 < info.output_tokens_max <= info.context_window_tokens
        assert info.prompt_budget_tokens < info.context_window_tokens
        if known.price is not None:
            assert 0 < known.price.input <= known.price.output
            assert (known.price.cache_read or 0) < known.price.input


@pytest.mark.requirement("provider-plane:transport-contracts")
@pytest.mark.parametrize(
    ("provider", "transport", "stream"),
    [
        ("openai", TransportKind.OPENAI_RESPONSES, False),
        ("anthropic", TransportKind.ANTHROPIC_MESSAGES, False),
        ("openai-codex", TransportKind.OPENAI_CODEX_RESPONSES, True),
        ("deepseek", TransportKind.OPENAI_CHAT_COMPLETIONS, False),
        ("ollama", TransportKind.OPENAI_CHAT_COMPLETIONS, False),
    ],
)
def test_each_provider_speaks_its_wire(
    provider: str, transport: TransportKind, stream: bool
) -> None:
    route = provider_route(provider, PLAIN)
    assert (route.transport, route.stream) == (transport, stream)


def test_budgets_follow_from_the_window() -> None:
    info = model_info(ModelRef(provider="anthropic", model="claude-haiku-4-5"), PLAIN)
    assert info.prompt_budget_tokens == 190_000
    assert info.compaction_trigger_tokens == 171_000
    assert info.compaction_keep_recent_tokens == 64_980


def test_a_window_that_may_not_be_filled_is_budgeted_by_what_may_be_sent() -> None:
    info = model_info(ModelRef(provider="openai", model="gpt-5"), PLAIN)
    assert (info.context_window_tokens, info.input_tokens_max) == (400_000, 272_000)
    assert info.prompt_budget_tokens == 258_400


def test_a_model_nobody_described_can_be_used() -> None:
    ref = ModelRef(provider="ollama", model="qwen3:8b")
    info = model_info(ref, PLAIN)
    assert info.source is ModelInfoSource.UNKNOWN_FALLBACK
    assert (info.context_window_tokens, info.output_tokens_max) == (128_000, 8_192)
    assert info.effective_context_window_percent == 95
    assert info.price is None
    told = ProviderResolverSettings(unknown_model=ModelSetting(context_window_tokens=32_000))
    assert model_info(ref, told).context_window_tokens == 32_000
    known = ModelRef(provider="openai", model="gpt-4o")
    assert model_info(known, told).context_window_tokens == 128_000


def test_the_catalog_promises_no_more_than_the_engine_in_this_process_gives() -> None:
    for model in ("smollm2-135m", "/srv/models/some.gguf"):
        profile = profile_for(model)
        info = model_info(ModelRef(provider="local", model=model), PLAIN)
        assert info.context_window_tokens <= profile.context_tokens
        assert info.output_tokens_max <= profile.output_tokens_max


def test_the_operators_word_about_a_model_wins() -> None:
    ref = ModelRef(provider="openai", model="gpt-5")
    told = ProviderResolverSettings(models={str(ref): ModelSetting(context_window_tokens=300_000)})
    info = model_info(ref, told)
    assert info.source is ModelInfoSource.CONFIG_OVERRIDE
    assert info.input_tokens_max == 300_000
    assert info.output_tokens_max == 128_000  # what was left out comes from the catalog


def test_an_answer_is_as_long_as_the_runtime_or_the_model_allows() -> None:
    small = ModelRef(provider="local", model="smollm2-135m")
    large = ModelRef(provider="openai", model="gpt-5")
    told = ProviderResolverSettings(models={str(large): ModelSetting(output_tokens_max=20_000)})
    assert request_output_tokens(large, model_info(large, PLAIN), PLAIN) == 8_192
    assert request_output_tokens(small, model_info(small, PLAIN), PLAIN) == 128
    assert request_output_tokens(large, model_info(large, told), told) == 20_000


@pytest.mark.requirement("provider-plane:unsupported-transport-fails-closed")
def test_a_transport_nobody_speaks_is_refused_with_those_that_are() -> None:
    with pytest.raises(TransportUnsupportedError) as caught:
        provider_route("openai", said("openai", transport="grpc_magic"))
    assert "grpc_magic" in caught.value.message
    assert all(kind.value in str(caught.value.hint) for kind in TransportKind)


@pytest.mark.parametrize(
    ("provider", "settings", "words", "hint"),
    [
        ("antropic", PLAIN, "no provider 'antropic'", "did you mean 'anthropic'"),
        ("zzz", PLAIN, "no provider 'zzz'", "holon config providers set zzz"),
        ("mine", said("mine", stream=True), "has no base URL", "--base-url"),
        ("mine", said("mine", base_url="ftp://h/x"), "must start with http", "HOLON_MINE_BASE_URL"),
        ("mine", said("mine", base_url="https://"), "is not an address", "--base-url"),
        ("mine", said("mine", base_url="https://h:99999"), "is not an address", "--base-url"),
        ("mine", said("mine", base_url="https://h/?a=b"), "query", "--base-url"),
        ("mine", said("mine", base_url="https://u:pass@h/v1"), "user name or pass", "--base-url"),
    ],
)
def test_a_provider_that_makes_no_sense_is_refused_with_what_to_do(
    provider: str, settings: ProviderResolverSettings, words: str, hint: str
) -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        provider_route(provider, settings)
    assert words in caught.value.message
    assert hint in str(caught.value.hint)
    assert "pass@" not in f"{caught.value.message} {caught.value.hint}"
    assert isinstance(caught.value, ProviderError)
    assert not caught.value.retryable


def test_what_the_operator_says_about_a_provider_wins() -> None:
    auth = ProviderAuth(source=CredentialSource.ENV, kind=CredentialKind.BEARER_TOKEN, env="MY_KEY")
    settings = said(
        "openai",
        transport="openai_chat_completions",
        base_url="https://gate.example/v1/",
        auth=auth,
        stream=True,
        reasoning_effort="high",
    )
    route = provider_route("openai", settings)
    assert route.transport is TransportKind.OPENAI_CHAT_COMPLETIONS
    assert route.base_url == "https://gate.example/v1"
    assert route.auth == (auth,)
    assert (route.stream, route.reasoning_effort) == (True, "high")
    assert route.schema_mode is SchemaMode.RELAXED
    strict = said("openai", schema_mode=SchemaMode.STRICT)
    assert provider_route("openai", strict).schema_mode is SchemaMode.STRICT


def test_a_provider_of_ones_own_speaks_responses_unless_told_otherwise() -> None:
    route = provider_route("mine", said("mine", base_url="https://gate.example/v1"))
    assert route.transport is TransportKind.OPENAI_RESPONSES
    assert not route.is_builtin


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://127.0.0.1:9/v1", False),
        ("http://localhost:9/v1", False),
        ("http://[::1]:9/v1", False),
        ("http://192.168.1.9/v1", True),
        ("http://gate.example/v1", True),
        ("https://gate.example/v1", False),
    ],
)
def test_plain_http_is_warned_about_unless_it_stays_here(url: str, warned: bool) -> None:
    assert bool(provider_route("mine", said("mine", base_url=url)).warnings) is warned


def test_only_this_machine_is_loopback() -> None:
    assert is_loopback("127.8.8.8")
    assert is_loopback("api.localhost")
    assert not is_loopback("localhost.example")


def test_routes_and_models_have_a_wire_form_without_secrets() -> None:
    info = model_info(ModelRef(provider="openai", model="gpt-5.4"), PLAIN)
    told = msgspec.json.decode(msgspec.json.encode(info))
    assert told["price"] == {"input": 2.5, "output": 15.0, "cache_read": 0.25}
    assert told["freeform_tools"] is True
