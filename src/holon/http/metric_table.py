"""Every series the metrics have.

Owns:  names, kinds, meanings and labels, as one table; the page of the reference is made from it.
Rule 1: a label has a closed set of values, each always told: how many series there are does not
        depend on what runs here, and none names an agent.
Rule 2: names are as Prometheus has them: base units, `_total` for what only grows.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from holon.model.agent_status import AgentStatus
from holon.model.limits import SURFACE_COUNTED_COUNT_MAX
from holon.model.provider_attempt import AttemptOutcome
from holon.model.turn import TerminalKind
from holon.model.wake import WakeDisposition

Samples: TypeAlias = Mapping[str, float]  # by the label's value; by "" where there is none


class MetricKind(StrEnum):
    """What may be done with a figure."""

    COUNTER = "counter"  # only grows, and begins at 0 when the runtime starts
    GAUGE = "gauge"


class Metric(NamedTuple):
    """One row: a figure, or one for each value of its label."""

    name: str
    says: str
    kind: MetricKind = MetricKind.GAUGE
    label: str | None = None
    values: tuple[str, ...] = ("",)


REFUSED: Final = "refused"
STATUS_CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")
_COUNTER: Final = MetricKind.COUNTER
_OUTCOME: Final = "outcome"
_BOUNDED: Final = f"counting stops at {SURFACE_COUNTED_COUNT_MAX}"


def _counter(name: str, says: str) -> Metric:
    return Metric(name, says, _COUNTER)


METRICS: Final = (
    Metric("holon_info", "Which version runs; always 1.", label="version"),
    Metric("holon_uptime_seconds", "How long the runtime has been up."),
    Metric("process_start_time_seconds", "When the runtime started, in seconds since 1970."),
    Metric("process_resident_memory_bytes", "Memory in use."),
    _counter("process_cpu_seconds_total", "Processor time used."),
    Metric(
        "holon_agents",
        f"Public agents by what they are at; {_BOUNDED}.",
        label="posture",
        values=("active", "processing", "waiting"),
    ),
    Metric(
        "holon_agents_by_status",
        "Agents that are not archived, by status.",
        label="status",
        values=tuple(AgentStatus),
    ),
    Metric("holon_lanes_running", "Agents awake."),
    Metric("holon_messages_queued", "Messages that wait for their turn."),
    _counter("holon_messages_admitted_total", "Messages taken in."),
    Metric(
        "holon_turns_total",
        "Turns settled, by how they ended.",
        _COUNTER,
        _OUTCOME,
        tuple(TerminalKind),
    ),
    Metric(
        "holon_tokens_total",
        "Tokens of settled turns, as providers reported them.",
        _COUNTER,
        "direction",
        ("input", "output"),
    ),
    _counter("holon_cost_dollars_total", "What settled turns cost, where prices are known."),
    Metric(
        "holon_provider_attempts_total",
        "Attempts at providers, by how they ended.",
        _COUNTER,
        _OUTCOME,
        tuple(AttemptOutcome),
    ),
    Metric(
        "holon_tool_calls_total",
        "Tool calls, by how they ended.",
        _COUNTER,
        _OUTCOME,
        ("succeeded", "failed"),
    ),
    Metric(
        "holon_trigger_deliveries_total",
        "Deliveries to triggers, by what became of them.",
        _COUNTER,
        "disposition",
        (*WakeDisposition, REFUSED),
    ),
    _counter("holon_timers_fired_total", "Timers that fired."),
    Metric("holon_tasks_active", f"Tasks that are queued or run; {_BOUNDED}."),
    _counter("holon_rescues_total", "Agents only the backstop woke; anything but 0 is a bug."),
    _counter("holon_events_total", "Events ever recorded, earlier runs included."),
    Metric("holon_events_kept", "Events in the log."),
    Metric("holon_event_followers", "Open streams."),
    Metric(
        "holon_http_requests_total",
        "Requests answered, by class of status.",
        _COUNTER,
        "status_class",
        STATUS_CLASSES,
    ),
    Metric("holon_http_connections_open", "Open connections."),
    Metric("holon_store_used_bytes", "How much of the database is in use."),
    Metric("holon_store_database_bytes", "How large the database is."),
    Metric("holon_store_wal_bytes", "How large the log of writes before it is."),
)


def metric_lines(found: Mapping[str, Samples]) -> Iterator[str]:
    """Yield the figures in the text form, in the order of the table; each row has its own."""
    assert found.keys() == {metric.name for metric in METRICS}, "every row is measured"
    for metric in METRICS:
        yield f"# HELP {metric.name} {_escaped(metric.says)}"
        yield f"# TYPE {metric.name} {metric.kind}"
        for value, figure in found[metric.name].items():
            label = "" if metric.label is None else f'{{{metric.label}="{_quoted(value)}"}}'
            yield f"{metric.name}{label} {figure!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")
