"""Words for the index: Chinese in pairs, and queries that are nothing but words."""

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.sqlite.memory_index.cjk_bigrams import projected, query_words
from holon.model.limits import MEMORY_QUERY_WORDS_COUNT_MAX


@pytest.mark.parametrize(
    ("text", "indexed"),
    [
        ("plain words", "plain words"),
        ("猫", "猫"),
        ("小猫", "小猫 猫"),
        ("茶水间", "茶水 水间 间"),
        ("用pytest测试", "用 pytest 测试 试"),
        ("ありがとう", "あり りが がと とう う"),
        ("주말 배포", "주말 말 배포 포"),
    ],
)
def test_a_run_of_signs_becomes_its_pairs(text: str, indexed: str) -> None:
    assert projected(text).split() == indexed.split()


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Kettle OR 1=1", ('"kettle"', '"or"', '"1"')),
        ("茶水间 kettle", ('"茶水"', '"水间"', '"kettle"')),
        ("茶", ('"茶"*',)),
        ("snake_case-name", ('"snake"', '"case"', '"name"')),
        ("tea tea TEA", ('"tea"',)),
    ],
)
def test_a_query_is_made_of_quoted_words(text: str, quoted: tuple[str, ...]) -> None:
    words = query_words(text)
    assert words is not None
    assert words.quoted == quoted


@pytest.mark.parametrize(
    "text", ["", "   ", '"', "*" * 10_000, '" ( ) * ^ : -', "_", "\x00", "\ud800"]
)
def test_a_query_without_words_is_none(text: str) -> None:
    assert query_words(text) is None


def test_a_long_query_is_cut_after_some_words() -> None:
    words = query_words(" ".join(f"w{n}" for n in range(1_000)))
    assert words is not None
    assert len(words.quoted) == MEMORY_QUERY_WORDS_COUNT_MAX


@pytest.mark.requirement("memory-index:s46-queries-are-words")
@given(st.text(max_size=60))
def test_no_text_is_a_command_to_the_index(text: str) -> None:
    words = query_words(text)
    if words is None:
        return
    for expression in (words.every(), " OR ".join(words.quoted)):
        _INDEX.execute("select rowid from words where words match ?", (expression,)).fetchall()


_INDEX = apsw.Connection(":memory:")
_INDEX.execute(
    "create virtual table words using fts5"
    " (title, body, tokenize = 'porter unicode61 remove_diacritics 2')"
)
