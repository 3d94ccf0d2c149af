"""A token somebody can be let in with, and every other one."""

from pathlib import Path

import pytest

from holon.adapters.system.control_token import BadTokenError, FixedToken, TokenFile
from holon.adapters.system.secrets import SecretRegistry
from holon.model.values import AgentId
from holon.serve.access_plan import AccessRequest
from holon.serve.effective_config import ServeRequest, service_token

GOOD = "a-token-of-the-operators-own-choice"
BAD = ["", "short", "x" * 513, "two lines,\nand neither of them fits", "with spaces in its middle"]


def token_file(folder: Path, content: str) -> TokenFile:
    path = folder / "token"
    path.write_text(content, encoding="utf-8")
    path.chmod(0o600)
    return TokenFile(path)


@pytest.mark.parametrize("text", [*BAD, "ä" * 20])
def test_a_token_nobody_could_send_is_refused_with_the_rule_and_not_repeated(text: str) -> None:
    with pytest.raises(BadTokenError) as refused:
        FixedToken(text)
    assert "16 to 512 ASCII characters" in str(refused.value.hint)
    assert not text or text not in refused.value.message


@pytest.mark.parametrize("text", BAD)
def test_a_file_with_such_a_token_is_refused_and_opens_nothing(tmp_path: Path, text: str) -> None:
    file = token_file(tmp_path, f"{text}\n")
    for is_replaceable in (False, True):
        with pytest.raises(BadTokenError) as refused:
            file.require_usable(is_replaceable=is_replaceable)
        assert ("remove the file" in str(refused.value.hint)) is is_replaceable
    assert file.digest() is None


def test_a_good_token_is_the_same_from_either_place(tmp_path: Path) -> None:
    file = token_file(tmp_path, f"{GOOD}\n")
    file.require_usable()
    assert file.digest() == FixedToken(GOOD).digest()


def test_a_file_that_is_not_there_is_not_promised_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(BadTokenError, match="there is no token file") as refused:
        TokenFile(tmp_path / "none").require_usable()
    assert "start" not in str(refused.value.hint)


def test_a_token_is_known_as_a_secret_before_it_opens_anything(tmp_path: Path) -> None:
    learned: list[str] = []
    path = tmp_path / "token"
    token_file(tmp_path, f"{GOOD}\n")
    file = TokenFile(path, learn=learned.append)
    assert file.digest() == FixedToken(GOOD).digest()
    other = GOOD[::-1]
    path.unlink()
    token_file(tmp_path, f"{other}\n")
    assert file.digest() == FixedToken(other).digest()
    assert learned == [GOOD, other]


def test_the_token_of_a_service_is_hidden_also_once_it_was_replaced(tmp_path: Path) -> None:
    registry = SecretRegistry()
    asked = ServeRequest(access=AccessRequest(), default_agent=AgentId("main"))
    token = service_token(asked, tmp_path / "token", registry)
    first = (tmp_path / "token").read_text(encoding="ascii").strip()
    (tmp_path / "token").unlink()
    token_file(tmp_path, f"{GOOD}\n")
    assert token.digest() == FixedToken(GOOD).digest()
    assert [each for each in (first, GOOD) if each in registry.redact(f"<{each}>")] == []
