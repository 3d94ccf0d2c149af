"""`holon prompt`: send a prompt to an agent.

Owns:  the request, and waiting for the answer.
Rule 1: the message is queued by a separate request, so that the command can always report it as
        queued, however the wait ends.
Rule 2: the runtime waits for a bounded time; repeating the request with the same key waits again.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console import exit_codes
from holon.cli.console.options import IDEMPOTENCY_KEY, text_of
from holon.cli.console.runtime_call import Target, agent_options, as_object, until_interrupted

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_PAUSE_S: Final = 0.2
_UNAVAILABLE: Final = 503
_ENDED_WELL: Final = ("processed", "interjected")
_NOT_WAITED: Final = ("too_many_waits", "runtime_ends")
_BUDGET: Final = "budget_used_up"
_HOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        _BUDGET: "a budget is exhausted",
        "provider_deferred": "the provider takes no more before then",
    }
)


@click.command()
@click.argument("text")
@click.option(
    "--interject",
    is_flag=True,
    help="Deliver into the running turn, if any, at its next safe point.",
)
@click.option(
    "--idempotency-key",
    type=IDEMPOTENCY_KEY,
    metavar="KEY",
    help="Repeated prompts with the same key and text are one message.",
)
@click.option("--wait", "waits", is_flag=True, help="Wait until the agent has answered.")
@agent_options
def prompt(
    target: Target, *, text: str, interject: bool, idempotency_key: str | None, waits: bool
) -> None:
    """Send a prompt to an agent of a running runtime.

    The prompt is durably queued when this command ends. The text - is read from stdin.
    With --wait the answer is printed as well; Ctrl-C ends the wait, not the work.

    \b
    Exit codes:
      0  it is queued; with --wait, it was answered
      1  no runtime runs, it refused the prompt, or the turn failed
      2  the text or the options are invalid

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
        raise click.UsageError("the text is empty")
    body: dict[str, JsonValue] = {"text": said}
    if interject:
        body["interject"] = True
    if waits and idempotency_key is None:
        idempotency_key = _fresh_key()  # each request that waits for it names the same message
    receipt = target.control("prompt", body, part="message_id", idempotency_key=idempotency_key)
    is_held = _tell_if_held(target, receipt)
    if waits:
        from holon.model.limits import CLIENT_PROMPT_WAIT_MS

        body["wait_ms"] = CLIENT_PROMPT_WAIT_MS
        wait = partial(target.control, "prompt", body, idempotency_key=idempotency_key)
        _show_answer(target, receipt, wait, is_told=is_held)
    else:
        again = " (it was already there, under the same key)" if receipt.get("duplicate") else ""
        target.show(
            receipt, lambda: [f"queued for {receipt['agent_id']}: {receipt['message_id']}{again}"]
        )


def _fresh_key() -> str:
    from holon.adapters.system.ids import TimeOrderedIds
    from holon.model.values import IdPrefix

    return f"wait-{TimeOrderedIds().fresh(IdPrefix.MESSAGE)}"


def _tell_if_held(target: Target, receipt: "JsonValue") -> bool:
    """Print that an exhausted budget delays the message, if so."""
    pace = target.read("status").get("pace") or {}
    until = pace.get("held_until") or (pace.get("used_up") or {}).get("until")
    if until is None:
        return False
    # The budget may have been used up by the answer to this very message.
    if target.read(f"messages/{receipt['message_id']}").get("state") != "queued":
        return False
    _tell_held(until, _BUDGET)
    return True


def _tell_held(until: "JsonValue", by: str) -> None:
    from holon.cli.console.output import moment_utc
    from holon.cli.console.terminal_text import one_line

    told = one_line(moment_utc(until))
    click.echo(f"holon: held until {told}: {_HOLDS[by]}", err=True)


def _show_answer(
    target: Target, receipt: "JsonValue", wait: Callable[[], "JsonValue"], *, is_told: bool
) -> None:
    see = f"see: holon tail{target.agent_flag}"
    with until_interrupted(f"{receipt['agent_id']} goes on; {see}"), _accepted(receipt, see):
        answer = _awaited(wait, is_told=is_told)
    briefs, ended = answer.get("briefs") or [], str(answer.get("ended"))
    last = briefs[-1] if briefs else None
    failed = last is not None and last.get("kind") == "failure"
    is_well = ended in _ENDED_WELL and not failed
    outcome = {"ok": is_well, "ended": ended, "brief": last, "briefs": briefs}
    target.show({**receipt, **outcome}, lambda: _answer_lines(briefs))
    if last is None and not target.as_json:
        click.echo(f"holon: no answer: {ended}", err=True)
    if not is_well:
        sys.exit(exit_codes.FAILED)


def _awaited(wait: Callable[[], "JsonValue"], *, is_told: bool) -> "JsonValue":
    """Repeat the waiting request until the message has ended; print what delays it."""
    told = set[tuple[str, str]]()
    while True:
        answer = as_object(_repeated(wait), "answered")
        if answer["answered"]:
            return answer
        until, by = str(answer.get("held_until")), str(answer.get("held_by"))
        is_known = (until, by) in told or (is_told and by == _BUDGET)
        if by in _HOLDS and not is_known:
            told.add((until, by))
            _tell_held(until, by)
        if answer.get("wait_end") in _NOT_WAITED:
            time.sleep(_PAUSE_S)


def _repeated(wait: Callable[[], "JsonValue"]) -> "JsonValue":
    """Repeat the request while the runtime is unavailable, for the duration of a restart."""
    from holon.client.connection import ForeignServerError, SilentRuntimeError
    from holon.client.control_client import ControlError
    from holon.client.endpoint import NoRuntimeError
    from holon.model.limits import CLIENT_RECONNECT_MS_MAX, CLIENT_RECONNECTS_COUNT_MAX, SECOND_MS

    pause_s = _PAUSE_S
    for _ in range(CLIENT_RECONNECTS_COUNT_MAX):
        try:
            return wait()
        except (NoRuntimeError, SilentRuntimeError, ForeignServerError):
            pass
        except ControlError as error:
            if error.status != _UNAVAILABLE:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, CLIENT_RECONNECT_MS_MAX / SECOND_MS)
    return wait()


@contextmanager
def _accepted(receipt: "JsonValue", see: str) -> Iterator[None]:
    """Report, if the runtime becomes unavailable, that the message is queued."""
    try:
        yield
    except Exception as error:
        from holon.model.errors import HolonError

        if isinstance(error, HolonError):
            told = f"{receipt['message_id']} is queued and will be answered; {see}"
            error.hint = told if error.hint is None else f"{error.hint}; {told}"
        raise


def _answer_lines(briefs: "list[JsonValue]") -> list[str]:
    from holon.cli.console.terminal_text import plain

    return ["\n\n".join(plain(str(brief.get("text") or "")) for brief in briefs)] if briefs else []
