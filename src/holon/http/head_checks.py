"""What a request's head must look like before anything of it is believed.

Owns:  the checks on Host, Origin and Sec-Fetch-Site, on the body's announced type and size. Pure.
Rule 1: exact matches only; what is absent, doubled or nearly right is refused.
Rule 2: a browser on another page cannot reach us: its Origin and its fetch metadata give it away.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar

from holon.http.exchange import JSON_TYPE, Door, Reply, RequestHead
from holon.http.refused import refused_reply
from holon.http.route import RAW_BODY, Route

PlaneT = TypeVar("PlaneT")

FOREIGN_SITES: Final = frozenset({b"cross-site", b"same-site"})


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnNames:
    """The names under which this server may be called, as they stand in a Host header."""

    hosts: frozenset[bytes]

    @property
    def origins(self) -> frozenset[bytes]:
        """The pages that may call: our own."""
        return frozenset(
            scheme + host for host in self.hosts for scheme in (b"http://", b"https://")
        )


def check_host(head: RequestHead, names: OwnNames) -> Reply | None:
    """Refuse a request that was not meant for this server."""
    hosts = head.values(b"host")
    if len(hosts) != 1:
        return _bad("a request names its host exactly once", hint="send one Host header")
    if head.peer.door is Door.TCP and hosts[0] not in names.hosts:
        return refused_reply(
            HTTPStatus.MISDIRECTED_REQUEST,
            "wrong_host",
            "this server does not go by that name",
            hint="call it by the address it printed when it started",
        )
    return None


def check_origin(head: RequestHead, names: OwnNames) -> Reply | None:
    """Refuse what another web page sends."""
    origins = head.values(b"origin")
    foreign = any(origin not in names.origins for origin in origins)
    if foreign or any(site in FOREIGN_SITES for site in head.values(b"sec-fetch-site")):
        return refused_reply(
            HTTPStatus.FORBIDDEN,
            "foreign_origin",
            "pages of other sites may not call this server",
            hint="call it from a program or a terminal, without Origin and Sec-Fetch-Site",
        )
    return None


def check_framing(head: RequestHead) -> Reply | None:
    """Refuse what two readers could read differently, and what we do not speak."""
    if head.value(b"transfer-encoding") is not None and head.value(b"content-length") is not None:
        return _bad(
            "a body has a length or comes in chunks, not both",
            hint="send Content-Length or Transfer-Encoding",
        )
    if head.value(b"upgrade") is not None:
        return refused_reply(
            HTTPStatus.BAD_REQUEST,
            "no_upgrade",
            "this server speaks HTTP/1.1 and nothing else",
            hint="send the request without Upgrade",
        )
    return None


def check_body_head(head: RequestHead, route: Route[PlaneT]) -> Reply | None:
    """Refuse a body of the wrong type or size by its announcement alone."""
    if (route.takes is None or route.body_optional) and not has_body(head):
        return None
    if head.value(b"content-encoding") is not None:
        return _unsupported("send the body as it is, without a content-encoding")
    if route.takes is not RAW_BODY and _media_type(head) != JSON_TYPE:
        return _unsupported("send JSON with content-type: application/json")
    length = head.value(b"content-length")
    if length is not None and int(length) > route.body_bytes_max:  # h11 takes digits only
        return too_large(route.body_bytes_max)
    return None


def has_body(head: RequestHead) -> bool:
    """Whether the head announces a body that is not empty."""
    announced = head.value(b"content-length") or b"0"
    return head.value(b"transfer-encoding") is not None or announced != b"0"


def too_large(bytes_max: int) -> Reply:
    """The reply to a body over its route's bound."""
    return refused_reply(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_too_large",
        f"the body is larger than {bytes_max} bytes",
        hint="send less at once; what is large belongs into a file the agent can read",
    )


def _media_type(head: RequestHead) -> bytes:
    values = head.values(b"content-type")
    return values[0].partition(b";")[0].strip().lower() if len(values) == 1 else b""


def _bad(error: str, *, hint: str) -> Reply:
    return refused_reply(HTTPStatus.BAD_REQUEST, "bad_request", error, hint=hint)


def _unsupported(hint: str) -> Reply:
    return refused_reply(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "not a body we take", hint=hint
    )
