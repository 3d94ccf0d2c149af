"""Fuzzing what providers send and what hides their secrets, guided by coverage.

    python -m tests.drills.fuzz_providers --runs 100000              every target
    python -m tests.drills.fuzz_providers --runs 5000 --target sse   this one

Targets: the event parser (any chunking, same events), refusals, redaction, and each HTTP wire with
whole and streamed answers. Anything but an answer or a ProviderError is a finding; the input that
led to it is printed. Needs requirements/drill.txt; without it this says so and counts as clean.
"""

import argparse
import importlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

import msgspec

Target: TypeAlias = Callable[[bytes], None]

ROOT: Final = Path(__file__).resolve().parents[2]
NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
INPUT_BYTES_MAX: Final = 4_096
WIRE_TARGETS: Final = {
    "chat": "openai_chat_completions",
    "responses": "openai_responses",
    "codex": "openai_codex_responses",
    "anthropic": "anthropic_messages",
}
TARGETS: Final = ("sse", "refusals", "redaction", *WIRE_TARGETS)
COSTLY: Final = {"redaction": 20}  # each input builds a matcher: that many times fewer of them
WORDS: Final = (
    *("data", "event", "error", "message", "content", "choices", "delta", "tool_calls", "index"),
    *("function", "arguments", "finish_reason", "usage", "output", "response", "status", "type"),
    *("content_block", "stop_reason", "partial_json", "call_id", "resets_at", "code", "[DONE]"),
)


def sse_target() -> Target:
    """The parser gives the same events however the bytes are cut."""
    events = importlib.import_module("holon.wire.server_sent_events")

    def outcome(pieces: list[bytes]) -> object:
        parser = events.SseParser(line_bytes_max=512, event_bytes_max=1_024)
        found: list[object] = []
        try:
            for piece in pieces:
                found += parser.feed(piece)
        except events.UnreadableStreamError as error:
            return str(error)  # which events came out before it depends on the cuts
        return found

    def try_one(data: bytes) -> None:
        step, stream = (data[0] % 16 + 1, data[1:]) if data else (1, b"")
        cut = [stream[at : at + step] for at in range(0, len(stream), step)]
        assert outcome(cut) == outcome([stream]), "the chunking changed the events"

    return try_one


def refusals_target() -> Target:
    """Any status, body and header is one ProviderError with one bounded line."""
    refusals = importlib.import_module("holon.adapters.providers.refusals")
    attempts = importlib.import_module("holon.model.providers.attempts")

    def try_one(data: bytes) -> None:
        status = 300 + data[0] + data[1] % 45 if len(data) > 1 else 500
        told, _, body = data[2:].partition(b"\0")
        header = told.decode("latin-1")
        headers = {"retry-after": header, "anthropic-ratelimit-tokens-reset": header}
        seen = attempts.TransportDiagnostics()
        error = refusals.refused(status, headers, body, diagnostics=seen, now=NOW)
        assert "\n" not in error.message, "a refusal has more than one line"
        assert len(error.message) < 1_500, "a refusal is too long"
        assert (error.retry_after_ms or 0) >= 0, "a wait is negative"

    return try_one


def redaction_target() -> Target:
    """A secret is gone in every form it takes, and chunks make no difference."""
    redaction = importlib.import_module("holon.decide.text.secrets")
    shortest = importlib.import_module("holon.model.limits").SECRET_CHARS_MIN

    def try_one(data: bytes) -> None:
        step, size = (data[0] % 32 + 1, data[1] % 32 + shortest) if len(data) > 1 else (1, shortest)
        told = data[2:300].decode("utf-8", "replace")
        secret, before, after = told[:size], told[size : size * 2], told[size * 2 :]
        if len(secret) < shortest or secret in "[secret:fuzzed]":
            return
        matcher = redaction.SecretMatcher([("fuzzed", secret)])
        forms = (
            secret,
            quote(secret, safe=""),
            msgspec.json.encode(secret).decode()[1:-1],
            b64encode(secret.encode()).decode().rstrip("="),
        )
        for form in forms:
            text = before + form + after
            whole = matcher.redact(text)
            assert "[secret:" in whole, "a form of the secret was not found"
            stream = redaction.Redacting(matcher)
            cut = [stream.feed(text[at : at + step]) for at in range(0, len(text), step)]
            assert "".join(cut) + stream.finish() == whole, "the chunking changed the text"

    return try_one


def wire_target(transport: str) -> Target:
    """A wire gives an answer or a ProviderError, for whole and streamed bodies alike."""
    canned = importlib.import_module("tests.adapters.providers.canned_exchange")
    setting = importlib.import_module("holon.model.providers.models")
    errors = importlib.import_module("holon.model.providers.attempts")
    wire = setting.TransportKind(transport)

    def try_one(data: bytes) -> None:
        is_event_stream = data[:1] != b"{"
        with suppress(errors.ProviderError):
            canned.answer_of(wire, canned.CannedReply([data], is_event_stream=is_event_stream))

    return try_one


def seeds_of(name: str) -> list[bytes]:
    """Good inputs to begin with."""
    samples = importlib.import_module("tests.adapters.providers.answer_samples")
    kinds = importlib.import_module("holon.model.providers.models").TransportKind
    if name in WIRE_TARGETS:
        wire = kinds(WIRE_TARGETS[name])
        return [
            msgspec.json.encode(samples.whole_answer(wire)),
            samples.stream_of(samples.streamed_events(wire)),
        ]
    if name == "sse":
        return [
            b"\x03event: a\r\nid: 1\rdata: {}\n\n: note\n\n",
            b"\x01\xef\xbb\xbfdata: \xc3\xa4\n\n",
        ]
    if name == "redaction":
        return [b'\x03\x04sk-abc/+%12 "\\\xc3\xa4 before and after', b"\x01\x10" + b"k" * 80]
    error = {"type": "usage_limit_reached", "message": "no", "resets_at": 1_772_000_000}
    return [b"\x81\x0060\0" + msgspec.json.encode({"error": error}), b"\xc8\x00\0<html>"]


def target_of(name: str) -> Target:
    """The function that tries one input."""
    if name in WIRE_TARGETS:
        return wire_target(WIRE_TARGETS[name])
    others = {"sse": sse_target, "refusals": refusals_target, "redaction": redaction_target}
    return others[name]()


def fuzz(name: str, runs: int, folder: Path) -> None:
    """Fuzz one target in this process, which ends with it."""
    atheris = importlib.import_module("atheris")
    seeds = seeds_of(name)
    with atheris.instrument_imports(include=["holon"]):
        target = target_of(name)
        for seed in seeds:
            target(seed)  # a wire is imported at its first answer

    def try_one(data: bytes) -> None:
        try:
            target(data)
        except BaseException:
            print(f"input: {data!r}", flush=True)
            raise

    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / f"seed{number}").write_bytes(seed)
    words = folder / "words.dict"
    words.write_text("".join(f'"{word}"\n' for word in WORDS), encoding="utf-8")
    options = [f"-runs={runs}", f"-max_len={INPUT_BYTES_MAX}", f"-dict={words}", "-seed=1"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/", str(corpus)], try_one)
    atheris.Fuzz()


def main(arguments: list[str]) -> int:
    """Fuzz the targets, one process each; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="inputs per target")
    parser.add_argument("--target", choices=TARGETS, help="just this one")
    parser.add_argument("--folder", type=Path, help="fuzz in this process and leave files here")
    asked = parser.parse_args(arguments)
    if importlib.util.find_spec("atheris") is None:
        print("fuzz: skipped, atheris is not installed (requirements/drill.txt)")
        return 0
    if asked.folder is not None:
        fuzz(asked.target or TARGETS[0], asked.runs, asked.folder)
        return 0
    chosen = TARGETS if asked.target is None else (asked.target,)
    found = [name for name in chosen if not _is_clean(name, asked.runs)]
    print(f"fuzz clean: {not found}" + (f"; findings in {', '.join(found)}" if found else ""))
    return int(bool(found))


def _is_clean(name: str, runs_asked: int) -> bool:
    runs = max(1, runs_asked // COSTLY.get(name, 1))
    command = [sys.executable, "-m", "tests.drills.fuzz_providers", "--target", name]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command, "--runs", str(runs), "--folder", folder],
            cwd=ROOT,
            check=False,
            capture_output=True,
        )
    told = done.stderr.decode(errors="replace")
    if done.returncode:
        print(done.stdout.decode(errors="replace")[-8_000:])
        print(told[-4_000:])
    reached = re.findall(r"cov: (\d+)", told)
    verdict = "a finding" if done.returncode else "clean"
    print(f"fuzz {name}: {runs} inputs, {(reached or ['?'])[-1]} edges, {verdict}", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
