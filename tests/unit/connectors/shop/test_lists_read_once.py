"""Lists of a shop that are read once in a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.mapping.row_order_and_cursors import format_iso_instant_cursor
from crossdock.testing import ManualClock, context
from crossdock_connectors.shop.lists_read_once import read_list_once_per_run


@pytest.mark.parametrize(
    ("changes", "continues"),
    [
        (["2026-01-01T09:00:00", "2026-01-01T11:00:00", None], "2026-01-01T11:00:00Z"),
        (["2026-01-01T12:30:00+02:00"], "2026-01-01T10:30:00Z"),
        (["2026-01-01T12:05:00"], "2026-01-01T12:00:00Z"),
        (["2099-01-01T00:00:00", "2026-01-01T11:00:00"], "2026-01-01T11:00:00Z"),
        (["2099-01-01T00:00:00"], "2025-12-31T10:00:00Z"),
        (["soon", 7, {}], "2026-01-01T12:00:00Z"),
    ],
)
def test_a_shop_whose_clock_is_behind_loses_no_change(
    monkeypatch: pytest.MonkeyPatch, changes: list[object], continues: str
) -> None:
    """Its answers may have the time of a proxy: the next run continues at its latest change if that is earlier.

    A time in the future is none of a change.
    """
    monkeypatch.setenv("KEY", "ck_1")
    monkeypatch.setenv("SECRET", "cs_1")
    settings = {"base_url": "https://shop.example", "consumer_key": "env:KEY", "consumer_secret": "env:SECRET"}
    clock = ManualClock()
    clock.advance(43_200)
    assert format_iso_instant_cursor(clock.now()) == "2026-01-01T12:00:00Z"
    ctx = context(load_connector("woocommerce"), settings, clock=clock)
    pages = [([{"id": 1, "changed": each} for each in changes], "page 1")]
    assert (
        read_list_once_per_run(ctx, "orders", None, lambda: iter(pages), change_time_member="changed").cursor
        == continues
    )


def test_a_slow_list_of_a_shop_whose_clock_is_behind_is_continued_before_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its latest change is an hour behind the clock of the answers, so the first page was that of an hour before."""
    monkeypatch.setenv("KEY", "ck_1")
    monkeypatch.setenv("SECRET", "cs_1")
    settings = {"base_url": "https://shop.example", "consumer_key": "env:KEY", "consumer_secret": "env:SECRET"}
    clock = ManualClock()

    def pages() -> Iterator[tuple[list[object], str]]:
        for changed in ("2025-12-31T22:30:00", "2026-01-01T01:00:00"):
            clock.advance(7_200)
            yield [{"id": 1, "changed": changed}], "page"

    ctx = context(load_connector("woocommerce"), settings, clock=clock)
    assert (
        read_list_once_per_run(ctx, "orders", None, pages, change_time_member="changed").cursor
        == "2025-12-31T23:00:00Z"
    )
