"""Shell commands: the paths a command line names, without running it.

Owns:  a partial reading of shell syntax: which paths a command line names, and from which
       directory.
Rule 1: the result is for noticing, not for guarding: what cannot be evaluated (a variable, the
        output of another command) names no path, and no command is refused because of it. An
        unquoted pattern is reported as a pattern: the caller, who knows the files, matches it.
Rule 2: quotes, escapes, `~`, variables with a known value, `cd` and sub-shells are followed; so is
        a command inside a quoted word.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from holon.model.limits import SKILL_COMMAND_CHARS_MAX
from holon.model.record import Record

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r]+|\\\n)
    |(?P<open>\$?\()
    |(?P<close>\))
    |(?P<end>[;&|\n`])
    |(?P<redirect>[<>])
    |'(?P<single>[^']*)'
    |"(?P<double>(?:[^"\\]|\\.)*)"
    |\\(?P<escaped>.)
    |\$\{?(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}?
    |(?P<plain>[^\s;&|()<>'"\\$`]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_QUOTES: Final = re.compile(r"\\([\"\\$`])|\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?|\$\(|`")
_UNKNOWN: Final = "\0"  # in no path
_NESTED: Final = re.compile(r"[\s'\"()=,]")
_WILD: Final = re.compile(r"[*?\[]")
_NESTING_COUNT_MAX: Final = 3
_MOVES: Final = frozenset({"cd", "pushd"})


class NamedPath(NamedTuple):
    """An absolute path of a command line, or a pattern of such paths."""

    path: str
    is_pattern: bool = False


class Surroundings(Record, frozen=True, kw_only=True):
    """The directory and the variables a command runs with."""

    cwd: str
    variables: Mapping[str, str] = {}

    @property
    def home(self) -> str | None:
        """What `~` stands for."""
        return self.variables.get("HOME")


def named_paths(command: str, around: Surroundings) -> Iterator[NamedPath]:
    """Yield the absolute paths a command line may name, in order, some more than once."""
    yield from _CommandReader(around).paths(command[:SKILL_COMMAND_CHARS_MAX], depth=0)


class _Word:
    """A word under construction."""

    def __init__(self) -> None:
        self.text = ""
        self.quoted: list[str] = []
        self.is_begun = False
        self.is_pattern = False

    def add(self, text: str) -> None:
        self.text += text
        self.is_begun = True


class _CommandReader:
    """One pass over a command line."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._cwd: str | None = around.cwd
        self._outer: list[str | None] = []
        self._words: list[_Word] = []
        self._word = _Word()

    def paths(self, command: str, *, depth: int) -> Iterator[NamedPath]:
        """Yield the paths of one text; commands in its quoted words are read too."""
        place = 0
        while place < len(command):
            if command[place] == "#" and not self._word.is_begun:
                end = command.find("\n", place)
                place = len(command) if end < 0 else end
                continue
            token = _TOKEN.match(command, place)
            assert token is not None, "the last alternative takes any character"
            place = token.end()
            yield from self._take(token, depth)
        yield from self._end_command(depth)

    def _take(self, token: re.Match[str], depth: int) -> Iterator[NamedPath]:
        kind, text = token.lastgroup, token.group(token.lastgroup or 0)
        match kind:
            case "space" | "redirect":
                self._end_word()
            case "end":
                yield from self._end_command(depth)
            case "open":
                yield from self._end_command(depth)
                self._outer.append(self._cwd)
            case "close":
                yield from self._end_command(depth)
                self._cwd = self._outer.pop() if self._outer else self._cwd
            case _:
                self._grow(kind or "plain", text)

    def _grow(self, kind: str, text: str) -> None:
        word = self._word
        match kind:
            case "variable":
                word.add(self._value(text))
            case "double":
                word.quoted.append(text)
                word.add(_IN_QUOTES.sub(self._inside, text))
            case "single":
                word.quoted.append(text)
                word.add(text)
            case "plain":
                is_home = text.startswith("~") and not word.is_begun
                word.add(self._from_home(text) if is_home else text)
                word.is_pattern = word.is_pattern or _WILD.search(text) is not None
            case _:
                word.add(text)

    def _inside(self, match: re.Match[str]) -> str:
        if match.group(1) is not None:
            return match.group(1)
        return self._value(match.group(2)) if match.group(2) is not None else _UNKNOWN

    def _value(self, variable: str) -> str:
        if variable == "PWD":
            return self._cwd or _UNKNOWN
        return self._around.variables.get(variable, _UNKNOWN)

    def _from_home(self, text: str) -> str:
        home, rest = self._around.home, text[1:]
        is_own = home is not None and (not rest or rest.startswith("/"))
        return f"{home}{rest}" if is_own else _UNKNOWN

    def _end_word(self) -> None:
        if self._word.is_begun:
            self._words.append(self._word)
            self._word = _Word()

    def _end_command(self, depth: int) -> Iterator[NamedPath]:
        self._end_word()
        words, self._words = self._words, []
        if words and words[0].text in _MOVES:
            self._move(words[1:])
            return
        for place, word in enumerate(words):
            yield from self._paths_in(word, is_program=place == 0)
            if depth < _NESTING_COUNT_MAX:
                yield from self._nested(word, depth)

    def _move(self, words: list[_Word]) -> None:
        named = [word.text for word in words if not word.text.startswith("-")]
        if words and not named:
            self._cwd = None  # the earlier directory of `cd -` is unknown
        else:
            self._cwd = self._absolute(named[0] if named else self._around.home or _UNKNOWN)

    def _paths_in(self, word: _Word, *, is_program: bool) -> Iterator[NamedPath]:
        _, equals_sign, value = word.text.partition("=")
        for text in (word.text, value) if equals_sign else (word.text,):
            path = self._absolute(text) if _is_like_path(text, is_program=is_program) else None
            if path is not None:
                yield NamedPath(path, word.is_pattern)

    def _nested(self, word: _Word, depth: int) -> Iterator[NamedPath]:
        for text in word.quoted:
            if _NESTED.search(text) is not None and self._cwd is not None:
                around = Surroundings(cwd=self._cwd, variables=self._around.variables)
                yield from _CommandReader(around).paths(text, depth=depth + 1)

    def _absolute(self, text: str) -> str | None:
        if _UNKNOWN in text:
            return None
        if text.startswith("/"):
            return posixpath.normpath(text)
        return None if self._cwd is None else posixpath.normpath(f"{self._cwd}/{text}")


def _is_like_path(text: str, *, is_program: bool) -> bool:
    """Whether a word names a file rather than a program or an option."""
    if "/" in text:
        return True
    return "." in text and not is_program and not text.startswith("-")
