"""Webhook signatures: verification over the raw body.

Owns:  the signature scheme of Standard Webhooks (id, timestamp and content, joined by dots, under
       HMAC-SHA256), and that of GitHub, over the content alone. The HTTP surface knows which
       headers carry them.
Rule 1: a signature that is missing, given twice, too old or too new is refused; a missing secret
        never makes a request trusted.
Rule 2: signatures are compared as bytes, in constant time, in either encoding.
"""

import binascii
import hmac
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from holon.model.limits import (
    IDEMPOTENCY_KEY_CHARS_MAX,
    WEBHOOK_CLOCK_SKEW_MS_MAX,
    WEBHOOK_SIGNATURES_COUNT_MAX,
)
from holon.model.record import Record
from holon.model.values import to_micros

_DIGITS: Final = re.compile(rb"[0-9]{1,12}")
_ID: Final = re.compile(rb"[!-~]+")
_HEX: Final = re.compile(rb"[0-9A-Fa-f]{64}")
_SCHEME: Final = b"v1,"
_HUB_SCHEME: Final = b"sha256="
_MICROS_PER_MS: Final = 1_000
_MICROS_PER_S: Final = 1_000_000


class SignedHead(Record, frozen=True, kw_only=True):
    """Every value of the headers a signature stands on, as they came."""

    signatures: tuple[bytes, ...] = ()
    ids: tuple[bytes, ...] = ()
    timestamps: tuple[bytes, ...] = ()


def verified_id(
    secret: bytes | None, head: SignedHead, body: bytes, *, now: datetime
) -> str | None:
    """Return the id of a request whose signature holds, or nothing."""
    alone = len(head.signatures) == len(head.ids) == len(head.timestamps) == 1
    if not secret or not alone:
        return None
    (signature,), (request_id,), (timestamp,) = head.signatures, head.ids, head.timestamps
    if _ID.fullmatch(request_id) is None or len(request_id) > IDEMPOTENCY_KEY_CHARS_MAX:
        return None
    if not _is_fresh(timestamp, now=now):
        return None
    expected = hmac.digest(secret, b".".join((request_id, timestamp, body)), "sha256")
    if not any(hmac.compare_digest(offered, expected) for offered in _offered(signature)):
        return None
    return request_id.decode("ascii")


def verified_hub_key(secret: bytes | None, signatures: Sequence[bytes], body: bytes) -> str | None:
    """Return a key for a request that GitHub signed, or nothing when its signature does not hold.

    GitHub signs neither the id of a delivery nor its moment, so the signature itself is the key:
    the same body is the same message, however often and under whichever id it is sent.
    """
    if not secret or len(signatures) != 1:
        return None
    hex_digits = signatures[0].removeprefix(_HUB_SCHEME)
    if not signatures[0].startswith(_HUB_SCHEME) or _HEX.fullmatch(hex_digits) is None:
        return None
    offered = bytes.fromhex(hex_digits.decode("ascii"))
    if not hmac.compare_digest(offered, hmac.digest(secret, body, "sha256")):
        return None
    return f"hub-{offered.hex()}"


def _is_fresh(timestamp: bytes, *, now: datetime) -> bool:
    if _DIGITS.fullmatch(timestamp) is None:
        return False
    apart_micros = abs(int(timestamp) * _MICROS_PER_S - to_micros(now))
    return apart_micros <= WEBHOOK_CLOCK_SKEW_MS_MAX * _MICROS_PER_MS


def _offered(header: bytes) -> Iterator[bytes]:
    """The signatures of the known scheme, as bytes; several while a secret is rotated."""
    for signature in header.split(b" ")[:WEBHOOK_SIGNATURES_COUNT_MAX]:
        if not signature.startswith(_SCHEME):
            continue
        encoded = signature[len(_SCHEME) :]
        if _HEX.fullmatch(encoded):
            yield bytes.fromhex(encoded.decode("ascii"))
            continue
        try:
            yield b64decode(encoded, validate=True)
        except binascii.Error:
            continue
