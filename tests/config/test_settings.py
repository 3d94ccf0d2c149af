"""Every setting, from every source, good and bad."""

from pathlib import Path

import pytest

from holon.config.config_file import BadSettingError
from holon.config.load_settings import SourceKind, load_settings
from holon.config.setting_keys import SettingKey
from holon.config.settings import SETTINGS, VARIABLES
from holon.decide.text.bounded import OutputBudget
from holon.model.events.retention import RetentionPolicy
from holon.model.providers.models import ProviderResolverSettings
from tests.config.samples import KEYS, SAMPLES

WITH_VARIABLE = [key for key in KEYS if key.variable is not None]
BAD_TEXTS = [(key, text) for key in KEYS for text in SAMPLES[key.setting.key].bad_texts]
BAD_TOMLS = [(key, toml) for key in KEYS for toml in SAMPLES[key.setting.key].bad_tomls]
every_key = pytest.mark.parametrize("key", KEYS, ids=str)


def write(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text, encoding="utf-8")


def test_no_setting_is_without_samples_and_no_sample_without_a_setting() -> None:
    assert list(SAMPLES) == [setting.key for setting in SETTINGS]
    assert len({setting.variable for setting in SETTINGS if setting.variable}) == len(VARIABLES)


def test_nothing_configured_is_what_the_records_say(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "nowhere", {})
    assert settings.plane == ProviderResolverSettings()
    assert settings.retention == RetentionPolicy()
    assert settings.output_budget == OutputBudget()
    assert {value.source for value in settings.values.values()} == {SourceKind.DEFAULT}
    assert not (tmp_path / "nowhere").exists()


@every_key
def test_a_value_in_the_file_is_read_and_its_line_remembered(
    key: SettingKey, tmp_path: Path
) -> None:
    sample = SAMPLES[key.setting.key]
    write(tmp_path, f"# a comment\n\n{key} = {sample.toml}\n")
    found = load_settings(tmp_path, {}).values[str(key)]
    assert (found.value, found.source) == (sample.value, SourceKind.FILE)
    assert found.where == f"{tmp_path}/config.toml:3"


@pytest.mark.parametrize("key", WITH_VARIABLE, ids=str)
def test_a_variable_wins_over_the_file(key: SettingKey, tmp_path: Path) -> None:
    sample = SAMPLES[key.setting.key]
    write(tmp_path, f'providers."my.box".stream = true\n{key} = {sample.toml}\n')
    assert key.variable is not None
    found = load_settings(tmp_path, {key.variable: sample.text}).values[str(key)]
    assert (found.value, found.source) == (sample.value, SourceKind.ENVIRONMENT)
    assert found.where == f"${key.variable}"
    unset = load_settings(tmp_path, {key.variable: "  "}).values[str(key)]
    assert unset.source is SourceKind.FILE


@every_key
def test_a_flag_wins_over_everything(key: SettingKey, tmp_path: Path) -> None:
    sample = SAMPLES[key.setting.key]
    write(tmp_path, f"{key} = {sample.toml}\n")
    environ = {} if key.variable is None else {key.variable: sample.text}
    found = load_settings(tmp_path, environ, {str(key): sample.text}).values[str(key)]
    assert (found.value, found.source) == (sample.value, SourceKind.FLAG)


@pytest.mark.parametrize(("key", "toml"), BAD_TOMLS, ids=str)
def test_a_bad_value_in_the_file_names_key_line_and_form(
    key: SettingKey, toml: str, tmp_path: Path
) -> None:
    write(tmp_path, f"\n{key} = {toml}\n")
    with pytest.raises(BadSettingError) as caught:
        load_settings(tmp_path, {})
    said = caught.value.message
    assert said.startswith(f"{key}: expected {key.setting.value_type.expected}")
    assert said.endswith(f"(from {tmp_path}/config.toml:2)")


@pytest.mark.parametrize(("key", "text"), BAD_TEXTS, ids=str)
def test_a_bad_flag_or_variable_names_key_source_and_form(
    key: SettingKey, text: str, tmp_path: Path
) -> None:
    with pytest.raises(BadSettingError) as caught:
        load_settings(tmp_path, {}, {str(key): text})
    assert caught.value.message.startswith(f"{key}: expected {key.setting.value_type.expected}")
    assert caught.value.message.endswith("(from the command line)")
    if key.variable is not None and key.setting.variable is not None:
        with pytest.raises(BadSettingError) as caught:
            load_settings(tmp_path, {key.variable: text})
        assert caught.value.message.endswith(f"(from ${key.variable})")


@pytest.mark.parametrize(("key", "text"), BAD_TEXTS, ids=str)
def test_what_may_be_a_secret_is_not_repeated(key: SettingKey, text: str, tmp_path: Path) -> None:
    with pytest.raises(BadSettingError) as caught:
        load_settings(tmp_path, {}, {str(key): text})
    tail = caught.value.message.removeprefix(f"{key}: expected {key.setting.value_type.expected}")
    assert (", not '" in tail) is key.setting.may_be_quoted
    secretive = (".auth.", ".secret_", ".base_url", ".github_base")
    may_hold_secrets = any(part in key.setting.key for part in secretive)
    assert key.setting.may_be_quoted is not may_hold_secrets


@pytest.mark.parametrize(
    ("key", "text", "meant"),
    [
        ("providers.x.transport", "openai_chat", "openai_chat_completions"),
        ("providers.x.transport", "anthropic-message", "anthropic_messages"),
        ("providers.x.auth.kind", "apikey", "api_key"),
    ],
)
def test_a_word_that_is_nearly_right_is_answered_with_the_right_one(
    key: str, text: str, meant: str, tmp_path: Path
) -> None:
    with pytest.raises(BadSettingError) as caught:
        load_settings(tmp_path, {}, {key: text})
    assert caught.value.hint == f"did you mean {meant}?"


def test_a_transport_only_a_newer_holon_knows_is_loaded_from_the_file(tmp_path: Path) -> None:
    write(tmp_path, 'providers.x.transport = "smoke_signals"\n')
    assert load_settings(tmp_path, {}).plane.providers["x"].transport == "smoke_signals"
