"""The page that lists the metrics, from their table.

Owns:  how a row is put into Markdown.
"""

from collections.abc import Iterator

from holon.http.metrics import METRICS, Metric


def metric_rows() -> Iterator[str]:
    """Yield a table of every series."""
    yield from ("| name | kind | label | what it says |", "|---|---|---|---|")
    for metric in METRICS:
        yield f"| `{metric.name}` | {metric.kind} | {_label(metric)} | {metric.says} |"


def _label(metric: Metric) -> str:
    if metric.label is None:
        return ""
    values = ", ".join(f"`{value}`" for value in metric.values if value)
    return f"`{metric.label}`" + (f": {values}" if values else "")
