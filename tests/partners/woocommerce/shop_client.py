"""A client of the fake WooCommerce shop for tests, in this process and over HTTPS as far as the shop can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
from tests.partners.partner_transport import transport
from tests.partners.woocommerce.shop import API, FakeShop
from tests.partners.woocommerce.shop_keys import ApiKey
from tests.partners.woocommerce.shop_tracking import TRACKING

from crossdock.values import exact_json

BERLIN = {"first_name": "Ada", "last_name": "Lovelace", "city": "Berlin", "country": "DE", "email": "ada@example.com"}


class ShopClient:
    """Requests below ``wc/v3``, or with ``tracking:`` before the path below the extension's address."""

    def __init__(self, shop: FakeShop, key: ApiKey | None = None) -> None:
        key = key or ApiKey()
        self._http = httpx.Client(
            transport=transport(shop), auth=(key.consumer_key, key.consumer_secret), trust_env=False
        )
        self._site = shop.site

    def ask(self, method: str, path: str, body: Any = None, **params: Any) -> httpx.Response:
        base, rest = (TRACKING, path.removeprefix("tracking:")) if path.startswith("tracking:") else (API, path)
        content = None if body is None else exact_json.dumps(body)
        return self._http.request(method, f"{self._site}{base}/{rest}", params=params, content=content)

    def get(self, path: str, **params: Any) -> Any:
        """The body of a read, its numbers exact."""
        answer = self.ask("GET", path, **params)
        assert answer.status_code == 200, answer.text
        return exact_json.loads(answer.content)

    def ids(self, path: str, **params: Any) -> list[int]:
        return [record["id"] for record in self.get(path, **params)]

    def write(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        """The body of the answer to a write that was carried out."""
        answer = self.ask(method, path, body, **params)
        assert answer.is_success, answer.text
        return exact_json.loads(answer.content)

    def refused(self, method: str, path: str, body: Any = None, **params: Any) -> tuple[int, str]:
        """Status and code of a refusal, whose body has WordPress's shape."""
        answer = self.ask(method, path, body, **params)
        told = answer.json()
        assert told["data"]["status"] == answer.status_code
        assert told["message"]
        return answer.status_code, told["code"]

    def pages(self, path: str, **params: Any) -> Iterator[httpx.Response]:
        """Pages by number until the last, as the headers tell it at each."""
        number = 1
        while True:
            answer = self.ask("GET", path, **params, page=number)
            yield answer
            if number >= int(answer.headers["x-wp-totalpages"]):
                return
            number += 1
