"""What was used longest ago goes first."""

from hypothesis import given
from hypothesis import strategies as st

from holon.model.lru import Lru


def test_a_use_keeps_a_value_and_a_look_does_not() -> None:
    kept: Lru[str, int] = Lru(2)
    assert kept.put("a", 1) == kept.put("b", 2) == []
    assert kept.get("a") == 1
    assert kept.put("c", 3) == ["b"]
    assert kept.peek("a") == 1
    assert kept.put("d", 4) == ["a"]
    assert "a" not in kept
    assert (kept.peek("a"), kept.get("a"), kept.pop("a")) == (None, None, None)
    assert (kept.pop("c"), len(kept)) == (3, 1)


def test_what_alone_is_beyond_the_bound_is_not_kept() -> None:
    kept: Lru[str, str] = Lru(size_max=3)
    kept.put("a", "x", 2)
    assert kept.put("b", "y", 4) == ["a", "b"]
    assert kept.put("c", "z", 3) == []


@given(
    steps=st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 4), st.booleans())),
    count_max=st.integers(1, 4),
    size_max=st.integers(1, 8),
)
def test_the_bounds_hold_over_any_use(
    steps: list[tuple[str, int, bool]], count_max: int, size_max: int
) -> None:
    kept: Lru[str, int] = Lru(count_max, size_max=size_max)
    for key, size, is_taken in steps:
        if is_taken:
            kept.pop(key)
        else:
            kept.put(key, size, size)
        sizes = [kept.peek(each) or 0 for each in "abcde"]
        assert len(kept) <= count_max
        assert sum(sizes) <= size_max
