"""The voice of the demo.

Owns:  what a chapter, a told line, a checked line and quoted output look like.
Rule 1: a line with a mark was checked; the first one that does not hold ends the story.
"""

import time
from pathlib import Path
from typing import Final

REHEARSALS: Final = Path(__file__).parents[1] / "rehearsals"


class StoryBrokenError(Exception):
    """Something the story tells did not happen."""


class Narrator:
    """Says what happens, numbers the chapters, and insists that it is true."""

    def __init__(self) -> None:
        self._chapter = 0
        self._began = time.monotonic()

    def chapter(self, title: str) -> None:
        """Begin a chapter."""
        self._chapter += 1
        print(f"\n{self._chapter}. {title}", flush=True)

    def tell(self, sentence: str) -> None:
        """Say something that needs no proof."""
        print(f"   · {sentence}", flush=True)

    def quote(self, output: str) -> None:
        """Show what a program wrote, as it wrote it."""
        for line in output.rstrip().splitlines():
            print(f"   │ {line}", flush=True)

    def check(self, holds: bool, sentence: str) -> None:
        """Say something that must be true."""
        print(f"   {'✓' if holds else '✗'} {sentence}", flush=True)
        if not holds:
            raise StoryBrokenError(sentence)

    def elapsed(self) -> str:
        """How long the story has taken so far."""
        return f"{time.monotonic() - self._began:.1f} s"
