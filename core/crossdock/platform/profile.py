"""What the specification does not show, as data: every assumption is a setting with a public standard as its default.

``crossdock check`` prints these `assumptions`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from crossdock.config import ConfigModel, ConfigPath, SecretRef
from crossdock.resources import RESOURCES, ResourceName

PATHS: Mapping[ResourceName, str] = {
    "invoice": "/api/v1/finance/invoices",  # the only one that the specification shows
    "ledger_account": "/api/v1/finance/ledger-accounts",
    "customer": "/api/v1/sales/customers",
    "order": "/api/v1/sales/orders",
    "product": "/api/v1/catalog/products",
    "inventory_lot": "/api/v1/inventory/lots",
    "warehouse_bin": "/api/v1/warehouse/bins",
}


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("must be an address such as https://api.example.com")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError("must be https; http is for a sandbox on this machine only")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ApiKey(ConfigModel):
    """A key made for this tenant."""

    kind: Literal["api_key"]
    token: SecretRef


class Rate(ConfigModel):
    """The token bucket. Its rate is documented, its burst is not."""

    per_minute: Annotated[int, Field(gt=0)] = 10_000
    burst: Annotated[int, Field(ge=1)] = 2_000


class Idempotency(ConfigModel):
    """Idempotency-Key (IETF httpapi draft 07); ``enabled: false`` for a platform without it."""

    enabled: bool = True
    header: str = "Idempotency-Key"
    quoted: bool = True
    kept_s: Annotated[int, Field(gt=0)] = 86_400
    """How long the platform remembers a key; an older one is never sent again."""


class Retry(ConfigModel):
    """How often a request that failed on the way is sent before the run stops."""

    attempts: Annotated[int, Field(ge=1, le=20)] = 6
    base_s: Annotated[float, Field(gt=0)] = 0.5
    """Upper bound of the first pause; it doubles, and the pause is drawn evenly below it (full jitter)."""
    cap_s: Annotated[float, Field(gt=0)] = 60.0


class Http(ConfigModel):
    """Limits of one request."""

    connect_timeout_s: Annotated[float, Field(gt=0)] = 5.0
    read_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    total_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    max_response_bytes: Annotated[int, Field(gt=0)] = 8 * 1024 * 1024
    ca_file: ConfigPath | None = None
    """Certificates to trust instead of the system's; verification itself cannot be switched off."""


class Profile(ConfigModel):
    """The platform: where it is, who we are there, and what we assume of it."""

    base_url: Annotated[str, AfterValidator(_base_url)]
    tenant: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    auth: ApiKey
    paths: Mapping[ResourceName, Annotated[str, Field(pattern="^/")]] = {}
    """Paths that differ from the assumed ones."""
    tenant_header: str = "x-tenant-slug"
    rate: Rate = Rate()
    in_flight: Annotated[int, Field(ge=1, le=128)] = 100
    """Most requests on their way at once; after a crash at most so many are in doubt."""
    idempotency: Idempotency = Idempotency()
    after_ambiguous: Literal["resend", "park"] = "resend"
    """What to do when it is not known whether a request was carried out. Without idempotency keys always ``park``."""
    retry: Retry = Retry()
    http: Http = Http()

    def path(self, resource: ResourceName) -> str:
        return self.paths.get(resource, PATHS[resource])

    @property
    def may_resend(self) -> bool:
        return self.idempotency.enabled and self.after_ambiguous == "resend"

    def assumptions(self) -> Iterator[tuple[str, str]]:
        """What is taken for true without being documented: subject and value."""
        for name in RESOURCES:
            if name != "invoice":
                yield f"path of {name}", self.path(name)
        yield "external ids", "every resource but the invoice has externalId, unique in tenant and resource"
        yield "updates", "PATCH {path}/{id} with a JSON merge patch (RFC 7396)"
        yield "errors", "application/problem+json (RFC 9457) with errors[].pointer"
        yield "burst", f"{self.rate.burst} requests, per tenant and credential"
        key = self.idempotency
        yield "idempotency", f"{key.header}, remembered for {key.kept_s} s" if key.enabled else "none"
        yield "after an ambiguous answer", "resend under the same key" if self.may_resend else "park"
