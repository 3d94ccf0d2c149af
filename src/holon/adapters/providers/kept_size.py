"""How much of a stream may be kept.

Owns:  the count of what an assembler holds on to, and the refusal beyond the cap.
Rule 1: what passes by (previews, repetitions, wrapping) is not counted here; the HTTP client bounds
        it.
"""

from holon.model.limits import PROVIDER_ANSWER_CHARS_MAX
from holon.model.provider_errors import UnreadableResponseError


class KeptSize:
    """Grows with an answer, and refuses one that grows too large."""

    def __init__(self) -> None:
        self._chars = 0

    def grow(self, chars: int) -> None:
        """Count what is kept from now on."""
        self._chars += chars
        if self._chars > PROVIDER_ANSWER_CHARS_MAX:
            raise UnreadableResponseError(
                f"the answer has more than {PROVIDER_ANSWER_CHARS_MAX} characters"
            )
