"""What the merchant and buyers do, through the API of the shop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import httpx
from tests.long.peers.invented_people import CITIES, FAMILY, GIVEN, NOT_KEPT

STORE, DEPOT = 1, 2


class Shop:
    """Its API, for one person."""

    def __init__(self, url: str, token: str | None = None) -> None:
        headers = {"Authorization": f"Token {token}"} if token else {}
        self._client = httpx.Client(
            base_url=f"{url}/api", headers=headers, trust_env=False, timeout=120, limits=NOT_KEPT
        )
        self.url = f"{url}/api"

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self.answer(method, path, body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def answer(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        return self._client.request(method, path, json=body)

    def all(self, path: str) -> list[dict[str, Any]]:
        """The records of all pages, without those that two pages have."""
        found: dict[str, dict[str, Any]] = {}
        following: str | None = path
        while following:
            page = self.ask("GET", following)
            found |= {each.get("url") or str(each["id"]): each for each in page["results"]}
            following = page["next"]
        return list(found.values())


class People:
    """Everybody.

    Attributes:
        happened: What was done, and what the shop refused.
    """

    def __init__(self, url: str, token: str, random: Random) -> None:
        self._url, self._random = url, random
        self.staff, self.happened = Shop(url, token), Counter[str]()
        self.products: list[int] = []
        self.buyers: list[Shop] = []
        self._numbers = 0

    # ---- the merchant

    def product(self) -> None:
        number = self._next()
        price = str(Decimal(self._random.randint(1, 30_000)) / 100)
        stock = [
            {
                "partner": f"{self._url}/api/admin/partners/{partner}/",
                "partner_sku": f"{number:05}",
                "price": price,
                "num_in_stock": self._random.randint(0, 400) if partner == DEPOT else 2_000,
            }
            for partner in (STORE, DEPOT)
        ]
        title = self._random.choice(("Lamp", "Bücherregal", "Table 80 x 120", "Chair “Anna”", "Rug & pad"))
        made = {"product_class": "goods", "structure": "standalone", "slug": f"p{number}", "upc": f"{number:05}"}
        body = {**made, "title": f"{title} {number}", "stockrecords": stock}
        self.products.append(self.staff.ask("POST", "/admin/products/", body)["id"])
        self.happened["products"] += 1

    def rename_product(self) -> None:
        self._change_product({"title": f"Renamed {self._next()}"})

    def reprice(self) -> None:
        product = self.staff.ask("GET", f"/admin/products/{self._random.choice(self.products)}/")
        price = str(Decimal(self._random.randint(1, 30_000)) / 100)
        for each in product["stockrecords"]:
            self.staff.ask("PATCH", _path(each["url"]), {"price": price})
        self.happened["prices"] += 1

    def restock(self) -> None:
        product = self.staff.ask("GET", f"/admin/products/{self._random.choice(self.products)}/")
        store = next(each for each in product["stockrecords"] if each["partner"].endswith(f"/{STORE}/"))
        self.staff.ask("PATCH", _path(store["url"]), {"num_in_stock": self._random.randint(1_000, 3_000)})
        self.happened["stock"] += 1

    def hide(self) -> None:
        self._change_product({"is_public": self._random.random() < 0.5})

    def remove_product(self) -> None:
        """One that nobody has bought."""
        self.product()
        self.staff.ask("DELETE", f"/admin/products/{self.products.pop()}/")
        self.happened["removed products"] += 1

    def rename_customer(self) -> None:
        user = self._random.choice([each for each in self.staff.all("/admin/users/") if each["username"] != "staff"])
        names = {"first_name": self._random.choice(GIVEN), "last_name": self._random.choice(FAMILY)}
        self.staff.ask("PATCH", _path(user["url"]), names)
        self.happened["renamed customers"] += 1

    def cancel(self) -> None:
        waiting = [each for each in self.staff.all("/admin/orders/") if each["status"] == "Pending"]
        if waiting:
            path = f"/admin/orders/{self._random.choice(waiting)['number']}/status/"
            done = self.staff.answer("PATCH", path, {"status": "Cancelled"}).is_success
            self.happened["cancelled" if done else "cancelled too late"] += 1

    def _change_product(self, changes: dict[str, Any]) -> None:
        self.staff.ask("PATCH", f"/admin/products/{self._random.choice(self.products)}/", changes)
        self.happened["changed products"] += 1

    # ---- buyers

    def customer(self) -> None:
        email, password = f"buyer{self._next()}@example.com", "correct-horse-battery"
        registered = {"email": email, "password1": password, "password2": password}
        Shop(self._url).ask("POST", "/register/", registered)
        token = Shop(self._url).ask("POST", "/token/", {"username": email, "password": password})["token"]
        self.buyers.append(Shop(self._url, token))
        self.happened["customers"] += 1

    def order(self) -> None:
        """Of a customer or, one in six, of a guest."""
        guest = self._random.random() < 1 / 6
        buyer = Shop(self._url) if guest else self._random.choice(self.buyers)
        for product in self._random.sample(self.products, self._random.randint(1, 4)):
            line = {"url": f"{self._url}/api/products/{product}/", "quantity": self._random.randint(1, 7)}
            basket = buyer.ask("POST", "/basket/add-product/", line)
        country, city = self._random.choice(CITIES)
        address = {
            "country": f"{self._url}/api/countries/{country}/",
            "first_name": self._random.choice(GIVEN),
            "last_name": self._random.choice(FAMILY),
            "line1": f"Straße {self._random.randint(1, 99)}",
            "line4": city,
            "postcode": "2611 AB" if country == "NL" else "50667",
        }
        checkout: dict[str, Any] = {"basket": basket["url"], "shipping_address": address}
        if guest:
            checkout["guest_email"] = f"guest{self._next()}@example.com"
        buyer.ask("POST", "/checkout/", checkout)
        self.happened["orders of guests" if guest else "orders"] += 1

    # ---- together

    def act(self) -> None:
        """Somebody does something."""
        rare: list[Callable[[], None]] = [
            *(self.product, self.rename_product, self.reprice, self.restock, self.hide, self.remove_product),
            *(self.rename_customer, self.cancel, self.customer),
        ]
        self._random.choice([self.order] * 2 * len(rare) + rare)()

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers


def _path(url: str) -> str:
    return url.partition("/api")[2]
