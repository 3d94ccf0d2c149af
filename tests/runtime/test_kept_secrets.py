"""What the host knows as a secret is in nothing that is kept or told."""

import msgspec
import pytest

from holon.model.limits import ESTIMATED_TOKEN_BYTES, TASK_OUTPUT_TOKENS, TOOL_RESULT_BYTES_MAX
from holon.model.providers.prompt_frame import ProviderRequest
from holon.projections.turns.transcript import transcript_page
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import kept_calls
from tests.runtime.shellwork import COMMANDS, results, shell_setup, tasks
from tests.support.builders import MAIN
from tests.support.database_oracle import whole_database
from tests.support.scripted_shell import CommandScript


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
    [recorded] = kept_calls(house)
    assert recorded.receipt is not None
    assert recorded.receipt.error is not None
    assert "no such shell" not in msgspec.json.encode(recorded.receipt).decode()
    assert "[redacted]" in recorded.receipt.error.message


@pytest.mark.requirement("hostile-text:tool-inputs-are-shown-without-secrets")
def test_what_a_model_asked_a_tool_for_is_shown_without_secrets_and_run_as_it_was_written() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(120_000)
        await house.prompt("and then?")
        await house.rest(120_000)
        (_, earlier) = await house.store.reads.turns.turns_page(MAIN, before_index=None, limit=2)
        shown = msgspec.json.encode(transcript_page([house.host.shown(earlier)], limit=1)).decode()
        assert "echo [redacted]" in shown
        assert SECRET not in shown
        # The turn that made the call reads it as it was written, a later one without the secret.
        own, later = house.model.requests[1], house.model.requests[-1]
        assert SECRET in _asked(own)
        assert SECRET not in _asked(later)
        assert "echo [redacted]" in _asked(later)

    script = [
        rule("and then", says("nothing")),
        rule("build", calls("ExecCommand", cmd=f"echo {SECRET}"), says("it ran")),
    ]
    commands = COMMANDS | {f"echo {SECRET}": CommandScript(after_ms=5, stdout=b"done")}
    setup = shell_setup(redactor=Hides(SECRET), commands=commands)
    house = run_house(story, script=script, setup=setup)
    whole = whole_database(house.connection)
    holding = {table for table, rows in whole.items() if SECRET in str(rows)}
    assert holding == {"tool_calls", "transcript"}  # what a turn that is resumed goes on from


def _asked(request: ProviderRequest) -> str:
    return msgspec.json.encode(request.conversation).decode()


SECRET = "SECRET-0123456789"
HALVES = [SECRET[:8], SECRET[-8:]]


def _with_secret_across(cut: int) -> bytes:
    """Long output with the secret half before and half behind both ends that are shown of it."""
    begin = b"." * (cut - 8) + SECRET.encode()
    return (
        begin
        + b"-" * TOOL_RESULT_BYTES_MAX
        + begin[::-1].replace(SECRET.encode()[::-1], SECRET.encode())
    )


@pytest.mark.requirement("tools:receipts-name-no-secret")
@pytest.mark.parametrize("tokens", [3, 8, 100, 3_000])
def test_no_half_of_a_secret_is_left_where_output_is_cut(tokens: int) -> None:
    async def story(house: House) -> None:
        await house.prompt("look")
        await house.rest(120_000)

    output = _with_secret_across(tokens * ESTIMATED_TOKEN_BYTES // 2)
    commands = COMMANDS | {"dump": CommandScript(after_ms=50, stdout=output)}
    asked = calls("ExecCommand", cmd="dump", max_output_tokens=tokens)
    house = run_house(
        story,
        script=[rule("look", asked, says("seen"))],
        setup=shell_setup(redactor=Hides(SECRET), commands=commands),
    )
    [result] = results(house)
    assert result["truncated"]
    assert not any(half in msgspec.json.encode(result).decode() for half in HALVES)


@pytest.mark.requirement("tools:receipts-name-no-secret")
def test_no_half_of_a_secret_is_left_where_the_output_of_a_task_is_cut() -> None:
    async def story(house: House) -> None:
        await house.prompt("look")
        await house.rest(120_000)
        assert house.model.heard("dump: ended")
        assert not any(house.model.heard(half) for half in HALVES)

    output = _with_secret_across(TASK_OUTPUT_TOKENS * ESTIMATED_TOKEN_BYTES // 2)
    commands = COMMANDS | {"dump": CommandScript(after_ms=60_000, stdout=output)}
    script = [
        rule("dump: ended", says("seen")),
        rule("look", calls("ExecCommand", cmd="dump"), says("it runs on")),
    ]
    setup = shell_setup(redactor=Hides(SECRET), commands=commands)
    run_house(story, script=script, setup=setup)
