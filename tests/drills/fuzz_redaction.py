"""Redaction under a fuzzer: no secret survives, and no chunking changes the text.

Run with `python -m tests.drills.fuzz_redaction --runs N`. Without atheris it says so and ends well.
"""

import argparse
import base64
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from holon.model.limits import SECRET_CHARS_MIN

if TYPE_CHECKING:
    from holon.decide.redaction import SecretMatcher

FORMS: Final[tuple[Callable[[str], str], ...]] = (
    str,
    quote,
    quote_plus,
    lambda value: json.dumps(value)[1:-1],
    lambda value: json.dumps(value, ensure_ascii=False)[1:-1].replace("/", "\\/"),
    lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    lambda value: base64.urlsafe_b64encode(b"ab" + value.encode()).decode().rstrip("="),
)
_SIZES_COUNT: Final = 4
_NAME: Final = "\x00"  # a mark that no secret can be part of


def check(data: bytes) -> None:
    """Judge one input: sizes, then the secret, then what stands around it."""
    # Not at the top: the fuzzer has to be there first to see which branches are taken.
    from holon.decide.redaction import SecretMatcher

    sizes, text = data[:_SIZES_COUNT], data[_SIZES_COUNT:].decode(errors="ignore")
    if len(sizes) < _SIZES_COUNT:
        return
    length = SECRET_CHARS_MIN + sizes[0] % 24
    value, rest = text[:length].replace("\x00", "0"), text[length:]
    if len(value) < SECRET_CHARS_MIN or value in f"[secret:{_NAME}]":
        return
    at = sizes[1] % (len(rest) + 1)
    written = FORMS[sizes[2] % len(FORMS)](value)
    whole = rest[:at] + written + rest[at:]
    matcher = SecretMatcher([(_NAME, value)])
    redacted = matcher.redact(whole)
    assert f"[secret:{_NAME}]" in redacted, (value, whole, redacted)
    assert value not in redacted, (value, whole, redacted)
    assert _in_chunks(matcher, whole, 1 + sizes[3] % 32) == redacted, (value, whole)


def _in_chunks(matcher: "SecretMatcher", whole: str, size: int) -> str:
    from holon.decide.redaction import Redacting

    stream = Redacting(matcher)
    chunks = (whole[at : at + size] for at in range(0, len(whole), size))
    return "".join(stream.feed(chunk) for chunk in chunks) + stream.finish()


def main(arguments: list[str]) -> int:
    """Fuzz for so many runs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    runs = parser.parse_args(arguments).runs
    if importlib.util.find_spec("atheris") is None:
        print("fuzz_redaction: atheris is not installed; nothing was fuzzed")
        return 0
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["holon.decide"]):
        importlib.import_module("holon.decide.redaction")
    atheris.Setup([sys.argv[0], f"-runs={runs}", "-max_len=512"], atheris.instrument_func(check))
    atheris.Fuzz()  # ends the process itself, with a code of its own
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
