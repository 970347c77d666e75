"""The shop's lists: orders with their refunds, products with their variations, customers.

Sources: ``WC_REST_CRUD_Controller`` and its subclasses in github.com/woocommerce/woocommerce.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from crossdock import Context
from crossdock.reading.sources.list_evidence import DoubtfulListError
from crossdock.reading.sources.retried_requests import NotFoundError
from crossdock.sources import OverlappingPages
from crossdock.values.json_paths import MISSING, at_path
from crossdock_connectors.json_rows import joined
from crossdock_connectors.shop.lists_read_once import OVERLAP, Feed, Pages, read_once
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings

WooContext = Context[WooCommerceSettings]
Item = dict[str, Any]
API = "/wp-json/wc/v3"
TOTAL = "X-WP-Total"
MOST = 100  # records on a page
MISSING_HOUR = timedelta(hours=1)
"""WordPress moves a time in spring's missing hour, by the site's clocks, one hour ahead, although it means UTC."""
UNFILTERED = (
    "the shop ignores modified_after, as those before WooCommerce 5.8 do: each run reads all orders and products"
)
STATUSES = ("any", "trash")  # any is all but the trash; the trash comes last, as an order may move there meanwhile
_OF_PARENT = frozenset({"id", "name", "status"})
EXACT = {"dp": "8"}
"""Asks for the amounts of orders and refunds with the decimals that the shop stores. It shows others, as for prices in
SEK without decimals, whose rounded lines do not add up."""
OF_STOCK = "id,sku,name,type,manage_stock,stock_quantity"


def pages(ctx: WooContext, path: str, change: str | tuple[str, ...] = "id", **params: str | None) -> Pages:
    """Yield the records of a list in the order of their ids, or by *params* with *change*, and each page's address."""
    size = ctx.settings.page_size or MOST
    paginator = OverlappingPages(change=change, total=TOTAL, size=size, size_param="per_page")
    asked = {"orderby": "id", "order": "asc", **params}
    for page in ctx.api.pages(f"{API}/{path}", asked, paginator=paginator):
        yield page.items(""), page.address


# ---- orders


def orders(ctx: WooContext, since: str | None) -> Feed:
    """Return the orders that changed since *since*, with full refunds, including those in the trash."""
    first, *others = STATUSES
    return read_once(ctx, "orders", since, lambda: _orders(ctx, since, [first]), lambda: _orders(ctx, since, others))


def _orders(ctx: WooContext, since: str | None, statuses: Iterable[str]) -> Pages:
    begin, doubts = datetime.fromisoformat(since) - OVERLAP if since else ctx.settings.first, list[DoubtfulListError]()
    for status in statuses:
        # Orders in tables of their own are sorted by the time in UTC, those among WordPress's posts by the local one.
        change = ("date_modified_gmt", "date_modified")
        for records, source in _changed(ctx, "orders", begin, change, status=status, **EXACT):
            yield [with_refunds(ctx, order, doubts) for order in records], source
    if doubts:
        raise doubts[0]


def with_refunds(ctx: WooContext, order: Any, doubts: list[DoubtfulListError] | None = None) -> Any:
    """Return *order* with full refunds. If some may be missing, it is marked, and *doubts* get the reason."""
    number = number_of(order)
    if number is None or at_path(order, "refunds") in ([], None, MISSING):
        return order
    found: list[Any] = []
    try:
        for page in ctx.api.pages(f"{API}/orders/{number}/refunds", {"per_page": MOST, **EXACT}):
            found += page.items("")
    except DoubtfulListError as doubt:
        if doubts is None:
            raise
        doubts.append(doubt)
        return {**order, "refunds": found, "refundsHasMore": True}  # what needs all of them is a dead letter
    except NotFoundError:
        ctx.run.note(ctx.connection, f"order {number} was deleted while it was read, and is read without its refunds")
    return {**order, "refunds": found}


def order_keys(ctx: WooContext) -> Feed:
    """Return all orders with the members that determine their keys and those of their customers."""
    fields = "id,customer_id,billing.email"
    return read_once(
        ctx,
        "order-keys",
        None,
        lambda: (page for each in STATUSES for page in pages(ctx, "orders", status=each, _fields=fields)),
    )


# ---- customers


def customers(ctx: WooContext) -> Feed:
    """Return all accounts of any role. The list cannot be filtered by time."""
    return read_once(ctx, "customers", None, lambda: pages(ctx, "customers", role="all"))


# ---- products


def products(ctx: WooContext, since: str | None) -> Pages:
    """Yield the variants that changed since *since*. All variants of a product with a changed variation count."""
    begin, doubts = datetime.fromisoformat(since) - OVERLAP if since else None, list[DoubtfulListError]()
    for records, source in _changed(ctx, "products", begin, "date_modified", status="any"):
        yield list(variants(ctx, records, doubts=doubts)), source
    if doubts:
        raise doubts[0]


def catalog(ctx: WooContext) -> Feed:
    def read() -> Pages:
        doubts = list[DoubtfulListError]()
        for records, source in pages(ctx, "products", status="any", _fields=OF_STOCK):
            yield list(variants(ctx, records, OF_STOCK, doubts)), source
        if doubts:
            raise doubts[0]

    return read_once(ctx, "catalog", None, read)


def variants(
    ctx: WooContext, products: Iterable[Any], fields: str | None = None, doubts: list[DoubtfulListError] | None = None
) -> Iterator[Any]:
    """Yield simple products, and variations with their ``parent``; a variable product only if it keeps their stock.

    Lists of variations that may lack some are added to *doubts*, so that those of other products are read.
    """
    for product in products:
        if not str(at_path(product, "type")).startswith("variable"):
            yield product
            continue
        if at_path(product, "manage_stock") is True:
            yield product
        try:
            yield from _variations(ctx, product, fields)
        except DoubtfulListError as doubt:
            if doubts is None:
                raise
            doubts.append(doubt)


def _variations(ctx: WooContext, product: Item, fields: str | None) -> Iterator[Any]:
    number = number_of(product)
    parent = {name: value for name, value in product.items() if name in _OF_PARENT}
    try:
        for records, _ in pages(ctx, f"products/{number}/variations", status="any", _fields=fields):
            for record in records:
                yield joined(record, parent=parent)
    except NotFoundError:
        ctx.run.note(ctx.connection, f"product {number} was deleted while it was read; its variations are left out")


# ---- changes


def _changed(ctx: WooContext, path: str, begin: datetime | None, change: str | tuple[str, ...], **params: str) -> Pages:
    """Yield the records of a list that changed at *begin* or later, oldest change first; all of them with None."""
    if begin is None:
        yield from pages(ctx, path, change, orderby="modified", **params)
        return
    bound = written(begin - MISSING_HOUR)
    filtered = {**params, "modified_after": bound, "dates_are_gmt": "true"}
    for records, source in pages(ctx, path, change, orderby="modified", **filtered):
        if any(_is_older(record, bound) for record in records):
            ctx.shared("woocommerce.unfiltered", lambda: ctx.run.warn(ctx.connection, UNFILTERED))
        yield [record for record in records if not _is_older(record, written(begin))], source


def _is_older(record: Any, than: str) -> bool:
    found = at_path(record, "date_modified_gmt")
    return isinstance(found, str) and found < than


def written(moment: datetime) -> str:
    """Format *moment* in UTC, to the second and without a zone: WooCommerce would move a time with one."""
    return moment.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat()


def number_of(record: Any) -> str | None:
    found = at_path(record, "id")
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else None
