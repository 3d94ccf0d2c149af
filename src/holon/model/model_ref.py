"""Which model: a provider and the name it knows the model by.

Owns:  the reference `provider/model` and its one textual form.
Rule 1: the first slash separates; everything behind it belongs to the provider. So
        `local//a/b.gguf` names a file and `openrouter/meta/llama` a model with a slash inside.
"""

import re
from typing import Final

from holon.model.errors import BadInputError
from holon.model.limits import MODEL_REF_CHARS_MAX
from holon.model.record import Record

_PROVIDER_ID: Final = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")


class BadModelRefError(BadInputError):
    """A text that should name a model does not."""

    code = "bad_model_ref"
    hint = "write it as provider/model, for example anthropic/claude-sonnet-5-5"


class ModelRef(Record, frozen=True, kw_only=True):
    """One model of one provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


def parse_model_ref(text: str) -> ModelRef:
    """Return the reference a text stands for, or raise BadModelRefError."""
    provider, slash, model = text.strip().partition("/")
    if len(text) > MODEL_REF_CHARS_MAX:
        raise BadModelRefError(f"a model reference has at most {MODEL_REF_CHARS_MAX} characters")
    if not slash or not model or not _PROVIDER_ID.match(provider):
        raise BadModelRefError(f"{text!r} does not name a model")
    if not model.isprintable() or model != model.strip():
        raise BadModelRefError(f"{text!r} holds characters a model name cannot have")
    return ModelRef(provider=provider, model=model)
