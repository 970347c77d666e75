"""The page about the metrics, from the code that serves them."""

from __future__ import annotations

from collections.abc import Iterator

from crossdock.services.observability.health_and_metrics import METRICS, RUN_METRICS
from site_builder.markdown_text import code, escaped, table


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of the page."""
    rows = [
        (
            code(f"crossdock_{name}"),
            "counter" if name.endswith("_total") else "gauge",
            ", ".join(code(label) for label in labels),
            escaped(about),
        )
        for name, (about, labels) in METRICS.items()
    ]
    text = (
        "# Metrics\n\nWhat `crossdock schedule --health [HOST:]PORT` and `crossdock listen --health [HOST:]PORT` serve"
        " at `/metrics`, in Prometheus's text format.\n\n"
        + table(("metric", "type", "labels", "meaning"), rows)
        + "\nWith `--fleet`, the metrics of runs have the label `tenant` as well: "
        + ", ".join(code(f"crossdock_{name}") for name in RUN_METRICS)
        + ". Those of the inbox, of webhooks and of the allowance are not served.\n"
    )
    yield "reference/metrics.md", text
