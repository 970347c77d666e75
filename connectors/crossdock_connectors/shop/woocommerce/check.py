"""``crossdock check`` of a WooCommerce shop."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime

from crossdock import Finding
from crossdock.errors import RemoteError, UnauthorizedError
from crossdock.sources import ApiAnswer
from crossdock_connectors.shop.lists_read_once import OVERLAP
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import API, MOST, TOTAL, UNFILTERED, WooContext

_FAR = {"modified_after": "2999-01-01T00:00:00", "dates_are_gmt": "true"}


def check(ctx: WooContext) -> Iterator[Finding]:
    size = ctx.settings.page_size or MOST
    begun = ctx.run.clock.monotonic()
    page = ctx.api.get(f"{API}/orders", {"status": "any", "per_page": size})
    took_s = ctx.run.clock.monotonic() - begun
    page.items("")
    yield _first_load_duration_finding(page, size, took_s)
    yield _clock_finding(page, ctx.run.clock.now())
    for name in ("products", "customers"):
        yield _permission_finding(ctx, name)
    yield _change_filter_finding(ctx)


def _first_load_duration_finding(page: ApiAnswer, size: int, took_s: float) -> Finding:
    orders = _total_in_header(page)
    if orders is None:
        text = f"{page.address} responds without {TOTAL}: a proxy or cache may remove it, and lists cannot be read"
        return Finding(ok=False, text=text, code="answer_misplaced")
    requests = -(-orders // size)
    needed = f"a first load reads them in about {_duration_text(requests * took_s)}, with {requests:,} requests"
    return Finding(ok=True, text=f"{page.address} responds; it has {orders:,} orders: {needed}")


def _duration_text(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _clock_finding(page: ApiAnswer, now: datetime) -> Finding:
    try:
        differs_s = abs((parsedate_to_datetime(page.headers.get("date", "")) - now).total_seconds())
    except (TypeError, ValueError):
        return Finding(ok=True, text="the shop does not tell its time")
    text = f"the clocks of the shop and of this machine differ by {_duration_text(differs_s)}"
    if differs_s < OVERLAP.total_seconds() / 2:
        return Finding(ok=True, text=text)
    return Finding(ok=False, text=f"{text}: changes may be missed; set them right", code="clock_differs")


def _permission_finding(ctx: WooContext, name: str) -> Finding:
    try:
        page = ctx.api.get(f"{API}/{name}", {"per_page": 1, "_fields": "id"})
    except (UnauthorizedError, RemoteError) as error:
        text = f"{name} cannot be read: {error.message}"
        return Finding(ok=False, text=text, code=error.code, category=error.category)
    return Finding(ok=True, text=f"{_total_in_header(page) or 0:,} {name}")


def _change_filter_finding(ctx: WooContext) -> Finding:
    page = ctx.api.get(f"{API}/orders", {"status": "any", "per_page": 1, "_fields": "id", **_FAR})
    if page.items(""):
        return Finding(ok=False, text=UNFILTERED, code="filter_ignored")
    return Finding(ok=True, text="the shop lists what has changed")


def _total_in_header(page: ApiAnswer) -> int | None:
    text = page.headers.get(TOTAL.lower(), "")
    return int(text) if text.isascii() and text.isdigit() else None
