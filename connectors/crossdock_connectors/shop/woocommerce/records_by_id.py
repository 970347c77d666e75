"""The shop's records by their ids, as `fetch` needs them.

Sources: ``WC_REST_CRUD_Controller``, ``WC_REST_Products_Controller`` and ``WC_REST_Refunds_Controller`` in
github.com/woocommerce/woocommerce. An empty ``include`` names all records, so nothing is requested without ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from crossdock.sources import NotFoundError
from crossdock.values.json_paths import at_path
from crossdock_connectors.shop.lists_read_once import Pages
from crossdock_connectors.shop.woocommerce.lists import (
    API,
    EXACT,
    OF_STOCK,
    STATUSES,
    WooContext,
    id_text_or_none,
    pages,
    says_no_such_record,
    variant_pages,
    with_empty_address_objects,
)

WITHOUT_REFUNDS = (
    "the shop has no list of refunds, as those before WooCommerce 9.0: a credit note is fetched by the key of its order"
)

_NO_ROUTE = "rest_no_route"
"""The code by which WordPress says that its API has no such list."""
_UNLISTED_HINT = "switch the extension on that has their status, or give them another status"


def orders(ctx: WooContext, ids: Sequence[str]) -> Pages:
    """Yield the orders with these ids, with summaries of their refunds, including those that no list shows."""
    left = dict.fromkeys(ids)
    for status in STATUSES:
        if not left:
            return
        for records, source in pages(ctx, "orders", status=status, include=",".join(left), **EXACT):
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
            if not says_no_such_record(error):
                raise
            continue
        order = with_empty_address_objects(answer.at(""))
        found.append(f"{number} ({at_path(order, 'status')})")
        yield [order], answer.address
    if found:
        text = f"no list of the shop shows these orders, which exist: {', '.join(found)}; {_UNLISTED_HINT}"
        ctx.run.warn(ctx.connection, text, code="records_left_out")


def order_ids_of_refunds(ctx: WooContext, refunds: Sequence[str]) -> list[str]:
    if not refunds:
        return []
    try:
        found = [
            record
            for records, _ in pages(ctx, "refunds", include=",".join(refunds), _fields="id,parent_id")
            for record in records
        ]
    except NotFoundError as error:
        if error.code_in_answer != _NO_ROUTE:  # it may be that of a server before the shop
            raise
        ctx.run.note(ctx.connection, WITHOUT_REFUNDS)
        return []
    return _distinct_id_texts(at_path(record, "parent_id") for record in found)


def customers(ctx: WooContext, ids: Sequence[str]) -> Pages:
    if ids:
        yield from pages(ctx, "customers", role="all", include=",".join(ids))


# ---- products


def variants_of_products(ctx: WooContext, ids: Sequence[str]) -> Pages:
    """Yield the variants of the products with these ids. The product that changed last is at the end."""
    if ids:
        named = {"status": "any", "include": ",".join(ids)}
        yield from variant_pages(ctx, pages(ctx, "products", "date_modified", orderby="modified", **named))


def variants_with_stock(ctx: WooContext, product_ids: Sequence[str]) -> Pages:
    if product_ids:
        products = pages(ctx, "products", status="any", include=",".join(product_ids), _fields=OF_STOCK)
        yield from variant_pages(ctx, products, OF_STOCK)


def product_ids_of_variants(ctx: WooContext, ids: Sequence[str]) -> list[str]:
    """Return the ids of the products that have these ids, or whose variations do; each variation is one request."""
    found = list[str]()
    if ids:
        for records, _ in pages(ctx, "products", status="any", include=",".join(ids), _fields="id"):
            found += [number for record in records if (number := id_text_or_none(record)) is not None]
    for number in set(ids) - set(found):
        try:
            answer = ctx.api.get(f"{API}/products/{number}", {"_fields": "id,parent_id"})
        except NotFoundError as error:
            if not says_no_such_record(error):
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
    found = [record for records, _ in pages(ctx, "products", **named) for record in records]
    return _distinct_id_texts(at_path(record, "parent_id") or at_path(record, "id") for record in found)


def _distinct_id_texts(values: Iterable[Any]) -> list[str]:
    ids = (value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0)
    return list(dict.fromkeys(map(str, ids)))
