"""Creates, lists and updates through a generated client, and is throttled, as its user would write it."""

from __future__ import annotations

import json
import os

import httpx
from platform_client import AuthenticatedClient
from platform_client.api.invoices import approve_invoice, create_invoice, get_invoice, list_invoice
from platform_client.api.products import update_product
from platform_client.models import (
    Currency,
    Invoice,
    InvoicePage,
    Line,
    Problem,
    ProductPatch,
    StoredInvoice,
    StoredProduct,
)

client = AuthenticatedClient(
    base_url=os.environ["BASE_URL"], token=os.environ["API_KEY"], httpx_args={"trust_env": False}
)
tenant = os.environ["TENANT"]
line = Line(product_id=os.environ["PRODUCT"], quantity=3, unit_price=12.5)
draft = Invoice(customer_id=os.environ["CUSTOMER"], currency=Currency.EUR, items=[line, line], auto_post_ledger=True)

made = create_invoice.sync(client=client, body=draft, x_tenant_slug=tenant, idempotency_key="generated-1")
assert isinstance(made, StoredInvoice), made
assert get_invoice.sync(made.id, client=client, x_tenant_slug=tenant) == made
page = list_invoice.sync(client=client, x_tenant_slug=tenant, limit=10)
assert isinstance(page, InvoicePage)
assert made in page.data
approved = approve_invoice.sync(made.id, client=client, x_tenant_slug=tenant)
assert isinstance(approved, StoredInvoice), approved

draft.items = []
refused = create_invoice.sync(client=client, body=draft, x_tenant_slug=tenant)
assert isinstance(refused, Problem)
assert isinstance(refused.errors, list)
assert [each.pointer for each in refused.errors] == ["#/items"]


def wait(seconds: int) -> None:
    """Let time pass on the sandbox's clock; with a real platform this is `time.sleep`."""
    clock = f"{os.environ['BASE_URL']}/_sandbox/clock"
    httpx.post(clock, json={"advance_s": seconds}, trust_env=False).raise_for_status()


def reprice(price: float, key: str) -> None:
    """Change the price of the product, and wait as long as the platform says when it throttles."""
    while True:
        answer = update_product.sync_detailed(
            os.environ["PRODUCT"],
            client=client,
            body=ProductPatch(unit_price=price),
            x_tenant_slug=tenant,
            idempotency_key=key,
        )
        if answer.status_code != 429:
            break
        wait(int(answer.headers["Retry-After"]))
    assert isinstance(answer.parsed, StoredProduct), answer
    assert answer.parsed.unit_price == price


for number in range(60):
    reprice(number + 0.25, f"price-{number}")
print(json.dumps(approved.to_dict()))
