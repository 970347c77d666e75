"""The shop's lists: orders with their refunds, products with their variations, customers; and records by their ids.

Sources: ``WC_REST_CRUD_Controller`` and its subclasses in github.com/woocommerce/woocommerce. An empty ``include``
names all records, so nothing is requested without ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from crossdock import Context
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.sources import NotFoundError, OverlappingPages
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import UnreadParts, with_added_members
from crossdock_connectors.shop.lists_read_once import OVERLAP, Pages, StoredList, read_list_once_per_run
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
_ADDRESSES = ("billing", "shipping")
EXACT = {"dp": "8"}
"""Asks for the amounts of orders and refunds with the decimals that the shop stores. It shows others, as for prices in
SEK without decimals, whose rounded lines do not add up."""
OF_STOCK = "id,sku,name,type,manage_stock,stock_quantity"


def request_list_pages(
    ctx: WooContext, path: str, sorted_by: str | tuple[str, ...] = "id", **params: str | None
) -> Pages:
    """Yield the records of a list by their ids, or by *params* with *sorted_by*, and the address of each page."""
    size = ctx.settings.page_size or MOST
    paginator = OverlappingPages(change=sorted_by, total=TOTAL, size=size, size_param="per_page")
    asked = {"orderby": "id", "order": "asc", **params}
    for page in ctx.api.pages(f"{API}/{path}", asked, paginator=paginator):
        yield [with_empty_address_objects(record) for record in page.items("")], page.address


def with_empty_address_objects(record: Any) -> Any:
    """Return *record* with an empty object for an address that is ``[]``: PHP has one empty array for both."""
    empty: Item = {name: {} for name in _ADDRESSES if value_at_path_or_missing(record, name) == []}
    return {**record, **empty} if empty else record


# ---- orders


def stored_changed_orders(ctx: WooContext, since: str | None) -> StoredList:
    """Return the orders that changed since *since*, with full refunds, including those in the trash."""
    first, *others = STATUSES
    return read_list_once_per_run(
        ctx,
        "orders",
        since,
        lambda: _order_pages(ctx, since, [first]),
        lambda: _order_pages(ctx, since, others),
        change_time_member="date_modified_gmt",
    )


def _order_pages(ctx: WooContext, since: str | None, statuses: Iterable[str]) -> Pages:
    begin, unread = datetime.fromisoformat(since) - OVERLAP if since else ctx.settings.first, UnreadParts()
    for status in statuses:
        # Orders in tables of their own are sorted by the time in UTC, those among WordPress's posts by the local one.
        change = ("date_modified_gmt", "date_modified")
        for records, source in _changed_pages(ctx, "orders", begin, change, status=status, **EXACT):
            yield [read_refunds_into_order(ctx, order, unread) for order in records], source
    unread.raise_first_doubt()


def read_refunds_into_order(ctx: WooContext, order: Any, unread: UnreadParts) -> Any:
    """Return *order* with full refunds. If some may be missing, it is marked, and *unread* gets the reason.

    Only an empty list means that it has none: an order without the member, or with null, may have some.
    """
    number, named = id_text_or_none(order), value_at_path_or_missing(order, "refunds")
    if number is None or named == []:
        return order
    found = list[Any]()
    with unread.keeping_error_of_failed_request():
        for refunds in _refund_pages(ctx, number, named):
            found += refunds
        return {**order, "refunds": found}
    return {**order, "refunds": found, "refundsHasMore": True}  # what needs all of them is a dead letter


def _refund_pages(ctx: WooContext, number: str, named: Any) -> Iterator[list[Any]]:
    """Yield the refunds of an order.

    Raises:
        DoubtfulListError: One of those that the order *named* is missing, and the order was not deleted.
    """
    found, address = list[Any](), ""
    try:
        for page in ctx.api.pages(f"{API}/orders/{number}/refunds", {"per_page": MOST, **EXACT}):
            refunds, address = page.items(""), page.address
            found += refunds
            yield refunds
    except NotFoundError as error:
        _note_deletion_or_raise_doubt(ctx, "order", number, error, ", and is read without its refunds")
        return
    if missing := _missing_refunds(named, found):
        raise DoubtfulListError(
            _UNLISTED.format(number, ", ".join(missing)), where=address, hint=_UNLISTED_HINT, code="list_incomplete"
        )


_UNLISTED = "order {} names refunds that this list lacks, or has without an amount: {}"
_UNLISTED_HINT = (
    "all others are delivered, and the next run reads the order again; if that does not help, update WooCommerce: of"
    " orders in tables of their own (HPOS), older versions list no refunds, or show them without amounts"
)


def _missing_refunds(named: Any, found: Sequence[Any]) -> list[str]:
    """Return the ids of the refunds of an order that are not *found*, or without the amount that the order shows."""
    amounts = {id_text_or_none(refund): value_at_path_or_missing(refund, "amount") for refund in found}
    summaries = (
        {id_text_or_none(each): value_at_path_or_missing(each, "total") for each in named}
        if isinstance(named, list)
        else {}
    )
    return [
        number
        for number, total in summaries.items()
        if number is not None
        and (number not in amounts or (_is_zero_or_empty(amounts[number]) and not _is_zero_or_empty(total)))
    ]


def _is_zero_or_empty(amount: Any) -> bool:
    """Return whether *amount* is zero, or empty, as old versions show the amounts of orders in tables of their own."""
    return amount is None or (isinstance(amount, str) and not amount.strip("-0."))


def _note_deletion_or_raise_doubt(
    ctx: WooContext, kind: str, number: str | None, error: NotFoundError, consequence_text: str
) -> None:
    """Note that a record was deleted before its own list was read, or raise DoubtfulListError if nothing says so."""
    why = f"although the {kind} is there"
    try:
        ctx.api.get(f"{API}/{kind}s/{number}", {"_fields": "id"})
    except NotFoundError as found:
        if is_no_such_record_error(found):
            ctx.run.note(ctx.connection, f"{kind} {number} was deleted while it was read{consequence_text}")
            return
        why = f"and so it is for the {kind}, and WooCommerce does not say that it was deleted"
    raise DoubtfulListError(f"{error.message}, {why}", where=error.where, code=error.code) from None


def is_no_such_record_error(error: NotFoundError) -> bool:
    """Return whether the shop says that a record does not exist; a 404 alone may be that of a server before it."""
    return (error.code_in_answer or "").endswith("_invalid_id")


def stored_orders_with_key_members(ctx: WooContext) -> StoredList:
    """Return all orders with the members that determine their keys and those of their customers."""
    fields = "id,customer_id,billing.email"
    return read_list_once_per_run(
        ctx,
        "order-keys",
        None,
        lambda: (page for each in STATUSES for page in request_list_pages(ctx, "orders", status=each, _fields=fields)),
    )


# ---- customers


def stored_customer_accounts(ctx: WooContext) -> StoredList:
    """Return all accounts of any role. The list cannot be filtered by time."""
    return read_list_once_per_run(ctx, "customers", None, lambda: request_list_pages(ctx, "customers", role="all"))


# ---- products


def pages_of_changed_variants(ctx: WooContext, since: str | None) -> Pages:
    """Return the variants that changed since *since*. All variants of a product with a changed variation count."""
    begin = datetime.fromisoformat(since) - OVERLAP if since else None
    return variant_pages(ctx, _changed_pages(ctx, "products", begin, "date_modified", status="any"))


def stored_variants_with_stock_fields(ctx: WooContext) -> StoredList:
    def read() -> Pages:
        return variant_pages(ctx, request_list_pages(ctx, "products", status="any", _fields=OF_STOCK), OF_STOCK)

    return read_list_once_per_run(ctx, "catalog", None, read)


def variant_pages(ctx: WooContext, products: Pages, fields: str | None = None) -> Pages:
    """Yield the variants of the *products* of each page, with all members or with these *fields*.

    Raises:
        DoubtfulListError: After the last page, if some variations may be missing.
    """
    unread = UnreadParts()
    for records, source in products:
        yield list(_products_and_variations(ctx, records, unread, fields)), source
    unread.raise_first_doubt()


def _products_and_variations(
    ctx: WooContext, products: Iterable[Any], unread: UnreadParts, fields: str | None
) -> Iterator[Any]:
    """Yield simple products, and variations with their ``parent``; a variable product only if it keeps their stock.

    *unread* gets the reason why some variations of a product may be missing.
    """
    for product in products:
        if not str(value_at_path_or_missing(product, "type")).startswith("variable"):
            yield product
            continue
        if value_at_path_or_missing(product, "manage_stock") is True:
            yield product
        with unread.keeping_error_of_failed_request():
            yield from _variations(ctx, product, fields)


def _variations(ctx: WooContext, product: Item, fields: str | None) -> Iterator[Any]:
    number = id_text_or_none(product)
    parent = {name: value for name, value in product.items() if name in _OF_PARENT}
    try:
        for records, _ in request_list_pages(ctx, f"products/{number}/variations", status="any", _fields=fields):
            for record in records:
                yield with_added_members(record, parent=parent)
    except NotFoundError as error:
        _note_deletion_or_raise_doubt(ctx, "product", number, error, "; its variations are left out")


# ---- changes


def _changed_pages(
    ctx: WooContext, path: str, begin: datetime | None, sorted_by: str | tuple[str, ...], **params: str
) -> Pages:
    """Yield the records of a list that changed at *begin* or later, oldest change first; all of them with None."""
    if begin is None:
        yield from request_list_pages(ctx, path, sorted_by, orderby="modified", **params)
        return
    bound = time_param(begin - MISSING_HOUR)
    filtered = {**params, "modified_after": bound, "dates_are_gmt": "true"}
    for records, source in request_list_pages(ctx, path, sorted_by, orderby="modified", **filtered):
        if any(_is_older(record, bound) for record in records):
            ctx.shared(
                "woocommerce.unfiltered", lambda: ctx.run.warn(ctx.connection, UNFILTERED, code="filter_ignored")
            )
        yield [record for record in records if not _is_older(record, time_param(begin))], source


def _is_older(record: Any, than: str) -> bool:
    found = value_at_path_or_missing(record, "date_modified_gmt")
    return isinstance(found, str) and found < than


def time_param(moment: datetime) -> str:
    """Format *moment* in UTC, to the second and without a zone: WooCommerce would move a time with one."""
    return moment.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat()


def id_text_or_none(record: Any) -> str | None:
    found = value_at_path_or_missing(record, "id")
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else None


WITHOUT_REFUNDS = (
    "the shop has no list of refunds, as those before WooCommerce 9.0: a credit note is fetched by the key of its order"
)

_NO_ROUTE = "rest_no_route"
"""The code by which WordPress says that its API has no such list."""
_UNLISTED_ORDERS_HINT = "switch the extension on that has their status, or give them another status"


# ---- records by their ids


def orders_with_ids(ctx: WooContext, ids: Sequence[str]) -> Pages:
    """Yield the orders with these ids, with summaries of their refunds, including those that no list shows."""
    left = dict.fromkeys(ids)
    for status in STATUSES:
        if not left:
            return
        for records, source in request_list_pages(ctx, "orders", status=status, include=",".join(left), **EXACT):
            yield records, source
            for record in records:
                left.pop(id_text_or_none(record) or "", None)
    yield from _unlisted_orders(ctx, left)


def _unlisted_orders(ctx: WooContext, ids: Iterable[str]) -> Pages:
    """Yield those of the orders that exist: ``any`` leaves out the status of an extension that was switched off."""
    found = list[str]()
    for number in ids:
        try:
            answer = ctx.api.get(f"{API}/orders/{number}", EXACT)
        except NotFoundError as error:
            if not is_no_such_record_error(error):
                raise
            continue
        order = with_empty_address_objects(answer.at(""))
        found.append(f"{number} ({value_at_path_or_missing(order, 'status')})")
        yield [order], answer.address
    if found:
        text = f"no list of the shop shows these orders, which exist: {', '.join(found)}; {_UNLISTED_ORDERS_HINT}"
        ctx.run.warn(ctx.connection, text, code="records_left_out")


def order_ids_of_refunds(ctx: WooContext, refunds: Sequence[str]) -> list[str]:
    if not refunds:
        return []
    try:
        found = [
            record
            for records, _ in request_list_pages(ctx, "refunds", include=",".join(refunds), _fields="id,parent_id")
            for record in records
        ]
    except NotFoundError as error:
        if error.code_in_answer != _NO_ROUTE:  # it may be that of a server before the shop
            raise
        ctx.run.note(ctx.connection, WITHOUT_REFUNDS)
        return []
    return _distinct_id_texts(value_at_path_or_missing(record, "parent_id") for record in found)


def customers_with_ids(ctx: WooContext, ids: Sequence[str]) -> Pages:
    if ids:
        yield from request_list_pages(ctx, "customers", role="all", include=",".join(ids))


def variants_of_products(ctx: WooContext, ids: Sequence[str]) -> Pages:
    """Yield the variants of the products with these ids. The product that changed last is at the end."""
    if ids:
        named = {"status": "any", "include": ",".join(ids)}
        yield from variant_pages(ctx, request_list_pages(ctx, "products", "date_modified", orderby="modified", **named))


def variants_with_stock(ctx: WooContext, product_ids: Sequence[str]) -> Pages:
    if product_ids:
        products = request_list_pages(ctx, "products", status="any", include=",".join(product_ids), _fields=OF_STOCK)
        yield from variant_pages(ctx, products, OF_STOCK)


def product_ids_of_variants(ctx: WooContext, ids: Sequence[str]) -> list[str]:
    """Return the ids of the products that have these ids, or whose variations do; each variation is one request."""
    found = list[str]()
    if ids:
        for records, _ in request_list_pages(ctx, "products", status="any", include=",".join(ids), _fields="id"):
            found += [number for record in records if (number := id_text_or_none(record)) is not None]
    for number in set(ids) - set(found):
        try:
            answer = ctx.api.get(f"{API}/products/{number}", {"_fields": "id,parent_id"})
        except NotFoundError as error:
            if not is_no_such_record_error(error):
                raise
            continue
        found += _distinct_id_texts([answer.at("/parent_id")])
    return sorted(set(found))


def product_ids_of_skus(ctx: WooContext, skus: Sequence[str]) -> list[str]:
    """Return the ids of the products with these SKUs, also of variations. WooCommerce separates SKUs by commas."""
    wanted = [sku for sku in skus if sku.strip() and "," not in sku]
    if not wanted:
        return []
    named = {"status": "any", "sku": ",".join(wanted), "_fields": "id,parent_id"}
    found = [record for records, _ in request_list_pages(ctx, "products", **named) for record in records]
    return _distinct_id_texts(
        value_at_path_or_missing(record, "parent_id") or value_at_path_or_missing(record, "id") for record in found
    )


def _distinct_id_texts(values: Iterable[Any]) -> list[str]:
    ids = (value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0)
    return list(dict.fromkeys(map(str, ids)))
