"""Reading `<home>/config.toml`.

Owns:  the file's place, its values as (path, value) pairs, and the line a value stands on.
Rule 1: no file is an empty configuration. A file that is not TOML is refused as a whole.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from holon.adapters.system.private_file import read_bounded
from holon.config.setting_errors import BadConfigFileError
from holon.model.json_value import JsonValue
from holon.model.limits import CONFIG_FILE_BYTES_MAX
from holon.model.record import Record

_VALUE_LINES_MAX: Final = 64  # how far below its key a value may end and still be located


class ConfigText(Record, frozen=True, kw_only=True):
    """The file as it was found."""

    path: Path
    values: Mapping[str, JsonValue]
    lines: Mapping[tuple[str, ...], int]

    def leaves(self) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
        """Yield everything in the file that is not a table."""
        yield from leaves_of(self.values)

    def where(self, path: tuple[str, ...]) -> str:
        """Return `config.toml:3`, with the folder; without a line where that is hard to say."""
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
