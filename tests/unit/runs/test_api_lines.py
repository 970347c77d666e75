"""The requests to the APIs that a run read, as sentences."""

from __future__ import annotations

from crossdock.runs import tables_and_sentences_of_run


def test_each_connection_has_a_sentence() -> None:
    """A wait is stated from a second on."""
    apis = {
        "shop": {"requests": 3_640, "throttled": 2, "waited_ms": 90_000},
        "wms": {"requests": 1, "throttled": 0, "waited_ms": 999},
    }
    assert list(tables_and_sentences_of_run.api_usage_sentences(apis)) == [
        "shop: 3,640 API requests (2 throttled), waited 1 min 30 s for the rate limit",
        "wms: 1 API request (0 throttled)",
    ]
