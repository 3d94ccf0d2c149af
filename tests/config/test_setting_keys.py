"""Keys as people type them."""

import pytest

from holon.config.config_file import UnknownSettingError
from holon.config.setting_keys import dotted, find_key, key_at, path_of
from tests.config.samples import KEYS


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_key_is_found_as_it_is_written_and_as_it_is_nested(key: object) -> None:
    found = find_key(str(key))
    assert found == key
    assert key_at(found.path) == key
    assert path_of(str(key)) == found.path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            "models.catalog.openai/gpt-5.4.output_tokens_max",  # what a shell leaves of the quotes
            ("models", "catalog", "openai/gpt-5.4", "output_tokens_max"),
        ),
        (
            "models.catalog.'local//a.b/c.gguf'.context_window_tokens",
            ("models", "catalog", "local//a.b/c.gguf", "context_window_tokens"),
        ),
        ("providers.my.box.auth.env", ("providers", "my.box", "auth", "env")),
        ("providers.auth.auth.env", ("providers", "auth", "auth", "env")),
    ],
)
def test_quotes_around_a_name_are_optional(text: str, path: tuple[str, ...]) -> None:
    assert find_key(text).path == path


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("modle.default", "model.default, a model as provider/model"),
        ("model.defaults", "model.default, a model as provider/model"),
        ("runtime.max_output", "runtime.max_output_tokens, a whole number from 1 to 100000000"),
        ("providers.box.bas_url", "providers.box.base_url, an http://"),
        ("providers.box.auth.enf", "providers.box.auth.env, the name of an environment variable"),
    ],
)
def test_a_key_nobody_knows_is_answered_with_the_nearest_and_its_form(
    text: str, nearest: str
) -> None:
    with pytest.raises(UnknownSettingError) as caught:
        find_key(text)
    assert f"{text!r} is not a setting; the nearest is {nearest}" in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "model",
        "providers",
        "providers.base_url",
        "providers..base_url",
        'providers."".base_url',
        "providers.<id>.base_url",
        "models.catalog.gpt.output_tokens_max",
        'models.catalog."a/b.output_tokens_max',
        "model.default = 1\nx",
        "\udcff",
        "x" * 5_000,
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(UnknownSettingError) as caught:
        find_key(text)
    caught.value.message.encode()  # a sentence that can be printed


def test_a_key_is_written_as_toml_reads_it() -> None:
    path = ("a", 'b"\\c', "d.e", "ü")
    assert path_of(dotted(path)) == path
    assert path_of("not a key") is None
    assert path_of("a = 1\nb") is None
