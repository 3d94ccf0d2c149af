"""A text on the command line, or the one that is piped in where the command line says `-`.

Owns:  reading stdin for whoever is to be told something.
Rule 1: no more is read than a text can be long: what is piped in may never end.
"""

import sys

import click


def text_of(word: str) -> str:
    """Return the text that is meant; raises UsageError when stdin has none."""
    return _read_stdin() if word == "-" else word


def _read_stdin() -> str:
    from holon.model.limits import MESSAGE_BODY_BYTES_MAX

    if sys.stdin is None:  # closed by whoever called us
        raise click.UsageError("there is no stdin to read the text from")
    content = sys.stdin.buffer.read(MESSAGE_BODY_BYTES_MAX + 1)
    if len(content) > MESSAGE_BODY_BYTES_MAX:
        raise click.UsageError(
            f"stdin is longer than {MESSAGE_BODY_BYTES_MAX} bytes;"
            " what is large belongs into a file the agent can read"
        )
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise click.UsageError("stdin is not UTF-8 text") from None
