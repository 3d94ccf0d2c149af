"""Paths as patches spell them.

Owns:  unquoting, the a/ and b/ prefixes, and which spellings can never be inside the root.
Rule 1: a path that is absolute, climbs, names no file, or enters a repository's own folder is
        refused by its spelling alone; whether symlinks lead it away is for the files port to see.
Rule 2: names are exact: nothing is folded, decoded twice or completed.
"""

import re
from typing import Final, NamedTuple

from holon.model.command_limits import PATCH_PATH_BYTES_MAX
from holon.tools.patching.problem import ESCAPE, SYNTAX, PatchRefusedError, quoted

NULL_PATH: Final = "/dev/null"

_OLD_PREFIXES: Final = ("a/", "i/", "c/", "o/", "w/")
_NEW_PREFIXES: Final = ("b/", "w/", "i/", "c/", "o/")
_BACKUP_SUFFIXES: Final = (".orig", ".old", ".bak", "~")
_ESCAPES: Final = {
    "a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92,
}  # fmt: skip
_QUOTED_PART: Final = re.compile(r'[^"\\]+|\\([abtnvfr"\\]|[0-3][0-7]{2})')
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class NamedPaths(NamedTuple):
    """The file a pair of headers speaks of, and the other way to read them."""

    path: str
    other: str | None


def clean_path(spelled: str) -> str:
    """Return the path relative to the root, or refuse it."""
    if not spelled or _CONTROL.search(spelled):
        raise PatchRefusedError(SYNTAX, f"{quoted(spelled)!r} is no file name")
    if len(spelled.encode()) > PATCH_PATH_BYTES_MAX:
        raise PatchRefusedError(SYNTAX, "a file name is too long")
    parts = [part for part in spelled.split("/") if part not in ("", ".")]
    if spelled.startswith(("/", "~/")) or ".." in parts:
        raise _escape(spelled, "leads out of the execution root")
    if any(part.lower() == ".git" for part in parts):
        raise _escape(spelled, "is inside a repository's own .git")
    if not parts or spelled.endswith(("/", "/.")):
        raise PatchRefusedError(SYNTAX, f"{quoted(spelled)!r} names no file")
    return "/".join(parts)


def _escape(spelled: str, why: str) -> PatchRefusedError:
    return PatchRefusedError(
        ESCAPE,
        f"{quoted(spelled)!r} {why}",
        hint="name files relative to the execution root, without `..`",
        details={"path": quoted(spelled)},
    )


def header_name(rest: str) -> str:
    """Return the name in the rest of a header line: unquoted, without a timestamp."""
    rest = rest.rstrip("\r")
    if rest.startswith('"'):
        name, _ = unquoted(rest)
        return name
    return rest.split("\t", 1)[0] if "\t" in rest else rest.strip(" ")


def unquoted(text: str) -> tuple[str, str]:
    """Return the name a C-style quoted text begins with, and what follows it."""
    raw, at = bytearray(), 1
    while at < len(text) and text[at] != '"':
        part = _QUOTED_PART.match(text, at)
        if part is None:
            break
        code = part[1]
        if code is None:
            raw += part[0].encode()
        else:
            raw.append(_ESCAPES[code] if code in _ESCAPES else int(code, 8))
        at = part.end()
    if at >= len(text) or text[at] != '"':
        raise PatchRefusedError(SYNTAX, f"{quoted(text)!r} is no quoted file name")
    try:
        return raw.decode("utf-8"), text[at + 1 :]
    except UnicodeDecodeError:
        raise PatchRefusedError(SYNTAX, "a file name is not UTF-8") from None


def git_names(rest: str) -> tuple[str, str] | None:
    """Return both names of a `diff --git` line, or nothing when it can be read in two ways."""
    rest = rest.rstrip("\r")
    if rest.startswith('"'):
        old, rest = unquoted(rest)
        rest = rest.lstrip(" ")
        return old, unquoted(rest)[0] if rest.startswith('"') else rest
    if rest.endswith('"') and ' "' in rest:
        at = rest.index(' "')
        return rest[:at], unquoted(rest[at + 1 :])[0]
    half = len(rest) // 2
    old, new = rest[:half], rest[half + 1 :]
    if rest[half : half + 1] == " " and without_prefixes(old, new) is not None:
        return old, new
    pair = rest.split(" ")
    return (pair[0], pair[1]) if len(pair) == 2 else None


def without_prefixes(old: str, new: str) -> NamedPaths | None:
    """Return the one file two header names speak of, or nothing when they name two."""
    bare_old, bare_new = _bare(old, _OLD_PREFIXES), _bare(new, _NEW_PREFIXES)
    if old == new:
        inner = _bare(old, ("a/", "b/"))
        return NamedPaths(old, inner if inner != old else None)
    if bare_old == bare_new:
        return NamedPaths(bare_old, None)
    if bare_old == new or old == bare_new:
        return NamedPaths(new if bare_old == new else old, None)
    for suffix in _BACKUP_SUFFIXES:
        if bare_old == bare_new + suffix:
            return NamedPaths(bare_new, None)
    return _below_two_folders(old, new)


def _below_two_folders(old: str, new: str) -> NamedPaths | None:
    """`diff -r old new` names the same file below two folders."""
    inner_old, inner_new = old.partition("/")[2], new.partition("/")[2]
    return NamedPaths(inner_old, None) if inner_old and inner_old == inner_new else None


def single_side(name: str, *, old: bool) -> NamedPaths:
    """Return the file when the other side of the header is /dev/null."""
    bare = _bare(name, ("a/",) if old else ("b/",))
    return NamedPaths(bare, name if old and bare != name else None)


def _bare(name: str, prefixes: tuple[str, ...]) -> str:
    return name[2:] if name.startswith(prefixes) and len(name) > 2 else name
