"""The configuration file as a JSON schema.

Owns:  the schema editors and scripts may check a config.toml against, read off the settings table.
"""

from typing import Final

from holon.config.settings import SETTINGS, Setting
from holon.model.json_value import JsonValue

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


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
    described = {"description": setting.says, **setting.form.schema()}
    if setting.default is not None:
        plain = setting.default
        described["default"] = list(plain) if isinstance(plain, tuple) else plain
    if setting.variable is not None:
        described["x-environment"] = setting.variable
    return described
