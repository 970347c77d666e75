"""The platform's specification, section by section: what it shows, what is assumed here, and which tests hold it."""

from __future__ import annotations

from typing import NamedTuple


class Section(NamedTuple):
    """One row of the table; *tests* are paths below ``tests/``."""

    title: str
    documented: str
    assumed: str
    tests: tuple[str, ...]
    part_two: str


SECTIONS = (
    Section(
        "1. What the service does",
        "A typed REST API over HTTP with JSON; an OpenAPI 3.1 document and JSON Schemas; webhooks; SDKs; a sandbox.",
        "That the document is at /openapi.json, and the schemas are at /schemas/NAME.json.",
        ("unit/sandbox/test_openapi.py", "unit/sandbox/test_docs.py", "integration/test_sandbox_consumers.py"),
        "Webhook deliveries.",
    ),
    Section(
        "2. Resources and their fields",
        "The seven names; the invoice input: customerId, currency, items (productId, quantity, unitPrice), "
        "autoPostLedger.",
        "All fields of the other six; what an answer adds (id, createdAt, updatedAt, an invoice's status and total); "
        "ISO 4217 currencies; 15 digits before and 4 after the point; autoPostLedger is false when left out.",
        ("unit/sandbox/test_resources.py", "unit/sandbox/test_refusals.py", "integration/test_sandbox_server.py"),
        "Nothing.",
    ),
    Section(
        "3. States and transitions",
        "That invoices are approved, orders created and lots moved.",
        "An invoice is a draft until it is approved; approved or posted, it is neither changed nor deleted. An order's "
        "status is free text.",
        ("unit/sandbox/test_actions.py", "unit/sandbox/test_movements.py", "unit/sandbox/test_ledger.py"),
        "An event for each of the three.",
    ),
    Section(
        "4. Endpoints",
        "POST /api/v1/finance/invoices with its headers and body; posting to the ledger in the same operation.",
        "All other paths and methods; 201 with Location and ETag; paging by cursor; look-up by externalId; approve, "
        "movements, entries; Idempotency-Key; the two accounts that each tenant has.",
        (
            "unit/sandbox/test_resources.py",
            "unit/sandbox/test_idempotency.py",
            "unit/sandbox/test_ledger.py",
            "integration/test_sandbox_crash.py",
        ),
        "Subscriptions and tokens.",
    ),
    Section(
        "5. Authentication",
        "Authorization: Bearer with an API key or access token; scopes, read-only or read/write; x-tenant-slug; free "
        "test keys in the sandbox.",
        "The names of the scopes; that the tenant is needed in every request; the form of a key; 401 and 403 as in "
        "RFC 6750; keys do not expire.",
        ("unit/sandbox/test_keys.py", "unit/sandbox/test_refusals.py", "integration/test_sandbox_keys.py"),
        "OAuth 2.0 access tokens; scopes narrowed to single ledger accounts and bins.",
    ),
    Section(
        "6. Events",
        "Order creation, lot movement and invoice approval can be subscribed to; HMAC signature; retries with "
        "exponential backoff; dispatch below 20 ms on average.",
        "Standard Webhooks 1.0: type names, headers, payload. Described in the document, not yet delivered.",
        ("unit/sandbox/test_openapi.py",),
        "Subscriptions, signatures, deliveries, retries.",
    ),
    Section(
        "7. Errors",
        "Nothing.",
        "Problem documents of RFC 9457 with pointers into the body; the status codes above.",
        ("unit/sandbox/test_refusals.py", "integration/test_sandbox_consumers.py"),
        "Nothing.",
    ),
    Section(
        "8. Limits",
        "10,000 requests a minute; a token bucket that permits bursts.",
        "A bucket of 2,000 for each tenant and credential; 429 with Retry-After and rate headers, whose dialect can be "
        "chosen; bodies up to 1 MiB; 10,000 lines to an invoice; pages of up to 1,000; 30 s for the headers of a "
        "request and 60 s for its body, then 408.",
        (
            "unit/sandbox/test_limits.py",
            "unit/sandbox/test_profiles.py",
            "unit/sandbox/test_refusals.py",
            "integration/test_sandbox_server.py",
        ),
        "Nothing.",
    ),
    Section(
        "9. Versioning",
        "/api/v1/ in the path; OpenAPI 3.1; SDKs for TypeScript, Python, Go and C#.",
        "No version header. The SDKs are not public; clients are generated from the document.",
        ("integration/test_sandbox_consumers.py", "long/test_consumers.py"),
        "Nothing.",
    ),
)
