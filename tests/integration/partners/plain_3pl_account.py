"""A client's side of the fake 3PL with a plain API: requests and answers as they are on the wire, without a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.partners.plain_3pl_habits import Habits

from crossdock.values import exact_json


class Account:
    """A fake with these habits, two owners with the same products, and what a client sends to it."""

    def __init__(self, habits: Habits | None = None) -> None:
        self.partner = Plain3pl(habits)
        self.warehouse, self.clock = self.partner.warehouse, self.partner.clock
        for owner in ("acme", "globex"):
            for sku in ("0017", "0018"):
                self.warehouse.add_product(owner, sku)

    def answer(
        self, method: str, path: str, body: Any = None, params: Mapping[str, object] = {}, **headers: str
    ) -> PartnerAnswer:
        """Send a request; names of *headers* have underscores for hyphens."""
        named = {"api-key": API_KEY} | {name.replace("_", "-"): value for name, value in headers.items()}
        content = b"" if body is None else exact_json.dumps(body)
        values = {name: [str(value)] for name, value in params.items()}
        return self.partner.answer(PartnerRequest(method, f"/v1{path}", values, named, content))

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """The status, and the body."""
        answer = self.answer(method, path, body, {}, **headers)
        return answer.status, exact_json.loads(answer.content())

    def get(self, path: str, **params: object) -> Any:
        """The body of an answer to a reader."""
        return exact_json.loads(self.answer("GET", path, params=params).content())

    def listed(self, table: str, **params: object) -> list[dict[str, Any]]:
        """All records of a list, page by page."""
        return [record for page in self.pages(table, **params) for record in page]

    def pages(self, table: str, **params: object) -> Iterator[list[dict[str, Any]]]:
        page = self.get(f"/{table}", **params)
        yield page["items"]
        while (cursor := page["next_cursor"]) is not None:
            page = self.get(f"/{table}", **params, cursor=cursor)
            assert page["next_cursor"] != cursor, "the list has no end"
            yield page["items"]

    def order(self, reference: str = "SO-1", quantity: int = 5, **headers: str) -> str:
        """The id of a new order of acme."""
        status, order = self.send("POST", "/orders", order_body(reference, quantity), **headers)
        assert status == 201, order
        return str(order["id"])


def order_body(reference: str = "SO-1", quantity: int = 5, owner: str = "acme") -> dict[str, Any]:
    """An order with one line."""
    return {"owner": owner, "reference": reference, "lines": [{"sku": "0017", "quantity": quantity}]}
