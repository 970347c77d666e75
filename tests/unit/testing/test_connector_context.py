"""The context for tests of a connector, and reading with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from tests.unit.cli.conftest import CONFIG
from tests.unit.testing.reference_connector import PAGES, TOKEN, Orders, OrdersContract, ShopSettings, connector

from crossdock import Connector, Context, RawBatch, testing
from crossdock.errors import ConfigError, UnauthorizedError, UnavailableError
from crossdock.testing import ManualClock, context, read, read_config

SHOP = connector(Orders)
SETTINGS = {"base_url": "https://shop.example", "token": "env:SHOP_TOKEN"}


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)


def test_a_stream_is_read_over_the_transport(tmp_path: Path) -> None:
    """The client of the stream uses it without being told, and relative paths start in the folder."""
    ctx = context(SHOP, SETTINGS, transport=OrdersContract().transport(PAGES), folder=tmp_path)
    trial = read(SHOP, ctx, "orders", most=3)
    assert [tried.record.key for tried in trial.records] == ["1", "2", "3"]
    assert trial.error is None
    assert ctx.run.work.is_relative_to(tmp_path)


def test_waiting_takes_no_time() -> None:
    """Attempts are repeated at once, on a clock that only they advance."""
    clock = ManualClock()
    ctx = context(SHOP, SETTINGS, transport=httpx.MockTransport(lambda _: httpx.Response(503)), clock=clock)
    assert isinstance(read(SHOP, ctx, "orders").error, UnavailableError)
    assert clock.monotonic() > 0


def test_an_error_is_in_the_result_beside_what_was_read() -> None:
    """A token that expires after the first page leaves its records."""
    pages = OrdersContract().transport(PAGES)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(401) if "page" in request.url.params else pages.handle_request(request)

    trial = read(SHOP, context(SHOP, SETTINGS, transport=httpx.MockTransport(answer)), "orders")
    assert [tried.record.key for tried in trial.records] == ["1", "2"]
    assert isinstance(trial.error, UnauthorizedError)


def without_an_answer(request: httpx.Request) -> httpx.Response:
    """A fake with a mistake."""
    return httpx.Response(200, json={"orders": PAGES[0][request.url.path]})


class FakeShop(httpx.BaseTransport):
    """The same as a class."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return without_an_answer(request)


class Suppressing(Orders):
    """A stream that suppresses all errors."""

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        with suppress(Exception):
            yield from super().pull(ctx, since)


@pytest.mark.parametrize("transport", [httpx.MockTransport(without_an_answer), FakeShop()], ids=["function", "class"])
@pytest.mark.parametrize("shop", [SHOP, connector(Suppressing)], ids=["told", "suppressed"])
def test_a_mistake_in_the_transport_of_a_test_names_its_line(
    shop: Connector[ShopSettings], transport: httpx.BaseTransport
) -> None:
    """And not the method `pull`, even if the stream suppresses errors."""
    error = read(shop, context(shop, SETTINGS, transport=transport), "orders").error
    line = without_an_answer.__code__.co_firstlineno + 2
    assert f"the transport of the test raised KeyError in line {line} of {__file__}" in str(error)
    assert "pull" not in str(error)


def test_a_mistake_in_the_transport_of_a_contract_fails_with_its_line() -> None:
    """In the tests of syncs, too."""

    class Case(OrdersContract):
        def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:
            return httpx.MockTransport(without_an_answer)

        now = datetime(2026, 11, 23, tzinfo=UTC)

    for test in ("the_example_is_read_and_mapped", "a_second_sync_sends_nothing"):
        with pytest.raises(AssertionError, match="the transport of the test raised KeyError in line"):
            getattr(Case(), f"test_{test}")()


def test_wrong_settings_and_names_are_refused() -> None:
    """As in a config file."""
    with pytest.raises(ValidationError):
        context(SHOP, {"base_url": 7})
    with pytest.raises(ConfigError, match="has no stream 'order'; it has: orders"):
        read(SHOP, context(SHOP, SETTINGS), "order")


def test_a_config_is_read_without_a_state(tmp_path: Path) -> None:
    """Files count as settled, and nothing is created beside them."""
    (tmp_path / "c.yaml").write_text(CONFIG.replace("    settle_s: 0\n", ""), encoding="utf-8")
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "items.csv").write_text("SKU,NAME,PRICE\n0017,Lamp,1.50\n", encoding="utf-8")
    (tried,) = read_config(tmp_path / "c.yaml", "wms.products").records
    assert tried.members is not None
    assert tried.members["sku"] == "0017"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.yaml", "exports"]


def test_the_package_has_what_it_names() -> None:
    """Every exported name is there."""
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = testing.Nonsense  # type: ignore[attr-defined]  # it is wrong
