"""Resolves the effective settings and the source of each value.

Owns:  the precedence of sources: default < config.toml < environment < command line; the
       fingerprint of a runtime's configuration.
Rule 1: a value keeps its source, so that messages can name the line, the variable or the option.
Rule 2: `load_settings` succeeds only if every value is valid. `inspect_settings` also reports on an
        invalid configuration: it uses the valid values and lists each fault.
Rule 3: the fingerprint is computed from effective values, whatever their source, and does not
        reveal them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from holon.config.config_file import (
    BadConfigError,
    BadSettingError,
    ConfigText,
    first_of,
    read_config,
)
from holon.config.environment_names import read_family
from holon.config.runtime_settings import (
    KnownValue,
    budgets_of,
    github_base_of,
    log_level_of,
    output_budget_of,
    plane_of,
    reminders_of,
    retention_of,
    task_quota_of,
    webhooks_of,
)
from holon.config.setting_keys import SettingKey, find_key, key_at, key_of, unknown_key
from holon.config.settings import SETTINGS, VARIABLES
from holon.config.value_types import InvalidValueError, PlainValue
from holon.decide.text.bounded import OutputBudget
from holon.model.agents import GITHUB_ARCHIVES
from holon.model.budgets import BudgetPolicy
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.providers.models import ProviderResolverSettings
from holon.model.queue import WebhookSetting
from holon.model.record import Record
from holon.model.tasks import TaskQuota
from holon.model.values import JsonValue
from holon.model.work import ReminderPolicy
from holon.ports.journal import LogLevel

_CHARS: Final = 16
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class SourceKind(StrEnum):
    """The source of a value; a later one takes precedence."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class SettingValue(KnownValue, frozen=True, kw_only=True):
    """An effective value."""

    source: SourceKind
    where: str | None = None  # the file with its line, the variable, the flag


class Settings(Record, frozen=True, kw_only=True):
    """Everything a host is built from."""

    home: Path
    plane: ProviderResolverSettings
    retention: RetentionPolicy
    output_budget: OutputBudget
    reminders: ReminderPolicy
    task_quota: TaskQuota
    budgets: BudgetPolicy = BudgetPolicy()
    webhooks: Mapping[str, WebhookSetting] = {}
    log_level: LogLevel = LogLevel.INFO
    github_base: str = GITHUB_ARCHIVES
    values: Mapping[str, SettingValue]  # by key, for people and for the doctor


class Inspection(Record, frozen=True, kw_only=True):
    """The valid settings of a configuration, and its faults."""

    settings: Settings
    faults: tuple[BadConfigError, ...] = ()


class _Candidate(Record, frozen=True, kw_only=True):
    """An unparsed value of a source."""

    key: SettingKey
    raw: JsonValue
    source: SourceKind
    where: str


_Found = _Candidate | BadConfigError


def load_settings(
    home: Path, environ: Mapping[str, str], flags: Mapping[str, str] | None = None
) -> Settings:
    """Return the effective settings, or raise BadConfigError or FileUnusableError."""
    inspection = inspect_settings(home, environ, flags)
    fault = first_of(inspection.faults)
    if fault is not None:
        raise fault
    return inspection.settings


def inspect_settings(
    home: Path, environ: Mapping[str, str], flags: Mapping[str, str] | None = None
) -> Inspection:
    """Return the valid settings and all faults; raises only for an unreadable file."""
    config = read_config(home)
    known = {str(value.key): value for value in _defaults()}
    faults: list[BadConfigError] = []
    providers = config.values.get("providers", {})
    named = tuple(providers) if isinstance(providers, dict) else ()
    for layer in (_from_file(config), _from_environment(environ, named), _from_flags(flags or {})):
        for found in layer:
            try:
                value = _value_of(found)
            except BadConfigError as fault:
                faults.append(fault)
            else:
                known[str(value.key)] = value
    faults.extend(_contradictions(known))
    settings = Settings(
        home=home,
        plane=plane_of(known),
        retention=retention_of(known),
        output_budget=output_budget_of(known),
        reminders=reminders_of(known),
        task_quota=task_quota_of(known),
        budgets=budgets_of(known),
        webhooks=webhooks_of(known),
        log_level=log_level_of(known),
        github_base=github_base_of(known),
        values=known,
    )
    return Inspection(settings=settings, faults=tuple(faults))


def read_text(key: SettingKey, text: str, *, where: str) -> PlainValue:
    """Parse a typed value of a setting, or raise BadSettingError."""
    try:
        return key.setting.value_type.from_text(text)
    except InvalidValueError as unfit:
        raise _bad_setting(key, text, where, unfit.nearest) from None


def _defaults() -> Iterator[SettingValue]:
    for setting in SETTINGS:
        if setting.default is not None:
            key = SettingKey(setting)
            yield SettingValue(key=key, value=setting.default, source=SourceKind.DEFAULT)


def _from_file(config: ConfigText) -> Iterator[_Found]:
    for path, raw in config.leaves():
        try:
            key = key_at(path)
        except BadConfigError as fault:
            where = config.where(path)
            yield type(fault)(f"{fault.message} (from {where})", hint=fault.hint)
        else:
            yield _Candidate(key=key, raw=raw, source=SourceKind.FILE, where=config.where(path))


def _from_environment(environ: Mapping[str, str], providers: Iterable[str]) -> Iterator[_Found]:
    for name in sorted(environ):
        key = _key_of_variable(name, providers)
        if key is not None and environ[name].strip():
            yield _Candidate(
                key=key, raw=environ[name], source=SourceKind.ENVIRONMENT, where=f"${name}"
            )


def _key_of_variable(name: str, providers: Iterable[str]) -> SettingKey | None:
    if name in VARIABLES:
        return SettingKey(VARIABLES[name])
    family = read_family(name, providers)
    if family is None:
        return None
    key, provider = family
    return key_of(next(one for one in SETTINGS if one.key == key), provider)


def _from_flags(flags: Mapping[str, str]) -> Iterator[_Found]:
    for text, raw in flags.items():
        try:
            key = find_key(text)
        except BadConfigError:
            yield unknown_key(text, where="the command line")
        else:
            yield _Candidate(key=key, raw=raw, source=SourceKind.FLAG, where="the command line")


def _value_of(found: _Found) -> SettingValue:
    if isinstance(found, BadConfigError):
        raise found
    value_type = found.key.setting.value_type
    try:
        read = value_type.from_file if found.source is SourceKind.FILE else value_type.from_text
        value = read(found.raw)
    except InvalidValueError as unfit:
        raise _bad_setting(found.key, found.raw, found.where, unfit.nearest) from None
    return SettingValue(key=found.key, value=value, source=found.source, where=found.where)


def _bad_setting(
    key: SettingKey, raw: JsonValue, where: str, nearest: str | None
) -> BadSettingError:
    got = f", not {repr(raw)[:EVENT_TEXT_CHARS_MAX]}" if key.setting.may_be_quoted else ""
    return BadSettingError(
        f"{key}: expected {key.setting.value_type.expected}{got} (from {where})",
        hint=None if nearest is None else f"did you mean {nearest}?",
    )


def _contradictions(known: Mapping[str, SettingValue]) -> Iterator[BadConfigError]:
    yield from _contradicting_folders(known)
    yield from _contradicting_budgets(known)


def _contradicting_budgets(known: Mapping[str, SettingValue]) -> Iterator[BadConfigError]:
    usual = known["runtime.default_tool_output_tokens"]
    budget = output_budget_of(known)
    if usual.source is not SourceKind.DEFAULT and budget.default_tokens > budget.tokens_max:
        yield BadSettingError(
            f"{usual.key}: {budget.default_tokens} (from {usual.where}) is more than"
            f" runtime.max_tool_output_tokens allows, which is {budget.tokens_max}",
            hint="lower one or raise the other",
        )


def _contradicting_folders(known: Mapping[str, SettingValue]) -> Iterator[BadConfigError]:
    record = known.get("runtime.provider_record_dir")
    replay = known.get("runtime.provider_replay_dir")
    if record is not None and replay is not None:
        yield BadSettingError(
            f"exchanges cannot be recorded (from {record.where}) and replayed"
            f" (from {replay.where}) at the same time",
            hint="unset one of the two",
        )


def config_fingerprint(settings: Settings, started_with: Mapping[str, str | int | None]) -> str:
    """Return the fingerprint of the settings and the start options."""
    values = {key: value.value for key, value in settings.values.items()}
    told = _ENCODER.encode({"settings": values, "started_with": dict(started_with)})
    return hashlib.sha256(told).hexdigest()[:_CHARS]
