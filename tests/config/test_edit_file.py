"""Edits to config.toml: small, whole, or not at all."""

import errno
import os
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.adapters.system.private_file import FileUnusableError
from holon.config.config_file import BadConfigFileError, UnknownSettingError, leaves_of
from holon.config.edit_file import set_values, unset_value
from holon.config.load_settings import SourceKind, inspect_settings, load_settings, read_text
from holon.config.setting_keys import find_key
from tests.config.samples import KEYS, SAMPLES

COMMENTED = """\
# Our machine.
[model]   # which one
default = "a/b"   # the usual
# fallbacks = []

[providers.box]
base_url = "http://box"  # behind the wall

# The end.
"""


def put(home: Path, key: str, text: str) -> None:
    found = find_key(key)
    set_values(home, {found: read_text(found, text, where="a test")})


def test_only_the_named_value_changes(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(COMMENTED, encoding="utf-8")
    put(tmp_path, "model.default", "c/d")
    assert file.read_text(encoding="utf-8") == COMMENTED.replace('"a/b"', '"c/d"')
    put(tmp_path, "model.default", "a/b")
    assert file.read_text(encoding="utf-8") == COMMENTED


def test_what_is_set_and_unset_again_leaves_the_comments(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(COMMENTED, encoding="utf-8")
    put(tmp_path, "providers.box.auth.env", "KEY")
    put(tmp_path, "runtime.max_output_tokens", "5")
    assert unset_value(tmp_path, ("providers", "box"))
    assert unset_value(tmp_path, ("runtime", "max_output_tokens"))
    assert not unset_value(tmp_path, ("runtime", "max_output_tokens"))
    left = file.read_text(encoding="utf-8")
    assert dict(leaves_of(tomllib.loads(left))) == {("model", "default"): "a/b"}
    for comment in ("# Our machine.", "# which one", "# the usual", "# fallbacks", "# The end."):
        assert comment in left


def test_a_new_home_and_file_are_private_and_an_old_mode_is_kept(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    before = os.umask(0)
    try:
        put(home, "model.default", "a/b")
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    file = home / "config.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    put(home, "model.default", "c/d")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_file_behind_a_link_is_edited_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "holon.toml"
    real.write_text(COMMENTED, encoding="utf-8")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").symlink_to(real)
    put(tmp_path / "home", "model.default", "c/d")
    assert (tmp_path / "home" / "config.toml").is_symlink()
    assert 'default = "c/d"' in real.read_text(encoding="utf-8")


def test_a_disk_that_takes_no_writes_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: "str | os.PathLike[str]", *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), os.fspath(path))

    monkeypatch.setattr(os, "unlink", refuse)  # as it is on a file system mounted read-only
    with pytest.raises(FileUnusableError, match="cannot be written: Read-only file system"):
        set_values(tmp_path, {find_key("model.default"): "scripted/hello"})


@pytest.mark.parametrize("call", ["fsync", "fchmod", "write", "replace"])
def test_a_disk_that_refuses_leaves_the_old_file_and_nothing_else(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(COMMENTED, encoding="utf-8")

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    class FullFile:
        def __init__(self, handle: int, _mode: str) -> None:
            self._handle = handle

        def __enter__(self) -> "FullFile":
            return self

        def __exit__(self, *_fault: object) -> None:
            os.close(self._handle)

        def fileno(self) -> int:
            return self._handle

        write = full

    with monkeypatch.context() as patch:
        if call == "replace":
            patch.setattr(Path, "replace", full)
        elif call == "write":
            opened = os.fdopen
            patch.setattr(
                os,
                "fdopen",
                lambda fd, mode, **how: (
                    FullFile(fd, mode) if "w" in mode else opened(fd, mode, **how)
                ),
            )
        else:
            patch.setattr(os, call, full)
        with pytest.raises(FileUnusableError, match="No space left on device"):
            put(tmp_path, "model.default", "c/d")
    assert file.read_text(encoding="utf-8") == COMMENTED
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"model.default = ", BadConfigFileError),
        (b"\xff", BadConfigFileError),
        (b"model = 3\n", UnknownSettingError),
        (b"[[model]]\na = 1\n", UnknownSettingError),
    ],
)
def test_a_file_that_cannot_take_the_value_is_left_byte_for_byte(
    content: bytes, kind: type[Exception], tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(kind):
        put(tmp_path, "model.default", "c/d")
    assert (tmp_path / "config.toml").read_bytes() == content


def test_a_fault_elsewhere_does_not_stand_in_the_way(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('zork = 1\nmodel.default = "nonsense"\n', encoding="utf-8")
    put(tmp_path, "model.default", "a/b")
    assert unset_value(tmp_path, ("zork",))
    assert str(load_settings(tmp_path, {}).plane.model_default) == "a/b"


@pytest.mark.parametrize(
    "layout",
    [
        'model = { default = "x/y" }\n',
        'model.default = "x/y"\n[runtime]\nmax_output_tokens = 1\n',
        '[model]\r\ndefault = "x/y"\r\n',
        '[providers.a]\nstream = true\n[model]\ndefault = "x/y"\n[providers.b]\nstream = true\n',
        '"model"."default" = "x/y"',
        '[model.unknown_fallback]\ncontext_window_tokens = 9\n[model]\ndefault = "x/y"\n',
    ],
)
def test_every_layout_a_person_may_choose_can_be_edited(layout: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(layout.encode())
    before = dict(leaves_of(tomllib.loads(layout)))
    put(tmp_path, "model.default", "c/d")
    put(tmp_path, "providers.a.base_url", "http://a")
    put(tmp_path, "model.fallbacks", "e/f")
    after = dict(leaves_of(tomllib.loads((tmp_path / "config.toml").read_bytes().decode())))
    assert after == before | {
        ("model", "default"): "c/d",
        ("providers", "a", "base_url"): "http://a",
        ("model", "fallbacks"): ["e/f"],
    }


edits = st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=20)


@settings(max_examples=60)
@given(edits)
def test_any_run_of_edits_ends_in_what_was_last_said(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[object, bool]]
) -> None:
    home = tmp_path_factory.mktemp("home")
    said: dict[str, object] = {}
    for step, is_set in steps:
        key = find_key(str(step))
        value = SAMPLES[key.setting.key].value
        if is_set:
            set_values(home, {key: value})
            said[str(key)] = value
        else:
            assert unset_value(home, key.path) is (said.pop(str(key), None) is not None)
    # Inspected, not loaded: recording and playing back may both have been set.
    found = inspect_settings(home, {}).settings.values
    in_file = {key: one.value for key, one in found.items() if one.source is SourceKind.FILE}
    assert in_file == said
