"""What a command has written, as it may be shown.

Owns:  how much of an output is read for a look of some size.
Rule 1: every look is freed of secrets here, where more was read than will be shown; whoever shows
        it only cuts.
"""

from holon.decide.without_secrets import span_without_secrets
from holon.model.command import OutputSpan
from holon.model.command_limits import COMMAND_LOOK_MARGIN_BYTES
from holon.ports.redactor import Redactor
from holon.ports.shell import RunningCommand


def looked_at(
    command: RunningCommand, redactor: Redactor, *, bytes_max: int
) -> tuple[OutputSpan, ...]:
    """Look at both ends of each stream, at least as far as `bytes_max` bytes of it may show."""
    far = bytes_max + COMMAND_LOOK_MARGIN_BYTES
    spans = command.output(head_bytes=far, tail_bytes=far)
    return tuple(span_without_secrets(span, redactor.redact) for span in spans)
