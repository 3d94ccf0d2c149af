"""The registry knows what it was taught, from any thread."""

import threading

from holon.adapters.system.secrets import SecretRegistry
from holon.model.limits import SECRETS_PER_SOURCE_COUNT_MAX
from holon.ports.journal import Redactor

VALUE = "sk-0123456789abcdef"


def test_a_fresh_registry_gives_back_the_very_text() -> None:
    text = f"key {VALUE}"
    assert SecretRegistry().redact(text) is text


def test_a_learned_secret_is_hidden_and_named() -> None:
    registry: Redactor = taught(VALUE)
    assert registry.redact(f"key {VALUE}!") == "key [secret:OPENAI_API_KEY]!"


def test_the_newline_at_the_end_of_a_key_file_is_no_part_of_the_key() -> None:
    assert taught(f"  {VALUE}\n").redact(f"key {VALUE}!") == "key [secret:OPENAI_API_KEY]!"


def test_a_value_too_short_is_refused() -> None:
    registry = SecretRegistry()
    assert registry.learn("PIN", "1234") is False
    assert registry.learn("EMPTY", "        \n") is False
    assert registry.redact("1234") == "1234"


def test_a_rotated_secret_stays_known() -> None:
    registry = taught(VALUE)
    registry.learn("OPENAI_API_KEY", "sk-new-new-new-new")
    redacted = registry.redact(f"{VALUE} sk-new-new-new-new")
    assert redacted == "[secret:OPENAI_API_KEY] [secret:OPENAI_API_KEY]"


def test_a_secret_learned_again_takes_its_newest_name() -> None:
    registry = taught(VALUE)
    registry.learn("profile:work", VALUE)
    assert registry.redact(VALUE) == "[secret:profile:work]"


def test_a_stream_hides_a_secret_split_across_chunks() -> None:
    stream = taught(VALUE).stream()
    given = "".join(stream.feed(char) for char in f"a {VALUE} b") + stream.finish()
    assert given == "a [secret:OPENAI_API_KEY] b"


def test_learning_in_many_threads_loses_nothing() -> None:
    registry = SecretRegistry()
    values = [f"secret-value-{number:04}" for number in range(64)]
    threads = [threading.Thread(target=registry.learn, args=(v, v[::-1])) for v in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(v[::-1] not in registry.redact(f"({v[::-1]})") for v in values)


def test_of_a_source_without_end_the_newest_stay_known() -> None:
    registry = taught(VALUE)
    minted = [f"minted-secret-{number:04}" for number in range(SECRETS_PER_SOURCE_COUNT_MAX + 5)]
    for number, value in enumerate(minted):
        registry.learn(f"trigger:{number}", value)
    hidden = [value for value in minted if value not in registry.redact(value)]
    assert hidden == minted[-SECRETS_PER_SOURCE_COUNT_MAX:]
    assert VALUE not in registry.redact(VALUE), "another source makes no room for it"


def test_a_secret_that_is_used_again_makes_no_room_for_newer_ones() -> None:
    registry = SecretRegistry()
    for number in range(2 * SECRETS_PER_SOURCE_COUNT_MAX):
        registry.learn("credential program", VALUE)
        registry.learn("credential program", f"minted-secret-{number:04}")
    assert VALUE not in registry.redact(VALUE)


def test_the_address_of_a_trigger_is_known_by_its_look() -> None:
    secret = "Ab9_-" * 8 + "xyz"
    said = f"curl http://127.0.0.1:7878/callbacks/wake/trig_0abc9.{secret} -d x"
    shown = "curl http://127.0.0.1:7878/callbacks/wake/[secret:trigger] -d x"
    assert SecretRegistry().redact(said) == shown
    stream = SecretRegistry().stream()
    assert "".join(map(stream.feed, said)) + stream.finish() == shown
    assert SecretRegistry().redact("trig_0abc9.short") == "trig_0abc9.short"


def taught(value: str) -> SecretRegistry:
    registry = SecretRegistry()
    assert registry.learn("OPENAI_API_KEY", value)
    return registry
