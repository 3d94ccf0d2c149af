"""Parses and formats setting keys, and generates the JSON schema of config.toml.

Owns:  keys as typed (`models.catalog."openai/gpt-5.4".output_tokens_max`) and as nested in TOML;
       the schema derived from the settings table.
Rule 1: quotes around a name are optional on the command line, because shells remove them; the fixed
        parts of the key delimit the name.
Rule 2: an unknown key is answered with the closest match.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Final

from holon.config.config_file import UnknownSettingError
from holon.config.environment_names import FAMILIES, provider_variable
from holon.config.settings import SETTINGS, Setting
from holon.model.errors import BadInputError
from holon.model.providers.models import parse_model_ref
from holon.model.record import Record
from holon.model.values import JsonValue

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+\Z")
_PROVIDER: Final = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")
_ALL_SHOWN: Final = "`holon config schema` lists every key"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


class SettingKey(Record, frozen=True):
    """A setting; with the name of a provider, model or source if the row is a family."""

    setting: Setting
    name: str | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The keys under which TOML nests the value."""
        parts = self.setting.path
        return tuple(self.name or part if part.startswith("<") else part for part in parts)

    @property
    def variable(self) -> str | None:
        """The environment variable that overrules the file."""
        families = {key: family for family, key in FAMILIES.items()}
        if self.name is None or self.setting.key not in families:
            return self.setting.variable
        return provider_variable(self.name, families[self.setting.key])

    def __str__(self) -> str:
        return dotted(self.path)


def dotted(path: tuple[str, ...]) -> str:
    """Return a key as it is written in TOML."""
    return ".".join(part if _BARE.match(part) else _quoted(part) for part in path)


def _quoted(part: str) -> str:
    escaped = part.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if part.isprintable() else ascii(part)


def find_key(text: str) -> SettingKey:
    """Parse a key, or raise UnknownSettingError with the closest match."""
    for setting in SETTINGS:
        if setting.key == text and not setting.is_family:
            return SettingKey(setting)
        name = _name_within(text, setting) if setting.is_family else None
        if name is not None:
            return key_of(setting, name)
    raise unknown_key(text)


def key_of(setting: Setting, name: str) -> SettingKey:
    """Return the setting of one provider or model, or raise UnknownSettingError."""
    fault = _name_fault(setting, name)
    if fault is not None:
        raise UnknownSettingError(f"{setting.key}: {fault}")
    return SettingKey(setting, name)


def key_at(path: tuple[str, ...]) -> SettingKey:
    """Return the setting TOML nests under a path, or raise UnknownSettingError."""
    for setting in SETTINGS:
        parts = setting.path
        if len(parts) != len(path):
            continue
        pairs = list(zip(parts, path, strict=True))
        if all(part == found for part, found in pairs if not part.startswith("<")):
            names = [found for part, found in pairs if part.startswith("<")]
            return key_of(setting, names[0]) if names else SettingKey(setting)
    raise unknown_key(dotted(path))


def unknown_key(text: str, *, where: str | None = None) -> UnknownSettingError:
    """Return the error for an unknown key."""
    import difflib  # imported only for an unknown key

    seen = f" (from {where})" if where else ""
    near = difflib.get_close_matches(text, dict.fromkeys(_candidates(text)), n=1)
    if not near:
        return UnknownSettingError(f"{text!r} is not a setting{seen}", hint=_ALL_SHOWN)
    setting = next(one for one in SETTINGS if near[0] in _forms_of(one, text))
    return UnknownSettingError(
        f"{text!r} is not a setting{seen}; the nearest is {near[0]}, {setting.value_type.expected}",
        hint=_ALL_SHOWN,
    )


def _candidates(text: str) -> Iterator[str]:
    for setting in SETTINGS:
        yield from _forms_of(setting, text)


def _forms_of(setting: Setting, text: str) -> tuple[str, ...]:
    """Return the key of a row, and the key with the name that was probably given."""
    if not setting.is_family:
        return (setting.key,)
    before, after = _around_name(setting)
    depth = after.count(".")
    middle = text.split(".")[before.count(".") : -depth]
    named = f"{before}{'.'.join(middle)}{after}"
    return (setting.key, named) if any(middle) else (setting.key,)


def _around_name(setting: Setting) -> tuple[str, str]:
    """Return `providers.` and `.base_url`."""
    before, _, rest = setting.key.partition("<")
    return before, rest.partition(">")[2]


def _name_within(text: str, setting: Setting) -> str | None:
    before, after = _around_name(setting)
    fits = text.startswith(before) and text.endswith(after)
    if not fits or len(text) <= len(before) + len(after):
        return None
    return _unquoted(text[len(before) : -len(after)])


def _unquoted(name: str) -> str:
    if name[0] not in "\"'":
        return name
    try:
        value = tomllib.loads(f"name = {name}\n")["name"]
    except tomllib.TOMLDecodeError:
        return name
    return value if isinstance(value, str) else name


def _name_fault(setting: Setting, name: str) -> str | None:
    if "<source>" in setting.key:
        fits = _PROVIDER.match(name) is not None
        return None if fits else f"{name!r} cannot be the name of a source"
    if "<id>" in setting.key:
        fits = _PROVIDER.match(name) is not None
        return None if fits else f"{name!r} cannot be the id of a provider"
    try:
        parse_model_ref(name)
    except BadInputError as error:
        return f"{error.message}, {error.hint}"
    return None


def path_of(text: str) -> tuple[str, ...] | None:
    """Return the path a dotted key stands for in TOML, whether or not it is a setting."""
    try:
        value: JsonValue = tomllib.loads(f"{text} = 0\n")
    except tomllib.TOMLDecodeError:
        return None
    path: tuple[str, ...] = ()
    while isinstance(value, dict):
        (part, value), *more = value.items()
        if more:
            return None
        path = (*path, part)
    return path


def config_schema() -> dict[str, JsonValue]:
    """Return the schema of config.toml."""
    root = _table()
    for setting in SETTINGS:
        _place(root, setting)
    return {"$schema": _DRAFT, "title": "Holon configuration", **root}


def _table() -> dict[str, JsonValue]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _place(root: dict[str, JsonValue], setting: Setting) -> None:
    table: dict[str, JsonValue] = root
    for part in setting.path[:-1]:
        table = _below(table, part)
    table["properties"][setting.path[-1]] = _described(setting)


def _below(table: dict[str, JsonValue], part: str) -> dict[str, JsonValue]:
    """Return the table under a part; `<id>` stands for whatever name is used."""
    if not part.startswith("<"):
        below: dict[str, JsonValue] = table["properties"].setdefault(part, _table())
        return below
    if table["additionalProperties"] is False:
        table["additionalProperties"] = _table()
    named: dict[str, JsonValue] = table["additionalProperties"]
    return named


def _described(setting: Setting) -> dict[str, JsonValue]:
    described = {"description": setting.says, **setting.value_type.schema()}
    if setting.default is not None:
        plain = setting.default
        described["default"] = list(plain) if isinstance(plain, tuple) else plain
    if setting.variable is not None:
        described["x-environment"] = setting.variable
    return described
