"""Reads `<home>/config.toml`.

Owns:  the errors of configuration; the path of the file, its values as (path, value) pairs, and the
       line of each value. A message names the key, the source, what was expected and the closest
       match.
Rule 1: a message repeats an invalid value only if the setting allows it (Setting.may_be_quoted).
Rule 2: a missing file is an empty configuration. A file that is not TOML is refused as a whole.

BadInputError
└── BadConfigError           the root: nothing was changed, the process exits with 2
    ├── UnknownSettingError  no setting has this key
    ├── BadSettingError      the value is not of the setting's type
    └── BadConfigFileError   config.toml is not TOML, or not text
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from holon.adapters.system.private_file import read_bounded
from holon.model.errors import BadInputError
from holon.model.limits import CONFIG_FILE_BYTES_MAX
from holon.model.record import Record
from holon.model.values import JsonValue

_VALUE_LINES_MAX: Final = 64  # how far below its key a value may end and still be located


class BadConfigError(BadInputError):
    """A setting cannot be used."""

    code = "bad_config"


class UnknownSettingError(BadConfigError):
    """No setting has this key."""

    code = "unknown_setting"


class BadSettingError(BadConfigError):
    """The value is not of the setting's type."""

    code = "bad_setting"


class BadConfigFileError(BadConfigError):
    """The configuration file cannot be read as TOML."""

    code = "bad_config_file"


def first_of(faults: Iterable[BadConfigError]) -> BadConfigError | None:
    """Return the first fault with the number of further ones, or None."""
    found = list(faults)
    if len(found) < 2:
        return found[0] if found else None
    first, more = found[0], len(found) - 1
    return type(first)(f"{first.message} (and {more} more)", hint=first.hint)


class ConfigText(Record, frozen=True, kw_only=True):
    """The parsed file."""

    path: Path
    values: Mapping[str, JsonValue]
    lines: Mapping[tuple[str, ...], int]

    def leaves(self) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
        """Yield everything in the file that is not a table."""
        yield from leaves_of(self.values)

    def where(self, path: tuple[str, ...]) -> str:
        """Return `<path>:<line>`, or the path alone if the line is unknown."""
        line = self.lines.get(path)
        return str(self.path) if line is None else f"{self.path}:{line}"


def config_path(home: Path) -> Path:
    """Return where a home keeps its configuration."""
    return home / "config.toml"


def read_config(home: Path) -> ConfigText:
    """Read the file, or raise BadConfigFileError or FileUnusableError."""
    path = config_path(home)
    found = read_bounded(path, bytes_max=CONFIG_FILE_BYTES_MAX)
    try:
        text = "" if found is None else found.content.decode()
        return ConfigText(path=path, values=tomllib.loads(text), lines=_lines_of(text))
    except UnicodeDecodeError:
        raise BadConfigFileError(f"{path} is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfigFileError(
            f"{path} is not TOML: {error}", hint="edit the file; nothing was changed"
        ) from None


def leaves_of(
    table: Mapping[str, JsonValue], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """Yield everything that is not a table, with the keys that lead to it."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves_of(value, (*above, key))
        else:
            yield (*above, key), value


def _lines_of(text: str) -> dict[tuple[str, ...], int]:
    """Return the line on which each value's statement begins.

    The file is known to be TOML. Lines are gathered until they are a statement by themselves, so
    each is parsed about once.
    """
    found: dict[tuple[str, ...], int] = {}
    header, statement, begin = "", "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        begin = begin if statement else number
        statement += f"{line}\n"
        is_header = statement.lstrip().startswith("[")
        try:
            values = tomllib.loads(statement if is_header else header + statement)
        except tomllib.TOMLDecodeError:
            if number - begin >= _VALUE_LINES_MAX:
                statement = ""
            continue
        for path, _value in leaves_of(values):
            found.setdefault(path, begin)
        header, statement = statement if is_header else header, ""
    return found
