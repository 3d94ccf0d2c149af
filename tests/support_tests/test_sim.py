"""How the runner of worlds reports errors that cannot be caught."""

import asyncio
import sys
from collections.abc import Generator
from types import coroutine

import pytest

from tests.support.sim import tell_unless_abandoned


@coroutine
def _pause() -> Generator[None, None, None]:
    yield


async def _left_behind(error: Exception | None) -> None:
    try:
        await _pause()
    finally:
        if error is not None:
            raise error
        asyncio.get_running_loop()


class _Falling:
    def __del__(self) -> None:
        raise RuntimeError("a bug")


@pytest.fixture(autouse=True)
def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", tell_unless_abandoned)


def _abandon(error: Exception | None) -> None:
    """Begin a coroutine and forget it, as a world that crashes does.

    On its way out it raises the error or, without one, asks for the loop that is gone.
    """
    begun = _left_behind(error)
    begun.send(None)
    del begun


def test_nothing_is_told_of_a_coroutine_that_outlived_its_loop(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _abandon(None)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_another_error_of_a_forgotten_coroutine_is_told(
    kind: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    _abandon(kind("a bug"))
    assert "a bug" in capsys.readouterr().err


def test_an_error_of_anything_else_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    falling = _Falling()
    del falling
    assert "a bug" in capsys.readouterr().err
