"""Who a caller is, and whether a route is for them.

Owns:  the operator's token as the server knows it, and the verdict on a request's credentials.
Rule 1: a token is compared as digests of equal length, in constant time, whatever bytes came.
Rule 2: on TCP only the token counts; an address is not an identity. On the unix socket only the
        kernel's word counts: the owner's uid, and not a process one of our agents started.
Rule 3: the right token always opens. What is limited is guessing.
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from holon.http.exchange import Door, RequestHead
from holon.http.route import Access, CallerClass
from holon.model.limits import CONTROL_TOKEN_CHARS_MAX

SCHEME: Final = b"Bearer "
SIGNATURE_HEADERS: Final = (b"webhook-signature", b"x-holon-signature")  # the standard's, ours
HUB_SIGNATURE: Final = (
    b"x-hub-signature-256"  # GitHub's; only a source set up for it is judged by it
)

_OPERATOR_ONLY: Final = frozenset({Access.CONTROL, Access.INGRESS, Access.SIGNED})


class Token(Protocol):
    """The operator's token, wherever it is kept; asked anew for every request."""

    def digest(self) -> bytes | None:
        """SHA-256 of the token in force, or nothing when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Allowed:
    """The route is for this caller."""

    caller: CallerClass


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """The caller did not say who it is, or said it wrongly."""

    guessed: bool  # something was offered, and it was wrong


@dataclass(frozen=True, slots=True)
class Forbidden:
    """We know the caller, and this is not for it."""

    reason: str


Verdict: TypeAlias = Allowed | Unauthenticated | Forbidden


def signatures_of(head: RequestHead) -> tuple[bytes, ...]:
    """Every signature a request carries; one under each name are two, and two are refused."""
    return tuple(value for name in SIGNATURE_HEADERS for value in head.values(name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Gatekeeper:
    """Judges credentials for one server."""

    owner_uid: int
    token: Token
    runs_for_an_agent: Callable[[int], bool]  # by pid

    def judge(self, access: Access, head: RequestHead) -> Verdict:
        """Say who the caller is and whether this access class is for it."""
        if access in (Access.OPEN, Access.CAPABILITY):
            return Allowed(CallerClass.ANYONE)
        if head.peer.door is Door.UNIX:
            return self._judge_local(access, head)
        offered = head.values(b"authorization")
        if len(offered) == 1 and self.opens(offered[0]):
            return Allowed(CallerClass.OPERATOR)
        is_signed = bool(signatures_of(head) or head.values(HUB_SIGNATURE))
        if access is Access.SIGNED and not offered and is_signed:
            return Allowed(CallerClass.SIGNER)
        return Unauthenticated(guessed=bool(offered))

    def opens(self, credentials: bytes) -> bool:
        """Whether these credentials hold the token in force."""
        expected = self.token.digest()
        longest = len(SCHEME) + CONTROL_TOKEN_CHARS_MAX
        if len(credentials) > longest or not credentials.startswith(SCHEME):
            return False
        given = hashlib.sha256(credentials[len(SCHEME) :]).digest()
        return expected is not None and hmac.compare_digest(given, expected)

    def _judge_local(self, access: Access, head: RequestHead) -> Verdict:
        peer = head.peer
        if peer.uid != self.owner_uid:
            return Forbidden("this socket belongs to another user")
        if peer.pid is not None and self.runs_for_an_agent(peer.pid):
            if access in _OPERATOR_ONLY:
                return Forbidden("a command an agent runs may read, but not act as the operator")
            return Allowed(CallerClass.AGENT_EXEC)
        return Allowed(CallerClass.OPERATOR)
