"""A shop whose API has the shape of Shopify's: pages by Link header, prices as text, a call limit in each answer."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

TOKEN = "shop-canary-71c0"
VERSION = "/admin/api/2024-01"
_NEW_YORK = timezone(-timedelta(hours=5))
_BEGAN = datetime(2026, 3, 1, 9, 30, tzinfo=_NEW_YORK)

Lists = dict[str, list[dict[str, Any]]]


def generated(seed: int, products: int = 7, customers: int = 5, orders: int = 9) -> Lists:
    """Records of a shop that exists nowhere."""
    rng = random.Random(seed)
    lists: Lists = {
        "products": [_product(rng, number) for number in range(products)],
        "customers": [_customer(rng, number) for number in range(customers)],
    }
    variants = [variant for product in lists["products"] for variant in product["variants"]]
    lists["orders"] = [_order(rng, number, lists["customers"], variants) for number in range(orders)]
    return lists


def _times(number: int) -> dict[str, str]:
    changed = _BEGAN + timedelta(minutes=17 * (number // 2))  # two records have the same time
    return {"created_at": _BEGAN.isoformat(), "updated_at": changed.isoformat()}


def _product(rng: random.Random, number: int) -> dict[str, Any]:
    variants = [
        {
            "id": 8_000_000_000 + 10 * number + position,
            "sku": f"{rng.randrange(10**5):07}",  # leading zeros
            "title": ["Small", "Large", "Default Title"][position],
            "price": f"{rng.randrange(1, 90_000)}.{rng.randrange(100):02}",
            "barcode": rng.choice([None, "", f"40{rng.randrange(10**11):011}"]),
            "inventory_quantity": rng.randrange(50),
        }
        for position in range(rng.randrange(1, 4))
    ]
    published = rng.choice([None, _BEGAN.isoformat()])
    facts = {"id": 6_000_000 + number, "title": f"Product {number} \N{EN DASH} \N{SNOWMAN}", "published_at": published}
    return {**facts, "variants": variants, "tags": "", **_times(number)}


def _address(rng: random.Random, name: str) -> dict[str, Any]:
    return {
        "name": name, "address1": f"{rng.randrange(1, 200)} Example Street", "address2": rng.choice(["", None, "Rear"]),
        "city": "Springfield", "province_code": rng.choice(["KY", None]), "zip": f"{rng.randrange(10**4):05}",
        "country_code": rng.choice(["US", "CA"]), "latitude": 45.41634,
    }  # fmt: skip


def _customer(rng: random.Random, number: int) -> dict[str, Any]:
    first, last = f"First{number}", f"Last{number}"
    address = rng.choice([None, _address(rng, f"{first} {last}")])
    facts = {"first_name": first, "last_name": last, "email": f"person{number}@example.com", "phone": None}
    return {"id": 200_000 + number, **facts, "default_address": address, "total_spent": "0.00", **_times(number)}


def _order(
    rng: random.Random, number: int, customers: list[dict[str, Any]], variants: list[dict[str, Any]]
) -> dict[str, Any]:
    customer = rng.choice(customers)
    lines = [
        {
            "id": 100 * number + position, "variant_id": variant["id"], "quantity": rng.randrange(1, 9),
            "price": variant["price"], "sku": variant["sku"],
        }
        for position, variant in enumerate(rng.sample(variants, rng.randrange(1, 4)))
    ]  # fmt: skip
    facts = {"id": 450_000_000 + number, "name": f"#{1001 + number}", "currency": "USD", "test": False}
    cancelled = _BEGAN.isoformat() if number == 3 else None
    return {
        **facts, "cancelled_at": cancelled, "financial_status": rng.choice(["paid", "pending"]),
        "customer": {"id": customer["id"], "email": customer["email"]}, "line_items": lines,
        "shipping_address": _address(rng, "Somebody"), **_times(number),
    }  # fmt: skip


class ShopApi(ThreadingHTTPServer):
    """The API on this machine.

    Attributes:
        lists: Its records, by the name of their list.
        seen: The request targets, in order; those that were throttled too.
    """

    def __init__(self, lists: Lists, *, throttle_each: int = 5) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lists, self.seen, self.throttle_each = lists, list[str](), throttle_each

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{VERSION}"

    def page(self, name: str, query: dict[str, str]) -> tuple[list[dict[str, Any]], str | None]:
        """The records of a page, and the query of the next one."""
        position = dict(parse_qsl(query.get("page_info", "")))
        since = position.get("since", query.get("updated_at_min", "1970-01-01T00:00:00Z"))
        changed = [item for item in self.lists[name] if _instant(item["updated_at"]) >= _instant(since)]
        changed.sort(key=lambda item: _instant(item["updated_at"]))
        start, size = int(position.get("start", 0)), int(query.get("limit", 50))
        if start + size >= len(changed):
            return changed[start:], None
        page_info = urlencode({"since": since, "start": start + size})
        return changed[start : start + size], urlencode({"limit": size, "page_info": page_info})


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


class _Handler(BaseHTTPRequestHandler):
    server: ShopApi

    def do_GET(self) -> None:
        shop, parts = self.server, urlsplit(self.path)
        shop.seen.append(self.path)
        name = parts.path.removeprefix(f"{VERSION}/").removesuffix(".json")
        if self.headers["X-Shopify-Access-Token"] != TOKEN:
            self._answer(401, {"errors": "[API] Invalid API key or access token"})
        elif name not in shop.lists:
            self._answer(404, {"errors": "Not Found"})
        elif len(shop.seen) % shop.throttle_each == 0:
            self._answer(429, {"errors": "Exceeded 2 calls per second"}, {"Retry-After": "0"})
        else:
            records, following = shop.page(name, dict(parse_qsl(parts.query)))
            link = {"Link": f'<{shop.base_url}/{name}.json?{following}>; rel="next"'} if following else {}
            self._answer(200, {name: records}, link)

    def _answer(self, status: int, document: object, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        self.send_response_only(status)
        limit = {"X-Shopify-Shop-Api-Call-Limit": "1/40"}
        for header, value in {"content-length": str(len(body)), **limit, **(headers or {})}.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)
