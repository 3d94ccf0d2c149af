"""The table about itself.

Owns:  the route that serves the OpenAPI document, made of the very rows that are served.
"""

from functools import cache

from holon.http.exchange import Reply
from holon.http.openapi import openapi_document
from holon.http.plane import Plane
from holon.http.route import Access, Call, Route
from holon.model.json_value import JsonValue
from holon.wire.codec import encode


def described(working: tuple[Route[Plane], ...]) -> tuple[Route[Plane], ...]:
    """Return these rows, and one that describes all of them and itself."""

    @cache
    def written(version: str) -> bytes:
        return encode(openapi_document(routes, version=version))

    async def openapi(plane: Plane, call: Call) -> Reply:
        del call
        return Reply(status=200, body=written(plane.facts.version))

    row: Route[Plane] = Route(
        method="GET",
        path="/openapi.json",
        access=Access.READ,
        summary="This surface, described: every route, type and error.",
        answer=openapi,
        returns=dict[str, JsonValue],
        tags=("runtime",),
    )
    routes = (*working, row)
    return routes
