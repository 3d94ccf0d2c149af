"""What a caller is told about a body that cannot be taken: where, why, and what to send instead."""

import pytest

from holon.model.errors import BadEnumError, BadSyntaxError, BadTagError, DecodeError
from holon.model.limits import LABEL_CHARS_MAX
from holon.model.record import Record
from holon.wire.codec import ErrorBody, encode
from holon.wire.requests import ControlRequest, EnqueueRequest, PromptRequest, WorkItemPatch
from holon.wire.strict_body import decode_body

# The body, what it should be, and then: the error's class, its field, a part of its hint.
FAULTS: dict[str, tuple[bytes, type[Record], type[DecodeError], str | None, str]] = {
    "an enum": (b'{"action":"x"}', ControlRequest, BadEnumError, "action", "one of: start, stop"),
    "an enum in a list": (
        b'{"todo_list":[{"text":"a","state":"no"}]}',
        WorkItemPatch,
        BadEnumError,
        "todo_list[0].state",
        "one of: pending, in_progress, completed",
    ),
    "a tag": (b'{"body":{"type":"x"}}', EnqueueRequest, BadTagError, "body.type", "text, json"),
    "no tag": (b'{"origin":{}}', EnqueueRequest, DecodeError, "origin.kind", "channel, webhook"),
    "an unknown field": (b'{"text":"a","x":1}', PromptRequest, DecodeError, "x", "interject"),
    "a missing field": (b"{}", PromptRequest, DecodeError, "text", "openapi"),
    "a wrong type": (b'{"text":7}', PromptRequest, DecodeError, "text", "openapi"),
    "too short": (b'{"text":""}', PromptRequest, DecodeError, "text", "openapi"),
    "no object": (b"[]", PromptRequest, DecodeError, None, "openapi"),
    "nothing": (b" ", PromptRequest, BadSyntaxError, None, "send a JSON object"),
    "a cut": (b'{"text":"a', PromptRequest, BadSyntaxError, None, "one whole JSON value"),
    "half a character": (b'{"text":"\\ud800"}', PromptRequest, BadSyntaxError, "text", "pair"),
    "half a character, deep": (
        b'{"json":[1,{"a":"\\udc00x"}]}',
        EnqueueRequest,
        BadSyntaxError,
        "json[1].a",
        "pair",
    ),
    "half a name": (b'{"\\ud800":{"a":"\\ud800"}}', PromptRequest, BadSyntaxError, None, "pair"),
    "a NUL": (b'{"text":"a\\u0000"}', PromptRequest, BadSyntaxError, "text", "leave it out"),
    "a name twice": (b'{"text":"a","text":"a"}', PromptRequest, BadSyntaxError, "text", "once"),
    "a number": (b'{"text":' + b"9" * 5_000 + b"}", PromptRequest, BadSyntaxError, "text", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_where_it_is_and_what_to_send(name: str) -> None:
    data, kind, error, field, hint = FAULTS[name]
    with pytest.raises(error) as told:
        decode_body(data, kind)
    assert type(told.value) is error
    assert told.value.field == field
    assert hint in (told.value.hint or "")
    assert told.value.hint


def test_nothing_a_cut_and_half_a_character_are_told_apart() -> None:
    said = set()
    for data in (b"", b'{"text":"a', b'{"text":"\\ud800"}'):
        with pytest.raises(BadSyntaxError) as told:
            decode_body(data, PromptRequest)
        said.add(told.value.message)
    assert len(said) == 3


def test_a_field_is_short_and_can_be_written_whatever_came() -> None:
    long = b"n" * 10_000
    for data in (
        b'{"json":{"' + long + b'":{"' + long + b'":"\\ud800"}}}',
        b'{"' + long + b'":1}',
        b'{"json":{"\\ud800":{"\\ud800":1}}}',
    ):
        with pytest.raises(DecodeError) as told:
            decode_body(data, EnqueueRequest)
        assert len(told.value.field or "") <= LABEL_CHARS_MAX
        encode(ErrorBody(ok=False, error=told.value.message, code="x", field=told.value.field))
