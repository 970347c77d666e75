"""What buyers, the merchant and the depot do, through the APIs of the shop and of the platform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import httpx
from tests.e2e.project_folder import SandboxProcess

NOT_KEPT = httpx.Limits(max_keepalive_connections=0)  # of hundreds of people none closes a connection
STORE, DEPOT = 1, 2
GIVEN = ("Ann", "Björn", "Chloé", "Dũng", "Émile", "Fatma", "Gül", "Hans-Jürgen", "Íñigo", "Jo")
FAMILY = ("O'Brien", "van der Berg", "Søndergård", "Łukasz", "Müller", "Şahin", "Nguyễn", "de la Cruz")
CITIES = (("NL", "Delft"), ("NL", "'s-Hertogenbosch"), ("DE", "Köln"), ("DE", "Mülheim an der Ruhr"))


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


class Depot:
    """Who ships the platform's orders and counts the depot's stock there."""

    def __init__(self, sandbox: SandboxProcess, random: Random) -> None:
        self._sandbox, self._random, self.happened = sandbox, random, Counter[str]()

    def act(self) -> None:
        self.ship()
        self.count()

    def take_over(self, records: dict[str, tuple[str, int]]) -> None:
        """A lot of the platform for each stock record of the shop: its SKU and the quantity, by its id."""
        lots = {each["externalId"] for each in self._sandbox.stored("inventory_lot")}
        products = {each["sku"]: each["id"] for each in self._sandbox.stored("product")}
        for name, (sku, quantity) in records.items():
            if f"depot:{name}" not in lots and sku in products:
                body = {
                    "externalId": f"depot:{name}",
                    "productId": products[sku],
                    "lotNumber": sku,
                    "quantity": quantity,
                }
                self._sandbox.create("/api/v1/inventory/lots", body)

    def count(self) -> None:
        lots = [each for each in self._sandbox.stored("inventory_lot") if each["externalId"].startswith("depot:")]
        if lots:
            path = f"/api/v1/inventory/lots/{self._random.choice(lots)['id']}"
            self._sandbox.patch(path, {"quantity": self._random.randint(0, 900)})
            self.happened["counted"] += 1

    def ship(self) -> None:
        waiting = [each for each in self._sandbox.stored("order") if each.get("status") != "shipped"]
        if waiting:
            order = self._random.choice(waiting)
            tracking = [{"carrier": "PostNL", "number": f"3S{order['externalId'][5:]}"}]
            self._sandbox.patch(f"/api/v1/sales/orders/{order['id']}", {"status": "shipped", "tracking": tracking})
            self.happened["shipped"] += 1


def _path(url: str) -> str:
    return url.partition("/api")[2]
