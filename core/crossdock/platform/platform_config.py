"""The platform section of a config. What the specification leaves open has a public standard as its default."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.mapping.resource_types import RESOURCES
from crossdock.pacing.rate_limit_and_retry_settings import InFlight, Retry
from crossdock.pacing.token_bucket import UNLIMITED, LimitEstimate
from crossdock.reading.transport.proxy_and_tls_settings import HttpConnection
from crossdock.resources import ResourceName
from crossdock.values.config_base_types import MAX_S, BaseUrl, ConfigModel, SecretRef, text_type_matching_pattern
from crossdock.values.texts_of_numbers_and_times import duration_text
from crossdock.values.web_address_checks import check_address_without_query

PATHS: Mapping[str, str] = {
    "invoice": "/api/v1/finance/invoices",  # the only one in the specification
    "ledger_account": "/api/v1/finance/ledger-accounts",
    "customer": "/api/v1/sales/customers",
    "order": "/api/v1/sales/orders",
    "product": "/api/v1/catalog/products",
    "inventory_lot": "/api/v1/inventory/lots",
    "warehouse_bin": "/api/v1/warehouse/bins",
}

SCOPE_NAMES: Mapping[str, str] = {
    "invoice": "invoices:{access}",
    "ledger_account": "accounts:{access}",
    "customer": "customers:{access}",
    "order": "orders:{access}",
    "product": "products:{access}",
    "inventory_lot": "lots:{access}",
    "warehouse_bin": "bins:{access}",
}

_TENANT = "1 to 63 letters (a to z, A to Z), digits, ., _ and -, and begin with a letter or a digit"
Header = Annotated[str, Field(pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", max_length=100)]
"""The name of a header field: a token (RFC 9110 section 5.1)."""
DOCUMENTED_PER_S = 10_000 / 60  # section 8 of the specification


class ApiKey(ConfigModel):
    """An API key of this tenant, sent as a bearer token."""

    kind: Literal["api_key"]
    token: SecretRef
    """The API key."""


class ClientCredentials(ConfigModel):
    """Access tokens by OAuth 2.0 client credentials (RFC 6749 section 4.4)."""

    kind: Literal["oauth2_client_credentials"]
    token_url: Annotated[str, AfterValidator(check_address_without_query)] | None = None
    """Token endpoint, which may be on another host. Default: ``{base_url}/oauth/token``."""
    client_id: Annotated[str, Field(min_length=1)]
    """The id of the client."""
    client_secret: SecretRef
    """The secret of the client."""
    client_auth: Literal["basic", "post"] = "basic"
    """How the client authenticates: HTTP Basic, or ``client_id`` and ``client_secret`` in the form (``post``)."""
    scopes: tuple[Annotated[str, Field(pattern=r"^[!#-\[\]-~]+$")], ...] = ()
    """Scopes to request; a token with fewer is an error. Default: none, the server decides."""

    def token_address(self, base_url: str) -> str:
        return self.token_url or f"{base_url}/oauth/token"


class Rate(ConfigModel):
    """The rate limit. A configured value is never exceeded; others are taken from the platform's answers."""

    per_minute: Annotated[int, Field(gt=0)] | Literal["learn"] | None = None
    """Requests per minute; ``learn`` to start without an assumption. Default: the documented 10,000, unless answers
    show another rate."""
    burst: Annotated[int, Field(ge=1)] | None = None
    """Requests that a full token bucket lets through at once. Default: reported by the platform or learned."""
    shared: str | None = None
    """Database in which processes or hosts with the same credential share the rate limit: ``sqlite:///FILE`` or
    ``postgresql://user@host/database``. Default: the runs of this state have it to themselves."""

    def estimate(self, earlier: LimitEstimate | None = None) -> LimitEstimate:
        """Return the limit before the first answer. Values that *earlier* runs found stay in use."""
        rate, burst = self.per_minute, self.burst
        most_per_s = rate / 60 if isinstance(rate, int) else math.inf
        estimate = LimitEstimate(most_per_s=most_per_s, most_at_once=burst or UNLIMITED)
        if burst is not None:
            estimate = estimate.with_capped_burst(burst, "set")
        if isinstance(rate, int):
            estimate = estimate.with_capped_rate(most_per_s, "set")
        elif rate is None:
            estimate = estimate.with_capped_rate(DOCUMENTED_PER_S, "documented")
        return estimate.with_limits_found_by_earlier_runs(earlier)


class Idempotency(ConfigModel):
    """The ``Idempotency-Key`` header (IETF httpapi draft 07); ``enabled: false`` for a platform without it."""

    enabled: bool = True
    """Whether the platform knows idempotency keys."""
    header: Header = "Idempotency-Key"
    """The name of the header."""
    quoted: bool = True
    """Whether the key is sent in quotation marks, as the draft requires."""
    kept_s: Annotated[int, Field(gt=0, le=MAX_S)] = 86_400
    """Seconds for which the platform remembers a key; a request is not sent again after that. Default: one day."""


class LookUp(ConfigModel):
    """Looking up a record by its external id: ``GET {path}?externalId=...``."""

    enabled: bool = True
    """Whether the platform finds a record by its external id."""
    parameter: str = "externalId"
    """The name of the query parameter."""
    settle_s: Annotated[float, Field(ge=0, le=MAX_S)] = 60.0
    """Seconds after which an unanswered request has either taken effect or never will, so that a look-up is conclusive:
    the platform's own request timeout."""


Rule = Literal["resend", "verify", "park"]
AfterAmbiguous = Rule | Mapping[ResourceName, Rule] | None


class Http(HttpConnection):
    """Limits of a single request, and how connections are made."""

    connect_timeout_s: Annotated[float, Field(gt=0, le=MAX_S)] = 5.0
    """Seconds to establish a connection."""
    read_timeout_s: Annotated[float, Field(gt=0, le=MAX_S)] = 30.0
    """Seconds to wait for the next bytes of an answer."""
    total_timeout_s: Annotated[float, Field(gt=0, le=MAX_S)] = 60.0
    """Seconds for the whole request, from connecting to the last byte of the answer."""
    max_response_bytes: Annotated[int, Field(gt=0)] = 8 * 1024 * 1024
    """Largest accepted answer, decompressed. Default: 8 MiB."""

    def timeouts(self) -> dict[str, Any]:
        return self.model_dump(include={"connect_timeout_s", "read_timeout_s", "total_timeout_s"})


class Profile(ConfigModel):
    """The platform: its address, the credential, and what is assumed about it."""

    base_url: BaseUrl
    """The base URL: https, or http for this machine."""
    tenant: Annotated[str, text_type_matching_pattern(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", _TENANT)]
    """The tenant."""
    auth: Annotated[ApiKey | ClientCredentials, Field(discriminator="kind")]
    """The credential: an API key or OAuth 2.0 client credentials."""
    paths: Mapping[ResourceName, Annotated[str, Field(pattern=r"^/[^?#\s]*$")]] = {}
    """Paths that differ from the defaults, by resource, without a query."""
    scope_names: Mapping[ResourceName, Annotated[str, Field(pattern=r"^[!#-\[\]-~]+$")]] = {}
    """Names of scopes that differ from the defaults, by resource; ``{access}`` stands for ``read`` or ``write``."""
    introspection_url: Annotated[str, AfterValidator(check_address_without_query)] | None = None
    """Where ``crossdock check`` asks for the scopes of the credential (RFC 7662). Default: it is not asked."""
    conditional_updates: bool = True
    """Whether updates are sent with ``If-Match``, so that changes made by others are not overwritten."""
    tenant_header: Header = "x-tenant-slug"
    """Name of the header that carries the tenant."""
    rate: Rate = Rate()
    """The rate limit."""
    max_clock_skew_s: Annotated[float, Field(gt=0, le=31_622_400)] | None = 300.0
    """A scheduled run does not start while this machine's clock differs from the platform's ``Date`` header (RFC 9110
    section 6.6.1) by more than this many seconds; ``null`` to disable the check."""
    in_flight: InFlight = 100
    """The most requests in flight, and thus the most operations that can be in doubt after a crash."""
    idempotency: Idempotency = Idempotency()
    """How a repeated request is carried out once."""
    lookup: LookUp = LookUp()
    """How a record is found by its external id."""
    after_ambiguous: AfterAmbiguous = None
    """What to do if a request may or may not have been carried out: ``resend`` it with the same idempotency key,
    ``verify`` by a look-up, or ``park`` it until a person decides. One rule for all or a mapping of resources to
    rules. Default: the first of the three that is possible."""
    retry: Retry = Retry()
    """Retries of requests that failed."""
    http: Http = Http()
    """Limits of one request, proxy and certificates."""

    def resource_path(self, resource: str) -> str:
        return next((path for name, path in self.paths.items() if name == resource), PATHS[resource])

    def oauth_scope_template(self, resource: str) -> str:
        """Return the name of a resource's scope, with ``{access}`` for ``read`` or ``write``."""
        return next((text for name, text in self.scope_names.items() if name == resource), SCOPE_NAMES[resource])

    @model_validator(mode="after")
    def _raise_if_after_ambiguous_impossible(self) -> Self:
        chosen = self.after_ambiguous
        for resource, rule in chosen.items() if isinstance(chosen, Mapping) else [(None, chosen)]:
            if rule == "resend" and not self.idempotency.enabled:
                raise ValueError(
                    "after_ambiguous: resend needs idempotency keys; without them, requests are carried out twice"
                )
            if rule == "verify" and not self.lookup.enabled:
                raise ValueError("after_ambiguous: verify needs lookups, but lookup.enabled is false")
            if rule == "verify" and resource and not self.can_look_up(resource):
                raise ValueError(f"after_ambiguous: verify is impossible for {resource}, which has no external id")
        return self

    def can_look_up(self, resource: str) -> bool:
        kind = RESOURCES.get(resource)
        return self.lookup.enabled and kind is not None and kind.has_external_id

    def can_verify(self, resource: str, operation: str) -> bool:
        """Return whether a look-up can verify the operation: an update by its id, a create only by its external id."""
        return operation != "create" or self.can_look_up(resource)

    def rule_after_ambiguous_answer(self, resource: str, operation: str) -> Rule:
        given = self.after_ambiguous
        chosen = (
            {str(name): rule for name, rule in given.items()}.get(resource) if isinstance(given, Mapping) else given
        )
        if chosen == "verify" and not self.can_verify(resource, operation):
            chosen = None  # one rule for all resources applies where it is possible
        if chosen is not None:
            return chosen
        return "resend" if self.idempotency.enabled else self.rule_without_key(resource, operation)

    def rule_without_key(self, resource: str, operation: str) -> Rule:
        return "verify" if self.can_verify(resource, operation) else "park"

    def assumptions(self) -> Iterator[tuple[str, str]]:
        for name in RESOURCES:
            if name != "invoice":
                yield f"path of {name}", self.resource_path(name)
        yield "external ids", "every resource but the invoice has externalId, unique per tenant and resource"
        yield "updates", "PATCH {path}/{id} with a JSON merge patch (RFC 7396)"
        yield "lists", "?limit=, cursor and updatedSince; data and nextCursor, in the order of updatedAt"
        yield "errors", "application/problem+json (RFC 9457) with errors[].pointer"
        if isinstance(self.auth, ClientCredentials):
            yield "tokens", f"OAuth 2.0 client credentials at {self.auth.token_address(self.base_url)}"
        key = self.idempotency
        yield "idempotency", f"{key.header}, remembered for {duration_text(key.kept_s)}" if key.enabled else "none"
        yield "look-up", f"?{self.lookup.parameter}=" if self.lookup.enabled else "none"
        rules = {name: self.rule_after_ambiguous_answer(name, "create") for name in RESOURCES}
        groups = [
            f"{rule}: {', '.join(n for n in rules if rules[n] == rule)}" for rule in dict.fromkeys(rules.values())
        ]
        yield "after an ambiguous answer", "; ".join(groups) if len(groups) > 1 else rules["invoice"]
