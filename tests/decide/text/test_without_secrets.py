"""Secrets are hidden whole, wherever they stand and wherever a text is cut later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.text.bounded import preview_of
from holon.decide.text.secrets import outcome_without_secrets, span_without_secrets
from holon.model.limits import COMMAND_OUTPUT_MARGIN_BYTES
from holon.model.tasks import OutputSpan, OutputStream
from holon.model.turns.tools import ToolError, ToolOk, ToolRefused

SECRET = "sk-0123456789abcdef"
LETTERS_SHOWN_MAX = 6


def hide(text: str) -> str:
    """Know one secret, and give it a mark that is shorter."""
    return text.replace(SECRET, "[s]")


def look(data: bytes, *, bytes_max: int) -> OutputSpan:
    """Read as far as a look of this size must."""
    far = bytes_max + COMMAND_OUTPUT_MARGIN_BYTES
    return OutputSpan(
        stream=OutputStream.STDOUT,
        path="/out",
        head=data[:far],
        tail=data[max(far, len(data) - far) :],
        total_bytes=len(data),
    )


def shown(data: bytes, *, bytes_max: int) -> str:
    """What is shown of an output in the end."""
    hidden = span_without_secrets(look(data, bytes_max=bytes_max), hide)
    return preview_of(hidden, bytes_max=bytes_max).text


def tells_of_it(text: str) -> bool:
    """Whether more of the secret is in a text than chance would put there."""
    parts = range(len(SECRET) - LETTERS_SHOWN_MAX)
    return any(SECRET[at : at + LETTERS_SHOWN_MAX + 1] in text for at in parts)


@given(
    before=st.integers(0, 40_000),
    between=st.integers(0, 80_000),
    after=st.integers(0, 40_000),
    count=st.integers(1, 4_000),
    bytes_max=st.sampled_from([1, 4, 64, 1_000, 8_192]),
)
def test_no_part_of_a_secret_is_shown_wherever_it_stands(
    before: int, between: int, after: int, count: int, bytes_max: int
) -> None:
    written = SECRET.encode() * count
    data = b"." * before + written + b"." * between + written + b"." * after
    assert not tells_of_it(shown(data, bytes_max=bytes_max))


@given(data=st.binary(max_size=300), bytes_max=st.integers(1, 100))
def test_output_without_secrets_is_shown_as_it_is(data: bytes, bytes_max: int) -> None:
    assert (
        shown(data, bytes_max=bytes_max)
        == preview_of(look(data, bytes_max=bytes_max), bytes_max=bytes_max).text
    )


def test_bytes_that_are_no_text_come_back_beside_a_hidden_secret() -> None:
    data = b"\xff\x00" + SECRET.encode() + b"\xfe"
    hidden = span_without_secrets(look(data, bytes_max=100), hide)
    assert (hidden.head, hidden.tail, hidden.total_bytes) == (b"\xff\x00[s]\xfe", b"", 6)


def test_what_lies_between_the_ends_is_still_counted() -> None:
    data = SECRET.encode() + b"." * 1_000_000
    hidden = span_without_secrets(look(data, bytes_max=10), hide)
    assert hidden.total_bytes == 1_000_003


@pytest.mark.requirement("tools:receipts-name-no-secret")
def test_a_result_is_looked_through_to_its_leaves() -> None:
    nested = {"a": [SECRET, 1, None, {SECRET: (f"<{SECRET}>", True)}]}
    outcome = outcome_without_secrets(ToolOk(result=nested, notes=(SECRET,)), hide)
    assert outcome == ToolOk(
        result={"a": ["[s]", 1, None, {"[s]": ["<[s]>", True]}]}, notes=("[s]",)
    )


@pytest.mark.requirement("tools:receipts-name-no-secret")
def test_an_error_is_looked_through_in_every_field() -> None:
    error = ToolError(
        kind="k", message=SECRET, hint=f"not {SECRET}", field=SECRET, details={"a": SECRET}
    )
    assert outcome_without_secrets(ToolRefused(error=error), hide) == ToolRefused(
        error=ToolError(kind="k", message="[s]", hint="not [s]", field="[s]", details={"a": "[s]"})
    )


def test_a_secret_behind_a_backslash_takes_no_escape_apart() -> None:
    outcome = outcome_without_secrets(ToolOk(result=f"\\{SECRET}"), hide)
    assert outcome == ToolOk(result="\\[s]")
