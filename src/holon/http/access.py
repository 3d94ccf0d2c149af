"""Access control: authentication, request checks and rate limits, before a body is read.

Owns:  the decision on a request's credentials; the checks on Host, Origin, Sec-Fetch-Site, framing,
       and the announced type and size of the body; the token-bucket rate limiter; the limits and
       webhook secrets of public ingress. Pure: no I/O.
Rule 1: tokens are compared as digests of equal length in constant time, for any input bytes.
Rule 2: on TCP only the token authenticates; an address is not an identity. On the Unix socket only
        the kernel's peer credentials do: the owner's uid, and not a process an agent started.
Rule 3: a valid token is always accepted. Only failed attempts are rate-limited.
Rule 4: values are matched exactly; a missing, repeated or nearly matching value is refused.
Rule 5: a page of another site cannot call: its Origin and fetch metadata are refused.
Rule 6: an unseen key costs no memory; the table is bounded and evicts the least recently used key.
Rule 7: only deliveries to a valid address count against a trigger's limit, so that guessing
        addresses cannot block a trigger.
Rule 8: a source configured without a usable secret is closed, never open.
"""

import hashlib
import hmac
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol, TypeAlias, TypeVar

from holon.http.errors import refused_reply
from holon.http.exchange import JSON_TYPE, Reply, RequestHead, SocketKind
from holon.http.route import RAW_BODY, Access, CallerClass, Route
from holon.model.limits import (
    CONTROL_TOKEN_CHARS_MAX,
    HTTP_PEERS_KEPT_COUNT_MAX,
    TRIGGER_BURST_COUNT_MAX,
    TRIGGER_PER_MINUTE_COUNT,
    TRIGGERS_BURST_COUNT_MAX,
    TRIGGERS_PER_SECOND_COUNT,
)
from holon.model.lru import Lru
from holon.model.values import TriggerId
from holon.ports.clock import Clock

SCHEME: Final = b"Bearer "
SIGNATURE_HEADERS: Final = (b"webhook-signature", b"x-holon-signature")  # the standard's, ours
HUB_SIGNATURE: Final = (
    b"x-hub-signature-256"  # GitHub's; only a source set up for it is judged by it
)

_OPERATOR_ONLY: Final = frozenset({Access.CONTROL, Access.INGRESS, Access.SIGNED})
ContextT = TypeVar("ContextT")
FOREIGN_SITES: Final = frozenset({b"cross-site", b"same-site"})
_MINUTE_NS: Final = 60 * 1_000_000_000


class Token(Protocol):
    """The source of the operator's token; read again for every request."""

    def digest(self) -> bytes | None:
        """Return the SHA-256 of the current token, or None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Allowed:
    """The caller may use the route."""

    caller: CallerClass


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """The caller sent no credentials, or invalid ones."""

    guessed: bool  # credentials were sent and are invalid


@dataclass(frozen=True, slots=True)
class Forbidden:
    """The caller is known and may not use the route."""

    reason: str


Verdict: TypeAlias = Allowed | Unauthenticated | Forbidden


def signatures_of(head: RequestHead) -> tuple[bytes, ...]:
    """Return every signature of a request; one under each name counts as two, which is refused."""
    return tuple(value for name in SIGNATURE_HEADERS for value in head.values(name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Authorizer:
    """Authorizes requests of one server by their credentials."""

    owner_uid: int
    token: Token
    runs_for_an_agent: Callable[[int], bool]  # by pid

    def authorize(self, access: Access, head: RequestHead) -> Verdict:
        """Identify the caller and decide whether it has this access class."""
        if access in (Access.OPEN, Access.CAPABILITY):
            return Allowed(CallerClass.ANYONE)
        if head.peer.socket_kind is SocketKind.UNIX:
            return self._authorize_local(access, head)
        offered = head.values(b"authorization")
        if len(offered) == 1 and self.accepts(offered[0]):
            return Allowed(CallerClass.OPERATOR)
        is_signed = bool(signatures_of(head) or head.values(HUB_SIGNATURE))
        if access is Access.SIGNED and not offered and is_signed:
            return Allowed(CallerClass.SIGNER)
        return Unauthenticated(guessed=bool(offered))

    def accepts(self, credentials: bytes) -> bool:
        """Whether these credentials hold the current token."""
        expected = self.token.digest()
        longest = len(SCHEME) + CONTROL_TOKEN_CHARS_MAX
        if len(credentials) > longest or not credentials.startswith(SCHEME):
            return False
        given = hashlib.sha256(credentials[len(SCHEME) :]).digest()
        return expected is not None and hmac.compare_digest(given, expected)

    def _authorize_local(self, access: Access, head: RequestHead) -> Verdict:
        peer = head.peer
        if peer.uid != self.owner_uid:
            return Forbidden("this socket belongs to another user")
        if peer.pid is not None and self.runs_for_an_agent(peer.pid):
            if access in _OPERATOR_ONLY:
                return Forbidden("a command an agent runs may read, but not act as the operator")
            return Allowed(CallerClass.AGENT_EXEC)
        return Allowed(CallerClass.OPERATOR)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerNames:
    """The host names of this server, as in a Host header."""

    hosts: frozenset[bytes]

    @property
    def origins(self) -> frozenset[bytes]:
        """The origins that may call: our own."""
        return frozenset(
            scheme + host for host in self.hosts for scheme in (b"http://", b"https://")
        )


def check_host(head: RequestHead, names: ServerNames) -> Reply | None:
    """Refuse a request for another host."""
    hosts = head.values(b"host")
    if len(hosts) != 1:
        return _bad("a request must have exactly one Host header", hint="send one Host header")
    if head.peer.socket_kind is SocketKind.TCP and hosts[0] not in names.hosts:
        return refused_reply(
            HTTPStatus.MISDIRECTED_REQUEST,
            "wrong_host",
            "the Host header names another server",
            hint="use the address the server printed when it started",
        )
    return None


def check_origin(head: RequestHead, names: ServerNames) -> Reply | None:
    """Refuse requests from pages of other sites."""
    origins = head.values(b"origin")
    foreign = any(origin not in names.origins for origin in origins)
    if foreign or any(site in FOREIGN_SITES for site in head.values(b"sec-fetch-site")):
        return refused_reply(
            HTTPStatus.FORBIDDEN,
            "foreign_origin",
            "requests from pages of other sites are refused",
            hint="send the request from a program, without Origin and Sec-Fetch-Site",
        )
    return None


def check_framing(head: RequestHead) -> Reply | None:
    """Refuse ambiguous framing and protocol upgrades."""
    if head.value(b"transfer-encoding") is not None and head.value(b"content-length") is not None:
        return _bad(
            "a body has either a length or chunked encoding, not both",
            hint="send Content-Length or Transfer-Encoding",
        )
    if head.value(b"upgrade") is not None:
        return refused_reply(
            HTTPStatus.BAD_REQUEST,
            "no_upgrade",
            "this server supports HTTP/1.1 only",
            hint="send the request without Upgrade",
        )
    return None


def check_body_head(head: RequestHead, route: Route[ContextT]) -> Reply | None:
    """Refuse a body of the wrong type or size by its headers."""
    if (route.takes is None or route.body_optional) and not has_body(head):
        return None
    if head.value(b"content-encoding") is not None:
        return _unsupported("send the body without a content-encoding")
    if route.takes is not RAW_BODY and _media_type(head) != JSON_TYPE:
        return _unsupported("send JSON with content-type: application/json")
    length = head.value(b"content-length")
    if length is not None and int(length) > route.body_bytes_max:  # h11 accepts digits only
        return too_large(route.body_bytes_max)
    return None


def has_body(head: RequestHead) -> bool:
    """Whether the head announces a body that is not empty."""
    announced = head.value(b"content-length") or b"0"
    return head.value(b"transfer-encoding") is not None or announced != b"0"


def too_large(bytes_max: int) -> Reply:
    """The reply to a body above the limit of its route."""
    return refused_reply(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_too_large",
        f"the body is larger than {bytes_max} bytes",
        hint="send a smaller body; put large content into a file the agent can read",
    )


def _media_type(head: RequestHead) -> bytes:
    values = head.values(b"content-type")
    return values[0].partition(b";")[0].strip().lower() if len(values) == 1 else b""


def _bad(error: str, *, hint: str) -> Reply:
    return refused_reply(HTTPStatus.BAD_REQUEST, "bad_request", error, hint=hint)


def _unsupported(hint: str) -> Reply:
    return refused_reply(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "unsupported body type",
        hint=hint,
    )


@dataclass(slots=True)
class _Bucket:
    level: float
    at_ns: int


@dataclass(kw_only=True, slots=True)
class RateLimiter:
    """A token bucket per key: `burst` at once, then `per_minute`."""

    clock: Clock
    burst: int
    per_minute: int
    _buckets: Lru[Hashable, _Bucket] = field(default_factory=lambda: Lru(HTTP_PEERS_KEPT_COUNT_MAX))

    def wait_s(self, key: Hashable) -> int | None:
        """Return the seconds until this key may proceed, or None if it may now."""
        bucket = self._buckets.peek(key)
        if bucket is None:
            return None
        level = self._level(bucket)
        if level + 1 <= self.burst:
            return None
        return max(1, round((level + 1 - self.burst) * 60 / self.per_minute))

    def count(self, key: Hashable) -> None:
        """Count one request of this key."""
        bucket = self._buckets.peek(key) or _Bucket(0.0, self.clock.monotonic_ns())
        bucket.level = min(self._level(bucket) + 1, float(self.burst))
        bucket.at_ns = self.clock.monotonic_ns()
        self._buckets.put(key, bucket)

    def _level(self, bucket: _Bucket) -> float:
        passed_ns = self.clock.monotonic_ns() - bucket.at_ns
        return max(0.0, bucket.level - passed_ns * self.per_minute / _MINUTE_NS)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryRates:
    """The rate limits of deliveries: of one trigger, and of all triggers together."""

    burst: int = TRIGGER_BURST_COUNT_MAX
    per_minute: int = TRIGGER_PER_MINUTE_COUNT
    all_burst: int = TRIGGERS_BURST_COUNT_MAX
    all_per_minute: int = TRIGGERS_PER_SECOND_COUNT * 60


class IngressLimits:
    """Rate limits and webhook secrets of a server's public ingress."""

    def __init__(
        self,
        clock: Clock,
        *,
        webhook_secrets: Mapping[str, bytes | None] | None = None,
        github_signers: Collection[str] = (),
        rates: DeliveryRates | None = None,
    ) -> None:
        chosen = rates or DeliveryRates()
        self._secrets = dict(webhook_secrets or {})
        self._github_signers = frozenset(github_signers)
        self._each = RateLimiter(clock=clock, burst=chosen.burst, per_minute=chosen.per_minute)
        self._all = RateLimiter(
            clock=clock, burst=chosen.all_burst, per_minute=chosen.all_per_minute
        )

    def delivery_wait_s(self, trigger_id: TriggerId) -> int | None:
        """Count a delivery, or return the seconds its sender has to wait."""
        wait_s = self._each.wait_s(trigger_id) or self._all.wait_s(None)
        if wait_s is None:
            self._each.count(trigger_id)
            self._all.count(None)
        return wait_s

    def secret_of(self, source: str) -> bytes | None:
        """Return the secret of a source, or None without a usable one."""
        return self._secrets.get(source) or None

    def signs_as_github(self, source: str) -> bool:
        """Whether a source is configured for GitHub's signature format."""
        return source in self._github_signers

    def is_shut(self, source: str) -> bool:
        """Whether a source is configured, but without a usable secret."""
        return source in self._secrets and not self._secrets[source]
