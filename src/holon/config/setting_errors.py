"""What can be wrong with a configuration.

BadInputError
└── BadConfigError           the root: nothing was changed, the process ends with 2
    ├── UnknownSettingError  no setting has this key
    ├── BadSettingError      the value does not fit the setting
    └── BadConfigFileError   config.toml is not TOML, or not text

Owns:  the tree, and the sentences: each names the key, where the value came from, what was
       expected and what comes nearest.
Rule 1: a sentence repeats a bad value only where the setting allows it (Setting.may_be_quoted).
"""

from collections.abc import Iterable

from holon.model.errors import BadInputError


class BadConfigError(BadInputError):
    """A setting cannot be used."""

    code = "bad_config"


class UnknownSettingError(BadConfigError):
    """No setting has this key."""

    code = "unknown_setting"


class BadSettingError(BadConfigError):
    """The value of a setting does not fit it."""

    code = "bad_setting"


class BadConfigFileError(BadConfigError):
    """The configuration file cannot be read as TOML."""

    code = "bad_config_file"


def first_of(faults: Iterable[BadConfigError]) -> BadConfigError | None:
    """Return the first fault, saying how many more there are; nothing when there is none."""
    found = list(faults)
    if len(found) < 2:
        return found[0] if found else None
    first, more = found[0], len(found) - 1
    return type(first)(f"{first.message} (and {more} more)", hint=first.hint)
