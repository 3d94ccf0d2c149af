"""No secret survives in any form it is likely to take, however the text is cut."""

import base64
import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.text.secrets import Redacting, SecretMatcher, _WrittenForm
from holon.model.limits import SECRET_CHARS_MIN

KEY = 'sk-ant/api03+Zz9 "é\\%'
MARK = "[secret:KEY]"

# Letters no mark is made of, and the signs that encodings treat in their own way.
_SIGNS = st.sampled_from("QXZqxz0189 /+%\\\"'=&-_~\n\té漢😀")
values = st.text(_SIGNS, min_size=SECRET_CHARS_MIN, max_size=24)
long_values = st.text(_SIGNS, min_size=40, max_size=90)  # longer than one expression
around = st.text(_SIGNS | st.characters(codec="utf-8"), max_size=30)


def _lower_hex(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), text)


def _every_unit(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02x}" for at in range(0, len(units), 2))


FORMS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "URL-encoded": quote,
    "URL-encoded with nothing safe": lambda value: quote(value, safe=""),
    "URL-encoded in lower case": lambda value: _lower_hex(quote(value, safe="")),
    "form-encoded": quote_plus,
    "JSON-escaped": lambda value: json.dumps(value)[1:-1],
    "JSON-escaped as Unicode": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "JSON-escaped with slashes": lambda value: json.dumps(value)[1:-1].replace("/", "\\/"),
    "JSON-escaped throughout": _every_unit,
    "hexadecimal": lambda value: value.encode().hex(),
    "hexadecimal in upper case": lambda value: value.encode().hex().upper(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@given(value=values, before=around, after=around)
def test_a_secret_survives_in_no_written_form(
    form: Callable[[str], str], value: str, before: str, after: str
) -> None:
    written = form(value)
    redacted = SecretMatcher([("KEY", value)]).redact(before + written + after)
    assert MARK in redacted
    assert value not in redacted
    assert written not in redacted


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@given(value=long_values, before=around, after=around, spoiled=st.integers(0, 200))
def test_a_long_secret_survives_in_no_written_form_and_half_of_one_is_none(
    form: Callable[[str], str], value: str, before: str, after: str, spoiled: int
) -> None:
    matcher = SecretMatcher([("KEY", value)])
    redacted = matcher.redact(before + form(value) + after)
    assert MARK in redacted
    assert value not in redacted
    assert form(value) not in redacted
    at = spoiled % len(value)
    other = form(value[:at] + "ж" + value[at + 1 :])
    assert matcher.redact(other) == other


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@given(value=values | long_values, before=st.binary(max_size=12), after=st.binary(max_size=12))
def test_a_secret_survives_in_no_base64_whatever_stands_around_it(
    encode: Callable[[bytes], bytes], value: str, before: bytes, after: bytes
) -> None:
    encoded = encode(before + value.encode() + after).decode()
    redacted = SecretMatcher([("KEY", value)]).redact(f"Basic {encoded}")
    assert MARK in redacted
    # Not one sign is left that holds a bit of the secret.
    head, _, tail = redacted.removeprefix("Basic ").partition(MARK)
    assert len(head) <= 8 * len(before) // 6
    assert len(tail.rstrip("=")) <= -(-8 * len(after) // 6)


@pytest.mark.parametrize("safe", ["", "+/"])
def test_base64_inside_a_url_or_a_json_text_is_found(safe: str) -> None:
    value = "\xff\xfe>>>???~~~\xff\xfe"
    encoded = base64.b64encode(value.encode()).decode()
    assert "/" in encoded or "+" in encoded
    matcher = SecretMatcher([("KEY", value)])
    assert matcher.redact(quote(encoded.rstrip("="), safe=safe)) == MARK
    assert matcher.redact(encoded.rstrip("=").replace("/", "\\/")) == MARK


@given(text=st.text(), others=st.lists(values, max_size=3))
def test_a_text_without_secrets_comes_back_unchanged(text: str, others: list[str]) -> None:
    matcher = SecretMatcher([(f"K{at}", f"0QZX-{value}-XZQ0") for at, value in enumerate(others)])
    assert matcher.redact(text) == text


@given(data=st.data(), secrets=st.lists(values | long_values, min_size=1, max_size=3))
def test_any_chunking_equals_the_whole(data: st.DataObject, secrets: list[str]) -> None:
    matcher = SecretMatcher([(f"K{at}", value) for at, value in enumerate(secrets)])
    written = st.builds(
        lambda value, form: form(value),
        st.sampled_from(secrets),
        st.sampled_from([*FORMS.values(), lambda v: base64.b64encode(v.encode()).decode()]),
    )
    text = "".join(data.draw(st.lists(written | around, max_size=6)))
    stream, given_back, at = Redacting(matcher), "", 0
    while at < len(text):
        size = data.draw(st.integers(1, 40))
        given_back += stream.feed(text[at : at + size])
        at += size
        # Never more is held back than the longest form could need.
        assert len(text[:at]) - matcher.chars_max < _consumed(stream, at)
    assert given_back + stream.finish() == matcher.redact(text)


def _consumed(stream: Redacting, fed: int) -> int:
    return fed - len(stream._held)


def test_a_finished_stream_gives_nothing_twice() -> None:
    stream = Redacting(SecretMatcher([("KEY", "0123456789")]))
    assert stream.feed("a 01234") == ""
    assert stream.feed("56789 b") == ""
    assert stream.finish() == f"a {MARK} b"
    assert stream.finish() == ""


@pytest.mark.parametrize("value", ["", "a", "1234567"])
def test_a_value_too_short_to_be_a_secret_is_never_looked_for(value: str) -> None:
    assert SecretMatcher([("KEY", value)]).redact("a 1234567 a") == "a 1234567 a"


def test_the_longer_of_two_secrets_is_named() -> None:
    matcher = SecretMatcher([("SHORT", "token-12345"), ("LONG", "token-12345-and-more")])
    assert matcher.redact("x token-12345-and-more y") == "x [secret:LONG] y"
    assert matcher.redact("x token-12345 y") == "x [secret:SHORT] y"


def test_secrets_that_overlap_in_a_text_leave_no_tail_behind() -> None:
    matcher = SecretMatcher([("A", "abcdefgh"), ("B", "efghijklmnop")])
    assert matcher.redact("<abcdefghijklmnop>") == "<[secret:A]>"


def test_secrets_side_by_side_are_each_named() -> None:
    matcher = SecretMatcher([("A", "aaaabbbb"), ("B", "ccccdddd")])
    assert matcher.redact("aaaabbbbccccdddd") == "[secret:A][secret:B]"


def test_a_name_that_tells_the_value_is_not_used() -> None:
    assert SecretMatcher([("my 12345678", "12345678")]).redact("12345678") == "[secret:unnamed]"


def test_a_secret_of_signs_that_encodings_double_is_found_in_good_time() -> None:
    value = "\\" * 40 + "%" * 40 + "x"
    matcher = SecretMatcher([("KEY", value)])
    assert matcher.redact("\\" * 79 + "%" * 79 + "y").endswith("%y")
    assert matcher.redact(value) == MARK


def test_a_matcher_grows_without_forgetting_and_takes_the_newest_name() -> None:
    few = SecretMatcher([("A", "aaaabbbb")])
    more = few.knowing("B", "ccccdddd").knowing("C", "aaaabbbb").knowing("D", "short")
    assert more.redact("aaaabbbb ccccdddd short") == "[secret:C] [secret:B] short"
    assert few.redact("aaaabbbb ccccdddd") == "[secret:A] ccccdddd"
    assert more.chars_max == 12 * len("aaaabbbb")


def test_a_long_token_is_not_built_into_one_expression() -> None:
    token = "".join(chr(33 + (at * 7919) % 90) for at in range(4_096))
    matcher = SecretMatcher([("KEY", token)])
    built = [form.head.pattern for form in matcher._forms if isinstance(form, _WrittenForm)]
    # Building an expression takes far longer than anything else; its length is what it costs.
    assert sum(len(pattern) for pattern in built) < len(token)
    for write in FORMS.values():
        assert matcher.redact(f"<{write(token)}>") == f"<{MARK}>"


def test_nothing_is_known_without_secrets() -> None:
    matcher = SecretMatcher(())
    assert matcher.redact(KEY) is KEY
    assert Redacting(matcher).feed(KEY) == KEY
