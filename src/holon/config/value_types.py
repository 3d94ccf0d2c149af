"""The types a setting's value can have.

Owns:  parsing a value from text (the command line, the environment) and from TOML; the description
       of what is expected; the JSON schema of each type.
Rule 1: a type yields the same plain value from every source: text, a number, a boolean or a list of
        texts. It raises InvalidValueError for what it cannot parse and never guesses.
Rule 2: the file may accept more than the command line where a type says so (`OpenChoiceValue`): an
        operator learns of a misspelled word at once; a file written for a newer version loads.
"""

import re
from typing import Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from holon.model.errors import BadInputError
from holon.model.limits import SETTING_TEXT_CHARS_MAX
from holon.model.providers.models import parse_model_ref
from holon.model.record import Record
from holon.model.values import JsonValue

PlainValue: TypeAlias = str | int | bool | tuple[str, ...]

_TRUE: Final = frozenset({"true", "1", "yes", "on"})
_FALSE: Final = frozenset({"false", "0", "no", "off"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,3}(?:_?[0-9]{1,3}){0,5}\Z")


class InvalidValueError(ValueError):
    """A value is not of the type; `nearest` is the closest valid choice, if any."""

    def __init__(self, *, nearest: str | None = None) -> None:
        super().__init__()
        self.nearest = nearest


class ValueType(Protocol):
    """The type of a setting's values."""

    @property
    def expected(self) -> str:
        """What is expected, worded to follow "expected"."""
        ...

    def from_text(self, text: str) -> PlainValue:
        """Read a value that a person typed, or raise InvalidValueError."""
        ...

    def from_file(self, value: JsonValue) -> PlainValue:
        """Read a value as TOML gave it, or raise InvalidValueError."""
        ...

    def schema(self) -> JsonValue:
        """Return the JSON schema of the value in the file."""
        ...


class BooleanValue(Record, frozen=True):
    """True or false."""

    expected: str = "true or false"

    def from_text(self, text: str) -> PlainValue:
        """Read any of the usual spellings."""
        word = text.strip().lower()
        if word not in _TRUE | _FALSE:
            raise InvalidValueError
        return word in _TRUE

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take a TOML boolean and nothing else."""
        if not isinstance(value, bool):
            raise InvalidValueError
        return value

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "boolean"}


class IntegerValue(Record, frozen=True):
    """A whole number between two bounds, both included."""

    least: int
    most: int

    @property
    def expected(self) -> str:
        """State the bounds."""
        return f"a whole number from {self.least} to {self.most}"

    def from_text(self, text: str) -> PlainValue:
        """Read decimal digits; `_` may group them as in TOML."""
        digits = text.strip()
        if not _INTEGER.match(digits):
            raise InvalidValueError
        return self.from_file(int(digits))

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take a TOML integer within the bounds."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidValueError
        if not self.least <= value <= self.most:
            raise InvalidValueError
        return value

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


class _TextValue(Record, frozen=True):
    """Text: a value in the file is parsed as one on the command line is."""

    def from_text(self, text: str) -> PlainValue:
        """Read one line of printable text; subclasses restrict it."""
        if not text.strip() or len(text) > SETTING_TEXT_CHARS_MAX or not text.isprintable():
            raise InvalidValueError
        return text.strip()

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take a TOML string."""
        if not isinstance(value, str):
            raise InvalidValueError
        return self.from_text(value)

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string"}


class TextValue(_TextValue, frozen=True):
    """One line of text, of a given shape where there is one."""

    expected: str = "one line of text"
    shape: str | None = None  # a regular expression for the whole of it

    def from_text(self, text: str) -> PlainValue:
        """Read one printable line."""
        line = str(_TextValue.from_text(self, text))
        if self.shape is not None and not re.fullmatch(self.shape, line):
            raise InvalidValueError
        return line

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string"} | ({"pattern": f"^(?:{self.shape})$"} if self.shape else {})


class ModelRefValue(_TextValue, frozen=True):
    """A provider and a model."""

    expected: str = "a model as provider/model"

    def from_text(self, text: str) -> PlainValue:
        """Read `provider/model`."""
        try:
            return str(parse_model_ref(text))
        except BadInputError:
            raise InvalidValueError from None

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]*/.+$"}


class UrlValue(_TextValue, frozen=True):
    """An http or https address without a trailing slash, a query or a password in it."""

    expected: str = "an http:// or https:// address without user, query and fragment"

    def from_text(self, text: str) -> PlainValue:
        """Read an address."""
        address = str(_TextValue.from_text(self, text)).rstrip("/")
        try:
            parts = urlsplit(address)
            usable = bool(parts.hostname) and parts.port != 0
        except ValueError:
            raise InvalidValueError from None
        extras = "?" in address or "#" in address or "@" in parts.netloc
        if parts.scheme not in ("http", "https") or not usable or extras or " " in address:
            raise InvalidValueError
        return address

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string", "format": "uri", "pattern": "^https?://"}


class ChoiceValue(_TextValue, frozen=True):
    """One of a fixed set of names."""

    choices: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...] = ()  # another name, and the word it stands for

    @property
    def expected(self) -> str:
        """List the choices."""
        return f"one of {', '.join(self.choices)}"

    def from_text(self, text: str) -> PlainValue:
        """Read one of the choices, or an alias of one."""
        word = dict(self.aliases).get(text.strip(), text.strip())
        if word not in self.choices:
            import difflib  # imported only for a misspelled word

            close = difflib.get_close_matches(word.lower().replace("-", "_"), self.choices, n=1)
            raise InvalidValueError(nearest=close[0] if close else None)
        return word

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string", "enum": [*self.choices, *dict(self.aliases)]}


class OpenChoiceValue(ChoiceValue, frozen=True):
    """One of a fixed set of names; a file may hold a word that only a newer Holon knows."""

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take any line of text: an unknown word fails closed where it is used."""
        if not isinstance(value, str):
            raise InvalidValueError
        return _TextValue.from_text(self, value)

    def schema(self) -> JsonValue:
        """Return the schema, with the choices as examples."""
        return {"type": "string", "examples": list(self.choices)}


class ListValue(Record, frozen=True):
    """A list, separated by commas on the command line."""

    part: ValueType
    count_max: int

    @property
    def expected(self) -> str:
        """Describe the parts."""
        return f"a list (at most {self.count_max}, separated by commas), each {self.part.expected}"

    def from_text(self, text: str) -> PlainValue:
        """Read parts between commas; no text is an empty list."""
        return self.from_file([part for part in text.split(",") if part.strip()])

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take a TOML array of texts."""
        if not isinstance(value, list) or len(value) > self.count_max:
            raise InvalidValueError
        return tuple(str(self.part.from_file(part)) for part in value)

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "array", "items": self.part.schema(), "maxItems": self.count_max}
