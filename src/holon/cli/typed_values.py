"""Values that are checked where they are typed.

Owns:  the types of options and arguments whose bounds the runtime sets.
Rule 1: the bounds are those of model/limits, written down again, since `--help` loads no model; a
        test holds them together.
"""

from typing import Final

import click

_DAY_MS: Final = 86_400_000

TIMER_AFTER: Final = click.IntRange(1, 366 * _DAY_MS)
TIMER_EVERY: Final = click.IntRange(1_000, 366 * _DAY_MS)
YIELD_TIME: Final = click.IntRange(0, 600_000)
OUTPUT_TOKENS: Final = click.IntRange(1, 100_000)


class Words(click.ParamType[str]):
    """A text that says something, and not more than the runtime takes."""

    name = "text"

    def __init__(self, chars_max: int | None = None) -> None:
        self.chars_max = chars_max

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is."""
        if not value.strip():
            self.fail("it is empty", param, ctx)
        if self.chars_max is not None and len(value) > self.chars_max:
            self.fail(f"it is longer than {self.chars_max} characters", param, ctx)
        return value


class HeaderWords(Words):
    """A text that travels in a header."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is."""
        if not value.isascii() or not value.isprintable():
            self.fail("it may hold letters, digits and signs of ASCII only", param, ctx)
        return super().convert(value, param, ctx)


WORDS: Final = Words()
LABEL: Final = Words(500)
OBJECTIVE: Final = Words(4_000)
IDEMPOTENCY_KEY: Final = HeaderWords(200)
