"""For every setting, values that fit and values that do not.

A bad text is refused on the command line, in the environment and in a flag; a bad TOML value is
refused in the file. `test_settings` sees to it that no setting is left out.
"""

from typing import NamedTuple

from holon.config.setting_keys import SettingKey, key_of
from holon.config.settings import SETTINGS, Setting
from holon.config.value_types import PlainValue

PROVIDER = "my.box"
MODEL = "openai/gpt-5.4"


class Sample(NamedTuple):
    """One setting's values."""

    text: str
    toml: str
    value: PlainValue
    bad_texts: tuple[str, ...]
    bad_tomls: tuple[str, ...]


TRUTH = Sample("yes", "true", True, ("maybe", "2"), ('"true"', "1", "[]"))
SCHEMA_MODE = Sample("strict", '"strict"', "strict", ("loose",), ("true", '"loose"'))
NOT_TEXT = ("7", "true", "[]", '""', '"two\\nlines"')


def number(good: int, least: int, most: int) -> Sample:
    bad = (str(least - 1), str(most + 1), "many", "1.5", "1e3", "0x10", "9" * 30, "1__0")
    tomls = (str(least - 1), str(most + 1), '"1"', "1.5", "true", "[1]", "2026-01-01")
    return Sample(f" {good} ", str(good), good, bad, tomls)


TOKENS = number(4_321, 1, 100_000_000)
PERCENT = number(80, 1, 100)
FOLDER = Sample("/var/exchanges", '"/var/exchanges"', "/var/exchanges", ("a\nb",), NOT_TEXT)

SAMPLES: dict[str, Sample] = {
    "model.default": Sample(
        MODEL,
        f'"{MODEL}"',
        MODEL,
        ("gpt", "/gpt", "openai/", "OpenAI/gpt", "openai/a\tb", "a/" + "x" * 600),
        ("7", '"gpt"', "[]", '["openai/gpt-5.4"]'),
    ),
    "model.fallbacks": Sample(
        "a/b, local//tmp/x.gguf,",
        '["a/b", "local//tmp/x.gguf"]',
        ("a/b", "local//tmp/x.gguf"),
        ("a/b,c", ",".join(["a/b"] * 17)),
        ('"a/b"', "[1]", '["a"]', "3", '[["a/b"]]'),
    ),
    "model.allow_trial_tools": TRUTH,
    "model.unknown_fallback.context_window_tokens": TOKENS,
    "model.unknown_fallback.effective_context_window_percent": PERCENT,
    "model.unknown_fallback.runtime_max_output_tokens": TOKENS,
    "runtime.max_output_tokens": TOKENS,
    "runtime.default_tool_output_tokens": number(9_000, 100, 100_000),
    "runtime.max_tool_output_tokens": number(9_000, 100, 100_000),
    "runtime.disable_provider_fallback": TRUTH,
    "runtime.defer_on_usage_limit": Sample("off", "false", False, TRUTH.bad_texts, TRUTH.bad_tomls),
    "runtime.provider_http_timeout_seconds": number(60, 1, 86_400),
    "runtime.provider_stream_idle_timeout_ms": number(5_000, 1, 86_400_000),
    "runtime.provider_record_dir": FOLDER,
    "runtime.provider_replay_dir": FOLDER,
    "provider.http_trace": TRUTH,
    "provider.failure_trace": TRUTH,
    "runtime.tasks.per_agent_max": number(200, 1, 10_000),
    "runtime.tasks.max": number(1_000, 1, 10_000),
    "runtime.work_item_reminder.rounds": number(5, 0, 500),
    "runtime.work_item_reminder.cooldown_rounds": number(5, 1, 500),
    "runtime.work_item_reminder.max_tokens": number(200, 1, 8_192),
    "runtime.retention.days": number(7, 1, 36_500),
    "runtime.retention.bytes_max": number(1 << 30, 1 << 24, 1 << 40),
    "runtime.log_level": Sample("error", '"error"', "error", ("loud",), ("7", '"loud"')),
    **{
        f"budget.{scope}.{measure}": number(250, 1, 10**12)
        for scope in ("agent", "runtime")
        for measure in ("turns_per_hour", "tokens_per_day", "cost_cents_per_day")
    },
    "anthropic.context_management.enabled": TRUTH,
    "anthropic.context_management.trigger_input_tokens": TOKENS,
    "anthropic.context_management.keep_recent_tool_uses": number(0, 0, 10_000),
    "anthropic.context_management.clear_at_least_input_tokens": TOKENS,
    "anthropic.betas": Sample(
        "one-2026-01-01,two", '["one-2026-01-01", "two"]', ("one-2026-01-01", "two"),
        ("a b", "x" * 101), ('"one"', "[1]", '["a b"]'),
    ),
    "local.threads": number(4, 1, 1_024),
    "templates.github_base": Sample(
        "http://127.0.0.1:8000/", '"http://127.0.0.1:8000"', "http://127.0.0.1:8000",
        ("github.com", "ftp://host", "https://me:hunter2@host", "http://h?q=1"),
        ("7", '"host"', "[]"),
    ),
    "providers.<id>.transport": Sample(
        "openai_chat_completions", '"openai_chat_completions"', "openai_chat_completions",
        ("openai_chat", "smoke-signals", ""), ("7", "[]", '""'),
    ),
    "providers.<id>.base_url": Sample(
        "http://127.0.0.1:8000/v1/", '"http://127.0.0.1:8000/v1"', "http://127.0.0.1:8000/v1",
        (
            "127.0.0.1:8000", "ftp://host", "http://", "https://me:hunter2@host", "http://h?q=1",
            "http://h#f", "http://h:99999", "http://h:port", "http://a b", "http://[::1", "http:///x",
        ),
        ("7", '"host"', "[]"),
    ),
    "providers.<id>.stream": TRUTH,
    "providers.<id>.reasoning_effort": Sample(
        "high", '"high"', "high", ("HIGH", "very high", "x" * 30), ("3", '"3"')
    ),
    "providers.<id>.incremental": TRUTH,
    "providers.<id>.schema_mode": SCHEMA_MODE,
    "providers.<id>.auth.source": Sample(
        "auth_profile", '"credential_profile"', "credential_profile", ("keyring",), ("7", '"ring"')
    ),
    "providers.<id>.auth.kind": Sample(
        "bearer_token", '"bearer_token"', "bearer_token", ("password",), ("7", '"password"')
    ),
    "providers.<id>.auth.env": Sample(
        "BOX_KEY", '"BOX_KEY"', "BOX_KEY", ("sk-not-a-name", "1KEY", "A KEY"), ("7", '"sk-secret"')
    ),
    "providers.<id>.auth.profile": Sample(
        "work", '"work"', "work", ("-x", "a/b", "x" * 65), ("7", '"a/b"')
    ),
    "providers.<id>.auth.external": Sample(
        "pass show box", '"pass show box"', "pass show box", ("a\nb",), NOT_TEXT
    ),
    "webhooks.<source>.secret_env": Sample(
        "FORGE_SECRET", '"FORGE_SECRET"', "FORGE_SECRET", ("a-secret", "1KEY"), ("7", '"a-secret"')
    ),
    "webhooks.<source>.secret_profile": Sample(
        "forge", '"forge"', "forge", ("-x", "a/b", "x" * 65), ("7", '"a/b"')
    ),
    "webhooks.<source>.signature": Sample(
        "github", '"github"', "github", ("gitlab", ""), ("7", '"gitlab"')
    ),
    "models.catalog.<ref>.context_window_tokens": TOKENS,
    "models.catalog.<ref>.effective_context_window_percent": PERCENT,
    "models.catalog.<ref>.output_tokens_max": TOKENS,
    "models.catalog.<ref>.tool_output_tokens_max": TOKENS,
    "models.catalog.<ref>.schema_mode": SCHEMA_MODE,
}  # fmt: skip


def key_for(setting: Setting) -> SettingKey:
    """Return the setting, of one provider or model where it stands for many."""
    if not setting.is_family:
        return SettingKey(setting)
    return key_of(setting, MODEL if "<ref>" in setting.key else PROVIDER)


KEYS = [key_for(setting) for setting in SETTINGS]
