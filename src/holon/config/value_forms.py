"""The forms a setting's value can have.

Owns:  reading a value from text (the command line, the environment) and from TOML, the words for
       what is expected, and the JSON schema of each form.
Rule 1: a form gives the same plain value whatever the source: text, a number, a truth value or a
        list of texts. What it cannot read it refuses with UnfitError; it never guesses.
Rule 2: the file may be more patient than the command line where a form says so (`OpenChoice`): an
        operator who types a wrong word should learn it now, a newer file should still load.
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


class UnfitError(ValueError):
    """A value does not have the form; `nearest` is what may have been meant."""

    def __init__(self, *, nearest: str | None = None) -> None:
        super().__init__()
        self.nearest = nearest


class Form(Protocol):
    """How the values of a setting look."""

    @property
    def words(self) -> str:
        """Say what is expected, to follow the word "expected"."""
        ...

    def from_text(self, text: str) -> PlainValue:
        """Read a value that a person typed, or raise UnfitError."""
        ...

    def from_file(self, value: JsonValue) -> PlainValue:
        """Read a value as TOML gave it, or raise UnfitError."""
        ...

    def schema(self) -> JsonValue:
        """Return the JSON schema of the value in the file."""
        ...


class TruthForm(Record, frozen=True):
    """True or false."""

    words: str = "true or false"

    def from_text(self, text: str) -> PlainValue:
        """Read any of the usual words."""
        word = text.strip().lower()
        if word not in _TRUE | _FALSE:
            raise UnfitError
        return word in _TRUE

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take a TOML boolean and nothing else."""
        if not isinstance(value, bool):
            raise UnfitError
        return value

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "boolean"}


class WholeNumber(Record, frozen=True):
    """A whole number between two bounds, both included."""

    least: int
    most: int

    @property
    def words(self) -> str:
        """Name the bounds."""
        return f"a whole number from {self.least} to {self.most}"

    def from_text(self, text: str) -> PlainValue:
        """Read decimal digits; `_` may group them as in TOML."""
        digits = text.strip()
        if not _INTEGER.match(digits):
            raise UnfitError
        return self.from_file(int(digits))

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take a TOML integer within the bounds."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise UnfitError
        if not self.least <= value <= self.most:
            raise UnfitError
        return value

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


class _OneText(Record, frozen=True):
    """What is text in both worlds: the file is read as the command line is."""

    def from_text(self, text: str) -> PlainValue:
        """Read the text; refined below."""
        if not text.strip() or len(text) > SETTING_TEXT_CHARS_MAX or not text.isprintable():
            raise UnfitError
        return text.strip()

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take a TOML string."""
        if not isinstance(value, str):
            raise UnfitError
        return self.from_text(value)

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string"}


class PlainText(_OneText, frozen=True):
    """One line of text, of a given shape where there is one."""

    words: str = "one line of text"
    shape: str | None = None  # a regular expression for the whole of it

    def from_text(self, text: str) -> PlainValue:
        """Read one printable line."""
        line = str(_OneText.from_text(self, text))
        if self.shape is not None and not re.fullmatch(self.shape, line):
            raise UnfitError
        return line

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string"} | ({"pattern": f"^(?:{self.shape})$"} if self.shape else {})


class ModelReference(_OneText, frozen=True):
    """A provider and a model."""

    words: str = "a model as provider/model"

    def from_text(self, text: str) -> PlainValue:
        """Read `provider/model`."""
        try:
            return str(parse_model_ref(text))
        except BadInputError:
            raise UnfitError from None

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]*/.+$"}


class WebAddress(_OneText, frozen=True):
    """An http or https address without a trailing slash, a query or a password in it."""

    words: str = "an http:// or https:// address without user, query and fragment"

    def from_text(self, text: str) -> PlainValue:
        """Read an address."""
        address = str(_OneText.from_text(self, text)).rstrip("/")
        try:
            parts = urlsplit(address)
            usable = bool(parts.hostname) and parts.port != 0
        except ValueError:
            raise UnfitError from None
        extras = "?" in address or "#" in address or "@" in parts.netloc
        if parts.scheme not in ("http", "https") or not usable or extras or " " in address:
            raise UnfitError
        return address

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string", "format": "uri", "pattern": "^https?://"}


class Choice(_OneText, frozen=True):
    """One of a few words."""

    choices: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...] = ()  # another name, and the word it stands for

    @property
    def words(self) -> str:
        """Name the words."""
        return f"one of {', '.join(self.choices)}"

    def from_text(self, text: str) -> PlainValue:
        """Read one of the words, or another name for one."""
        word = dict(self.aliases).get(text.strip(), text.strip())
        if word not in self.choices:
            import difflib  # only for a slip

            close = difflib.get_close_matches(word.lower().replace("-", "_"), self.choices, n=1)
            raise UnfitError(nearest=close[0] if close else None)
        return word

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "string", "enum": [*self.choices, *dict(self.aliases)]}


class OpenChoice(Choice, frozen=True):
    """One of a few words; a file may hold a word that only a newer Holon knows."""

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take any line of text: an unknown word fails closed where it is used."""
        if not isinstance(value, str):
            raise UnfitError
        return _OneText.from_text(self, value)

    def schema(self) -> JsonValue:
        """Return the schema: the words are examples."""
        return {"type": "string", "examples": list(self.choices)}


class Several(Record, frozen=True):
    """A list; on the command line its parts are separated by commas."""

    part: Form
    count_max: int

    @property
    def words(self) -> str:
        """Name the parts."""
        return f"a list (at most {self.count_max}, separated by commas), each {self.part.words}"

    def from_text(self, text: str) -> PlainValue:
        """Read parts between commas; no text is an empty list."""
        return self.from_file([part for part in text.split(",") if part.strip()])

    def from_file(self, value: JsonValue) -> PlainValue:
        """Take a TOML array of texts."""
        if not isinstance(value, list) or len(value) > self.count_max:
            raise UnfitError
        return tuple(str(self.part.from_file(part)) for part in value)

    def schema(self) -> JsonValue:
        """Return the schema."""
        return {"type": "array", "items": self.part.schema(), "maxItems": self.count_max}
