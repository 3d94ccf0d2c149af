"""Token estimates: the expected cost of a text before a provider reports it.

Owns:  the estimate, and its calibration: bytes per token of a model, learned from what its provider
       reports.
Rule 1: whole numbers only, so that an estimate is the same on every machine.
Rule 2: a calibration stays within bounds, whatever was reported: a wrong figure makes a prompt
        moderately smaller or larger, never absurd.
Rule 3: usage that is not reported, or cannot be true, is estimated and marked so. No calibration
        learns from an estimate.
"""

from typing import Final

from holon.model.limits import ESTIMATED_TOKEN_BYTES
from holon.model.providers.attempts import TokenUsage
from holon.model.record import Record
from holon.model.text_size import utf8_bytes
from holon.model.turns.compaction import (
    CALIBRATION_REQUEST_BYTES_MIN,
    CALIBRATION_TOKEN_BYTES_MAX,
    CALIBRATION_TOKEN_BYTES_MIN,
)

_MILLI: Final = 1_000
_OLD_WEIGHT: Final = 7  # of eight: one odd request hardly moves the mean
_WEIGHTS: Final = 8


class Calibration(Record, frozen=True, kw_only=True):
    """What is known about a model's tokens: how large one is, in thousandths of a byte."""

    token_millibytes: int = ESTIMATED_TOKEN_BYTES * _MILLI


UNCALIBRATED: Final = Calibration()


def estimated_tokens(text: str, calibration: Calibration = UNCALIBRATED) -> int:
    """Return the estimated tokens of a text; one that is not empty has at least one."""
    return tokens_of_bytes(utf8_bytes(text), calibration)


def tokens_of_bytes(size: int, calibration: Calibration = UNCALIBRATED) -> int:
    """Return about how many tokens so many bytes of text have, rounded up."""
    return -(-size * _MILLI // calibration.token_millibytes)


def bytes_of_tokens(tokens: int, calibration: Calibration = UNCALIBRATED) -> int:
    """Return how many bytes of text fit into so many tokens."""
    return max(0, tokens * calibration.token_millibytes // _MILLI)


def calibrated(old: Calibration, *, request_bytes: int, reported_tokens: int) -> Calibration:
    """Return what is known after a request of so many bytes was counted."""
    if reported_tokens < 1 or request_bytes < CALIBRATION_REQUEST_BYTES_MIN:
        return old
    millibytes = _within_bounds(request_bytes * _MILLI // reported_tokens)
    mean = (old.token_millibytes * _OLD_WEIGHT + millibytes * (_WEIGHTS - _OLD_WEIGHT)) // _WEIGHTS
    return Calibration(token_millibytes=_within_bounds(mean))


def counted_usage(
    reported: TokenUsage | None,
    *,
    read_bytes: int,
    written_bytes: int,
    calibration: Calibration = UNCALIBRATED,
) -> TokenUsage:
    """Return what a round used: as reported, as far as that can be true."""
    usage = reported or TokenUsage()
    read, written = usage.input_tokens, usage.output_tokens
    if read < 1:
        read = tokens_of_bytes(read_bytes, calibration)
    if written < 1:
        written = tokens_of_bytes(written_bytes, calibration)
    if (read, written) == (usage.input_tokens, usage.output_tokens):
        return usage
    return TokenUsage(
        input_tokens=read,
        output_tokens=written,
        cache_read_tokens=max(0, usage.cache_read_tokens),
        cache_creation_tokens=max(0, usage.cache_creation_tokens),
        is_estimated=True,
    )


def _within_bounds(millibytes: int) -> int:
    least, most = CALIBRATION_TOKEN_BYTES_MIN * _MILLI, CALIBRATION_TOKEN_BYTES_MAX * _MILLI
    return max(least, min(millibytes, most))
