"""The codec: every record survives the wire, and nothing else does."""

import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.model.commits import Commit
from holon.model.errors import (
    BadEnumError,
    BadSyntaxError,
    BadTagError,
    DecodeError,
    NotJsonError,
)
from holon.model.limits import JSON_DEPTH_MAX
from holon.model.memory.records import MemoryHit
from holon.model.queue import AdmissionReceipt, AuthorityClass, JsonBody, MessageBody, TextBody
from holon.model.record import Record
from holon.model.turns.tools import ToolSpec
from holon.model.turns.turn import Closure, Completed, Waiting, WaitingReason
from holon.model.values import EPOCH
from holon.wire.codec import QUOTED_CHARS_MAX, decode, encode, json_of
from tests.wire.record_strategies import JSON_VALUES, model_records, records_of

RECORDS = model_records()
PAGE = "x" * 10_000


@pytest.mark.requirement("wire:every-record-round-trips")
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__qualname__)
@settings(max_examples=10)
@given(data=st.data())
def test_every_record_of_the_model_survives_the_wire(
    record: type[Record], data: st.DataObject
) -> None:
    value = data.draw(records_of(record))
    once = encode(value)
    assert decode(once, record) == value
    assert encode(decode(once, record)) == once


def test_the_model_is_found_whole() -> None:
    assert len(RECORDS) > 150
    assert {Commit, TextBody, MemoryHit, AdmissionReceipt} <= set(RECORDS)


@given(value=JSON_VALUES)
def test_plain_json_survives_the_wire(value: Any) -> None:
    assert json_of(value) == value


def test_a_union_decodes_to_the_variant_its_tag_names() -> None:
    waiting = Waiting(waiting_reason=WaitingReason.AWAITING_TIMER)
    assert json_of(waiting) == {"outcome": "waiting", "waiting_reason": "awaiting_timer"}
    assert decode(encode(waiting), Closure) == waiting
    assert decode(b'{"outcome":"completed"}', Closure) == Completed()


def test_several_records_encode_as_one_array() -> None:
    bodies = (TextBody(text="a"), JsonBody(value=[1.5]))
    assert json_of(bodies) == [{"type": "text", "text": "a"}, {"type": "json", "value": [1.5]}]


COMMIT_HEAD = b'{"commit_id":"c","at":"2026-01-01T00:00:00Z",'

REFUSED = [
    pytest.param(Closure, b'{"outcome":"finished"}', BadTagError, "$.outcome", id="bad tag"),
    pytest.param(
        Commit,
        COMMIT_HEAD + b'"changes":[{"type":"Explode"}]}',
        BadTagError,
        "$.changes[0].type",
        id="bad tag inside",
    ),
    pytest.param(
        Closure,
        b'{"outcome":"waiting","waiting_reason":"bored"}',
        BadEnumError,
        "$.waiting_reason",
        id="unknown enum value",
    ),
    pytest.param(
        Closure, b'{"outcome":"completed","waiting_reason":null}', DecodeError, "$", id="extra"
    ),
    pytest.param(Closure, b"{}", DecodeError, "$", id="no tag"),
    pytest.param(Closure, b"[]", DecodeError, "$", id="array for object"),
    pytest.param(TextBody, b'{"type":"text"}', DecodeError, "$", id="missing field"),
    pytest.param(TextBody, b'{"type":"text","text":5}', DecodeError, "$.text", id="wrong type"),
    pytest.param(
        Commit,
        b'{"commit_id":"c","at":"2026-01-01T00:00:00","changes":[]}',
        DecodeError,
        "$.at",
        id="moment without a zone",
    ),
    pytest.param(JsonBody, b'{"type":"json","value":NaN}', BadSyntaxError, "$", id="NaN"),
    pytest.param(JsonBody, b'{"type":"json","value":-Infinity}', BadSyntaxError, "$", id="inf"),
    pytest.param(
        JsonBody, b'{"type":"json","value":[1e999]}', BadSyntaxError, "$.value", id="1e999"
    ),
    pytest.param(
        ToolSpec,
        b'{"name":"t","description":"","input_schema":{"x":-1e999}}',
        BadSyntaxError,
        "$.input_schema",
        id="1e999 where no record checks",
    ),
    pytest.param(
        TextBody, b'{"type":"text","text":"\\ud800"}', BadSyntaxError, "$", id="escaped surrogate"
    ),
    pytest.param(
        TextBody,
        b'{"type":"text","text":"\\udc00 and more"}',
        BadSyntaxError,
        "$",
        id="escaped low surrogate",
    ),
    pytest.param(
        TextBody, b'{"type":"text","text":"\xed\xa0\x80"}', BadSyntaxError, "$", id="raw surrogate"
    ),
    pytest.param(
        TextBody, '{"type":"text","text":"\ud800"}', BadSyntaxError, "$", id="surrogate in a str"
    ),
    pytest.param(TextBody, b'{"type":"text","text":"\xff"}', BadSyntaxError, "$", id="not UTF-8"),
    pytest.param(TextBody, b'{"type":"text","text":"a', BadSyntaxError, "$", id="truncated"),
    pytest.param(TextBody, b"", BadSyntaxError, "$", id="nothing"),
    pytest.param(TextBody, b'{"type":"text","text":"a"} x', BadSyntaxError, "$", id="trailing"),
    pytest.param(
        JsonBody,
        b'{"type":"json","value":' + b"[" * 80 + b"]" * 80 + b"}",
        BadSyntaxError,
        "$",
        id="nested deeper than the bound",
    ),
    pytest.param(
        JsonBody,
        b'{"type":"json","value":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        BadSyntaxError,
        "$",
        id="nested without end",
    ),
]


@pytest.mark.requirement("wire:decoding-is-strict")
@pytest.mark.parametrize(("type_", "data", "error", "path"), REFUSED)
def test_bad_input_is_refused_by_name_and_place(
    type_: type[Record], data: bytes | str, error: type[DecodeError], path: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(data, type_)
    assert type(caught.value) is error
    assert str(caught.value).rpartition(" at ")[2].startswith(path)


@pytest.mark.requirement("wire:decoding-is-strict")
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__qualname__)
def test_no_record_takes_a_field_it_does_not_have(record: type[Record]) -> None:
    tag = record.__struct_config__.tag
    head = "" if tag is None else f'"{record.__struct_config__.tag_field}":"{tag}",'
    with pytest.raises(DecodeError, match="unknown field `surprise`"):
        decode(f'{{{head}"surprise":1}}', record)


@pytest.mark.parametrize(
    "data",
    [
        f'{{"outcome":"{PAGE}"}}',
        f'{{"outcome":"waiting","waiting_reason":"{PAGE}"}}',
        f'{{"outcome":"waiting","{PAGE}":1}}',
    ],
    ids=["tag", "enum value", "field name"],
)
def test_an_error_quotes_at_most_a_line_of_what_came_in(data: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(data, Closure)
    assert len(str(caught.value)) < 2 * QUOTED_CHARS_MAX + 10


def test_a_page_long_id_is_text_to_the_codec() -> None:
    """Length is judged at the door (model/values), so that a stored record can always be read."""
    receipt = decode(f'{{"agent_id":"{PAGE}","message_id":"m"}}', AdmissionReceipt)
    assert receipt.agent_id == PAGE


def hit(score: float) -> MemoryHit:
    return MemoryHit(
        kind="k",
        source_ref="r",
        scope_kind="s",
        agent_id="main",  # type: ignore[arg-type]
        title="t",
        snippet="s",
        score=score,
        updated_at=EPOCH,
        authority_class=AuthorityClass.EXTERNAL_EVIDENCE,
    )


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def spec(schema: Any) -> ToolSpec:
    return ToolSpec(name="t", description="", input_schema=schema)


@pytest.mark.requirement("wire:encoding-is-exact")
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(hit(math.nan), id="NaN in a float field"),
        pytest.param(hit(math.inf), id="infinity in a float field"),
        pytest.param(spec({"x": [math.nan]}), id="NaN deep in JSON"),
        pytest.param((spec(None), spec(math.inf)), id="infinity in the second of two records"),
        pytest.param(spec({"\ud800": 1}), id="surrogate key"),
        pytest.param(spec(b"bytes"), id="bytes"),
        pytest.param(spec({1: 2}), id="number as a key"),
        pytest.param(spec({1, 2}), id="set"),
        pytest.param(spec(object()), id="object"),
        pytest.param(spec(deep(JSON_DEPTH_MAX + 2)), id="too deep"),
        pytest.param(spec(deep(100_000)), id="bottomless"),
        pytest.param(AdmissionReceipt(agent_id="\ud800", message_id="m"), id="surrogate id"),  # type: ignore[arg-type]
        pytest.param(math.nan, id="bare NaN"),
        pytest.param(deep(100_000), id="bare nesting"),
    ],
)
def test_what_has_no_exact_json_form_is_not_encoded(value: object) -> None:
    with pytest.raises(NotJsonError):
        encode(value)


@given(data=st.binary(max_size=60))
def test_no_bytes_make_the_decoder_raise_anything_unnamed(data: bytes) -> None:
    with suppress(DecodeError):
        decode(data, MessageBody)
