"""Answers in every framing, whole and broken."""

import io
from typing import cast

import pytest

from holon.client.answer_body import AnswerBody, NotHttpError, read_head


def read(raw: bytes) -> tuple[int, bytes]:
    incoming = cast(io.BufferedReader, io.BufferedReader(io.BytesIO(raw)))
    status, headers = read_head(incoming)
    return status, io.BufferedReader(AnswerBody(incoming, headers)).read()


@pytest.mark.parametrize(
    "framed",
    [
        b"content-length: 11\r\n\r\nhello worldand more",
        b"Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nt: 1\r\n\r\nrest",
        b"\r\nhello world",
    ],
)
def test_a_body_is_what_its_framing_says(framed: bytes) -> None:
    assert read(b"HTTP/1.1 200 OK\r\n" + framed) == (200, b"hello world")


@pytest.mark.parametrize(
    "framed",
    [
        b"content-length: 12\r\n\r\nhello world",
        b"transfer-encoding: chunked\r\n\r\n5\r\nhel",
        b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
)
def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one(framed: bytes) -> None:
    with pytest.raises(ConnectionResetError):
        read(b"HTTP/1.1 200 OK\r\n" + framed)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 2 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: y",
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
