"""`Client`: the platform's resources as attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

import httpx

from crossdock.errors import ConfigError
from crossdock.platform.client.request_sender import RequestSender
from crossdock.platform.client.resource_collections import InventoryLots, Invoices, LedgerAccounts, ResourceCollection
from crossdock.platform.client.response_models import (
    StoredCustomer,
    StoredInventoryLot,
    StoredInvoice,
    StoredLedgerAccount,
    StoredOrder,
    StoredProduct,
    StoredWarehouseBin,
)
from crossdock.platform.platform_config import PATHS
from crossdock.reading.transport.connector_http_client import AnswerLimits, httpx_client
from crossdock.reading.transport.http_auth import BearerAuth
from crossdock.resources import Customer, InventoryLot, Invoice, LedgerAccount, Order, Product, WarehouseBin
from crossdock.values import addresses
from crossdock.values.clock import Clock, SystemClock

_TENANT = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Client:
    """A synchronous client of the platform. Close it, or use it as a context manager.

    It sends one request at a time, on one connection: give each thread its own. It follows no redirects, and ignores
    proxies of the environment. Answers longer than 8 MiB are refused.

    Args:
        base_url: The address of the platform, https, or http on this machine.
        auth: An API key or access token, or an `httpx.Auth` such as `ClientCredentialsAuth`.
        paths: Paths of resources that differ from the defaults.
        idempotency_header: None for a platform without idempotency keys. Then a write is repeated after 429 only.
        attempts: Attempts for one request, the first included. After 429, 503, 409 with Retry-After, and without an
            answer it is repeated, under the same key, after the pause that the platform asks for (at most 15 minutes).
        timeout_s: Longest silence of the platform, in seconds.
        total_timeout_s: Seconds for one attempt, to the last byte of its answer.
        transport: Takes the place of the network in tests, for example an `httpx.MockTransport`.
    """

    def __init__(  # noqa: PLR0913  public keyword arguments
        self,
        base_url: str,
        tenant: str,
        auth: str | httpx.Auth,
        *,
        paths: Mapping[str, str] | None = None,
        tenant_header: str = "x-tenant-slug",
        idempotency_header: str | None = "Idempotency-Key",
        attempts: int = 6,
        timeout_s: float = 30.0,
        total_timeout_s: float = 60.0,
        transport: httpx.BaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        try:
            address = addresses.check_base_url(base_url)
        except ValueError as error:
            raise ConfigError(f"the base_url {error}", code="address_invalid") from None
        if not _TENANT.fullmatch(tenant):
            raise ConfigError(
                "the tenant must be 1 to 63 letters, digits, dots, hyphens and underscores",
                code="client_settings_invalid",
            )
        if attempts < 1:
            raise ConfigError("attempts must be at least 1", code="client_settings_invalid")
        self._http = httpx_client(
            address,
            headers={tenant_header: tenant, "accept": "application/json, application/problem+json"},
            auth=BearerAuth(auth) if isinstance(auth, str) else auth,
            limits=AnswerLimits(timeout_s, total_timeout_s),
            transport=transport,
        )
        sender = RequestSender(self._http, idempotency_header, attempts, clock or SystemClock())
        path = {**PATHS, **(paths or {})}
        self.invoices = Invoices(sender, path["invoice"], Invoice, StoredInvoice)
        self.customers = ResourceCollection(sender, path["customer"], Customer, StoredCustomer)
        self.products = ResourceCollection(sender, path["product"], Product, StoredProduct)
        self.orders = ResourceCollection(sender, path["order"], Order, StoredOrder)
        self.inventory_lots = InventoryLots(sender, path["inventory_lot"], InventoryLot, StoredInventoryLot)
        self.warehouse_bins = ResourceCollection(sender, path["warehouse_bin"], WarehouseBin, StoredWarehouseBin)
        self.ledger_accounts = LedgerAccounts(sender, path["ledger_account"], LedgerAccount, StoredLedgerAccount)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
