"""Builds the runtime's configuration records from setting values.

Owns:  which setting becomes which field.
Rule 1: values have been parsed by their types, so that nothing here can fail on operator input.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

from holon.config.setting_keys import SettingKey
from holon.config.value_types import PlainValue
from holon.decide.text.bounded import OutputBudget
from holon.model import limits
from holon.model.budgets import Budget, BudgetPolicy
from holon.model.events.retention import RetentionPolicy
from holon.model.providers.models import (
    AnthropicSetting,
    CredentialKind,
    CredentialSource,
    ModelRef,
    ModelSetting,
    ProviderAuth,
    ProviderResolverSettings,
    ProviderSetting,
    SchemaMode,
    parse_model_ref,
)
from holon.model.queue import SignatureForm, WebhookSetting
from holon.model.record import Record
from holon.model.tasks import TaskQuota
from holon.model.work import ReminderPolicy
from holon.ports.journal import LogLevel

# The default kind of a credential, by its source.
_DEFAULT_KINDS: Final = {
    CredentialSource.ENV: CredentialKind.API_KEY,
    CredentialSource.PROFILE: CredentialKind.API_KEY,
    CredentialSource.PROCESS: CredentialKind.API_KEY,
    CredentialSource.EXTERNAL_CLI: CredentialKind.OAUTH,
    CredentialSource.NONE: CredentialKind.NONE,
}

_Plain = TypeVar("_Plain", str, int, bool, tuple[str, ...])


class KnownValue(Record, frozen=True, kw_only=True):
    """A setting that has a value."""

    key: SettingKey
    value: PlainValue


class _Values:
    """Typed access to values by key."""

    def __init__(self, known: Mapping[str, KnownValue]) -> None:
        self._known = known

    def get(self, key: str, kind: type[_Plain]) -> _Plain | None:
        """Return the value, or nothing when none was given and there is no default."""
        found = self._known.get(key)
        if found is None:
            return None
        assert isinstance(found.value, kind), f"{key} is no {kind.__name__}"
        return found.value

    def sure(self, key: str, kind: type[_Plain]) -> _Plain:
        """Return the value of a setting that has a default."""
        value = self.get(key, kind)
        assert value is not None, f"{key} has no default"
        return value

    def family(self, head: str) -> dict[str, dict[str, PlainValue]]:
        """Return, for each name under `providers.` or `models.catalog.`, its fields and values."""
        found: dict[str, dict[str, PlainValue]] = {}
        for known in self._known.values():
            setting, name = known.key.setting, known.key.name
            if name is not None and setting.key.startswith(head):
                field = setting.key.partition(">.")[2]
                found.setdefault(name, {})[field] = known.value
        return found


def plane_of(known: Mapping[str, KnownValue]) -> ProviderResolverSettings:
    """Return the settings of the model providers."""
    values = _Values(known)
    default = values.get("model.default", str)
    seconds = values.sure("runtime.provider_http_timeout_seconds", int)
    return ProviderResolverSettings(
        model_default=None if default is None else parse_model_ref(default),
        model_fallbacks=_references(values.sure("model.fallbacks", tuple)),
        trial_tools_allowed=values.sure("model.allow_trial_tools", bool),
        fallback_disabled=values.sure("runtime.disable_provider_fallback", bool),
        deferral_disabled=not values.sure("runtime.defer_on_usage_limit", bool),
        providers={name: _provider(fields) for name, fields in values.family("providers.").items()},
        models={name: _model(fields) for name, fields in values.family("models.catalog.").items()},
        unknown_model=_unknown_model(values),
        output_tokens_max=values.sure("runtime.max_output_tokens", int),
        http_timeout_ms=seconds * limits.SECOND_MS,
        stream_idle_ms=values.sure("runtime.provider_stream_idle_timeout_ms", int),
        anthropic=_anthropic(values),
        local_threads_count=values.sure("local.threads", int),
        record_dir=values.get("runtime.provider_record_dir", str),
        replay_dir=values.get("runtime.provider_replay_dir", str),
        http_trace=values.sure("provider.http_trace", bool),
        failure_trace=values.sure("provider.failure_trace", bool),
    )


def retention_of(known: Mapping[str, KnownValue]) -> RetentionPolicy:
    """Return how much finished history is kept."""
    values = _Values(known)
    return RetentionPolicy(
        age_ms=values.sure("runtime.retention.days", int) * limits.DAY_MS,
        bytes_max=values.sure("runtime.retention.bytes_max", int),
    )


def budgets_of(known: Mapping[str, KnownValue]) -> BudgetPolicy:
    """Return how much each agent, and all of them together, may use."""
    values = _Values(known)
    return BudgetPolicy(agent=_budget(values, "agent"), runtime=_budget(values, "runtime"))


def _budget(values: _Values, scope: str) -> Budget:
    cents = values.get(f"budget.{scope}.cost_cents_per_day", int)
    return Budget(
        turns_per_hour=values.get(f"budget.{scope}.turns_per_hour", int),
        tokens_per_day=values.get(f"budget.{scope}.tokens_per_day", int),
        cost_micros_per_day=None if cents is None else cents * (limits.COST_MICROS // 100),
    )


def reminders_of(known: Mapping[str, KnownValue]) -> ReminderPolicy:
    """Return when a model is reminded of an untouched work item."""
    values = _Values(known)
    return ReminderPolicy(
        rounds_count=values.sure("runtime.work_item_reminder.rounds", int),
        cooldown_rounds_count=values.sure("runtime.work_item_reminder.cooldown_rounds", int),
        tokens_max=values.sure("runtime.work_item_reminder.max_tokens", int),
    )


def task_quota_of(known: Mapping[str, KnownValue]) -> TaskQuota:
    """Return how many command tasks may run at one time."""
    values = _Values(known)
    return TaskQuota(
        per_agent_count_max=values.sure("runtime.tasks.per_agent_max", int),
        count_max=values.sure("runtime.tasks.max", int),
    )


def output_budget_of(known: Mapping[str, KnownValue]) -> OutputBudget:
    """Return how much of a command's output a model is shown."""
    values = _Values(known)
    return OutputBudget(
        default_tokens=values.sure("runtime.default_tool_output_tokens", int),
        tokens_max=values.sure("runtime.max_tool_output_tokens", int),
    )


def log_level_of(known: Mapping[str, KnownValue]) -> LogLevel:
    """Return the log level of a service."""
    return LogLevel(_Values(known).sure("runtime.log_level", str))


def github_base_of(known: Mapping[str, KnownValue]) -> str:
    """Return where the archives of GitHub's repositories are fetched from."""
    return _Values(known).sure("templates.github_base", str)


def webhooks_of(known: Mapping[str, KnownValue]) -> dict[str, WebhookSetting]:
    """Return where each source of webhooks has its secret."""
    return {
        name: WebhookSetting(
            secret_env=_text(fields, "secret_env"),
            secret_profile=_text(fields, "secret_profile"),
            signature=SignatureForm(_text(fields, "signature") or SignatureForm.STANDARD),
        )
        for name, fields in _Values(known).family("webhooks.").items()
    }


def _references(texts: tuple[str, ...]) -> tuple[ModelRef, ...]:
    return tuple(parse_model_ref(text) for text in texts)


def _text(fields: Mapping[str, PlainValue], field: str) -> str | None:
    value = fields.get(field)
    return value if isinstance(value, str) else None


def _number(fields: Mapping[str, PlainValue], field: str) -> int | None:
    value = fields.get(field)
    return value if isinstance(value, int) else None


def _truth(fields: Mapping[str, PlainValue], field: str) -> bool | None:
    value = fields.get(field)
    return value if isinstance(value, bool) else None


def _schema_mode(fields: Mapping[str, PlainValue]) -> SchemaMode | None:
    value = _text(fields, "schema_mode")
    return None if value is None else SchemaMode(value)


def _provider(fields: Mapping[str, PlainValue]) -> ProviderSetting:
    return ProviderSetting(
        transport=_text(fields, "transport"),
        base_url=_text(fields, "base_url"),
        auth=_auth(fields),
        stream=_truth(fields, "stream"),
        reasoning_effort=_text(fields, "reasoning_effort"),
        incremental=_truth(fields, "incremental"),
        schema_mode=_schema_mode(fields),
    )


def _auth(fields: Mapping[str, PlainValue]) -> ProviderAuth | None:
    if not any(field.startswith("auth.") for field in fields):
        return None
    source = CredentialSource(_text(fields, "auth.source") or _default_source(fields))
    return ProviderAuth(
        source=source,
        kind=CredentialKind(_text(fields, "auth.kind") or _DEFAULT_KINDS[source]),
        env=_text(fields, "auth.env"),
        profile=_text(fields, "auth.profile"),
        external=_text(fields, "auth.external"),
    )


def _default_source(fields: Mapping[str, PlainValue]) -> CredentialSource:
    """Return where a credential is looked up when only its name, or only its kind, is given."""
    if "auth.profile" in fields:
        return CredentialSource.PROFILE
    if "auth.external" in fields:
        return CredentialSource.EXTERNAL_CLI
    return CredentialSource.ENV


def _model(fields: Mapping[str, PlainValue]) -> ModelSetting:
    return ModelSetting(
        context_window_tokens=_number(fields, "context_window_tokens"),
        effective_context_window_percent=_number(fields, "effective_context_window_percent"),
        output_tokens_max=_number(fields, "output_tokens_max"),
        tool_output_tokens_max=_number(fields, "tool_output_tokens_max"),
        schema_mode=_schema_mode(fields),
    )


def _unknown_model(values: _Values) -> ModelSetting:
    above = "model.unknown_fallback"
    return ModelSetting(
        context_window_tokens=values.get(f"{above}.context_window_tokens", int),
        effective_context_window_percent=values.get(
            f"{above}.effective_context_window_percent", int
        ),
        output_tokens_max=values.get(f"{above}.runtime_max_output_tokens", int),
    )


def _anthropic(values: _Values) -> AnthropicSetting:
    above = "anthropic.context_management"
    return AnthropicSetting(
        context_management=values.sure(f"{above}.enabled", bool),
        trigger_input_tokens=values.sure(f"{above}.trigger_input_tokens", int),
        keep_recent_tool_uses=values.sure(f"{above}.keep_recent_tool_uses", int),
        clear_at_least_input_tokens=values.get(f"{above}.clear_at_least_input_tokens", int),
        betas=values.sure("anthropic.betas", tuple),
    )
