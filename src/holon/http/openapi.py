"""Generates the OpenAPI 3.1 document from the route table.

Owns:  how a route becomes an operation and a type becomes a schema. Pure.
Rule 1: nothing is written manually that a route or a type states.
Rule 2: every error has the one error schema, and every status a route can return is listed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from inspect import cleandoc
from typing import Any, Final, TypeVar

import msgspec

from holon.http.route import RAW_BODY, Access, NoQuery, RequestHeader, Route
from holon.model.limits import ID_CHARS_MAX
from holon.model.values import AGENT_ID_PATTERN, RECORD_ID_PATTERN
from holon.wire.codec import ErrorBody

ContextT = TypeVar("ContextT")

_REF: Final = "#/components/schemas/{name}"
_ERROR: Final = {"$ref": "#/components/responses/Error"}
_JSON: Final = "application/json"
_BYTES: Final = {"type": "string", "format": "binary"}
_ALWAYS: Final = (400, 403, 421, 429, 500, 503)
_WITH_BODY: Final = (408, 413, 415)
_WITH_CHANGE: Final = (507,)
_NAME: Final = re.compile(r"\{(\w+)\}")
_OPEN_TO_ALL: Final = frozenset({Access.OPEN, Access.CAPABILITY})
_SCHEMES: Final[dict[str, Any]] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The operator's token. The unix socket needs none.",
    },
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "webhook-signature",
        "description": "A signature by a configured secret; x-holon-signature counts as well.",
    },
}


def openapi_document(routes: Sequence[Route[ContextT]], *, version: str) -> dict[str, Any]:
    """Describe a surface."""
    kinds = _kinds(routes)
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    for component in components.values():
        if (text := component.get("description")) is not None:
            component["description"] = cleandoc(text)  # as Python 3.13 has it by itself
    schemas, components = _tidied(schemas, components)
    known = dict(zip(map(_key, kinds), schemas, strict=True))
    queries = {_key(route.query) for route in routes}
    writer = _Writer(known, components)
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = writer.operation(route)
    for key in queries:
        components.pop(_ref_name(known[key]), None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holon",
            "version": version,
            "description": "The control plane of a Holon runtime. Every path is also served under"
            " /api. A refusal has one shape, and has changed nothing.",
        },
        "servers": [{"url": "/"}, {"url": "/api"}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": {"Error": _error_response(known[_key(ErrorBody)])},
            "securitySchemes": _SCHEMES,
        },
    }


def _tidied(schemas: Any, components: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Name components as clients can be made of them, and say `const` where one value fits.

    Two types of one name come with the paths of their modules; the last part of one is kept.
    """
    names = {name: _own_name(name, components) for name in components}
    whole = _renamed({"schemas": list(schemas), "components": components}, names)
    named = {names[old]: schema for old, schema in whole["components"].items()}
    return whole["schemas"], named


def _own_name(name: str, components: Mapping[str, Any]) -> str:
    path, _, own = name.rpartition(".")
    alone = sum(other.rpartition(".")[2] == own for other in components) == 1
    module = "" if alone else path.rpartition(".")[2].title().replace("_", "")
    return f"{module}{own}"


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    written = {name: _renamed(each, names) for name, each in value.items()}
    match written:
        case {"$ref": str(ref)}:
            known = names.get(ref.removeprefix(_REF.format(name="")))
            return written if known is None else {**written, "$ref": _REF.format(name=known)}
        case {"enum": [only]}:
            del written["enum"]
            return {"const": only, **written}
        case _:
            return written


class _Writer:
    """Writes operations, given the schemas of their types."""

    def __init__(self, known: dict[str, Any], components: dict[str, Any]) -> None:
        self._known = known
        self._components = components

    def operation(self, route: Route[ContextT]) -> dict[str, Any]:
        described: dict[str, Any] = {
            "operationId": operation_id(route.method, route.path),
            "summary": route.summary,
            "tags": list(route.tags),
            "security": _security(route.access),
            "x-holon-access": route.access.value,
        }
        parameters = [
            *_path_parameters(route.path),
            *self._query_parameters(route),
            *map(_header_parameter, route.headers),
        ]
        if parameters:
            described["parameters"] = parameters
        if route.takes is not None:
            described["requestBody"] = self._body(route)
        described["responses"] = {
            str(route.status): self._response(route),
            **{str(status): _ERROR for status in refusal_statuses(route)},
        }
        return described

    def _body(self, route: Route[ContextT]) -> dict[str, Any]:
        content: dict[str, Any] = (
            {"application/octet-stream": {"schema": _BYTES}}  # or any other: it is a label
            if route.takes is RAW_BODY
            else {_JSON: {"schema": self._known[_key(route.takes)]}}
        )
        return {"required": not route.body_optional, "content": content}

    def _response(self, route: Route[ContextT]) -> dict[str, Any]:
        text = HTTPStatus(route.status).phrase
        schema = self._known[_key(route.returns)]
        if route.media == _JSON:
            return {"description": text, "content": {_JSON: {"schema": schema}}}
        content: dict[str, Any] = {"schema": {"type": "string"}}
        if route.returns is not str:
            content["x-holon-event"] = schema
        return {"description": text, "content": {route.media.partition(";")[0]: content}}

    def _query_parameters(self, route: Route[ContextT]) -> list[dict[str, Any]]:
        if route.query is NoQuery:
            return []
        described = self._components[_ref_name(self._known[_key(route.query)])]
        needed = described.get("required", ())
        return [
            {
                "name": name,
                "in": "query",
                "required": name in needed,
                "schema": _without_null(schema),
            }
            for name, schema in described["properties"].items()
        ]


def refusal_statuses(route: Route[ContextT]) -> list[int]:
    """Every status a route may refuse with."""
    statuses = {*_ALWAYS, *route.refusals}
    if route.access not in _OPEN_TO_ALL:
        statuses.add(401)
    if route.takes is not None:
        statuses.update(_WITH_BODY)
    if route.method != "GET":
        statuses.update(_WITH_CHANGE)
    return sorted(statuses)


def operation_id(method: str, path: str) -> str:
    """Return the stable name of an operation."""
    words = [word.strip("{}").replace("-", "_").replace(".", "_") for word in path.split("/")[1:]]
    return "_".join([method.lower(), *words])


def _kinds(routes: Iterable[Route[ContextT]]) -> list[Any]:
    kinds: dict[str, Any] = {_key(ErrorBody): ErrorBody}
    for route in routes:
        for kind in (route.takes, route.returns, route.query):
            if kind is not None and kind is not RAW_BODY:
                kinds.setdefault(_key(kind), kind)
    return list(kinds.values())


def _key(kind: object) -> str:
    return repr(kind)


def _ref_name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query cannot say null: what may be left out is simply not required."""
    kept = {name: part for name, part in schema.items() if name != "default" or part is not None}
    variants = [part for part in kept.pop("anyOf", ()) if part != {"type": "null"}]
    if len(variants) == 1:
        return {**variants[0], **kept}
    return {**kept, "anyOf": variants} if variants else kept


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _name_schema(name)}
        for name in _NAME.findall(path)
    ]


def _header_parameter(header: RequestHeader) -> dict[str, Any]:
    bounds = {"pattern": header.pattern, "maxLength": header.chars_max}
    return {
        "name": header.name,
        "in": "header",
        "required": False,
        "description": header.says,
        "schema": {"type": "string", **{key: at for key, at in bounds.items() if at is not None}},
    }


def _name_schema(name: str) -> dict[str, Any]:
    if name == "token":
        return {"type": "string"}
    pattern = AGENT_ID_PATTERN if name == "agent_id" else RECORD_ID_PATTERN
    return {"type": "string", "pattern": f"^{pattern.pattern}$", "maxLength": ID_CHARS_MAX}


def _security(access: Access) -> list[dict[str, list[str]]]:
    if access in _OPEN_TO_ALL:
        return []
    return [{"token": []}, {"signature": []}] if access is Access.SIGNED else [{"token": []}]


def _error_response(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": "Refused; nothing was changed.",
        "content": {_JSON: {"schema": schema}},
    }
