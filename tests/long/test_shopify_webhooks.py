"""Shopify's own library and crossdock agree on signatures: ``pytest tests/long/test_shopify_webhooks.py``, by npm."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.consumers.generated_clients import HERE, NODE, install_npm_packages, npm_registry_answers
from tests.consumers.running import run
from tests.servers import require

from crossdock.webhooks import WebhookScheme, WebhookVerifier, signed_headers
from crossdock_connectors.shop.shopify.webhooks import SCHEMES

SECRET = "hush"
FACTS = {"shop-domain": "lamps.myshopify.com", "api-version": "2026-10"}
STARTS = {
    "x-shopify-": {**FACTS, "topic": "orders/create"},
    "shopify-": {**FACTS, "topic": "Order", "action": "update", "handle": "h", "triggered-at": "2026-01-01T00:00:00Z"},
}
BODIES = ["{}", '{"id":820982911946154508}', '{"note":"Gr\u00fc\u00dfe \u2603 \U0001f4a1"}', *(
    json.dumps({"id": random.Random(number).getrandbits(60), "note": "\u00e4" * number}, ensure_ascii=False)
    for number in range(40)
)]  # fmt: skip


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, with the versions of the lock file."""
    require(npm_registry_answers(), "access to the npm registry", optional_by="CROSSDOCK_NPM_OPTIONAL")
    folder = tmp_path_factory.mktemp("shopify")
    install_npm_packages(HERE / "shopify", folder)
    return folder


def told(folder: Path, deliveries: list[dict[str, Any]]) -> Any:
    """The library's signatures of `BODIES`, and what it says of *deliveries*."""
    asked = {"secret": SECRET, "bodies": BODIES, "deliveries": deliveries}
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    return json.loads(run([*NODE, "check_webhooks.js", "asked.json"], folder))


def delivery(scheme: WebhookScheme, start: str, body: str, secret: str = SECRET) -> dict[str, Any]:
    made = signed_headers(scheme, secret, body.encode(), delivery_id="b54557e4")
    facts = {f"{start}{name}": value for name, value in STARTS[start].items()}
    return {"body": body, "headers": {**facts, **{name.lower(): value for name, value in made.items()}}}


@pytest.mark.parametrize(
    ("scheme", "start", "kind"), [(SCHEMES[0], "x-shopify-", "webhooks"), (SCHEMES[1], "shopify-", "events")]
)
def test_the_library_accepts_what_we_sign_and_we_what_it_signs(
    folder: Path, scheme: WebhookScheme, start: str, kind: str
) -> None:
    """By both forms of the headers; it refuses another secret and a changed body, as we do."""
    forged = [delivery(scheme, start, BODIES[1], "other"), {**delivery(scheme, start, BODIES[1]), "body": "{}"}]
    answer = told(folder, [*(delivery(scheme, start, body) for body in BODIES), *forged])
    assert answer["results"][:-2] == [{"valid": True, "kind": kind, "id": "b54557e4"}] * len(BODIES)
    assert [result["valid"] for result in answer["results"][-2:]] == [False, False]
    for body, signature in zip(BODIES, answer["signatures"], strict=True):
        sent = {f"{start}hmac-sha256": signature, f"{start}webhook-id": "b54557e4"}
        assert WebhookVerifier(scheme, [SECRET]).verify(body.encode(), sent).id == "b54557e4"
