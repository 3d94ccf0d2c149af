"""Shell commands: the paths a command line names, without running it.

Owns:  a partial reading of shell syntax: which paths a command line names, and from which
       directory.
Rule 1: the result is for noticing, not for guarding: what cannot be evaluated (a variable, the
        output of another command) names no path, and no command is refused because of it.
Rule 2: `cd`, sub-shells, `~` and variables with a known value are followed, and so is a command
        inside a quoted word. Whether a word was quoted is not remembered: a command that quotes `~`
        or a pattern by mistake fails, and only commands that succeeded are read.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from holon.model.limits import SKILL_COMMAND_CHARS_MAX
from holon.model.record import Record

_REDIRECTS: Final = frozenset("<>")
_SEPARATORS: Final = ";&|()<>`\n"
_VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
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


def named_paths(command: str, around: Surroundings) -> Iterator[NamedPath]:
    """Yield the absolute paths a command line may name, in order, some more than once."""
    yield from _paths(command[:SKILL_COMMAND_CHARS_MAX], around.cwd, around.variables, depth=0)


def _paths(
    text: str, cwd: str | None, variables: Mapping[str, str], *, depth: int
) -> Iterator[NamedPath]:
    outer: list[str | None] = []  # the directories of the shells around this one
    words: list[str] = []
    for token in _tokens(text):
        if token[0] not in _SEPARATORS:
            words.append(token)
        elif not _REDIRECTS.issuperset(token):  # what follows a redirection is one more word
            expanded = [_expanded(word, cwd, variables) for word in words]
            if expanded and expanded[0] in _MOVES:
                cwd = _moved(cwd, expanded[1:], variables)
            else:
                yield from _of_command(expanded, cwd)
                if depth < _NESTING_COUNT_MAX:
                    for word in filter(_NESTED.search, words):
                        yield from _paths(word, cwd, variables, depth=depth + 1)
            words = []
            for mark in token:
                if mark == "(":
                    outer.append(cwd)
                elif mark == ")" and outer:
                    cwd = outer.pop()


def _tokens(text: str) -> Iterator[str]:
    """Yield words and runs of separators; a last separator ends the last command."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_SEPARATORS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    in_comment = False
    try:
        for token in filter(None, lexer):
            in_comment = "\n" not in token and (in_comment or token.startswith("#"))
            if not in_comment:
                yield token
    except ValueError:  # a quote that is not closed: the shell would have failed
        pass
    yield "\n"


def _expanded(word: str, cwd: str | None, variables: Mapping[str, str]) -> str:
    home = variables.get("HOME", _UNKNOWN)
    if word.startswith("~"):
        word = f"{home}{word[1:]}" if word == "~" or word.startswith("~/") else _UNKNOWN
    known = {**variables, "PWD": cwd or _UNKNOWN}
    return _VARIABLE.sub(lambda found: known.get(found[1], _UNKNOWN), word)


def _moved(cwd: str | None, words: list[str], variables: Mapping[str, str]) -> str | None:
    """Return the directory after a `cd`; nothing when that is not known, as after `cd -`."""
    named = [word for word in words if not word.startswith("-")]
    if words and not named:
        return None
    return _absolute(named[0] if named else variables.get("HOME", _UNKNOWN), cwd)


def _of_command(words: list[str], cwd: str | None) -> Iterator[NamedPath]:
    for place, word in enumerate(words):
        _, equals_sign, value = word.partition("=")
        for text in (word, value) if equals_sign else (word,):
            path = _absolute(text, cwd) if _is_like_path(text, is_program=place == 0) else None
            if path is not None:
                yield NamedPath(path, _WILD.search(text) is not None)


def _absolute(text: str, cwd: str | None) -> str | None:
    if _UNKNOWN in text:
        return None
    if text.startswith("/"):
        return posixpath.normpath(text)
    return None if cwd is None else posixpath.normpath(f"{cwd}/{text}")


def _is_like_path(text: str, *, is_program: bool) -> bool:
    """Whether a word names a file rather than a program or an option."""
    if "/" in text:
        return True
    return "." in text and not is_program and not text.startswith("-")
