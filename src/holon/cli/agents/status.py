"""`holon status`: one agent on one screen.

Owns:  which parts of an agent's summary are shown, and in which order.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console.options import with_home
from holon.cli.console.runtime_call import Target, agent_options, as_object

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_DOLLAR_MICROS: Final = 1_000_000


@click.command()
@agent_options
def status(target: Target) -> None:
    """Show what an agent does and what it waits for.

    \b
    Exit codes:
      0  success
      1  no runtime runs, or it has no such agent

    \b
    Examples:
      holon status
      holon status --agent builder
      holon status --json | jq .scheduling_posture
    """
    show_status(target)


def show_status(target: Target) -> None:
    """Print the summary of the selected agent."""
    if target.named_agent is None:  # the runtime knows whom that means: one call less
        answer = as_object(target.client.get_json("/status"), "agent")
    else:
        answer = target.read("status", part="agent")
    target.show(answer, lambda: summary_lines(answer))


def summary_lines(summary: "JsonValue") -> list[str]:
    """Return an agent's summary as facts."""
    from holon.cli.console.output import fact_lines

    return fact_lines(_facts(summary))


def _facts(summary: "JsonValue") -> Iterator[tuple[str, object]]:
    from holon.cli.console.output import counted, moment_utc, with_moments

    agent, posture = summary.get("agent") or {}, summary.get("scheduling_posture") or {}
    lifecycle, counts = summary.get("lifecycle") or {}, summary.get("counts") or {}
    model = summary.get("model") or {}
    yield "agent", agent.get("id")
    yield "status", _with(agent.get("status"), agent.get("status_reason"))
    yield "posture", _with(posture.get("posture"), with_moments(posture.get("reason")))
    yield "resume", lifecycle.get("resume_cli_hint")
    yield "queued", agent.get("pending")
    yield "turn", agent.get("current_run_id")
    yield "work item", agent.get("current_work_item_id")
    yield "rests until", moment_utc(agent.get("sleeping_until"))
    for wait in summary.get("active_wait_conditions") or ():
        yield "waits for", _with(wait.get("waiting_for"), wait.get("kind"))
    whose = {"agent_override": "this agent's own", "runtime_default": "the runtime's"}
    yield "model", _with(model.get("effective_model"), whose.get(str(model.get("source"))))
    if (active := model.get("active_model")) not in (None, model.get("requested_model")):
        yield "answered by", f"{active}; requested was {model.get('requested_model')}"
    if withheld := summary.get("withheld_tools"):
        yield "withheld", _with(", ".join(withheld), summary.get("withheld_tools_hint"))
    yield "workspace", (summary.get("active_workspace_entry") or {}).get("cwd")
    yield "has", ", ".join(counted(n, name.replace("_", " ")) for name, n in counts.items() if n)
    yield "tokens", _tokens(agent)
    yield from _pace(summary.get("pace") or {})
    yield "last pass", _closure(summary.get("closure"))
    yield "last turn", _turn(agent.get("last_turn_terminal"))
    yield "last failure", _failure(agent.get("last_runtime_failure"))
    yield "commands", _unconfined(summary.get("execution") or {})
    for problem in summary.get("agents_md_problems") or ():
        yield "problem", problem
    yield "look at", _tainted(agent.get("tainted_instructions"), agent.get("id"))


def _with(value: "JsonValue", why: "JsonValue") -> str:
    return f"{value} ({why})" if value and why else str(value or why or "")


def _tokens(agent: "JsonValue") -> str:
    from holon.cli.console.output import counted

    came, went = agent.get("total_input_tokens", 0), agent.get("total_output_tokens", 0)
    return f"{came} in, {went} out, {counted(agent.get('total_model_rounds', 0), 'rounds')}"


def _pace(pace: "JsonValue") -> Iterator[tuple[str, object]]:
    """Return the agent's budgets and what holds it; unlimited budgets are omitted."""
    from holon.cli.console.output import moment_utc

    for measure in pace.get("measures") or ():
        if measure.get("allowed") is not None:
            whose = {"agent": "this agent's", "runtime": "the runtime's"}
            figures = _figures(measure.get("measure"), measure.get("used"), measure["allowed"])
            yield "budget", _with(figures, whose.get(str(measure.get("scope"))))
    if unpriced := pace.get("unpriced_models"):
        from holon.decide.budgets.budget import unpriced_text

        yield "problem", unpriced_text(unpriced)
    if (until := pace.get("held_until")) is not None:
        yield "held until", _with(moment_utc(until), "a budget is exhausted")
    if pace.get("rests_until_outside_input"):
        yield "held until", "new external input: its own turns made no progress"


def _figures(measure: "JsonValue", used: "JsonValue", allowed: "JsonValue") -> str:
    match measure:
        case "turns_per_hour":
            return f"{used} of {allowed} turns in an hour"
        case "tokens_per_day":
            return f"{used} of {allowed} tokens in a day"
        case "cost_micros_per_day":
            return f"{_dollars(used)} of {_dollars(allowed)} in a day"
        case _:  # a nearby version counts something else
            return f"{used} of {allowed} {measure}"


def _dollars(micros: "JsonValue") -> str:
    return f"${micros / _DOLLAR_MICROS:.2f}" if isinstance(micros, int) else str(micros)


def _closure(closure: "JsonValue") -> str:
    if not closure:
        return ""
    return _with(closure.get("outcome"), closure.get("waiting_reason") or closure.get("summary"))


def _turn(turn: "JsonValue") -> str:
    from holon.cli.console.output import moment_utc, span

    if not turn:
        return ""
    ended, took = moment_utc(turn.get("completed_at")), span(turn.get("duration_ms"))
    return _with(f"{turn.get('kind')} at {ended} after {took}", turn.get("reason"))


def _failure(failure: "JsonValue") -> str:
    from holon.cli.console.output import moment_utc

    if not failure:
        return ""
    told = f"{moment_utc(failure.get('occurred_at'))}: {failure.get('summary')}"
    return _with(told, failure.get("recovery_hint"))


def _unconfined(execution: "JsonValue") -> str:
    """Return what the agent's commands may do because no boundary prevents it."""
    held, profile = execution.get("policy") or {}, execution.get("profile") or {}
    if not profile.get("process_execution_exposed"):
        return ""
    open_ones = {
        "path_confinement": "read",
        "write_confinement": "change",
        "network_confinement": "reach",
    }
    verbs = [verb for name, verb in open_ones.items() if held.get(name) == "not_enforced"]
    if not verbs:
        return ""
    return f"no sandbox: they may {', '.join(verbs)} what the user of the service may"


def _tainted(tainted: "JsonValue", agent_id: "JsonValue") -> str:
    """Return which instruction file to review because external content may have changed it."""
    from holon.cli.console.output import moment_utc

    if not tainted:
        return ""
    when, turn = moment_utc(tainted.get("changed_at")), tainted.get("turn_id")
    told = f"{tainted.get('path')}, changed at {when} in {turn}, where others had a word"
    count = tainted.get("change_count")
    look = with_home(f"holon events tail --agent {agent_id}")
    return f"{told} ({count} such so far; read it, then: {look})"
