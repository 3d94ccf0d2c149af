"""Figures for whoever watches the runtime over time.

Owns:  the metrics route and the text form its readers expect.
Rule 1: only what is cheap to know: a look is a few indexed counts, however many agents there are.
Rule 2: no label names an agent: how many series there are does not depend on what runs here.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from holon.http.exchange import Reply
from holon.http.plane import Plane
from holon.http.route import Access, Call, Route

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One series, or a few that differ in a label."""

    name: str
    kind: str  # counter or gauge
    says: str
    samples: tuple[tuple[str, float], ...]  # label part, value


async def metrics(plane: Plane, call: Call) -> Reply:
    """Tell the figures."""
    del call
    lines = [line for metric in await _measured(plane) for line in _lines(metric)]
    return Reply(status=200, body=("\n".join(lines) + "\n").encode(), content_type=MEDIA.encode())


async def _measured(plane: Plane) -> tuple[Metric, ...]:
    host, usage = plane.host, plane.usage()
    activity = await host.reads.runtime_activity()
    agents = (
        ('{posture="active"}', activity.active_agent_count),
        ('{posture="processing"}', activity.processing_agent_count),
        ('{posture="waiting"}', activity.waiting_agent_count),
    )
    event_count = await host.reads.last_log_seq()
    return (
        Metric("holon_info", "gauge", "Which version runs.", _labelled(plane.facts.version)),
        Metric(
            "process_start_time_seconds",
            "gauge",
            "When the runtime started, in seconds since the epoch.",
            _one(plane.facts.started_at.timestamp()),
        ),
        Metric(
            "process_resident_memory_bytes",
            "gauge",
            "Memory in use.",
            _one(usage.resident_bytes),
        ),
        Metric("process_cpu_seconds_total", "counter", "Processor time used.", _one(usage.cpu_s)),
        Metric("holon_agents", "gauge", "Public agents by what they are at.", agents),
        Metric("holon_tasks_active", "gauge", "Open tasks.", _one(activity.active_task_count)),
        Metric("holon_lanes_running", "gauge", "Agents awake.", _one(host.running_count)),
        Metric(
            "holon_rescues_total",
            "counter",
            "How often the backstop had to wake an agent; anything but 0 is a bug.",
            _one(host.rescue_count),
        ),
        Metric("holon_events_total", "counter", "Events ever recorded.", _one(event_count)),
        Metric("holon_event_followers", "gauge", "Open streams.", _one(host.events.follower_count)),
        Metric(
            "holon_http_connections_open",
            "gauge",
            "Open connections.",
            _one(plane.traffic.open_count()),
        ),
        Metric(
            "holon_store_used_bytes",
            "gauge",
            "How much of the database is in use.",
            _one(await host.reads.used_bytes()),
        ),
    )


def _one(value: float) -> tuple[tuple[str, float], ...]:
    return (("", value),)


def _labelled(version: str) -> tuple[tuple[str, float], ...]:
    escaped = version.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return ((f'{{version="{escaped}"}}', 1),)


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.says}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in metric.samples:
        yield f"{metric.name}{labels} {value!r}"


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="GET",
        path="/metrics",
        access=Access.READ,
        summary="Counters and gauges of the runtime, in the Prometheus text form.",
        answer=metrics,
        returns=str,
        media=MEDIA,
        tags=("runtime",),
    ),
)
