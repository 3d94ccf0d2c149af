"""Are two effective configurations the same?

Owns:  one short text that stands for everything a runtime was started with.
Rule 1: it is made of effective values, wherever they came from, and tells nothing about them.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from holon.config.load_settings import Settings

_CHARS: Final = 16
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def config_fingerprint(settings: Settings, started_with: Mapping[str, str | int | None]) -> str:
    """Return what stands for these settings together with how the server was started."""
    values = {key: value.value for key, value in settings.values.items()}
    told = _ENCODER.encode({"settings": values, "started_with": dict(started_with)})
    return hashlib.sha256(told).hexdigest()[:_CHARS]
