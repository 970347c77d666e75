"""A typed client of the platform's API, for programs that read or write single resources.

    with Client("https://api.example.com", "acme", token) as client:
        invoice = client.invoices.create(Invoice(customer_id=customer.id, currency="EUR", items=(line,)))

Amounts and quantities are `decimal.Decimal`. For a sync use the engine, which keeps a state; this client keeps none.
"""

from crossdock.platform.client.platform_client import Client, FieldError, ProblemError
from crossdock.platform.client.response_models import (
    Entry,
    StoredCustomer,
    StoredInventoryLot,
    StoredInvoice,
    StoredLedgerAccount,
    StoredMovement,
    StoredOrder,
    StoredProduct,
    StoredWarehouseBin,
)
from crossdock.reading.transport.http_auth import BearerAuth, ClientCredentialsAuth
from crossdock.resources import (
    Address,
    Customer,
    InventoryLot,
    Invoice,
    LedgerAccount,
    Line,
    Order,
    Product,
    WarehouseBin,
)

__all__ = [
    "Address", "BearerAuth", "Client", "ClientCredentialsAuth", "Customer", "Entry", "FieldError", "InventoryLot",
    "Invoice", "LedgerAccount", "Line", "Order", "ProblemError", "Product", "StoredCustomer", "StoredInventoryLot",
    "StoredInvoice", "StoredLedgerAccount", "StoredMovement", "StoredOrder", "StoredProduct", "StoredWarehouseBin",
    "WarehouseBin",
]  # fmt: skip
