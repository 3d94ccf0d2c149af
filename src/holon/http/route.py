"""The type of a route: one row of the table from which everything else derives.

Owns:  the row, its access class, and the call a handler receives.
Rule 1: a row is complete: method, path, access, input, output and possible refusals. Routing,
        checks, OpenAPI, the reference page and the tests read the same row.
Rule 2: a handler never receives a request its row does not allow, nor a body of another type.
Rule 3: where the access class alone cannot decide, a gate decides from the head: the body of a
        request that will be refused is not read.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from holon.http.exchange import Reply, RequestHead, SocketKind
from holon.model.limits import HTTP_BODY_BYTES_MAX
from holon.model.queue import AdmissionContext
from holon.model.values import AgentId, parse_agent_id

T = TypeVar("T")
ContextT = TypeVar("ContextT")
RAW_BODY: Final = bytes  # the `takes` of a route that accepts any bytes


class Access(StrEnum):
    """The access class of a route: who may call it."""

    OPEN = "open"  # any client that reaches the port
    READ = "read"  # the operator; also a command an agent runs
    CONTROL = "control"  # the operator alone
    INGRESS = "ingress"  # the operator's token; the content is still external
    SIGNED = "signed"  # a token as for ingress, or a signature by a configured secret
    CAPABILITY = "capability"  # the path itself is the right to call


class CallerClass(StrEnum):
    """Who the caller is, as established by the checks."""

    OPERATOR = "operator"
    AGENT_EXEC = "agent_exec"  # a process that an agent of this very runtime started
    SIGNER = "signer"  # not verified yet: the signature covers the body
    ANYONE = "anyone"


class NoQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A route that takes nothing from the query string."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A decoded request that passed every check."""

    head: RequestHead
    caller: CallerClass
    params: Mapping[str, str]
    query: msgspec.Struct
    body: object
    raw: bytes
    still_allowed: Callable[[], bool] = lambda: True  # checked again by long-lived streams

    def body_as(self, kind: type[T]) -> T:
        """The body, as the type the route's row names."""
        assert isinstance(self.body, kind), f"the row takes {type(self.body)}, not {kind}"
        return self.body

    def query_as(self, kind: type[T]) -> T:
        """The query, as the type the route's row names."""
        assert isinstance(self.query, kind), f"the row takes {type(self.query)}, not {kind}"
        return self.query

    @property
    def admission(self) -> AdmissionContext:
        """How the operator authenticated: by the kernel's credentials or with the token."""
        by_socket = self.head.peer.socket_kind is SocketKind.UNIX
        return (
            AdmissionContext.LOCAL_PROCESS if by_socket else AdmissionContext.CONTROL_AUTHENTICATED
        )

    def agent_id(self, default: AgentId) -> AgentId:
        """Return the agent in the path, or the default agent on a path without one."""
        named = self.params.get("agent_id")
        return parse_agent_id(named) if named is not None else default


Handler: TypeAlias = Callable[[ContextT, Call], Awaitable[object]]
Gate: TypeAlias = Callable[[ContextT, Call], Awaitable[Reply | None]]  # given a call without a body


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestHeader:
    """A header that a handler reads. None is ever required: what needs one refuses without it."""

    name: str  # as it is shown
    says: str
    pattern: str | None = None
    chars_max: int | None = None

    @property
    def key(self) -> bytes:
        """The name as it stands in a request's head."""
        return self.name.lower().encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Route(Generic[ContextT]):
    """One row. A handler returns a value of `returns` (sent as JSON) or a reply of its own."""

    method: str
    path: str
    access: Access
    summary: str
    answer: Handler[ContextT]
    returns: object
    gate: Gate[ContextT] | None = None
    takes: type | None = None
    query: type[msgspec.Struct] = NoQuery
    headers: tuple[RequestHeader, ...] = ()
    status: int = 200
    body_bytes_max: int = HTTP_BODY_BYTES_MAX
    body_optional: bool = False
    media: str = "application/json"  # of what is returned
    refusals: tuple[int, ...] = ()  # statuses besides those every route may give
    tags: tuple[str, ...] = field(default=())
