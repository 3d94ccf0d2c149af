"""Heads that are believed, and heads that are not."""

import msgspec
import pytest

from holon.http.access import ServerNames, check_body_head, check_framing, check_host, check_origin
from holon.http.exchange import Header, Peer, RequestHead, SocketKind
from holon.http.route import RAW_BODY, Access, Call, Route

NAMES = ServerNames(hosts=frozenset({b"127.0.0.1:7878", b"localhost:7878", b"[::1]:7878"}))


class Body(msgspec.Struct):
    """Something."""


async def nothing(context: None, call: Call) -> None:
    """Do nothing."""


def head(*headers: Header, socket_kind: SocketKind = SocketKind.TCP) -> RequestHead:
    return RequestHead(
        method="POST",
        path="/x",
        query="",
        headers=headers,
        peer=Peer(socket_kind=socket_kind, address="peer"),
    )


def route(takes: type | None, *, optional: bool = False) -> Route[None]:
    return Route(
        method="POST",
        path="/x",
        access=Access.CONTROL,
        summary="",
        answer=nothing,
        returns=None,
        takes=takes,
        body_optional=optional,
        body_bytes_max=100,
    )


@pytest.mark.parametrize("host", [b"127.0.0.1:7878", b"localhost:7878", b"[::1]:7878"])
def test_a_request_for_one_of_our_names_is_for_us(host: bytes) -> None:
    assert check_host(head((b"host", host)), NAMES) is None


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example",
        b"127.0.0.1.evil.com:7878",
        b"localhost:1",
        b"localhost",
        b"LOCALHOST:7878",
        b"localhost.:7878",
        b"localhost:7878.",
        b"localhost:07878",
        b" localhost:7878",
        b"",
    ],
)
def test_s01_s02_any_other_name_is_misdirected(host: bytes) -> None:
    refused = check_host(head((b"host", host)), NAMES)
    assert refused is not None
    assert refused.status == 421


def test_s02_a_host_is_named_once() -> None:
    twice = head((b"host", b"localhost:7878"), (b"host", b"localhost:7878"))
    for each in (head(), twice):
        refused = check_host(each, NAMES)
        assert refused is not None
        assert refused.status == 400


def test_a_socket_file_is_called_by_whatever_name() -> None:
    assert check_host(head((b"host", b"anything"), socket_kind=SocketKind.UNIX), NAMES) is None


@pytest.mark.parametrize(
    "header",
    [
        (b"origin", b"https://evil"),
        (b"origin", b"null"),
        (b"origin", b"http://localhost.evil.com"),
        (b"origin", b"http://localhost:7878.evil.com"),
        (b"origin", b"http://127.0.0.1@evil"),
        (b"origin", b"http://localhost:80"),
        (b"origin", b"ftp://localhost:7878"),
        (b"sec-fetch-site", b"cross-site"),
        (b"sec-fetch-site", b"same-site"),
    ],
)
def test_s03_s04_s07_pages_of_others_may_not_call(header: Header) -> None:
    refused = check_origin(head(header), NAMES)
    assert refused is not None
    assert refused.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((b"origin", b"http://localhost:7878"), (b"sec-fetch-site", b"same-origin")),
        ((b"sec-fetch-site", b"none"),),
    ],
)
def test_our_own_page_and_no_page_may(headers: tuple[Header, ...]) -> None:
    assert check_origin(head(*headers), NAMES) is None


@pytest.mark.parametrize(
    "headers",
    [
        ((b"transfer-encoding", b"chunked"), (b"content-length", b"3")),
        ((b"upgrade", b"websocket"), (b"connection", b"upgrade")),
    ],
)
def test_s08_s25_doubtful_framing_is_refused(headers: tuple[Header, ...]) -> None:
    refused = check_framing(head(*headers))
    assert refused is not None
    assert refused.status == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (((b"content-type", b"text/plain"), (b"content-length", b"2")), 415),
        (((b"content-type", b"application/x-www-form-urlencoded"), (b"content-length", b"2")), 415),
        (((b"content-length", b"2"),), 415),
        (((b"content-type", b"application/json"), (b"content-encoding", b"gzip")), 415),
        (((b"content-type", b"application/json"), (b"content-length", b"101")), 413),
        (((b"content-type", b"application/json"), (b"content-length", b"1" * 13)), 413),
        (((b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"2")), None),
        (((b"content-type", b"Application/JSON"), (b"content-length", b"100")), None),
    ],
)
def test_s05_s23_a_body_is_refused_by_its_announcement(
    headers: tuple[Header, ...], status: int | None
) -> None:
    refused = check_body_head(head(*headers), route(Body))
    assert (refused.status if refused is not None else None) == status


def test_a_body_that_may_be_missing_needs_no_type_when_it_is() -> None:
    assert check_body_head(head(), route(Body, optional=True)) is None
    refused = check_body_head(head((b"content-length", b"2")), route(Body, optional=True))
    assert refused is not None
    assert refused.status == 415


def test_opaque_bytes_may_be_of_any_type() -> None:
    given = head((b"content-type", b"text/plain"), (b"content-length", b"2"))
    assert check_body_head(given, route(RAW_BODY)) is None
