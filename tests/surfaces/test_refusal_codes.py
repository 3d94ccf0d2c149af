"""The page on HTTP lists every code a client may be refused with."""

import re
from pathlib import Path

import pytest

from holon.http.errors import REFUSALS
from scripts.reference.refusal_codes import refusals_seen

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "http.md"
MET = {
    "bad_shape": 400,
    "bad_query": 400,
    "bad_request": 400,
    "bad_last_event_id": 400,
    "unreadable_body": 400,
    "unauthorized": 401,
    "bad_signature": 401,
    "webhook_disabled": 401,
    "foreign_origin": 403,
    "not_found": 404,
    "cursor_not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "cursor_ahead": 409,
    "unsupported_media_type": 415,
    "wrong_host": 421,
    "too_many_requests": 429,
    "header_too_large": 431,
    "internal_error": 500,
    "storage_full": 507,
}


@pytest.mark.parametrize("code", MET)
def test_a_code_clients_meet_is_listed_with_its_status(code: str) -> None:
    assert f"| `{code}` | {MET[code]} |" in PAGE.read_text(encoding="utf-8")


def test_no_code_of_the_core_is_left_out() -> None:
    assert {(row.code, row.status) for row in refusals_seen()} >= set(REFUSALS.items())


def test_every_code_that_is_written_out_is_listed() -> None:
    listed = {row.code for row in refusals_seen()}
    for path in (ROOT / "src" / "holon" / "http").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r'refused_reply\(\s*[\w.]+,\s*"(\w+)"', text)) <= listed, path
