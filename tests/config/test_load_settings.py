"""Settings as a whole: what the runtime is given, and what is said about a broken file."""

from pathlib import Path

import pytest

from holon.adapters.system.private_file import FileUnusableError
from holon.config.config_file import (
    BadConfigError,
    BadConfigFileError,
    BadSettingError,
    UnknownSettingError,
)
from holon.config.environment_names import read_family, unknown_names
from holon.config.load_settings import SourceKind, inspect_settings, load_settings
from holon.config.settings import VARIABLES
from holon.decide.text.bounded import OutputBudget
from holon.model.budgets import Budget, BudgetPolicy
from holon.model.limits import CONFIG_FILE_BYTES_MAX, DAY_MS
from holon.model.providers.models import (
    AnthropicSetting,
    CredentialKind,
    CredentialSource,
    ModelRef,
    ModelSetting,
    ProviderAuth,
    ProviderResolverSettings,
    ProviderSetting,
)
from holon.model.work import ReminderPolicy

WHOLE = """
[model]
default = "anthropic/claude-sonnet-5-5"
fallbacks = ["openai/gpt-5.4"]
unknown_fallback.context_window_tokens = 32000
unknown_fallback.effective_context_window_percent = 90
unknown_fallback.runtime_max_output_tokens = 2000

[runtime]
max_output_tokens = 4096
default_tool_output_tokens = 500
max_tool_output_tokens = 2000
disable_provider_fallback = true
defer_on_usage_limit = false
provider_http_timeout_seconds = 60
provider_stream_idle_timeout_ms = 9000
provider_record_dir = "/var/exchanges"
retention = { days = 7, bytes_max = 33554432 }

[provider]
http_trace = true
failure_trace = true

[anthropic]
betas = ["one"]
[anthropic.context_management]
enabled = true
trigger_input_tokens = 50000
keep_recent_tool_uses = 5
clear_at_least_input_tokens = 2000

[runtime.work_item_reminder]
rounds = 4
cooldown_rounds = 6
max_tokens = 100

[local]
threads = 2

[providers.box]
transport = "openai_chat_completions"
base_url = "http://127.0.0.1:8000/v1"
stream = true
reasoning_effort = "low"
incremental = true
auth = { source = "env", kind = "bearer_token", env = "BOX_KEY" }

[models.catalog."box/meta/llama-3.1"]
context_window_tokens = 8000
effective_context_window_percent = 50
output_tokens_max = 1000
tool_output_tokens_max = 500
"""


def write(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text, encoding="utf-8")


def test_every_setting_reaches_the_record_the_runtime_is_built_from(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    settings = load_settings(tmp_path, {})
    assert settings.home == tmp_path
    assert settings.retention.age_ms == 7 * DAY_MS
    assert settings.retention.bytes_max == 33_554_432
    assert settings.output_budget == OutputBudget(default_tokens=500, tokens_max=2_000)
    assert settings.reminders == ReminderPolicy(
        rounds_count=4, cooldown_rounds_count=6, tokens_max=100
    )
    assert settings.plane == ProviderResolverSettings(
        model_default=ModelRef(provider="anthropic", model="claude-sonnet-5-5"),
        model_fallbacks=(ModelRef(provider="openai", model="gpt-5.4"),),
        fallback_disabled=True,
        deferral_disabled=True,
        providers={
            "box": ProviderSetting(
                transport="openai_chat_completions",
                base_url="http://127.0.0.1:8000/v1",
                auth=ProviderAuth(
                    source=CredentialSource.ENV, kind=CredentialKind.BEARER_TOKEN, env="BOX_KEY"
                ),
                stream=True,
                reasoning_effort="low",
                incremental=True,
            )
        },
        models={
            "box/meta/llama-3.1": ModelSetting(
                context_window_tokens=8_000,
                effective_context_window_percent=50,
                output_tokens_max=1_000,
                tool_output_tokens_max=500,
            )
        },
        unknown_model=ModelSetting(
            context_window_tokens=32_000,
            effective_context_window_percent=90,
            output_tokens_max=2_000,
        ),
        output_tokens_max=4_096,
        http_timeout_ms=60_000,
        stream_idle_ms=9_000,
        anthropic=AnthropicSetting(
            context_management=True,
            trigger_input_tokens=50_000,
            keep_recent_tool_uses=5,
            clear_at_least_input_tokens=2_000,
            betas=("one",),
        ),
        local_threads_count=2,
        record_dir="/var/exchanges",
        http_trace=True,
        failure_trace=True,
    )


@pytest.mark.parametrize(
    ("fields", "meant"),
    [
        ('auth.env = "K"', ProviderAuth(source=CredentialSource.ENV, kind=CredentialKind.API_KEY)),
        (
            'auth.profile = "p"',
            ProviderAuth(source=CredentialSource.PROFILE, kind=CredentialKind.API_KEY),
        ),
        (
            'auth.external = "codex"',
            ProviderAuth(source=CredentialSource.EXTERNAL_CLI, kind=CredentialKind.OAUTH),
        ),
        (
            'auth = { source = "credential_process", external = "pass show x" }',
            ProviderAuth(source=CredentialSource.PROCESS, kind=CredentialKind.API_KEY),
        ),
        (
            'auth.kind = "bearer_token"',  # no variable is named: the doctor says so
            ProviderAuth(source=CredentialSource.ENV, kind=CredentialKind.BEARER_TOKEN),
        ),
        ('auth = { source = "none", env = "K" }', ProviderAuth()),
        ("stream = true", None),
    ],
)
def test_a_credential_that_is_half_described_means_the_obvious(
    fields: str, meant: ProviderAuth | None, tmp_path: Path
) -> None:
    write(tmp_path, f"[providers.x]\n{fields}\n")
    auth = load_settings(tmp_path, {}).plane.providers["x"].auth
    assert (auth is None) is (meant is None)
    if auth is not None and meant is not None:
        assert (auth.source, auth.kind) == (meant.source, meant.kind)


@pytest.mark.parametrize(
    ("text", "line", "key", "nearest"),
    [
        ('modle.default = "a/b"', 1, "modle.default", "model.default"),
        ('[model]\n\nfallback = ["a/b"]', 3, "model.fallback", "model.fallbacks"),
        ("[providers.x]\nbaseurl = 1", 2, "providers.x.baseurl", "providers.x.base_url"),
        (
            'models.catalog."a/b.c".output_token_max = 1',
            1,
            'models.catalog."a/b.c".output_token_max',
            'models.catalog."a/b.c".output_tokens_max',
        ),
        ("[zork]\nlist = [\n  1,\n]\n", 2, "zork.list", None),
        ("model = 3", 1, "model", None),
        ("[[zork]]\na = 1", 1, "zork", None),
    ],
)
def test_a_key_nobody_knows_is_answered_with_its_line_and_the_nearest(
    text: str, line: int, key: str, nearest: str | None, tmp_path: Path
) -> None:
    write(tmp_path, text)
    with pytest.raises(UnknownSettingError) as caught:
        load_settings(tmp_path, {})
    said = caught.value.message
    assert said.startswith(f"{key!r} is not a setting")
    assert said.endswith(f"(from {tmp_path}/config.toml:{line})")
    assert (f"the nearest is {nearest}," in said) is (nearest is not None)


@pytest.mark.parametrize("name", ["Box", "", "a b", "-x"])
def test_a_name_no_provider_can_have_is_refused(name: str, tmp_path: Path) -> None:
    write(tmp_path, f'[providers."{name}"]\nstream = true\n')
    with pytest.raises(BadConfigError, match="cannot be the id of a provider"):
        load_settings(tmp_path, {})


def test_what_fits_is_used_and_every_fault_is_named(tmp_path: Path) -> None:
    write(tmp_path, 'model.default = "a/b"\nrmodel = 1\nlocal.threads = 0\n')
    inspection = inspect_settings(tmp_path, {"HOLON_MAX_OUTPUT_TOKENS": "lots"}, {"nope": "1"})
    assert inspection.settings.plane.model_default == ModelRef(provider="a", model="b")
    assert inspection.settings.plane.local_threads_count == 1
    assert [type(fault) for fault in inspection.faults] == [
        UnknownSettingError,
        BadSettingError,
        BadSettingError,
        UnknownSettingError,
    ]
    with pytest.raises(UnknownSettingError, match=r"\(and 1 more\)"):
        load_settings(tmp_path, {})


@pytest.mark.parametrize(
    ("default", "most"), [("5000", "4000"), ("64001", None)], ids=["both given", "one given"]
)
def test_a_usual_output_beyond_the_most_that_is_shown_is_refused(
    default: str, most: str | None, tmp_path: Path
) -> None:
    environ = {"HOLON_DEFAULT_TOOL_OUTPUT_TOKENS": default}
    environ |= {"HOLON_MAX_TOOL_OUTPUT_TOKENS": most} if most is not None else {}
    with pytest.raises(BadSettingError) as caught:
        load_settings(tmp_path, environ)
    assert caught.value.message == (
        f"runtime.default_tool_output_tokens: {default} (from $HOLON_DEFAULT_TOOL_OUTPUT_TOKENS) is"
        f" more than runtime.max_tool_output_tokens allows, which is {most or 64_000}"
    )


def test_a_small_maximum_alone_also_bounds_what_is_usually_shown(tmp_path: Path) -> None:
    budget = load_settings(tmp_path, {"HOLON_MAX_TOOL_OUTPUT_TOKENS": "1000"}).output_budget
    assert budget.bytes_for(None) == budget.bytes_for(1_000) == budget.bytes_for(50_000)


def test_exchanges_are_recorded_or_played_back_but_not_both(tmp_path: Path) -> None:
    environ = {"HOLON_PROVIDER_RECORD": "/a", "HOLON_PROVIDER_REPLAY": "/b"}
    with pytest.raises(BadSettingError, match=r"cannot be recorded .* at the same time"):
        load_settings(tmp_path, environ)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"model.default = ", "is not TOML"),
        (b"a = 1\na = 2\n", "is not TOML"),
        (b"x = " + b"[" * 5_000, "is not TOML"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_toml_is_refused_as_a_whole(
    content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(BadConfigFileError, match=words):
        inspect_settings(tmp_path, {})


def test_what_is_no_file_or_too_large_a_file_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(FileUnusableError, match="not a plain file"):
        load_settings(tmp_path, {})
    (tmp_path / "config.toml").rmdir()
    write(tmp_path, "#" * (CONFIG_FILE_BYTES_MAX + 1))
    with pytest.raises(FileUnusableError, match="larger than"):
        load_settings(tmp_path, {})


def test_a_provider_is_found_by_the_name_its_variable_has(tmp_path: Path) -> None:
    write(tmp_path, '[providers."my.box"]\nstream = true\n')
    environ = {
        "HOLON_MY_BOX_BASE_URL": "http://127.0.0.1:1/",
        "HOLON_OPENAI_CODEX_BASE_URL": "http://127.0.0.1:2",
        "HOLON_OPENAI_CODEX_REASONING_EFFORT": "high",
        "HOLON_CALLBACK_BASE_URL": "http://127.0.0.1:3",
        "HOLON_SOMETHING_ELSE": "?",
        "OPENAI_API_KEY": "sk-secret",
    }
    settings = load_settings(tmp_path, environ)
    assert settings.plane.providers == {
        "my.box": ProviderSetting(base_url="http://127.0.0.1:1", stream=True),
        "openai-codex": ProviderSetting(base_url="http://127.0.0.1:2", reasoning_effort="high"),
    }
    found = settings.values['providers."my.box".base_url']
    assert (found.source, found.where) == (SourceKind.ENVIRONMENT, "$HOLON_MY_BOX_BASE_URL")
    assert "sk-secret" not in repr(settings)


def test_variables_that_look_like_a_slip_are_told_with_the_name_meant() -> None:
    environ = {"HOLON_MODLE": "x", "HOLON_MODEL": "y", "HOLON_HOME": "z", "HOLON_ZORK": "?"}
    assert unknown_names(environ, VARIABLES) == {"HOLON_MODLE": "HOLON_MODEL"}
    assert read_family("HOLON_BASE_URL", ()) is None


@pytest.mark.requirement("turn-complete:reminder-is-tunable")
def test_reminders_are_tuned_by_the_variables_of_the_specification(tmp_path: Path) -> None:
    environ = {
        "HOLON_WORK_ITEM_STALE_REMINDER_ROUNDS": "3",
        "HOLON_WORK_ITEM_STALE_REMINDER_COOLDOWN_ROUNDS": "5",
        "HOLON_WORK_ITEM_STALE_REMINDER_MAX_TOKENS": "64",
    }
    usual = load_settings(tmp_path, {}).reminders
    assert usual == ReminderPolicy(rounds_count=10, cooldown_rounds_count=10, tokens_max=512)
    tuned = load_settings(tmp_path, environ).reminders
    assert tuned == ReminderPolicy(rounds_count=3, cooldown_rounds_count=5, tokens_max=64)


@pytest.mark.requirement("scheduling-large:budget-holds-turns")
def test_budgets_are_off_until_they_are_given_and_cost_is_given_in_cents(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {}).budgets.is_off
    environ = {
        "HOLON_BUDGET_AGENT_TURNS_PER_HOUR": "30",
        "HOLON_BUDGET_RUNTIME_TOKENS_PER_DAY": "1000000",
        "HOLON_BUDGET_RUNTIME_COST_CENTS_PER_DAY": "250",
    }
    assert load_settings(tmp_path, environ).budgets == BudgetPolicy(
        agent=Budget(turns_per_hour=30),
        runtime=Budget(tokens_per_day=1_000_000, cost_micros_per_day=2_500_000),
    )
