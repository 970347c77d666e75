"""The generated part of the reference, which is not in the repository."""

from __future__ import annotations

from itertools import chain

from site_builder import (
    api_pages,
    command_pages,
    config_pages,
    error_pages,
    fact_pages,
    json_pages,
    metric_page,
    resource_page,
)


def generated() -> dict[str, str]:
    """Return the text of each generated page by its path below docs/."""
    makers = (command_pages, json_pages, config_pages, resource_page, api_pages, error_pages, metric_page, fact_pages)
    return dict(chain.from_iterable(each.pages() for each in makers))
