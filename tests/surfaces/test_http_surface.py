"""The HTTP surface is a promise: who may call what, and the document that describes it.

After a change that is meant, write both anew and commit the difference:

    HOLON_REFRESH_SNAPSHOTS=1 .venv/bin/python -m pytest tests/surfaces
"""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holon.http.openapi import openapi_document, refusal_statuses
from holon.http.table import ROUTES

HERE = Path(__file__).resolve().parent


def compare(name: str, found: str) -> None:
    path = HERE / name
    if os.environ.get("HOLON_REFRESH_SNAPSHOTS"):
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document(ROUTES, version="0")


@pytest.mark.requirement("http:one-table")
def test_who_may_call_what_is_reviewed() -> None:
    lines = sorted(f"{route.path} {route.method} {route.access.value}" for route in ROUTES)
    compare("routes.snap", "\n".join(lines) + "\n")


@pytest.mark.requirement("http:one-table")
def test_the_document_is_the_reviewed_one(document: dict[str, Any]) -> None:
    text = msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
    compare("openapi.json", text + "\n")


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = msgspec.json.encode(document).decode()
    for target in set(re.findall(r'"\$ref":"#/([^"]+)"', text)):
        found: Any = document
        for part in target.split("/"):
            found = found[part]
        assert found


@pytest.mark.requirement("http:one-table")
def test_every_row_is_described_with_its_names_and_its_refusals(document: dict[str, Any]) -> None:
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        named = re.findall(r"\{(\w+)\}", route.path)
        given = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]
        assert given == named
        assert ("requestBody" in operation) == (route.takes is not None)
        for status in (*refusal_statuses(route), *route.refusals):
            assert operation["responses"][str(status)] == {"$ref": "#/components/responses/Error"}
    ids = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(ids) == len(set(ids)) == len(ROUTES)
