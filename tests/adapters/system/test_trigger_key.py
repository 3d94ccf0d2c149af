"""The key of external triggers: private, made once, and never used when others can read it."""

from pathlib import Path

import pytest

from holon.adapters.system.control_token import TriggerKeyFile
from holon.adapters.system.secrets import SecretRegistry


def test_a_key_is_made_once_private_and_kept_out_of_text(tmp_path: Path) -> None:
    registry = SecretRegistry()
    key = TriggerKeyFile(tmp_path, registry.learn).key()
    assert key is not None
    assert len(key) >= 32
    assert (tmp_path / "trigger_key").stat().st_mode & 0o777 == 0o600
    assert TriggerKeyFile(tmp_path, registry.learn).key() == key
    assert key.decode() not in registry.redact(f"key: {key.decode()}")


def spoil_mode(path: Path) -> None:
    path.chmod(0o644)


def spoil_content(path: Path) -> None:
    path.write_text("short\n", encoding="utf-8")


def spoil_encoding(path: Path) -> None:
    path.write_bytes(b"\xff" * 64)


def spoil_kind(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o700)


@pytest.mark.parametrize("spoil", [spoil_mode, spoil_content, spoil_encoding, spoil_kind])
def test_a_key_that_cannot_be_trusted_shuts_every_trigger(
    tmp_path: Path, spoil: object, caplog: pytest.LogCaptureFixture
) -> None:
    learn = SecretRegistry().learn
    assert TriggerKeyFile(tmp_path, learn).key() is not None
    assert callable(spoil)
    spoil(tmp_path / "trigger_key")
    assert TriggerKeyFile(tmp_path, learn).key() is None
    assert "external triggers are shut" in caplog.text
