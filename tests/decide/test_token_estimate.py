"""Estimates in whole numbers, within bounds whatever was reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.token_estimate import (
    UNCALIBRATED,
    Calibration,
    bytes_of_tokens,
    calibrated,
    estimated_tokens,
    tokens_of_bytes,
)


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
