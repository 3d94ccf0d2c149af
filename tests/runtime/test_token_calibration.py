"""What providers report makes estimates better, a little at a time."""

import pytest

from holon.decide.providers.token_estimate import UNCALIBRATED
from holon.model.providers.attempts import AttemptTimeline, TokenUsage
from holon.model.turns.turn import ModelAnswered, StopReason
from holon.runtime.turns.conversation import TokenCalibrations


def spoke(*, ref: str | None, tokens: int) -> ModelAnswered:
    return ModelAnswered(
        blocks=(),
        stop_reason=StopReason.END_TURN,
        usage=TokenUsage(input_tokens=tokens),
        timeline=AttemptTimeline(attempts=(), requested_model_ref="a/b", active_model_ref=ref),
    )


@pytest.mark.requirement("compaction:estimates-are-calibrated")
def test_a_model_with_small_tokens_is_known_as_one_after_a_few_rounds() -> None:
    known = TokenCalibrations()
    for _ in range(40):
        known.observe(spoke(ref="a/b", tokens=10_000), request_bytes=25_000)
    assert 2_500 <= known.of("a/b").token_millibytes < 2_800
    assert known.of("a/other") == UNCALIBRATED


def test_the_figure_in_use_stays_while_the_mean_is_near() -> None:
    known = TokenCalibrations()
    for tokens in (10_100, 9_900, 9_800) * 10:
        known.observe(spoke(ref="a/b", tokens=tokens), request_bytes=40_000)
        assert known.of("a/b") == UNCALIBRATED


@pytest.mark.parametrize(
    ("ref", "tokens", "size"), [(None, 100, 9_000), ("a/b", 0, 9_000), ("a/b", 9, 90)]
)
def test_what_says_nothing_is_not_learnt_from(ref: str | None, tokens: int, size: int) -> None:
    known = TokenCalibrations()
    for _ in range(40):
        known.observe(spoke(ref=ref, tokens=tokens), request_bytes=size)
    assert known.of("a/b") == UNCALIBRATED
