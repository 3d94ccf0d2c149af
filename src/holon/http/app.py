"""The HTTP application: matches a request to a route, applies every check, calls the handler.

Owns:  matching of paths and methods against the route table, with and without the `/api` prefix;
       the order of the checks: route and method, framing, Host, Origin, credentials, rate limit,
       body type and size, the route's gate. Only then is the body read, decoded and handled.
Rule 1: no trailing and no double slash. A segment may be percent-encoded; it is decoded once, after
        the path was split, so that one segment yields one name. A segment that decodes to a slash,
        a control character, invalid UTF-8, `.` or `..` matches nothing.
Rule 2: a capability path is matched as written, without decoding: it has one spelling.
Rule 3: a path that exists for other methods is answered with 405, an unknown one with 404.
Rule 4: a request that fails a check leaves no trace except a count.
Rule 5: an unknown method is refused before credentials are checked, so that requests that can never
        succeed do not count as failed attempts and lock out a peer.
"""

import logging
import re
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final, Generic, TypeVar
from urllib.parse import unquote

import anyio

from holon.http.access import (
    Allowed,
    Authorizer,
    Forbidden,
    RateLimiter,
    ServerNames,
    Unauthenticated,
    check_body_head,
    check_framing,
    check_host,
    check_origin,
    too_large,
)
from holon.http.errors import INTERNAL_HINT, nothing_here, refused_reply, reply_for
from holon.http.exchange import (
    AnyReply,
    BodySource,
    BodyTooLargeError,
    BodyTooSlowError,
    Header,
    PeerGoneError,
    PendingReply,
    Reply,
    RequestHead,
    UnexpectedBodyError,
)
from holon.http.query import read_query
from holon.http.route import RAW_BODY, Access, Call, CallerClass, Route
from holon.model.errors import BadSyntaxError, DecodeError, HolonError
from holon.model.limits import HTTP_NO_BODY_BYTES_MAX
from holon.wire.codec import encode
from holon.wire.requests import ControlBody, NoBody, TrustNotClaimableError
from holon.wire.strict_body import decode_body

ContextT = TypeVar("ContextT")
PREFIX: Final = "api"
_ESCAPED: Final = re.compile("(?:[^%]|%[0-9A-Fa-f]{2})*")
ReplyT = TypeVar("ReplyT", bound=AnyReply)
_TRUST: Final = "trust"
_CHALLENGE: Final[Header] = (b"www-authenticate", b"Bearer")


@dataclass(frozen=True, slots=True)
class RouteMatch(Generic[ContextT]):
    """The matched route and its path parameters."""

    route: Route[ContextT]
    params: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MethodNotAllowed:
    """The path exists for other methods only."""

    allowed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RouteNotFound:
    """No route has this path."""


class RouteTable(Generic[ContextT]):
    """Matches requests against all routes of an application."""

    def __init__(self, routes: Iterable[Route[ContextT]]) -> None:
        self.routes: Final = tuple(routes)
        self._by_shape: dict[tuple[int, str], list[tuple[tuple[str, ...], Route[ContextT]]]] = {}
        for route in self.routes:
            segments = _segments(route.path)
            self._by_shape.setdefault(_shape(segments), []).append((segments, route))

    def find(
        self, method: str, path: str
    ) -> RouteMatch[ContextT] | MethodNotAllowed | RouteNotFound:
        """Return the matching route of a request, or why there is none."""
        if not path.startswith("/"):
            return RouteNotFound()  # absolute-form, which only proxies receive
        written = _segments(path)
        read = written if "%" not in path else tuple(map(_decoded_segment, written))
        matches = [
            *self._found_in(read, as_written=False),
            *self._found_in(written, as_written=True),
        ]
        if not matches:
            return RouteNotFound()
        exact = (match for match in matches if match.route.method == method)
        return next(exact, None) or MethodNotAllowed(
            tuple(sorted({f.route.method for f in matches}))
        )

    def _found_in(
        self, segments: tuple[str, ...], *, as_written: bool
    ) -> Iterator[RouteMatch[ContextT]]:
        if len(segments) > 1 and segments[0] == PREFIX:
            segments = segments[1:]
        for pattern, route in self._by_shape.get(_shape(segments), ()):
            params = _params(pattern, segments)
            if params is not None and as_written is (route.access is Access.CAPABILITY):
                yield RouteMatch(route, params)


def _decoded_segment(segment: str) -> str:
    """Return the decoded segment, or "" (which matches no route) if it is not acceptable."""
    if "%" not in segment:
        return segment
    if _ESCAPED.fullmatch(segment) is None:
        return ""
    try:
        text = unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return ""
    return "" if text in (".", "..") or "/" in text or not text.isprintable() else text


def _segments(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix("/").split("/"))


def _shape(segments: tuple[str, ...]) -> tuple[int, str]:
    """The key of the index: no route begins with a parameter, so the first segment is literal."""
    return len(segments), segments[0]


def _params(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for expected, given in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            if not given:
                return None
            params[expected[1:-1]] = given
        elif expected != given:
            return None
    return params


_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class App(Generic[ContextT]):
    """The application: route table, handler context and access control."""

    table: RouteTable[ContextT]
    context: ContextT
    authorizer: Authorizer
    names: ServerNames
    failed_attempts: RateLimiter
    default_headers: tuple[Header, ...] = field(default=())

    def is_authenticated(self, head: RequestHead) -> bool:
        """Whether a request carries the operator's token."""
        offered = head.values(b"authorization")
        return len(offered) == 1 and self.authorizer.accepts(offered[0])

    async def answer(self, head: RequestHead, body: BodySource) -> AnyReply:
        """Answer one request; raises PeerGoneError only."""
        reply = await self._without_errors(head, self._answer(head, body))
        if not isinstance(reply, PendingReply):
            return reply

        async def made(scope: anyio.CancelScope) -> Reply:
            return await self._without_errors(head, reply.made(scope))

        return PendingReply(made=made)

    async def _without_errors(
        self, head: RequestHead, answering: Awaitable[ReplyT]
    ) -> ReplyT | Reply:
        try:
            return await answering
        except HolonError as error:
            if isinstance(error, PeerGoneError):
                raise
            return reply_for(error)
        except Exception:  # noqa: BLE001 - named boundary: a bug fails one request, not the host
            _log.exception("%s %s failed", head.method, self._known_path(head))
            return refused_reply(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "internal_error",
                "internal error in Holon",
                hint=INTERNAL_HINT,
            )

    async def _answer(self, head: RequestHead, body: BodySource) -> AnyReply:
        match self.table.find(head.method, head.path):
            case RouteNotFound():
                return nothing_here()
            case MethodNotAllowed(allowed=allowed):
                return _wrong_method(head.method, allowed)
            case RouteMatch(route=route, params=params):
                refused = check_framing(head) or check_host(head, self.names)
                if refused is not None:
                    return refused
                refused = check_origin(head, self.names)
                if refused is not None:
                    return refused
                caller = self._admit(route, head)
                if isinstance(caller, Reply):
                    return caller
                return await self._carry_out(route, dict(params), head, body, caller=caller)

    def _admit(self, route: Route[ContextT], head: RequestHead) -> CallerClass | Reply:
        match self.authorizer.authorize(route.access, head):
            case Allowed(caller=caller):
                return caller
            case Forbidden(reason=reason):
                return refused_reply(HTTPStatus.FORBIDDEN, "forbidden", reason)
            case Unauthenticated(guessed=guessed):
                return self._unauthenticated(head, guessed=guessed)

    def _unauthenticated(self, head: RequestHead, *, guessed: bool) -> Reply:
        if guessed:
            wait_s = self.failed_attempts.wait_s(head.peer.address)
            if wait_s is not None:
                return too_many(wait_s)
            self.failed_attempts.count(head.peer.address)
        return refused_reply(
            HTTPStatus.UNAUTHORIZED,
            "unauthorized",
            "the operator's token is required",
            hint="send Authorization: Bearer with the token in <home>/run/token",
            headers=(_CHALLENGE,),
        )

    async def _carry_out(
        self,
        route: Route[ContextT],
        params: dict[str, str],
        head: RequestHead,
        body: BodySource,
        *,
        caller: CallerClass,
    ) -> AnyReply:
        refused = check_body_head(head, route)
        if refused is not None:
            return refused
        call = Call(
            head=head,
            caller=caller,
            params=params,
            query=read_query(head.query, route.query),
            body=b"",
            raw=b"",
            still_allowed=lambda: isinstance(
                self.authorizer.authorize(route.access, head), Allowed
            ),
        )
        refused = None if route.gate is None else await route.gate(self.context, call)
        if refused is not None:
            return refused
        bytes_max = route.body_bytes_max if route.takes else HTTP_NO_BODY_BYTES_MAX
        try:
            raw = await body.read(bytes_max=bytes_max)
        except BodyTooLargeError:
            if route.takes is None:
                raise UnexpectedBodyError from None
            return too_large(bytes_max)
        except BodyTooSlowError as slow:
            return refused_reply(HTTPStatus.REQUEST_TIMEOUT, slow.code, slow.message)
        call = replace(call, body=_decoded_body(route, raw), raw=raw)
        given = await route.answer(self.context, call)
        if isinstance(given, AnyReply):
            return given
        return Reply(status=route.status, body=encode(given))

    def _known_path(self, head: RequestHead) -> str:
        """The route's pattern, for the log: the path itself may contain a secret."""
        match = self.table.find(head.method, head.path)
        return match.route.path if isinstance(match, RouteMatch) else "(no route)"


def too_many(wait_s: int) -> Reply:
    """The reply to a request above its rate limit."""
    return refused_reply(
        HTTPStatus.TOO_MANY_REQUESTS,
        "too_many_requests",
        "too many requests",
        hint=f"try again in {wait_s} s",
        headers=((b"retry-after", str(wait_s).encode()),),
    )


def _decoded_body(route: Route[ContextT], raw: bytes) -> object:
    if route.takes is RAW_BODY:
        return raw
    if route.takes is None:
        return _read_nothing(route, raw)
    given = b"{}" if not raw and route.body_optional else raw
    if not issubclass(route.takes, ControlBody):
        return decode_body(given, route.takes)
    return _control_body(given, route.takes)


def _control_body(raw: bytes, kind: type[ControlBody]) -> ControlBody:
    try:
        return decode_body(raw, kind)
    except DecodeError as error:
        if error.field == _TRUST and not isinstance(
            error, BadSyntaxError
        ):  # not JSON, so it claims no trust
            raise TrustNotClaimableError from None
        raise


def _read_nothing(route: Route[ContextT], raw: bytes) -> bytes:
    """Accept `{}` as no body: many clients cannot send a POST without one."""
    try:
        if route.access is Access.CONTROL:
            _control_body(raw or b"{}", ControlBody)
        else:
            decode_body(raw or b"{}", NoBody)
    except DecodeError:
        raise UnexpectedBodyError from None
    return raw


def _wrong_method(method: str, allowed: tuple[str, ...]) -> Reply:
    return refused_reply(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "method_not_allowed",
        f"this path accepts {' or '.join(allowed)} only",
        hint=f"send the request again as {' or '.join(allowed)}, not as {method[:20]}",
        headers=((b"allow", ", ".join(allowed).encode()),),
    )
