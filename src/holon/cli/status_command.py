"""`holon status`: one agent, on one screen.

Owns:  which parts of an agent's summary a person is shown, and in which order.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from holon.cli.runtime_call import Target, agent_options, as_object

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue


@click.command()
@agent_options
def status(target: Target) -> None:
    """Say what an agent is doing and what it waits for.

    \b
    Exit codes:
      0  here it is
      1  no runtime runs, or it has no such agent

    \b
    Examples:
      holon status
      holon status --agent builder
      holon status --json | jq .scheduling_posture
    """
    show_status(target)


def show_status(target: Target) -> None:
    """Print the summary of the agent that is meant."""
    if target.named_agent is None:  # the runtime knows whom that means: one call less
        answer = as_object(target.client.get_json("/status"), "agent")
    else:
        answer = target.read("status", part="agent")
    target.show(answer, lambda: summary_lines(answer))


def summary_lines(summary: "JsonValue") -> list[str]:
    """Return an agent's summary as facts."""
    from holon.cli.tables import fact_lines

    return fact_lines(_facts(summary))


def _facts(summary: "JsonValue") -> Iterator[tuple[str, object]]:
    agent, posture = summary.get("agent") or {}, summary.get("scheduling_posture") or {}
    lifecycle, counts = summary.get("lifecycle") or {}, summary.get("counts") or {}
    model = summary.get("model") or {}
    yield "agent", agent.get("id")
    yield "status", _with(agent.get("status"), agent.get("status_reason"))
    yield "posture", _with(posture.get("posture"), posture.get("reason"))
    yield "resume", lifecycle.get("resume_cli_hint")
    yield "queued", agent.get("pending")
    yield "turn", agent.get("current_run_id")
    yield "work item", agent.get("current_work_item_id")
    yield "rests until", agent.get("sleeping_until")
    for wait in summary.get("active_wait_conditions") or ():
        yield "waits for", _with(wait.get("waiting_for"), wait.get("kind"))
    whose = {"override": "this agent's own", "runtime_default": "the runtime's"}
    yield "model", _with(model.get("effective_model"), whose.get(str(model.get("source"))))
    yield "workspace", (summary.get("active_workspace_entry") or {}).get("cwd")
    yield "has", ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if n)
    yield "tokens", _tokens(agent)
    yield "last pass", _closure(summary.get("closure"))
    yield "last turn", _turn(agent.get("last_turn_terminal"))
    yield "last failure", _failure(agent.get("last_runtime_failure"))


def _with(value: "JsonValue", why: "JsonValue") -> str:
    return f"{value} ({why})" if value and why else str(value or why or "")


def _tokens(agent: "JsonValue") -> str:
    came, went = agent.get("total_input_tokens", 0), agent.get("total_output_tokens", 0)
    return f"{came} in, {went} out, {agent.get('total_model_rounds', 0)} rounds"


def _closure(closure: "JsonValue") -> str:
    if not closure:
        return ""
    return _with(closure.get("outcome"), closure.get("waiting_reason") or closure.get("summary"))


def _turn(turn: "JsonValue") -> str:
    from holon.cli.tables import moment, span

    if not turn:
        return ""
    ended, took = moment(turn.get("completed_at")), span(turn.get("duration_ms"))
    return _with(f"{turn.get('kind')} at {ended} after {took}", turn.get("reason"))


def _failure(failure: "JsonValue") -> str:
    from holon.cli.tables import moment

    if not failure:
        return ""
    told = f"{moment(failure.get('occurred_at'))}: {failure.get('summary')}"
    return _with(told, failure.get("recovery_hint"))
