"""Whatever is logged, and however it breaks, no secret reaches a handler."""

import io
import logging
from collections.abc import Iterator

import pytest

from holon.adapters.system.logs import LogRedaction, install_log_redaction
from holon.adapters.system.secrets import SecretRegistry

VALUE = "sk-0123456789abcdef"


class Holder:
    """An object whose printed form tells."""

    def __repr__(self) -> str:
        return f"Holder({VALUE})"


@pytest.fixture
def page() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(page: io.StringIO) -> Iterator[logging.Logger]:
    logger = logging.Logger("test")  # outside the tree, so that no other handler sees its records
    handler = logging.StreamHandler(page)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    registry = SecretRegistry()
    registry.learn("KEY", VALUE)
    install_log_redaction(registry, logger.handlers)
    yield logger
    handler.close()


def test_a_message_and_its_arguments_are_cleaned(log: logging.Logger, page: io.StringIO) -> None:
    log.warning("%s and %r, %d times", VALUE, Holder(), 2)
    assert page.getvalue() == "WARNING [secret:KEY] and Holder([secret:KEY]), 2 times\n"


def test_named_arguments_are_cleaned(log: logging.Logger, page: io.StringIO) -> None:
    log.warning("key %(key)s", {"key": VALUE})
    assert page.getvalue() == "WARNING key [secret:KEY]\n"


def test_a_traceback_is_cleaned_and_kept(log: logging.Logger, page: io.StringIO) -> None:
    try:
        try:
            raise ValueError(f"inner {VALUE}")
        except ValueError as error:
            raise RuntimeError(f"outer {VALUE}") from error
    except RuntimeError:
        log.exception("it broke", stack_info=True)
    text = page.getvalue()
    assert VALUE not in text
    assert "ValueError: inner [secret:KEY]" in text
    assert "RuntimeError: outer [secret:KEY]" in text
    assert "Stack (most recent call last)" in text


def test_extra_fields_are_cleaned_and_others_left_alone(page: io.StringIO) -> None:
    registry = SecretRegistry()
    registry.learn("KEY", VALUE)
    record = logging.makeLogRecord({"msg": "x", "url": f"/?k={VALUE}", "who": Holder(), "n": 3})
    LogRedaction(registry).filter(record)
    assert vars(record)["url"] == "/?k=[secret:KEY]"
    assert vars(record)["who"] == "Holder([secret:KEY])"
    assert vars(record)["n"] == 3


def test_arguments_that_do_not_fit_are_told_and_not_raised(
    log: logging.Logger, page: io.StringIO
) -> None:
    log.warning(f"{VALUE} %d", "three")
    assert page.getvalue() == "WARNING [secret:KEY] %d [arguments do not fit: TypeError]\n"


def test_installing_again_replaces_the_filter(log: logging.Logger) -> None:
    install_log_redaction(SecretRegistry(), log.handlers)
    assert len(log.handlers[0].filters) == 1


def test_by_default_the_root_handlers_and_the_last_resort_are_cleaned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handler, last = logging.NullHandler(), logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(logging, "lastResort", last)
    install_log_redaction(SecretRegistry())
    assert [type(each) for each in (*handler.filters, *last.filters)] == [LogRedaction] * 2
