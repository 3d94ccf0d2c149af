"""What the host knows as a secret is in nothing that is kept or told."""

import msgspec
import pytest

from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.shellwork import shell_setup, tasks


class Hides:
    """Knows one secret."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def redact(self, text: str) -> str:
        """Hide it."""
        return text.replace(self._secret, "[redacted]")


def test_the_result_of_a_task_names_no_secret() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(120_000)
        assert house.model.heard("[redacted]")
        assert not house.model.heard("compiling")
        assert "compiling" not in (tasks(house)[0].result_summary or "")

    script = [
        rule("make: ended", says("built")),
        rule("build", calls("ExecCommand", cmd="make"), says("it runs on")),
    ]
    run_house(story, script=script, setup=shell_setup(redactor=Hides("compiling")))


@pytest.mark.requirement("tools:receipts-name-no-secret")
def test_neither_a_receipt_nor_an_event_names_a_secret_that_an_error_quotes() -> None:
    async def story(house: House) -> None:
        await house.prompt("try")
        await house.rest(120_000)
        told = msgspec.json.encode(await house.events()).decode()
        assert "[redacted]" in told
        assert "no such shell" not in told

    script = [rule("try", calls("ExecCommand", cmd="broken"), says("ok"))]
    setup = shell_setup(redactor=Hides("no such shell"))
    house = run_house(story, script=script, setup=setup)
    [(kept,)] = house.rows("select receipt from tool_calls")
    assert "no such shell" not in kept
    assert "[redacted]" in msgspec.json.decode(kept)["error"]["message"]
