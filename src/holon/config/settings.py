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


class Setting(Record, frozen=True, kw_only=True):
    """One row."""

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


_SPENT: Final = (
    ("turns_per_hour", "How many turns {whose} may end within an hour."),
    ("tokens_per_day", "How many tokens the turns of {whose} may use within a day."),
    (
        "cost_cents_per_day",
        "How many US cents the turns of {whose} may cost within a day, as far as prices are known.",
    ),
)

# Off unless given: a budget nobody asked for would stop an agent nobody watches.
_BUDGETS: Final = tuple(
    Setting(
        key=f"budget.{scope}.{measure}",
        value_type=IntegerValue(1, limits.BUDGET_COUNT_MAX),
        says=f"{says.format(whose=whose)} Then nothing begins until there is room again.",
        variable=f"HOLON_BUDGET_{scope.upper()}_{measure.upper()}",
    )
    for scope, whose in (("agent", "an agent"), ("runtime", "all agents"))
    for measure, says in _SPENT
)

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        key="model.default",
        value_type=ModelRefValue(),
        says="The model an agent uses unless it was given its own.",
        variable="HOLON_MODEL",
    ),
    Setting(
        key="model.fallbacks",
        value_type=ListValue(ModelRefValue(), limits.MODEL_FALLBACKS_COUNT_MAX),
        says="The models tried in this order when the first one fails.",
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
        says="The context window assumed of a model the catalog does not know.",
    ),
    Setting(
        key="model.unknown_fallback.effective_context_window_percent",
        value_type=_PERCENT,
        says="How much of that window a prompt may fill.",
    ),
    Setting(
        key="model.unknown_fallback.runtime_max_output_tokens",
        value_type=_TOKENS,
        says="How long an answer of a model the catalog does not know may be.",
    ),
    Setting(
        key="runtime.max_output_tokens",
        value_type=_TOKENS,
        says="How long one answer may be, unless the model allows less.",
        default=_PLANE.output_tokens_max,
        variable="HOLON_MAX_OUTPUT_TOKENS",
    ),
    Setting(
        key="runtime.default_tool_output_tokens",
        value_type=_SHOWN_TOKENS,
        says="How much of a command's output a model is shown unless it asks for more or less.",
        default=_SHOWN.default_tokens,
        variable="HOLON_DEFAULT_TOOL_OUTPUT_TOKENS",
    ),
    Setting(
        key="runtime.max_tool_output_tokens",
        value_type=_SHOWN_TOKENS,
        says="How much of a command's output a model is shown at most, whatever it asks for.",
        default=_SHOWN.tokens_max,
        variable="HOLON_MAX_TOOL_OUTPUT_TOKENS",
    ),
    Setting(
        key="runtime.disable_provider_fallback",
        value_type=BooleanValue(),
        says="Whether a failure of the first model ends the turn, fallbacks or not.",
        default=_PLANE.fallback_disabled,
        variable="HOLON_DISABLE_PROVIDER_FALLBACK",
    ),
    Setting(
        key="runtime.defer_on_usage_limit",
        value_type=BooleanValue(),
        says="Whether a message waits for the reset of a used-up account, instead of failing.",
        default=not _PLANE.deferral_disabled,
        variable="HOLON_DEFER_ON_USAGE_LIMIT",
    ),
    Setting(
        key="runtime.provider_http_timeout_seconds",
        value_type=IntegerValue(1, limits.DAY_MS // limits.SECOND_MS),
        says="How long a whole answer may take.",
        default=_PLANE.http_timeout_ms // limits.SECOND_MS,
        variable="HOLON_PROVIDER_HTTP_TIMEOUT_SECS",
    ),
    Setting(
        key="runtime.provider_stream_idle_timeout_ms",
        value_type=IntegerValue(1, limits.DAY_MS),
        says="How long a streamed answer may be silent before it is given up.",
        default=_PLANE.stream_idle_ms,
        variable="HOLON_PROVIDER_STREAM_IDLE_TIMEOUT_MS",
    ),
    Setting(
        key="runtime.provider_record_dir",
        value_type=_FOLDER,
        says="Where every exchange with a provider is written down, without its secrets.",
        variable="HOLON_PROVIDER_RECORD",
    ),
    Setting(
        key="runtime.provider_replay_dir",
        value_type=_FOLDER,
        says="Where exchanges are played back from; no provider is asked.",
        variable="HOLON_PROVIDER_REPLAY",
    ),
    Setting(
        key="provider.http_trace",
        value_type=BooleanValue(),
        says="Whether every exchange with a provider is logged in one line, without its content.",
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
        says="How many commands of one agent may run in the background at one time.",
        default=limits.TASKS_LIVE_PER_AGENT_COUNT_DEFAULT,
    ),
    Setting(
        key="runtime.tasks.max",
        value_type=IntegerValue(1, limits.TASKS_LIVE_COUNT_MAX),
        says="How many commands of all agents may run in the background at one time.",
        default=limits.TASKS_LIVE_COUNT_DEFAULT,
    ),
    Setting(
        key="runtime.work_item_reminder.rounds",
        value_type=IntegerValue(0, limits.TURN_ROUNDS_COUNT_MAX),
        says="After how many rounds a model is reminded of its untouched work item; 0: never.",
        default=_REMINDING.rounds_count,
        variable="HOLON_WORK_ITEM_STALE_REMINDER_ROUNDS",
    ),
    Setting(
        key="runtime.work_item_reminder.cooldown_rounds",
        value_type=IntegerValue(1, limits.TURN_ROUNDS_COUNT_MAX),
        says="How many rounds lie between two such reminders at least.",
        default=_REMINDING.cooldown_rounds_count,
        variable="HOLON_WORK_ITEM_STALE_REMINDER_COOLDOWN_ROUNDS",
    ),
    Setting(
        key="runtime.work_item_reminder.max_tokens",
        value_type=IntegerValue(1, limits.REMINDER_TOKENS_MAX),
        says="How long such a reminder may be.",
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
        says="How large the database may grow before the oldest finished history goes.",
        default=_KEEPING.bytes_max,
        variable="HOLON_RETENTION_BYTES_MAX",
    ),
    Setting(
        key="runtime.log_level",
        value_type=ChoiceValue(tuple(LogLevel)),
        says="How much a service writes into its log: from this level on.",
        default=LogLevel.INFO.value,
        variable="HOLON_LOG_LEVEL",
    ),
    *_BUDGETS,
    Setting(
        key="anthropic.context_management.enabled",
        value_type=BooleanValue(),
        says="Whether Anthropic clears the results of old tool uses by itself.",
        default=_PLANE.anthropic.context_management,
        variable="HOLON_ANTHROPIC_CONTEXT_MANAGEMENT",
    ),
    Setting(
        key="anthropic.context_management.trigger_input_tokens",
        value_type=_TOKENS,
        says="How long a prompt is when the clearing begins.",
        default=_PLANE.anthropic.trigger_input_tokens,
        variable="HOLON_ANTHROPIC_CONTEXT_MANAGEMENT_TRIGGER_INPUT_TOKENS",
    ),
    Setting(
        key="anthropic.context_management.keep_recent_tool_uses",
        value_type=IntegerValue(0, 10_000),
        says="How many of the latest tool uses are left alone.",
        default=_PLANE.anthropic.keep_recent_tool_uses,
        variable="HOLON_ANTHROPIC_CONTEXT_MANAGEMENT_KEEP_RECENT_TOOL_USES",
    ),
    Setting(
        key="anthropic.context_management.clear_at_least_input_tokens",
        value_type=_TOKENS,
        says="How much a clearing must free to be worth a new cache.",
        variable="HOLON_ANTHROPIC_CONTEXT_MANAGEMENT_CLEAR_AT_LEAST_INPUT_TOKENS",
    ),
    Setting(
        key="anthropic.betas",
        value_type=ListValue(TextValue("the name of a beta", r"[A-Za-z0-9_.\-]{1,100}"), 32),
        says="The beta features asked of Anthropic.",
        default=_PLANE.anthropic.betas,
        variable="HOLON_ANTHROPIC_BETAS",
    ),
    Setting(
        key="local.threads",
        value_type=IntegerValue(1, 1_024),
        says="How many threads a model in this process may use.",
        default=_PLANE.local_threads_count,
        variable="HOLON_LOCAL_THREADS",
    ),
    Setting(
        key="templates.github_base",
        value_type=UrlValue(),
        says="Where archives of GitHub's repositories are fetched from, for templates and skills.",
        default=GITHUB_ARCHIVES,
        variable="HOLON_TEMPLATES_GITHUB_BASE",
        may_be_quoted=False,
    ),
    Setting(
        key="providers.<id>.transport",
        value_type=OpenChoiceValue(tuple(TransportKind)),
        says="The wire this provider speaks.",
    ),
    Setting(
        key="providers.<id>.base_url",
        value_type=UrlValue(),
        says="Where this provider is reached; also HOLON_<ID>_BASE_URL.",
        may_be_quoted=False,  # an address may carry a password
    ),
    Setting(
        key="providers.<id>.stream",
        value_type=BooleanValue(),
        says="Whether answers are asked for as a stream.",
    ),
    Setting(
        key="providers.<id>.reasoning_effort",
        value_type=_EFFORT,
        says="How hard its models are asked to think; also HOLON_<ID>_REASONING_EFFORT.",
    ),
    Setting(
        key="providers.<id>.incremental",
        value_type=BooleanValue(),
        says="Whether OpenAI may keep answers (`store` is true then), so that later rounds send"
        " only what is new; for openai_responses alone.",
    ),
    Setting(
        key="providers.<id>.schema_mode",
        value_type=ChoiceValue(tuple(SchemaMode)),
        says="How tool schemas are sent: relaxed as they are (the default), or strict, where the"
        " provider holds its models to them.",
    ),
    Setting(
        key="providers.<id>.auth.source",
        value_type=ChoiceValue(tuple(CredentialSource), (("auth_profile", "credential_profile"),)),
        says="Where its credential is looked up.",
        may_be_quoted=False,
    ),
    Setting(
        key="providers.<id>.auth.kind",
        value_type=ChoiceValue(tuple(CredentialKind)),
        says="What its credential is, and so how it is sent.",
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
        says="The program its credential comes from, for external_cli and credential_process.",
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
        says="The credential profile that holds that secret, where no variable is named.",
        may_be_quoted=False,
    ),
    Setting(
        key="webhooks.<source>.signature",
        value_type=ChoiceValue(tuple(SignatureForm)),
        says="How this source signs: standard (Standard Webhooks) or github (X-Hub-Signature-256).",
    ),
    Setting(
        key="models.catalog.<ref>.context_window_tokens",
        value_type=_TOKENS,
        says="The context window of this model, in place of the catalog's.",
    ),
    Setting(
        key="models.catalog.<ref>.effective_context_window_percent",
        value_type=_PERCENT,
        says="How much of its window a prompt may fill.",
    ),
    Setting(
        key="models.catalog.<ref>.output_tokens_max",
        value_type=_TOKENS,
        says="How long an answer of this model may be.",
    ),
    Setting(
        key="models.catalog.<ref>.tool_output_tokens_max",
        value_type=_TOKENS,
        says="How much of one tool result this model is shown.",
    ),
    Setting(
        key="models.catalog.<ref>.schema_mode",
        value_type=ChoiceValue(tuple(SchemaMode)),
        says="How tool schemas are sent to this model, in place of its provider's setting.",
    ),
)

VARIABLES: Final = {one.variable: one for one in SETTINGS if one.variable is not None}
