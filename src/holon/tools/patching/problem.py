"""Why a patch was refused.

Owns:  the one error of this package: a stable kind, words for the model, and bounded details.
Rule 1: a patch that is refused has changed nothing.
"""

from typing import Final

from holon.decide.bounded_text import beginning_of
from holon.model.command_limits import PATCH_FILES_COUNT_MAX, PATCH_QUOTED_CHARS_MAX
from holon.model.errors import HolonError
from holon.model.json_value import JsonValue

TOO_LARGE: Final = "patch_too_large"
SYNTAX: Final = "invalid_patch_syntax"
UNSUPPORTED: Final = "unsupported_git_patch_feature"
NOT_FOUND: Final = "context_not_found"
AMBIGUOUS: Final = "ambiguous_context"
ESCAPE: Final = "path_escape"


class PatchRefusedError(HolonError):
    """The patch cannot be applied as it is; `kind` says why in a word."""

    code = "patch_failed"

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        hint: str | None = None,
        details: dict[str, JsonValue] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.details = details


def require_files(count: int) -> None:
    """Refuse a patch with too many entries while it is being read."""
    if count > PATCH_FILES_COUNT_MAX:
        raise PatchRefusedError(
            TOO_LARGE,
            f"a patch touches at most {PATCH_FILES_COUNT_MAX} files",
            hint="split the change into several smaller patches",
        )


def quoted(text: str) -> str:
    """Return a line of a patch or file as it may stand in an error: short, and plain Unicode."""
    plain = text.rstrip("\r\n").encode("utf-8", "replace").decode("utf-8")
    return beginning_of(plain, chars_max=PATCH_QUOTED_CHARS_MAX)
