"""The settings table.

Owns:  key, type, default, variable and description of every setting. The schema, the reference
       page, `config list`, the doctor and every check are derived from it.
Rule 1: a key with `<id>`, `<ref>` or `<source>` stands for one setting per provider, model or
        webhook source.
Rule 2: a default is read from the record the runtime is built from, never copied.
Rule 3: a setting that nothing reads is not in the table.
"""

from typing import Final

from holon.config.value_types import (
    BooleanValue,
    ChoiceValue,
    IntegerValue,
    ListValue,
    ModelRefValue,
    OpenChoiceValue,
    PlainValue,
    TextValue,
    UrlValue,
    ValueType,
)
from holon.decide.text.bounded import OutputBudget
from holon.model import limits
from holon.model.agents import GITHUB_ARCHIVES
from holon.model.events.retention import RetentionPolicy
from holon.model.providers.models import (
    CredentialKind,
    CredentialSource,
    ProviderResolverSettings,
    SchemaMode,
    TransportKind,
)
from holon.model.queue import SignatureForm
from holon.model.record import Record
from holon.model.work import ReminderPolicy
from holon.ports.journal import LogLevel

_PLANE: Final = ProviderResolverSettings()
_KEEPING: Final = RetentionPolicy()
_REMINDING: Final = ReminderPolicy()
_SHOWN: Final = OutputBudget()
_TOKENS: Final = IntegerValue(1, limits.MODEL_TOKENS_COUNT_MAX)
_SHOWN_TOKENS: Final = IntegerValue(
    limits.TOOL_OUTPUT_SETTING_TOKENS_MIN, limits.TOOL_OUTPUT_SETTING_TOKENS_MAX
)
_PERCENT: Final = IntegerValue(1, 100)
_FOLDER: Final = TextValue("the path of a folder")
_VARIABLE: Final = TextValue("the name of an environment variable", r"[A-Za-z_][A-Za-z0-9_]*")
_PROFILE: Final = TextValue(
    "the name of a credential profile",
    rf"[A-Za-z0-9][A-Za-z0-9_.\-]{{0,{limits.ID_CHARS_MAX - 1}}}",
)
_EFFORT: Final = TextValue("a word such as low, medium or high", "[a-z]{1,20}")
_SPENT: Final = (
    ("turns_per_hour", "Turns of {whose} per hour."),
    ("tokens_per_day", "Tokens used by the turns of {whose} per day."),
    (
        "cost_cents_per_day",
        "Cost of the turns of {whose} per day in US cents, as far as prices are known.",
    ),
)


class Setting(Record, frozen=True, kw_only=True):
    """One setting of the table."""

    key: str
    value_type: ValueType
    says: str
    default: PlainValue | None = None
    variable: str | None = None
    may_be_quoted: bool = True  # whether a message may repeat a value that does not fit

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of the key; a part such as `<id>` stands for any name."""
        return tuple(self.key.split("."))

    @property
    def is_family(self) -> bool:
        """Whether the key stands for one setting of each provider or model."""
        return "<" in self.key


# Off by default: an unexpected budget would stop an unattended agent.
_BUDGETS: Final = tuple(
    Setting(
        key=f"budget.{scope}.{measure}",
        value_type=IntegerValue(1, limits.BUDGET_COUNT_MAX),
        says=f"{says.format(whose=whose)} At the limit no new turn starts.",
        variable=f"HOLON_BUDGET_{scope.upper()}_{measure.upper()}",
    )
    for scope, whose in (("agent", "an agent"), ("runtime", "all agents"))
    for measure, says in _SPENT
)

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        key="model.default",
        value_type=ModelRefValue(),
        says="The default model of agents without their own.",
        variable="HOLON_MODEL",
    ),
    Setting(
        key="model.fallbacks",
        value_type=ListValue(ModelRefValue(), limits.MODEL_FALLBACKS_COUNT_MAX),
        says="The models tried in this order if the first one fails.",
        default=(),
        variable="HOLON_MODEL_FALLBACKS",
    ),
    Setting(
        key="model.allow_trial_tools",
        value_type=BooleanValue(),
        says="Whether a trial model (local/…) may run commands and change files.",
        default=_PLANE.trial_tools_allowed,
        variable="HOLON_MODEL_ALLOW_TRIAL_TOOLS",
    ),
    Setting(
        key="model.unknown_fallback.context_window_tokens",
        value_type=_TOKENS,
        says="The assumed context window of a model that is not in the catalog.",
    ),
    Setting(
        key="model.unknown_fallback.effective_context_window_percent",
        value_type=_PERCENT,
        says="The part of that window a prompt may fill.",
    ),
    Setting(
        key="model.unknown_fallback.runtime_max_output_tokens",
        value_type=_TOKENS,
        says="The maximum answer of a model that is not in the catalog.",
    ),
    Setting(
        key="runtime.max_output_tokens",
        value_type=_TOKENS,
        says="The maximum length of an answer, unless the model allows less.",
        default=_PLANE.output_tokens_max,
        variable="HOLON_MAX_OUTPUT_TOKENS",
    ),
    Setting(
        key="runtime.default_tool_output_tokens",
        value_type=_SHOWN_TOKENS,
        says="How much of a command's output a model is shown by default.",
        default=_SHOWN.default_tokens,
        variable="HOLON_DEFAULT_TOOL_OUTPUT_TOKENS",
    ),
    Setting(
        key="runtime.max_tool_output_tokens",
        value_type=_SHOWN_TOKENS,
        says="How much of a command's output a model is shown at most.",
        default=_SHOWN.tokens_max,
        variable="HOLON_MAX_TOOL_OUTPUT_TOKENS",
    ),
    Setting(
        key="runtime.disable_provider_fallback",
        value_type=BooleanValue(),
        says="Whether a failure of the first model ends the turn, despite fallbacks.",
        default=_PLANE.fallback_disabled,
        variable="HOLON_DISABLE_PROVIDER_FALLBACK",
    ),
    Setting(
        key="runtime.defer_on_usage_limit",
        value_type=BooleanValue(),
        says="Whether a message waits for the reset of a usage limit instead of failing.",
        default=not _PLANE.deferral_disabled,
        variable="HOLON_DEFER_ON_USAGE_LIMIT",
    ),
    Setting(
        key="runtime.provider_http_timeout_seconds",
        value_type=IntegerValue(1, limits.DAY_MS // limits.SECOND_MS),
        says="The timeout of a complete answer.",
        default=_PLANE.http_timeout_ms // limits.SECOND_MS,
        variable="HOLON_PROVIDER_HTTP_TIMEOUT_SECS",
    ),
    Setting(
        key="runtime.provider_stream_idle_timeout_ms",
        value_type=IntegerValue(1, limits.DAY_MS),
        says="The idle timeout of a streamed answer.",
        default=_PLANE.stream_idle_ms,
        variable="HOLON_PROVIDER_STREAM_IDLE_TIMEOUT_MS",
    ),
    Setting(
        key="runtime.provider_record_dir",
        value_type=_FOLDER,
        says="The folder where every exchange with a provider is recorded, without secrets.",
        variable="HOLON_PROVIDER_RECORD",
    ),
    Setting(
        key="runtime.provider_replay_dir",
        value_type=_FOLDER,
        says="The folder recorded exchanges are replayed from; no provider is called.",
        variable="HOLON_PROVIDER_REPLAY",
    ),
    Setting(
        key="provider.http_trace",
        value_type=BooleanValue(),
        says="Whether every exchange with a provider is logged as one line, without content.",
        default=_PLANE.http_trace,
        variable="HOLON_PROVIDER_HTTP_TRACE",
    ),
    Setting(
        key="provider.failure_trace",
        value_type=BooleanValue(),
        says="Whether the diagnostics of every failed exchange are logged, as one line of JSON.",
        default=_PLANE.failure_trace,
        variable="HOLON_PROVIDER_FAILURE_TRACE",
    ),
    Setting(
        key="runtime.tasks.per_agent_max",
        value_type=IntegerValue(1, limits.TASKS_LIVE_COUNT_MAX),
        says="The maximum number of running background tasks of one agent.",
        default=limits.TASKS_LIVE_PER_AGENT_COUNT_DEFAULT,
    ),
    Setting(
        key="runtime.tasks.max",
        value_type=IntegerValue(1, limits.TASKS_LIVE_COUNT_MAX),
        says="The maximum number of running background tasks of all agents.",
        default=limits.TASKS_LIVE_COUNT_DEFAULT,
    ),
    Setting(
        key="runtime.work_item_reminder.rounds",
        value_type=IntegerValue(0, limits.TURN_ROUNDS_COUNT_MAX),
        says="Rounds after which a model is reminded of an unchanged work item; 0: never.",
        default=_REMINDING.rounds_count,
        variable="HOLON_WORK_ITEM_STALE_REMINDER_ROUNDS",
    ),
    Setting(
        key="runtime.work_item_reminder.cooldown_rounds",
        value_type=IntegerValue(1, limits.TURN_ROUNDS_COUNT_MAX),
        says="The minimum number of rounds between two such reminders.",
        default=_REMINDING.cooldown_rounds_count,
        variable="HOLON_WORK_ITEM_STALE_REMINDER_COOLDOWN_ROUNDS",
    ),
    Setting(
        key="runtime.work_item_reminder.max_tokens",
        value_type=IntegerValue(1, limits.REMINDER_TOKENS_MAX),
        says="The maximum length of such a reminder.",
        default=_REMINDING.tokens_max,
        variable="HOLON_WORK_ITEM_STALE_REMINDER_MAX_TOKENS",
    ),
    Setting(
        key="runtime.retention.days",
        value_type=IntegerValue(1, 36_500),
        says="How long finished history is kept.",
        default=_KEEPING.age_ms // limits.DAY_MS,
        variable="HOLON_RETENTION_DAYS",
    ),
    Setting(
        key="runtime.retention.bytes_max",
        value_type=IntegerValue(16 * limits.MIB, 1024 * 1024 * limits.MIB),
        says="The database size above which the oldest finished history is pruned.",
        default=_KEEPING.bytes_max,
        variable="HOLON_RETENTION_BYTES_MAX",
    ),
    Setting(
        key="runtime.log_level",
        value_type=ChoiceValue(tuple(LogLevel)),
        says="The minimum level of entries in a service's log.",
        default=LogLevel.INFO.value,
        variable="HOLON_LOG_LEVEL",
    ),
    *_BUDGETS,
    Setting(
        key="anthropic.context_management.enabled",
        value_type=BooleanValue(),
        says="Whether Anthropic clears the results of old tool uses (context management).",
        default=_PLANE.anthropic.context_management,
        variable="HOLON_ANTHROPIC_CONTEXT_MANAGEMENT",
    ),
    Setting(
        key="anthropic.context_management.trigger_input_tokens",
        value_type=_TOKENS,
        says="The prompt size at which clearing starts.",
        default=_PLANE.anthropic.trigger_input_tokens,
        variable="HOLON_ANTHROPIC_CONTEXT_MANAGEMENT_TRIGGER_INPUT_TOKENS",
    ),
    Setting(
        key="anthropic.context_management.keep_recent_tool_uses",
        value_type=IntegerValue(0, 10_000),
        says="How many of the latest tool uses are kept.",
        default=_PLANE.anthropic.keep_recent_tool_uses,
        variable="HOLON_ANTHROPIC_CONTEXT_MANAGEMENT_KEEP_RECENT_TOOL_USES",
    ),
    Setting(
        key="anthropic.context_management.clear_at_least_input_tokens",
        value_type=_TOKENS,
        says="The minimum a clearing must free to be worth a new cache.",
        variable="HOLON_ANTHROPIC_CONTEXT_MANAGEMENT_CLEAR_AT_LEAST_INPUT_TOKENS",
    ),
    Setting(
        key="anthropic.betas",
        value_type=ListValue(TextValue("the name of a beta", r"[A-Za-z0-9_.\-]{1,100}"), 32),
        says="The beta features requested from Anthropic.",
        default=_PLANE.anthropic.betas,
        variable="HOLON_ANTHROPIC_BETAS",
    ),
    Setting(
        key="local.threads",
        value_type=IntegerValue(1, 1_024),
        says="The number of threads of the local model.",
        default=_PLANE.local_threads_count,
        variable="HOLON_LOCAL_THREADS",
    ),
    Setting(
        key="templates.github_base",
        value_type=UrlValue(),
        says="The base URL of GitHub repository archives, for templates and skills.",
        default=GITHUB_ARCHIVES,
        variable="HOLON_TEMPLATES_GITHUB_BASE",
        may_be_quoted=False,
    ),
    Setting(
        key="providers.<id>.transport",
        value_type=OpenChoiceValue(tuple(TransportKind)),
        says="The protocol of this provider.",
    ),
    Setting(
        key="providers.<id>.base_url",
        value_type=UrlValue(),
        says="The base URL of this provider; also HOLON_<ID>_BASE_URL.",
        may_be_quoted=False,  # an address may carry a password
    ),
    Setting(
        key="providers.<id>.stream",
        value_type=BooleanValue(),
        says="Whether answers are streamed.",
    ),
    Setting(
        key="providers.<id>.reasoning_effort",
        value_type=_EFFORT,
        says="The reasoning effort of its models; also HOLON_<ID>_REASONING_EFFORT.",
    ),
    Setting(
        key="providers.<id>.incremental",
        value_type=BooleanValue(),
        says="Whether OpenAI may store answers (`store: true`), so that later rounds send only"
        " new content; for openai_responses only.",
    ),
    Setting(
        key="providers.<id>.schema_mode",
        value_type=ChoiceValue(tuple(SchemaMode)),
        says="How tool schemas are sent: relaxed (the default), or strict, which the provider"
        " then enforces.",
    ),
    Setting(
        key="providers.<id>.auth.source",
        value_type=ChoiceValue(tuple(CredentialSource), (("auth_profile", "credential_profile"),)),
        says="The source of its credential.",
        may_be_quoted=False,
    ),
    Setting(
        key="providers.<id>.auth.kind",
        value_type=ChoiceValue(tuple(CredentialKind)),
        says="The kind of its credential, which determines how it is sent.",
        may_be_quoted=False,
    ),
    Setting(
        key="providers.<id>.auth.env",
        value_type=_VARIABLE,
        says="The variable that holds its credential, for the source env.",
        may_be_quoted=False,
    ),
    Setting(
        key="providers.<id>.auth.profile",
        value_type=_PROFILE,
        says="The profile that holds its credential, for the source credential_profile.",
        may_be_quoted=False,
    ),
    Setting(
        key="providers.<id>.auth.external",
        value_type=TextValue("a program or the file it keeps"),
        says="The program that provides its credential, for external_cli and credential_process.",
        may_be_quoted=False,
    ),
    Setting(
        key="webhooks.<source>.secret_env",
        value_type=_VARIABLE,
        says="The variable that holds the secret this source signs its webhooks with.",
        may_be_quoted=False,
    ),
    Setting(
        key="webhooks.<source>.secret_profile",
        value_type=_PROFILE,
        says="The credential profile that holds that secret, if no variable is named.",
        may_be_quoted=False,
    ),
    Setting(
        key="webhooks.<source>.signature",
        value_type=ChoiceValue(tuple(SignatureForm)),
        says="The signature format: standard (Standard Webhooks) or github (X-Hub-Signature-256).",
    ),
    Setting(
        key="models.catalog.<ref>.context_window_tokens",
        value_type=_TOKENS,
        says="The context window of this model; overrides the catalog.",
    ),
    Setting(
        key="models.catalog.<ref>.effective_context_window_percent",
        value_type=_PERCENT,
        says="The part of its window a prompt may fill.",
    ),
    Setting(
        key="models.catalog.<ref>.output_tokens_max",
        value_type=_TOKENS,
        says="The maximum answer of this model.",
    ),
    Setting(
        key="models.catalog.<ref>.tool_output_tokens_max",
        value_type=_TOKENS,
        says="How much of one tool result this model is shown.",
    ),
    Setting(
        key="models.catalog.<ref>.schema_mode",
        value_type=ChoiceValue(tuple(SchemaMode)),
        says="How tool schemas are sent to this model; overrides the provider's setting.",
    ),
)

VARIABLES: Final = {one.variable: one for one in SETTINGS if one.variable is not None}
