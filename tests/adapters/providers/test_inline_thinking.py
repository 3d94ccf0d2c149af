"""Reasoning inside the text of an answer, whole and streamed."""

from itertools import pairwise
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.wire_answer import ThinkingSplitter, split_thoughts
from holon.model.turns.turn import TextGrew, ThinkingGrew
from tests.tools.patching.test_bombs import calls_in

PARTS: Final = st.lists(
    st.sampled_from(["<think>", "</think>", "<th", "ink>", "</", " ", "\n", "word", "<", ">"]),
    max_size=10,
).map("".join)


@pytest.mark.requirement("provider-wire:inline-thinking-is-no-text")
@pytest.mark.parametrize(
    ("text", "thoughts", "words"),
    [
        ("<think>hm</think>yes", "hm", "yes"),
        ("\n<think>\nhm\n</think>\n\nyes\n", "hm", "yes\n"),
        ("<think></think>\n\nyes", "", "yes"),
        ("<think>a</think><think>b</think>yes", "a\n\nb", "yes"),
        ("<think>cut off", "cut off", ""),
        ("plain", "", "plain"),
        ("  plain", "", "  plain"),
        ("the tag <think>x</think> is kept", "", "the tag <think>x</think> is kept"),
        ("<thinker>", "", "<thinker>"),
        ("", "", ""),
    ],
)
def test_only_what_an_answer_begins_with_is_reasoning(text: str, thoughts: str, words: str) -> None:
    assert split_thoughts(text) == (thoughts, words)


@pytest.mark.requirement("provider-wire:inline-thinking-is-no-text")
@given(text=PARTS, seed=st.integers(0, 2**32))
def test_a_watcher_of_a_stream_sees_the_same_however_it_is_cut(text: str, seed: int) -> None:
    random = Random(seed)
    cuts = sorted({0, len(text), *(random.randrange(len(text) + 1) for _ in range(4))})
    growing = ThinkingSplitter()
    grown = [each for a, b in pairwise(cuts) for each in growing.feed(text[a:b])]
    said = "".join(each.text for each in grown if isinstance(each, TextGrew))
    thought = "".join(each.text for each in grown if isinstance(each, ThinkingGrew))
    whole = split_thoughts(text)
    # What may be the beginning of a mark is held back, and a preview says nothing of blanks.
    assert whole.words.strip().startswith(said.strip())
    assert len(whole.words.strip()) - len(said.strip()) < len("<think>")
    assert "<think>" not in said or "<think>" in whole.words
    plain = "".join(whole.thoughts.split())
    assert plain.startswith("".join(thought.split()))


@pytest.mark.requirement("provider-wire:inline-thinking-is-no-text")
@pytest.mark.parametrize("unit", ["<think></think>", "<", " ", "</think", "<think>", "a"])
def test_reading_is_linear(unit: str) -> None:
    def work(count: int) -> int:
        growing = ThinkingSplitter()

        def read() -> None:
            split_thoughts(unit * count)
            ThinkingSplitter().feed(unit * count)
            for _ in range(count):
                growing.feed(unit)

        return calls_in(read)

    assert work(2_048) <= 4.5 * work(512)
