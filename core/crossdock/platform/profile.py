"""What the specification does not show, as data: every assumption is a setting with a public standard as its default.

``crossdock check`` prints these `assumptions`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.addresses import endpoint
from crossdock.config_file import MAX_S, ConfigModel, ConfigPath, SecretRef
from crossdock.pacing.limit_estimate import UNLIMITED, LimitEstimate
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


Header = Annotated[str, Field(pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", max_length=100)]
"""The name of a header field: a token (RFC 9110 section 5.1)."""
DOCUMENTED_PER_S = 10_000 / 60  # section 8 of the specification


def _base_url(url: str) -> str:
    return endpoint(url).rstrip("/")


class ApiKey(ConfigModel):
    """A key made for this tenant."""

    kind: Literal["api_key"]
    token: SecretRef


class ClientCredentials(ConfigModel):
    """Access tokens for a client of its own (OAuth 2.0, RFC 6749 section 4.4)."""

    kind: Literal["oauth2_client_credentials"]
    token_url: Annotated[str, AfterValidator(endpoint)] | None = None
    """Where tokens are given, also on another host; ``{base_url}/oauth/token`` without it."""
    client_id: Annotated[str, Field(min_length=1)]
    client_secret: SecretRef
    client_auth: Literal["basic", "post"] = "basic"
    """How the client shows who it is: HTTP Basic, or members of the form for servers that know only these."""
    scopes: tuple[Annotated[str, Field(pattern=r"^[!#-\[\]-~]+$")], ...] = ()
    """What to ask for; a token with less is refused. Without any, the server decides."""

    def address(self, base_url: str) -> str:
        return self.token_url or f"{base_url}/oauth/token"


class Rate(ConfigModel):
    """The token bucket. A number here is never exceeded, whatever the platform tells; without one it is learned."""

    per_minute: Annotated[int, Field(gt=0)] | Literal["learn"] | None = None
    """Requests a minute; without it the documented 10,000, as long as answers do not tell otherwise."""
    burst: Annotated[int, Field(ge=1)] | None = None
    """Requests at once when the bucket is full; it is not documented, so without a number it is told or learned."""
    shared: str | None = None
    """Where processes or hosts that use the same credential share the bucket: ``sqlite:///FILE`` or
    ``postgresql://user@host/database``. Without it this state's runs have it for themselves."""

    def known(self, earlier: LimitEstimate | None = None) -> LimitEstimate:
        """What is known before the first answer: *earlier* answers count, as far as nothing is set here."""
        rate, burst = self.per_minute, self.burst
        most_per_s = rate / 60 if isinstance(rate, int) else math.inf
        known = LimitEstimate(most_per_s=most_per_s, most_at_once=burst or UNLIMITED)
        if burst is not None:
            known = known.with_burst(burst, "set")
        if rate != "learn":
            known = known.with_rate(most_per_s, "set") if rate else known.with_rate(DOCUMENTED_PER_S, "documented")
        if earlier is not None and earlier.rate_per_s is not None and earlier.rate_from in {"told", "learned"}:
            known = known.with_rate(earlier.rate_per_s, earlier.rate_from, earlier.agreed)
        if earlier is not None and earlier.burst is not None and earlier.burst_from in {"told", "learned"}:
            known = known.with_burst(earlier.burst, earlier.burst_from)
        return known


class Idempotency(ConfigModel):
    """Idempotency-Key (IETF httpapi draft 07); ``enabled: false`` for a platform without it."""

    enabled: bool = True
    header: Header = "Idempotency-Key"
    quoted: bool = True
    kept_s: Annotated[int, Field(gt=0, le=MAX_S)] = 86_400
    """How long the platform remembers a key; an older one is never sent again."""


class LookUp(ConfigModel):
    """Finding a record by our name for it: ``GET {path}?externalId=...``."""

    enabled: bool = True
    parameter: str = "externalId"
    settle_s: Annotated[float, Field(ge=0, le=MAX_S)] = 60.0
    """How long after a request that may still be under way a look-up tells the truth; the platform's own time-out."""


Rule = Literal["resend", "verify", "park"]


AfterAmbiguous = Rule | Mapping[ResourceName, Rule] | None


class Retry(ConfigModel):
    """How often, and for how long, what failed on the way is sent again."""

    attempts: Annotated[int, Field(ge=1, le=20)] = 6
    """For one request while others get through; then it is left for the next run, and shown."""
    give_up_after_s: Annotated[float, Field(ge=0, le=MAX_S)] = 300.0
    """When nothing gets through any more: how long to go on asking before the run stops."""
    base_s: Annotated[float, Field(gt=0, le=MAX_S)] = 0.5
    """Upper bound of the first pause; it doubles, and the pause is drawn evenly below it (full jitter)."""
    cap_s: Annotated[float, Field(gt=0, le=MAX_S)] = 60.0


class Http(ConfigModel):
    """Limits of one request."""

    connect_timeout_s: Annotated[float, Field(gt=0, le=MAX_S)] = 5.0
    read_timeout_s: Annotated[float, Field(gt=0, le=MAX_S)] = 30.0
    total_timeout_s: Annotated[float, Field(gt=0, le=MAX_S)] = 60.0
    max_response_bytes: Annotated[int, Field(gt=0)] = 8 * 1024 * 1024
    ca_file: ConfigPath | None = None
    """Certificates to trust instead of the system's; verification itself cannot be switched off."""


class Profile(ConfigModel):
    """The platform: where it is, who we are there, and what we assume of it."""

    base_url: Annotated[str, AfterValidator(_base_url)]
    tenant: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    auth: Annotated[ApiKey | ClientCredentials, Field(discriminator="kind")]
    paths: Mapping[ResourceName, Annotated[str, Field(pattern=r"^/[^?#\s]*$")]] = {}
    """Paths that differ from the assumed ones, without a query."""
    conditional_updates: bool = True
    """Send ``If-Match`` with the version that we know, so that nobody's change is overwritten unseen."""
    tenant_header: Header = "x-tenant-slug"
    rate: Rate = Rate()
    max_clock_skew_s: Annotated[float, Field(gt=0, le=31_622_400)] | None = 300.0
    """A scheduled run does not start while this machine's clock differs from the platform's ``Date`` header (RFC 9110
    section 6.6.1) by more seconds than this; ``null`` to start it without looking."""
    in_flight: Annotated[int, Field(ge=1, le=128)] = 100
    """Most requests on their way at once; after a crash at most so many are in doubt."""
    idempotency: Idempotency = Idempotency()
    lookup: LookUp = LookUp()
    after_ambiguous: AfterAmbiguous = None
    """What to do when it is not known whether a request was carried out: ``resend`` it under its key, ``verify`` by a
    look-up, or ``park`` it for a person. One rule, or one a resource; without: the first of them that is possible."""
    retry: Retry = Retry()
    http: Http = Http()

    def path(self, resource: ResourceName) -> str:
        return self.paths.get(resource, PATHS[resource])

    @model_validator(mode="after")
    def _rules_can_be_kept(self) -> Self:
        chosen = self.after_ambiguous
        for resource, rule in chosen.items() if isinstance(chosen, Mapping) else [(None, chosen)]:
            if rule == "resend" and not self.idempotency.enabled:
                raise ValueError("after_ambiguous: resend needs idempotency keys, or things are done twice")
            if rule == "verify" and not self.lookup.enabled:
                raise ValueError("after_ambiguous: verify needs a look-up, and lookup.enabled is false")
            if rule == "verify" and resource and not self.can_look_up(resource):
                raise ValueError(f"after_ambiguous: verify is impossible for {resource}, which has no external id")
        return self

    def can_look_up(self, resource: ResourceName) -> bool:
        return self.lookup.enabled and RESOURCES[resource].has_external_id

    def can_verify(self, resource: ResourceName, operation: str) -> bool:
        """An update can always be looked at by its id, a create only by our name for it."""
        return operation != "create" or self.can_look_up(resource)

    def rule(self, resource: ResourceName, operation: str) -> Rule:
        """What may be done about an operation that may have happened."""
        chosen = self.after_ambiguous
        chosen = chosen.get(resource) if isinstance(chosen, Mapping) else chosen
        if chosen == "verify" and not self.can_verify(resource, operation):
            chosen = None  # one rule for all of them: each keeps it as far as it can
        if chosen is not None:
            return chosen
        return "resend" if self.idempotency.enabled else self.rule_without_key(resource, operation)

    def rule_without_key(self, resource: ResourceName, operation: str) -> Rule:
        """What may be done where no idempotency key protects."""
        return "verify" if self.can_verify(resource, operation) else "park"

    def assumptions(self) -> Iterator[tuple[str, str]]:
        """What is taken for true without being documented: subject and value."""
        for name in RESOURCES:
            if name != "invoice":
                yield f"path of {name}", self.path(name)
        yield "external ids", "every resource but the invoice has externalId, unique in tenant and resource"
        yield "updates", "PATCH {path}/{id} with a JSON merge patch (RFC 7396)"
        yield "errors", "application/problem+json (RFC 9457) with errors[].pointer"
        if isinstance(self.auth, ClientCredentials):
            yield "tokens", f"OAuth 2.0 client credentials at {self.auth.address(self.base_url)}"
        key = self.idempotency
        yield "idempotency", f"{key.header}, remembered for {key.kept_s} s" if key.enabled else "none"
        yield "look-up", f"?{self.lookup.parameter}=" if self.lookup.enabled else "none"
        rules = {name: self.rule(name, "create") for name in RESOURCES}
        told = [f"{rule}: {', '.join(n for n in rules if rules[n] == rule)}" for rule in dict.fromkeys(rules.values())]
        yield "after an ambiguous answer", "; ".join(told) if len(told) > 1 else rules["invoice"]
