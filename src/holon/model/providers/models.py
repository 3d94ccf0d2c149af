"""Model configuration: providers, credentials and the runtime's choice of model.

Owns:  the reference `provider/model` and its textual form; the settings the provider resolver is
       built from, and the source of each credential.
Rule 1: the first slash separates; everything behind it belongs to the provider. So
        `local//a/b.gguf` names a file and `openrouter/meta/llama` a model with a slash inside.
Rule 2: settings hold no secret. A credential is named (an environment variable, a profile, a
        program) and looked up when a request is about to be sent.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from holon.model.errors import BadInputError
from holon.model.limits import (
    MODEL_REF_CHARS_MAX,
    PROVIDER_HTTP_TIMEOUT_MS_DEFAULT,
    PROVIDER_STREAM_IDLE_MS_DEFAULT,
)
from holon.model.record import Record

_PROVIDER_ID: Final = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")


class BadModelRefError(BadInputError):
    """A text that should name a model does not."""

    code = "bad_model_ref"
    hint = "write it as provider/model, for example anthropic/claude-sonnet-5-5"


class ModelRef(Record, frozen=True, kw_only=True):
    """One model of one provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


def parse_model_ref(text: str) -> ModelRef:
    """Return the reference a text stands for, or raise BadModelRefError."""
    provider, slash, model = text.strip().partition("/")
    if len(text) > MODEL_REF_CHARS_MAX:
        raise BadModelRefError(f"a model reference has at most {MODEL_REF_CHARS_MAX} characters")
    if not slash or not model or not _PROVIDER_ID.match(provider):
        raise BadModelRefError(f"{text!r} does not name a model")
    if not model.isprintable() or model != model.strip():
        raise BadModelRefError(f"{text!r} holds characters a model name cannot have")
    return ModelRef(provider=provider, model=model)


class TransportKind(StrEnum):
    """The wires Holon supports, and the providers that need none."""

    OPENAI_RESPONSES = "openai_responses"
    OPENAI_CODEX_RESPONSES = "openai_codex_responses"
    OPENAI_CHAT_COMPLETIONS = "openai_chat_completions"
    ANTHROPIC_MESSAGES = "anthropic_messages"
    SCRIPTED = "scripted"
    LOCAL = "local"


class SchemaMode(StrEnum):
    """How tool schemas are emitted: as they are, or in a provider's strict mode."""

    RELAXED = "relaxed"
    STRICT = "strict"


class CredentialSource(StrEnum):
    """Where a credential is looked up."""

    ENV = "env"
    PROFILE = "credential_profile"
    PROCESS = "credential_process"
    EXTERNAL_CLI = "external_cli"
    NONE = "none"


class CredentialKind(StrEnum):
    """What a credential is, and so how it is sent."""

    API_KEY = "api_key"
    BEARER_TOKEN = "bearer_token"
    OAUTH = "o_auth"
    SESSION_TOKEN = "session_token"
    NONE = "none"


class ProviderAuth(Record, frozen=True, kw_only=True):
    """Which credential a provider is sent."""

    source: CredentialSource = CredentialSource.NONE
    kind: CredentialKind = CredentialKind.NONE
    env: str | None = None  # the variable, for `env`
    profile: str | None = None  # the name in the credentials file, for `credential_profile`
    external: str | None = (
        None  # the program or its file, for `external_cli` and `credential_process`
    )


class ProviderSetting(Record, frozen=True, kw_only=True):
    """An operator's settings of one provider. What is left out comes from the catalog."""

    transport: str | None = None  # a TransportKind; an unknown one fails closed when it is used
    base_url: str | None = None
    auth: ProviderAuth | None = None
    stream: bool | None = None
    reasoning_effort: str | None = None
    incremental: bool | None = None  # OpenAI Responses only
    schema_mode: SchemaMode | None = None


class ModelSetting(Record, frozen=True, kw_only=True):
    """An operator's settings of one model. What is left out comes from the catalog."""

    context_window_tokens: int | None = None
    effective_context_window_percent: int | None = None
    output_tokens_max: int | None = None
    tool_output_tokens_max: int | None = None
    schema_mode: SchemaMode | None = None  # before the provider's


class AnthropicSetting(Record, frozen=True, kw_only=True):
    """Anthropic's own options."""

    context_management: bool = False
    trigger_input_tokens: int = 100_000
    keep_recent_tool_uses: int = 3
    clear_at_least_input_tokens: int | None = None
    betas: tuple[str, ...] = ()


class ProviderResolverSettings(Record, frozen=True, kw_only=True):
    """Everything the provider plane is built from."""

    model_default: ModelRef | None = None
    model_fallbacks: tuple[ModelRef, ...] = ()
    fallback_disabled: bool = False
    trial_tools_allowed: bool = False
    deferral_disabled: bool = False
    providers: Mapping[str, ProviderSetting] = {}
    models: Mapping[str, ModelSetting] = {}  # by model reference
    unknown_model: ModelSetting = ModelSetting()
    output_tokens_max: int = 8_192
    http_timeout_ms: int = PROVIDER_HTTP_TIMEOUT_MS_DEFAULT
    stream_idle_ms: int = PROVIDER_STREAM_IDLE_MS_DEFAULT
    anthropic: AnthropicSetting = AnthropicSetting()
    local_threads_count: int = 1
    record_dir: str | None = None
    replay_dir: str | None = None
    http_trace: bool = False  # a line in the log for every exchange
    failure_trace: bool = False  # a line in the log with the diagnostics of every failure


class StoredCredential(Record, frozen=True, kw_only=True):
    """A secret as the credentials file keeps it. Never shown, never logged."""

    kind: CredentialKind
    material: str

    def __repr__(self) -> str:
        return f"StoredCredential(kind={self.kind.value!r}, material=<secret>)"
