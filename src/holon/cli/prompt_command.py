"""`holon prompt`: saying something to an agent.

Owns:  what is sent, and how the answer is waited for.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from holon.cli import exit_codes
from holon.cli.piped_text import text_of
from holon.cli.runtime_call import Target, agent_options, until_interrupted
from holon.cli.typed_values import IDEMPOTENCY_KEY

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue


@click.command()
@click.argument("text")
@click.option(
    "--interject", is_flag=True, help="Into the running turn, at its next safe point, if one runs."
)
@click.option(
    "--idempotency-key",
    type=IDEMPOTENCY_KEY,
    metavar="KEY",
    help="The same key with the same text is one message, however often it is sent.",
)
@click.option("--wait", "waits", is_flag=True, help="Stay until the agent has answered.")
@agent_options
def prompt(
    target: Target, *, text: str, interject: bool, idempotency_key: str | None, waits: bool
) -> None:
    """Say something to an agent of a running runtime.

    It is in the agent's queue, for good, when this command ends. The text - is read from stdin.
    With --wait the answer is printed as well; Ctrl-C ends the waiting, not the work.

    \b
    Exit codes:
      0  it is queued; with --wait, it was answered
      1  no runtime runs, it declined, or the turn failed
      2  the text or the options cannot be used

    \b
    Examples:
      holon prompt "Is the build green?"
      holon prompt --agent builder --wait "Run the tests and tell me what fails."
      git diff | holon prompt --wait -
      holon prompt --interject "Leave the docs for later."
      holon prompt --idempotency-key "nightly-$(date +%F)" "Prepare the nightly report."
    """
    said = text_of(text)
    if not said.strip():
        raise click.UsageError("there is nothing to say: the text is empty")
    after_seq = _newest_seq(target) if waits else 0
    body = {"text": said, "interject": True} if interject else {"text": said}
    receipt = target.control("prompt", body, part="message_id", idempotency_key=idempotency_key)
    is_held = _tell_if_held(target, receipt)
    if waits:
        _show_answer(target, receipt, after_seq, is_told=is_held)
    else:
        again = " (it was already there, under the same key)" if receipt.get("duplicate") else ""
        target.show(
            receipt, lambda: [f"queued for {receipt['agent_id']}: {receipt['message_id']}{again}"]
        )


def _newest_seq(target: Target) -> int:
    page = target.read("events", {"limit": 1, "order": "desc"})
    return int(page.get("newest_seq") or 0)


def _tell_if_held(target: Target, receipt: "JsonValue") -> bool:
    """Say that a used-up budget keeps the message from being answered, if it is so."""
    pace = target.read("status").get("pace") or {}
    until = pace.get("held_until") or (pace.get("used_up") or {}).get("until")
    if until is None:
        return False
    # The budget may have been used up by the answer to this very message.
    if target.read(f"messages/{receipt['message_id']}").get("state") != "queued":
        return False
    from holon.cli.awaited_answer import BUDGET_HOLD

    _tell_held(until, BUDGET_HOLD)
    return True


def _tell_held(until: "JsonValue", why: str) -> None:
    from holon.cli.tables import moment_utc
    from holon.cli.terminal_text import one_line

    told = one_line(moment_utc(until))
    click.echo(f"holon: held until {told}: {why}", err=True)


def _show_answer(target: Target, receipt: "JsonValue", after_seq: int, *, is_told: bool) -> None:
    from holon.cli.awaited_answer import BUDGET_HOLD, await_answer

    def tell(until: "JsonValue", why: str) -> None:
        if not (is_told and why == BUDGET_HOLD):
            _tell_held(until, why)

    see = f"see: holon tail{target.agent_flag}"
    with until_interrupted(f"{receipt['agent_id']} goes on; {see}"), _accepted(receipt, see):
        answer = await_answer(target, receipt, after_seq=after_seq, told_held=tell)
    told = {**receipt, "ok": answer.is_well, **answer._asdict()}
    target.show(told, lambda: _answer_lines(answer.briefs))
    if answer.brief is None and not target.as_json:
        click.echo(f"holon: there is no answer: {answer.ended}", err=True)
    if not answer.is_well:
        sys.exit(exit_codes.FAILED)


@contextmanager
def _accepted(receipt: "JsonValue", see: str) -> Iterator[None]:
    """Let who waits know, when the runtime goes away, that nothing need be sent again."""
    try:
        yield
    except Exception as error:
        from holon.model.errors import HolonError

        if isinstance(error, HolonError):
            told = f"{receipt['message_id']} is queued and will be answered; {see}"
            error.hint = told if error.hint is None else f"{error.hint}; {told}"
        raise


def _answer_lines(briefs: "list[JsonValue]") -> list[str]:
    from holon.cli.terminal_text import plain

    return ["\n\n".join(plain(str(brief.get("text") or "")) for brief in briefs)] if briefs else []
