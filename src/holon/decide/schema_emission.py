"""Source tool schemas to the form a provider is sent.

Owns:  relaxed and strict emission.
"""

from enum import StrEnum


class SchemaMode(StrEnum):
    """How tool schemas are emitted."""

    RELAXED = "relaxed"
    STRICT = "strict"
