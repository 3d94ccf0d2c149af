"""Estimates in whole numbers, within bounds whatever was reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.providers.token_estimate import (
    UNCALIBRATED,
    Calibration,
    bytes_of_tokens,
    calibrated,
    counted_usage,
    estimated_tokens,
    tokens_of_bytes,
)
from holon.model.limits import ESTIMATED_TOKEN_BYTES
from holon.model.providers.attempts import TokenUsage


@pytest.mark.requirement("compaction:estimates-are-calibrated")
@given(
    start=st.integers(2_000, 6_000),
    reports=st.lists(st.tuples(st.integers(0, 10**9), st.integers(-5, 10**9)), max_size=20),
)
def test_a_calibration_stays_within_its_bounds(start: int, reports: list[tuple[int, int]]) -> None:
    known = Calibration(token_millibytes=start)
    for size, tokens in reports:
        known = calibrated(known, request_bytes=size, reported_tokens=tokens)
        assert 2_000 <= known.token_millibytes <= 6_000


@given(tokens=st.integers(0, 10**9), millibytes=st.integers(2_000, 6_000))
def test_what_fits_into_so_many_tokens_is_estimated_as_no_more(
    tokens: int, millibytes: int
) -> None:
    known = Calibration(token_millibytes=millibytes)
    assert tokens_of_bytes(bytes_of_tokens(tokens, known), known) <= tokens


def test_an_estimate_is_rounded_up_and_counts_bytes() -> None:
    assert [estimated_tokens(text) for text in ("", "a", "abcd", "abcde", "ééé")] == [0, 1, 1, 2, 2]
    assert bytes_of_tokens(-3) == 0
    assert tokens_of_bytes(10, UNCALIBRATED) == 3


@pytest.mark.requirement("budgets-inside-turns:usage-is-estimated")
@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (TokenUsage(input_tokens=7, output_tokens=3), (7, 3, False)),
        (None, (300, 30, True)),
        (TokenUsage(), (300, 30, True)),
        (TokenUsage(input_tokens=-7, output_tokens=-3), (300, 30, True)),
        (TokenUsage(input_tokens=7), (7, 30, True)),
        (TokenUsage(output_tokens=3), (300, 3, True)),
    ],
)
def test_usage_that_cannot_be_true_is_estimated_and_marked(
    reported: TokenUsage | None, expected: tuple[int, int, bool]
) -> None:
    counted = counted_usage(
        reported, read_bytes=300 * ESTIMATED_TOKEN_BYTES, written_bytes=30 * ESTIMATED_TOKEN_BYTES
    )
    assert (counted.input_tokens, counted.output_tokens, counted.is_estimated) == expected


def test_an_answer_without_a_word_and_without_a_report_wrote_nothing() -> None:
    counted = counted_usage(TokenUsage(input_tokens=7), read_bytes=300, written_bytes=0)
    assert counted == TokenUsage(input_tokens=7)


def test_a_sum_with_an_estimate_in_it_is_an_estimate() -> None:
    estimate = TokenUsage(input_tokens=1, is_estimated=True)
    assert TokenUsage(input_tokens=2).plus(estimate).is_estimated
    assert estimate.plus(TokenUsage()).is_estimated
