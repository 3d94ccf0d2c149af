"""Prompt caching as providers do it, by counting bytes.

Owns:  how much of a prompt was read from cache, and how much was written to it.
Rule 1: without marks, what a request shares with an earlier one of the same key is cached.
Rule 2: with marks, a prefix is written where a mark stands, and found again only from a mark that
        stands at most twenty pieces further on.
"""

import hashlib
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from holon.model.providers.attempts import TokenUsage
from tests.support.wire_server.wire_request import ParsedRequest, Piece

TOKEN_BYTES: Final = 4
LOOK_BACK_COUNT: Final = 20
_REMEMBERED_COUNT: Final = 8


class PromptCount(NamedTuple):
    """The tokens of a prompt: all of them, those read from cache, those written to it."""

    total: int
    read: int = 0
    written: int = 0

    @classmethod
    def of_usage(cls, usage: TokenUsage) -> "PromptCount":
        """Return what a script says was counted."""
        return cls(usage.input_tokens, usage.cache_read_tokens, usage.cache_creation_tokens)


class PromptCache:
    """What a provider remembers of the prompts it was sent."""

    def __init__(self) -> None:
        self._prompts: dict[str, deque[bytes]] = defaultdict(
            lambda: deque(maxlen=_REMEMBERED_COUNT)
        )
        self._prefixes: set[bytes] = set()
        self.bytes_seen = 0
        self.bytes_read = 0

    def count(self, heard: ParsedRequest) -> PromptCount:
        """Count a prompt, and remember it."""
        total = sum(len(piece.data) for piece in heard.pieces)
        read, written = self._marked(heard) if heard.caches_marked else (self._shared(heard), 0)
        self.bytes_seen += total
        self.bytes_read += read
        return PromptCount(total // TOKEN_BYTES, read // TOKEN_BYTES, written // TOKEN_BYTES)

    def _shared(self, heard: ParsedRequest) -> int:
        prompt = b"".join(piece.data for piece in heard.pieces)
        earlier = self._prompts[heard.cache_key]
        read = max((_shared_bytes(prompt, other) for other in earlier), default=0)
        earlier.append(prompt)
        return read

    def _marked(self, heard: ParsedRequest) -> tuple[int, int]:
        places = _places(heard.pieces, seed=heard.cache_key)
        marks = [index for index, piece in enumerate(heard.pieces) if piece.marked]
        read = 0
        for mark in marks:
            for index in range(mark, max(-1, mark - LOOK_BACK_COUNT), -1):
                if places[index].name in self._prefixes:
                    read = max(read, places[index].end)
                    break
        self._prefixes.update(places[mark].name for mark in marks)
        written = max((places[mark].end for mark in marks), default=0) - read
        return read, max(0, written)


class _Place(NamedTuple):
    name: bytes
    end: int


def _places(pieces: Sequence[Piece], *, seed: str) -> list[_Place]:
    """Each piece's end: a name for everything up to it, and how many bytes that is."""
    running = hashlib.sha256(seed.encode())
    end = 0
    places: list[_Place] = []
    for piece in pieces:
        running.update(len(piece.data).to_bytes(8, "big") + piece.data)
        end += len(piece.data)
        places.append(_Place(running.digest(), end))
    return places


def _shared_bytes(one: bytes, other: bytes) -> int:
    """How many leading bytes two prompts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
