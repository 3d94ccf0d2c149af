"""Log records without secrets.

Owns:  the filter that cleans a record (message, arguments, traceback, stack, extra fields), and its
       installation on the handlers of the process.
Rule 1: a record is cleaned before any formatter sees it, so that no handler can print the original.
Rule 2: a record that cannot be rendered is still logged: the fault is told instead of the message.
"""

import logging
import traceback
from collections.abc import Iterable
from typing import Final

from holon.ports.redactor import Redactor

_STANDARD_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class LogRedaction(logging.Filter):
    """Passes every record, cleaned."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Clean the record in place."""
        redact = self._redactor.redact
        record.msg, record.args = redact(_message_of(record)), None
        if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        record.exc_info = None
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        for name in vars(record).keys() - _STANDARD_FIELDS:
            value = getattr(record, name)
            shown = value if isinstance(value, str) else repr(value)
            if (cleaned := redact(shown)) != shown:
                setattr(record, name, cleaned)
        return True


def install_log_redaction(
    redactor: Redactor, handlers: Iterable[logging.Handler] | None = None
) -> None:
    """Clean what these handlers write: by default those of the root logger, and the last resort."""
    if handlers is None:
        fallback = [logging.lastResort] if logging.lastResort is not None else []
        handlers = [*logging.getLogger().handlers, *fallback]
    for handler in handlers:
        for earlier in [f for f in handler.filters if isinstance(f, LogRedaction)]:
            handler.removeFilter(earlier)
        handler.addFilter(LogRedaction(redactor))


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError) as error:
        return f"{record.msg!s} [arguments do not fit: {type(error).__name__}]"
