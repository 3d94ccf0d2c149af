"""Generates the HTTP reference page from the route table.

Owns:  the layout and wording of the page. Every fact comes from a row, a type or a refusal.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import get_args, get_origin

from msgspec import inspect

from holon.http.context import HttpContext
from holon.http.openapi import refusal_statuses
from holon.http.route import RAW_BODY, Access, NoQuery, Route
from holon.http.table import ROUTES
from scripts.reference.refusal_codes import refusals_seen

CALLERS = {
    Access.OPEN: "any client that reaches the port",
    Access.READ: "the operator; over the socket also a command an agent runs",
    Access.CONTROL: "the operator only",
    Access.INGRESS: "the operator's token; the content is still treated as external",
    Access.SIGNED: "as `ingress`, or a signature made with a configured secret",
    Access.CAPABILITY: "the path is a secret that grants access",
}

NO_SANDBOX = (
    "There is no sandbox yet: a command of an agent is a process of the service's own user. Over"
    " the socket it gets `read` access only, so that it does not act as the operator by mistake."
    " This is not a security boundary: such a command can read the token under `run/` and the"
    " database under `state/`, and a process it detaches from its parent is treated as the"
    " operator. It cannot read the memory or the environment of the service, which hold the keys"
    " in use. Run agents you do not trust as a separate user."
)


def http_lines() -> Iterator[str]:
    """Describe every route, group by group."""
    yield from ("## Who may call", "", "| access | caller |", "|---|---|")
    yield from (f"| `{access}` | {caller} |" for access, caller in CALLERS.items())
    yield from ("", NO_SANDBOX)
    yield from (
        "",
        "## Headers",
        "",
        "No header is required. A label is stored as the sender gave it, unverified.",
        "",
    )
    yield from ("| header | meaning |", "|---|---|")
    told = dict.fromkeys(header for route in ROUTES for header in route.headers)
    yield from (f"| `{header.name}` | {header.says} |" for header in told)
    yield from ("", "## Refusals", "", "| code | status | meaning |", "|---|---|---|")
    yield from (f"| `{row.code}` | {row.status} | {row.says} |" for row in refusals_seen())
    yield ""
    for tag in dict.fromkeys(tag for route in ROUTES for tag in route.tags):
        yield from (f"## {tag.capitalize()}", "")
        for route in ROUTES:
            if tag in route.tags:
                yield from _route_lines(route)


def _route_lines(route: Route[HttpContext]) -> Iterator[str]:
    yield from (f"### `{route.method} {route.path}`", "", f"{route.summary}", "")
    yield f"- access: `{route.access}`"
    if route.query is not NoQuery:
        yield f"- query: {_fields(route.query)}"
    if route.headers:
        yield f"- headers: {', '.join(f'`{header.name}`?' for header in route.headers)}"
    if route.takes is RAW_BODY:
        yield f"- body: any, up to {route.body_bytes_max} bytes"
    elif route.takes is not None:
        optional = ", optional" if route.body_optional else ""
        yield f"- body: JSON{optional}: {_fields(route.takes) or 'nothing'}"
    yield f"- answer: {route.status} {_named(route)}"
    refused = ", ".join(str(status) for status in refusal_statuses(route))
    yield f"- refuses with: {refused}"
    yield ""


def _named(route: Route[HttpContext]) -> str:
    if route.media != "application/json":
        return f"`{route.media}`"
    said = HTTPStatus(route.status).phrase
    if get_origin(route.returns) is dict:
        return f"{said}: an object"
    if get_origin(route.returns) is tuple:
        return f"{said}: a list of `{get_args(route.returns)[0].__name__}`"
    return f"{said}: `{getattr(route.returns, '__name__', '')}`"


def _fields(kind: type) -> str:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return ", ".join(
        f"`{field.encode_name}`{'' if field.required else '?'}" for field in info.fields
    )
