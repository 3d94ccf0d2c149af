"""What stands around a patch and does not belong to it.

Owns:  the size a patch may have, code fences, here-documents, and line ends of the whole text.
Rule 1: sizes are judged by counting, before anything is split or kept.
"""

import re
from typing import Final

from holon.model.command_limits import PATCH_BYTES_MAX, PATCH_HUNKS_COUNT_MAX, PATCH_LINES_COUNT_MAX
from holon.tools.patching.problem import SYNTAX, TOO_LARGE, PatchRefusedError

_HEREDOC: Final = re.compile(r"""<<-?\s*(['"]?)(?P<word>[A-Za-z_][A-Za-z0-9_]*)\1""")
_FENCE: Final = re.compile(r"\s{0,3}(?P<marks>`{3,}|~{3,})[\w.+-]*\s*")
_STARTS: Final = ("diff --git ", "--- ", "*** Begin Patch", "*** Add File", "*** Update File")
_WRAPPINGS_COUNT_MAX: Final = 4


def patch_lines(text: str) -> list[str]:
    """Return the lines of the patch itself, without their line feeds."""
    _require_size(text)
    if "\0" in text:
        raise PatchRefusedError(
            "unsupported_git_patch_feature", "the patch holds a NUL: binary patches are refused"
        )
    lines = text.removeprefix("\ufeff").split("\n")
    if lines and lines[-1] in ("", "\r"):
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines[:-1] if line):
        lines = [line.removesuffix("\r") for line in lines]  # the text was converted as a whole
    for _ in range(_WRAPPINGS_COUNT_MAX):
        inner = _unwrapped(lines)
        if inner is None:
            break
        lines = inner
    return lines


def _require_size(text: str) -> None:
    too_large = len(text) > PATCH_BYTES_MAX or text.count("\n") > PATCH_LINES_COUNT_MAX
    if too_large or text.count("\n@@") > PATCH_HUNKS_COUNT_MAX:
        raise PatchRefusedError(
            TOO_LARGE,
            f"a patch has at most {PATCH_BYTES_MAX} bytes, {PATCH_LINES_COUNT_MAX} lines and"
            f" {PATCH_HUNKS_COUNT_MAX} hunks",
            hint="split the change into several smaller patches",
        )
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise PatchRefusedError(SYNTAX, "the patch is not plain Unicode") from None
    if size > PATCH_BYTES_MAX:
        raise PatchRefusedError(TOO_LARGE, f"a patch has at most {PATCH_BYTES_MAX} bytes")


def _unwrapped(lines: list[str]) -> list[str] | None:
    """Return the lines inside the outermost wrapping, or nothing when there is none."""
    for at, line in enumerate(lines):
        if line.startswith(_STARTS):
            return None
        fence, heredoc = _FENCE.fullmatch(line), _HEREDOC.search(line)
        if fence is not None:
            return _until(lines, at, fence["marks"])
        if heredoc is not None:
            return _until(lines, at, heredoc["word"])
    return None


def _until(lines: list[str], at: int, end: str) -> list[str]:
    """Return what stands between an opening line and the last line that closes it."""
    for last in range(len(lines) - 1, at, -1):
        if lines[last].strip() == end:
            return lines[at + 1 : last]
    return lines[at + 1 :]
