"""``crossdock check`` of a Shopify shop: its properties, the rights of the token, and the duration of a first load."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from crossdock import Finding
from crossdock.sources import ApiAnswer, GraphQLError
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock.values.texts_of_numbers_and_times import duration_text
from crossdock_connectors.shop.shopify import queries
from crossdock_connectors.shop.shopify.changed_and_deleted_records import changed_since_moment_search
from crossdock_connectors.shop.shopify.requests_and_complete_lists import (
    ShopifyContext,
    number_in_gid_or_empty,
    request_graphql,
    request_pages,
)
from crossdock_connectors.shop.shopify.scopes import (
    APPROVAL,
    are_old_orders_hidden,
    granted_scopes,
    missing_scopes_with_streams,
    missing_target_scopes_with_purposes,
)
from crossdock_connectors.shop.shopify.settings import ShopifySettings

_NOTICE = timedelta(days=60)
"""The time before the end of an API version from which the check fails."""
_WRITTEN_PER_MINUTE = 10_000
"""The most requests that the platform accepts, one for each record."""
_LOCATIONS = 250  # in a page


def check(ctx: ShopifyContext) -> Iterator[Finding]:
    shop = request_graphql(ctx, queries.SHOP)
    yield Finding(ok=True, text=f"{shop.at('/data/shop/name')}, {shop.at('/data/shop/currencyCode')}")
    yield from _api_version_findings(shop, ctx.run.clock.now())
    scopes = granted_scopes(shop)
    lacking = [
        f"the scope {scope} is missing: needed for {names}"
        for scope, names in missing_scopes_with_streams(ctx.settings, scopes)
    ]
    yield from (Finding(ok=False, text=text, code="scopes_missing") for text in lacking)
    if not lacking:
        yield Finding(ok=True, text="the token has all scopes that the streams need")
    for scope, purpose in missing_target_scopes_with_purposes(scopes):
        yield Finding(ok=True, text=f"the scope {scope} is missing: only needed if {purpose}")
    yield from _old_orders_findings(ctx, scopes)
    if lacking:
        return
    yield from _unapproved_app_findings(ctx)
    if ctx.settings.locations:
        yield from _location_findings(ctx)
    yield from _first_load_findings(ctx)


def _api_version_findings(shop: ApiAnswer, now: datetime) -> Iterator[Finding]:
    end = datetime.fromisoformat(queries.SUPPORTED_UNTIL).replace(tzinfo=UTC)
    served = shop.headers.get("x-shopify-api-version") or queries.VERSION
    if served != queries.VERSION:
        text = f"the shop serves version {served} of its API in place of {queries.VERSION}: upgrade crossdock"
        yield Finding(ok=False, text=text, code="api_outdated")
    else:
        text = f"version {served} of its API is supported until {queries.SUPPORTED_UNTIL}"
        if end - now < _NOTICE:
            yield Finding(ok=False, text=f"{text}: upgrade crossdock", code="api_outdated")
        else:
            yield Finding(ok=True, text=text)
    if reason := shop.headers.get("x-shopify-api-deprecated-reason"):
        text = f"the shop calls a query deprecated, upgrade crossdock: {reason}"
        yield Finding(ok=False, text=text, code="api_outdated")


def _old_orders_findings(ctx: ShopifyContext, scopes: frozenset[str]) -> Iterator[Finding]:
    if "read_all_orders" not in scopes:
        text = "without the scope read_all_orders, orders older than 60 days are not seen"
        if are_old_orders_hidden(ctx.settings, scopes, ctx.run.clock.now()):
            yield Finding(ok=False, text=f"{text}: grant it, or set first", code="scopes_missing")
        else:
            yield Finding(ok=True, text=text)


def _unapproved_app_findings(ctx: ShopifyContext) -> Iterator[Finding]:
    """Request one record of each list with protected data, with the fields that are read."""
    needed = {scope for scope, _ in missing_scopes_with_streams(ctx.settings, frozenset())}
    for each in (queries.ORDERS, queries.CUSTOMERS):
        if f"read_{each.name}" not in needed:
            continue
        try:
            request_graphql(ctx, each.paged_query, first=1)
        except GraphQLError as error:
            if "ACCESS_DENIED" not in error.codes:
                raise
            text = f"{each.name}: the token has all scopes, so the app needs {APPROVAL}: {error.message}"
            yield Finding(ok=False, text=text, code="scopes_missing")


def _location_findings(ctx: ShopifyContext) -> Iterator[Finding]:
    named = ctx.settings.locations
    found = [
        (
            number_in_gid_or_empty(str(value_at_path_or_missing(node, "id"))),
            str(value_at_path_or_missing(node, "name")),
            value_at_path_or_missing(node, "isActive") is True,
        )
        for page in request_pages(ctx, "/data/locations", queries.LOCATIONS, _LOCATIONS)
        for node in page.items("/data/locations/nodes")
    ]
    known = {number for number, _, _ in found}
    for number in named:
        if number not in known:
            text = f"locations: the shop has no location {number}"
            yield Finding(ok=False, text=text, code="partner_setting_unknown")
    for number, name, is_active in found:
        if is_active and number not in named:
            yield Finding(ok=True, text=f"locations does not name {number} ({name}): its stock is left out")


def _first_load_findings(ctx: ShopifyContext) -> Iterator[Finding]:
    answer = request_graphql(ctx, queries.COUNTS, orders=changed_since_moment_search(ctx.settings.first))
    orders, variants, customers = (
        int(answer.at(f"/data/{name}/count") or 0) for name in ("ordersCount", "productVariantsCount", "customersCount")
    )
    records = _count_first_load_records(ctx.settings, orders, variants, customers)
    takes = duration_text(timedelta(minutes=max(1, records / _WRITTEN_PER_MINUTE)))
    yield Finding(ok=True, text=f"{orders:,} orders, {variants:,} variants, {customers:,} customers")
    text = f"a first load writes about {records:,} records: {takes} at {_WRITTEN_PER_MINUTE:,} a minute"
    reading = "some minutes to read them by bulk operations" if ctx.settings.bulk else "the time to read them in pages"
    yield Finding(ok=True, text=f"{text}, and {reading}")


def _count_first_load_records(settings: ShopifySettings, orders: int, variants: int, customers: int) -> int:
    """Count the records: each variant is a product, and a lot in at least one place; each order may be an invoice."""
    products = 0 if settings.product_namespace else variants
    invoices = 0 if settings.invoices == "never" else orders
    return products + variants + customers + orders + invoices
