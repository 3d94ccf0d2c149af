"""A credential another program hands out.

Owns:  running that program: its words, its end, its time.
Rule 1: the program is started directly, never through a shell, and its answer is its whole output.
Rule 2: one that is too slow or says too much is ended, with everything it started.
Rule 3: what it wrote is never part of a message: it may be half a secret.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio
from anyio.abc import Process

from holon.model.limits import CREDENTIAL_BYTES_MAX, CREDENTIAL_PROCESS_MS_MAX
from holon.model.provider_errors import AuthRejectedError, ModelUnavailableError


def words_of(command: str | None) -> tuple[str, ...]:
    """Return the words of a command as it is configured, or raise ModelUnavailableError."""
    try:
        words = tuple(shlex.split(command or ""))
    except ValueError:
        words = ()
    if not words:
        raise ModelUnavailableError(
            "the credential program is not set, or its quotes do not match",
            hint="name the program and its arguments with --credential-external",
        )
    return words


async def secret_from(
    words: Sequence[str], environ: Mapping[str, str], *, wait_ms: int = CREDENTIAL_PROCESS_MS_MAX
) -> str:
    """Return what a program says, or raise the ProviderError that says what went wrong."""
    program = words[0]
    status: int | None = None
    try:
        process = await anyio.open_process(
            list(words),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environ,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ModelUnavailableError(
            f"the credential program {program!r} cannot be started: {error}",
            hint="check that it is installed and executable",
        ) from error
    try:
        with anyio.fail_after(wait_ms / 1_000):
            said = await _output_of(process, program)
            status = await process.wait()
    except TimeoutError:
        raise AuthRejectedError(
            f"the credential program {program!r} said nothing within {wait_ms} ms",
            hint="run it by hand: it may wait for an answer",
        ) from None
    finally:
        await _end(process, was_heard=status is not None)
    if status != 0:
        raise AuthRejectedError(
            f"the credential program {program!r} ended with status {status}",
            hint="run it by hand to see why",
        )
    return said.decode("utf-8", errors="replace").strip()


async def _output_of(process: Process, program: str) -> bytes:
    assert process.stdout is not None
    said = bytearray()
    async for piece in process.stdout:
        said += piece
        if len(said) > CREDENTIAL_BYTES_MAX:
            raise AuthRejectedError(
                f"the credential program {program!r} printed more than a secret",
                hint="it should print the secret and nothing else",
            )
    return bytes(said)


async def _end(process: Process, *, was_heard: bool) -> None:
    if not was_heard:  # its children may hold the pipe open, though it has ended itself
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with anyio.CancelScope(shield=True):
        await process.wait()
        await process.aclose()
