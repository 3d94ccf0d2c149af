"""Edits `<home>/config.toml`.

Owns:  setting and unsetting values in a file that people edit as well.
Rule 1: comments, order and spacing are preserved; only the named values change.
Rule 2: an edit is validated before it is written, and written atomically: the result is parsed and
        must differ from the old file in the named values only. A refused or failed edit leaves the
        file byte for byte as it was.
Rule 3: an invalid setting elsewhere in the file does not prevent an edit of this value.
"""

import tomllib
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final, TypeAlias

from holon.adapters.system.private_file import (
    PRIVATE_FILE,
    folder_lock,
    make_home,
    read_bounded,
    replace_file,
)
from holon.config.config_file import (
    BadConfigFileError,
    UnknownSettingError,
    config_path,
    leaves_of,
    read_config,
)
from holon.config.setting_keys import SettingKey, dotted
from holon.config.value_types import PlainValue
from holon.model.limits import CONFIG_FILE_BYTES_MAX
from holon.model.values import JsonValue

_Path: TypeAlias = tuple[str, ...]
_Table: TypeAlias = MutableMapping[str, JsonValue]
_GONE: Final = None  # TOML has no null, so nothing can be mistaken for it


def set_values(home: Path, values: Mapping[SettingKey, PlainValue]) -> None:
    """Write several values in one edit."""
    make_home(home)
    _edit(
        home,
        {
            key.path: list(value) if isinstance(value, tuple) else value
            for key, value in values.items()
        },
    )


def unset_value(home: Path, path: _Path) -> bool:
    """Remove the value, or every value of the table, under a path; say whether there was one.

    Values go one by one, so that a comment among them stays.
    """
    values = read_config(home).values
    under = [leaf for leaf, _ in leaves_of(values) if leaf[: len(path)] == path]
    if not under and not _holds(values, path):
        return False
    _edit(home, dict.fromkeys(under or [path], _GONE))
    return True


def _edit(home: Path, edits: Mapping[_Path, JsonValue]) -> None:
    path = config_path(home)
    with folder_lock(home):
        before = read_config(home)  # refuses what is not TOML, in the words every command uses
        found = read_bounded(path, bytes_max=CONFIG_FILE_BYTES_MAX)
        old = b"" if found is None else found.content
        new = _edited(path, old, edits)
        if dict(leaves_of(tomllib.loads(new.decode()))) != _wanted(before.values, edits):
            raise BadConfigFileError(
                f"{path} has a layout that cannot be edited safely",
                hint="edit it with an editor; nothing was changed",
            )
        if len(new) > CONFIG_FILE_BYTES_MAX:
            raise BadConfigFileError(f"{path} would grow beyond {CONFIG_FILE_BYTES_MAX} bytes")
        if new != old:
            replace_file(path, new, mode=PRIVATE_FILE if found is None else found.mode)


def _edited(path: Path, old: bytes, edits: Mapping[_Path, JsonValue]) -> bytes:
    # Imported here: only an edit needs a parser that keeps comments, and it is slow to load.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(old)
        for place, value in edits.items():
            if value is _GONE:
                _remove(document, place)
            else:
                _table_above(document, place)[place[-1]] = value
        new = tomlkit.dumps(document)
        tomllib.loads(new)
    except (TOMLKitError, tomllib.TOMLDecodeError) as error:
        raise BadConfigFileError(
            f"{path} cannot be edited: {error}", hint="edit it with an editor; nothing was changed"
        ) from None
    return new.encode()


def _wanted(before: Mapping[str, JsonValue], edits: Mapping[_Path, JsonValue]) -> JsonValue:
    """Return the values the file should hold afterwards."""
    wanted = {
        path: value
        for path, value in leaves_of(before)
        if not any(path[: len(place)] == place for place in edits)
    }
    return wanted | {place: value for place, value in edits.items() if value is not _GONE}


def _table_above(document: _Table, path: _Path) -> _Table:
    """Return the table the value belongs in, made where it is missing."""
    import tomlkit

    table = document
    for depth, part in enumerate(path[:-1], start=1):
        if part not in table:
            table[part] = tomlkit.table(is_super_table=depth < len(path) - 1)
        below = table[part]
        if not isinstance(below, MutableMapping):
            raise UnknownSettingError(
                f"{dotted(path)} cannot be set: in the file, {dotted(path[:depth])} is a value",
                hint=f"run: holon config unset {dotted(path[:depth])}",
            )
        table = below
    return table


def _holds(table: Mapping[str, JsonValue], path: _Path) -> bool:
    value: JsonValue = table
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return False
        value = value[part]
    return True


def _remove(document: _Table, path: _Path) -> None:
    """Remove the value, and the tables that are then empty and hold no comment."""
    if not _holds(document, path):
        return
    tables = [document]
    for part in path[:-1]:
        tables.append(tables[-1][part])
    del tables[-1][path[-1]]
    for table, part in zip(reversed(tables[:-1]), reversed(path[:-1]), strict=True):
        below = table[part]
        if len(below) == 0 and "#" not in below.as_string():
            del table[part]
