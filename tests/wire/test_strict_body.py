"""Bodies that readers could differ on are refused."""

import pytest

from holon.model.errors import BadSyntaxError, DecodeError
from holon.wire.requests import EnqueueRequest, TimerRequest
from holon.wire.strict_body import decode_body, unrepeated

TWICE = (
    b'{"text":"a","text":"a"}',
    b'{"json":{"a":1,"a":2}}',
    b'{"json":[[{"a":{"b":1,"b":1}}]]}',
    b'{"json":{"a":1,"\\u0061":2}}',
)


@pytest.mark.parametrize("data", TWICE)
def test_a_name_that_comes_twice_is_refused_at_any_depth(data: bytes) -> None:
    with pytest.raises(BadSyntaxError, match="twice"):
        decode_body(data, EnqueueRequest)


@pytest.mark.parametrize("text", [rb"\u0000", rb"\\\u0000", rb"a\u0000\\"])
def test_a_nul_is_refused(text: bytes) -> None:
    with pytest.raises(BadSyntaxError, match="NUL"):
        decode_body(b'{"text":"' + text + b'"}', EnqueueRequest)


@pytest.mark.parametrize("text", [rb"\\u0000", rb"\\\\u0000", rb"\u0001"])
def test_what_only_looks_like_a_nul_is_text(text: bytes) -> None:
    assert decode_body(b'{"text":"' + text + b'"}', EnqueueRequest).text


def test_the_same_name_in_two_objects_is_no_repeat() -> None:
    found = decode_body(b'{"json":[{"a":1},{"a":2}]}', EnqueueRequest)
    assert found.json == [{"a": 1}, {"a": 2}]


def test_a_number_of_any_length_costs_nothing_to_check() -> None:
    data = b'{"json":' + b"1" * 300 + b".5}"
    assert decode_body(data, EnqueueRequest).json


BEHIND_A_WHOLE_NUMBER = {
    "a NaN": b'"summary":NaN}',
    "a cut": b'"summary":"a',
    "a byte that is no UTF-8": b'"summary":"\xff"}',
    "half a character": b'"summary":"\\ud800"}',
    "a nest of brackets": b'"summary":' + b"[" * 100_000,
    "a nest that ends": b'"x":' + b"[" * 400 + b"]" * 400 + b"}",
    "a number without end": b'"summary":' + b"9" * 5_000 + b"}",
    "a number too large": b'"summary":1e400}',
}


@pytest.mark.requirement("clients:whole-decimals-are-integers")
@pytest.mark.parametrize("name", BEHIND_A_WHOLE_NUMBER)
def test_what_is_wrong_behind_a_whole_number_is_told_as_anywhere(name: str) -> None:
    with pytest.raises(DecodeError) as told:
        decode_body(b'{"duration_ms":1000.0,' + BEHIND_A_WHOLE_NUMBER[name], TimerRequest)
    assert told.value.hint


class Compared(str):
    """A name that counts how often it is held against another."""

    __slots__ = ()
    looks_count = 0

    def __eq__(self, other: object) -> bool:
        Compared.looks_count += 1
        return str.__eq__(self, str(other))

    __hash__ = str.__hash__


def test_finding_the_name_that_comes_twice_costs_one_look_at_each() -> None:
    names = [*(f"name {number}" for number in range(2_000)), "name 1999"]
    Compared.looks_count = 0
    with pytest.raises(BadSyntaxError, match="'name 1999' is given twice"):
        unrepeated([(Compared(name), 1) for name in names])
    assert Compared.looks_count <= len(names)
