"""Answers in every framing, whole and broken, however the bytes are cut."""

import pytest

from holon.wire.http_response import NotHttpError, ResponseParser


def read(raw: bytes, *, bytes_each: int | None = None) -> tuple[int, bytes]:
    parser, body, each = ResponseParser(), b"", bytes_each or len(raw) or 1
    for at in range(0, len(raw), each):
        body += parser.feed(raw[at : at + each])
    if not parser.is_over:
        body += parser.feed(b"")
    assert parser.head is not None
    return parser.head.status, body


@pytest.mark.parametrize(
    "framed",
    [
        b"content-length: 11\r\n\r\nhello worldand more",
        b"Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nt: 1\r\n\r\nrest",
        b"\r\nhello world",
    ],
)
def test_a_body_is_what_its_framing_says(framed: bytes) -> None:
    for bytes_each in (None, 1, 7):
        raw = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n" + framed
        assert read(raw, bytes_each=bytes_each) == (200, b"hello world")


@pytest.mark.parametrize(
    "framed",
    [
        b"content-length: 12\r\n\r\nhello world",
        b"transfer-encoding: chunked\r\n\r\n5\r\nhel",
        b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"transfer-encoding: chunked\r\n\r\n0\r\n",
        b"x: y",
    ],
)
def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one(framed: bytes) -> None:
    with pytest.raises(ConnectionResetError):
        read(b"HTTP/1.1 200 OK\r\n" + framed)


@pytest.mark.parametrize(
    "raw",
    [
        b"S",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 2 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"h%d: x\r\n" % n for n in range(200)) + b"\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_answer_is_refused(raw: bytes) -> None:
    with pytest.raises(NotHttpError):
        read(raw)


def test_a_connection_is_used_again_when_its_answer_was_whole_and_nothing_came_after_it() -> None:
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    parser = ResponseParser()
    assert parser.feed(whole[:-1]) == b"{"
    assert not parser.keeps_alive
    assert parser.feed(whole[-1:]) == b"}"
    assert parser.keeps_alive
    assert parser.feed(b"more") == b""
    assert not parser.keeps_alive
