"""What is piped in may never end, and may not be there at all."""

import io
import sys
from pathlib import Path

import pytest

from holon.cli.console import exit_codes
from holon.cli.main import main
from holon.model.limits import MESSAGE_BODY_BYTES_MAX

PROMPT = ("prompt", "-")
SECRET = ("config", "credentials", "set", "work", "--kind", "api_key", "--stdin")


class Flood(io.RawIOBase):
    """More than anybody wants to read."""

    def __init__(self) -> None:
        super().__init__()
        self.left = self.size = 8 * MESSAGE_BODY_BYTES_MAX

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        given = min(len(buffer), self.left)
        buffer[:given] = b"a" * given
        self.left -= given
        return given


def ended_with(arguments: tuple[str, ...], home: Path) -> object:
    with pytest.raises(SystemExit) as end:
        main.main([*arguments, "--home", str(home)])
    return end.value.code


def test_no_more_is_read_than_a_text_can_be_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flood = Flood()
    piped = io.TextIOWrapper(io.BufferedReader(flood), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", piped)
    assert ended_with(PROMPT, tmp_path) == exit_codes.UNUSABLE
    assert "stdin is longer than" in capsys.readouterr().err
    assert flood.size - flood.left < 2 * MESSAGE_BODY_BYTES_MAX


@pytest.mark.parametrize("arguments", [PROMPT, SECRET])
def test_an_input_that_is_closed_is_told_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert ended_with(arguments, tmp_path) == exit_codes.UNUSABLE
    assert "stdin is closed" in capsys.readouterr().err


def test_onboarding_without_an_input_reports_instead_of_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit):
        main.main(["onboard", "--home", str(tmp_path)])
    assert capsys.readouterr().out.startswith('{"status":')
