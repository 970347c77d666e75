"""Differences of every class between retail exports, the state and the platform, one record each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.retail_judge import Expected, Row, rows
from tests.chaos.retail_stage import RetailStage
from tests.e2e.project_folder import LISTS
from tests.e2e.retail_truth import canonical

from crossdock.values import exact_json

Found = tuple[str, str, str]
"""Class, resource and key of a difference."""


@dataclass
class Seeded:
    """What was damaged, and what a reconciliation must find.

    Attributes:
        kinds: How many there are of each kind.
        found: Every difference that must be found, and of which kind it is.
        stays: Those of them that a repair cannot remove.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    found: dict[Found, str] = field(default_factory=dict)
    stays: set[Found] = field(default_factory=set)

    def add(self, kind: str, difference: str, resource: str, key: str, *, stays: bool = False) -> None:
        self.kinds[kind] += 1
        self.found[difference, resource, key] = kind
        if stays:
            self.stays.add((difference, resource, key))


@dataclass
class Divergences:
    """Damages records of a migration that was loaded completely; no record twice.

    Args:
        number: How many at least; as many of each kind.
    """

    stage: RetailStage
    number: int
    seeded: Seeded = field(default_factory=Seeded)

    def __post_init__(self) -> None:
        self._expected: Expected = self.stage.exports.expected()
        self._ids = {name: self.stage.ids(name) for name in ("customer", "product", "invoice")}
        self._held = {name: {each["id"]: each for each in of} for name, of in self.stage.records().items()}
        used = self._expected.invoices.values()
        customers = {each["customerId"] for each in used}
        products = {item["productId"] for each in used for item in each["items"]}
        once = "SELECT key FROM intents WHERE resource = ? GROUP BY key HAVING count(*) = 1"
        own = {name: {key for (key,) in self.stage.sql(once, name)} for name in self._ids}
        self._free = {
            "customer": [key for key in self._ids["customer"] if key in own["customer"]],
            "product": [key for key in self._ids["product"] if key in own["product"]],
            "invoice": [key for key in self._unique_invoices() if key in own["invoice"]],
        }
        for keys in self._free.values():
            self.stage.random.shuffle(keys)
        self._unused = {
            "customer": [key for key in self._free["customer"] if f"shop:{key}" not in customers],
            "product": [key for key in self._free["product"] if f"shop:{key}" not in products],
        }

    def _unique_invoices(self) -> list[str]:
        bodies = {key: canonical(each) for key, each in self._expected.invoices.items()}
        often = Counter(bodies.values())
        return [key for key in self._ids["invoice"] if often[bodies[key]] == 1]

    def seed(self) -> Seeded:
        """Damage records."""
        kinds = [*self._kinds()]
        each = -(-self.number // len(kinds))
        for kind in kinds:
            for _ in range(each):
                kind()
        self._change_sources(each)
        return self.seeded

    def _kinds(self) -> Iterator[Callable[[], None]]:
        yield from (self._product_changed, self._customer_changed, self._product_deleted, self._customer_deleted)
        yield from (self._product_added, self._invoice_doubled, self._invoice_changed, self._invoice_deleted)
        yield from (self._product_unbound, self._invoice_unbound, self._bound_to_another, self._invoice_to_another)
        yield from (self._other_id, self._invoice_other_id, self._payload_changed, self._not_delivered)
        yield from (self._fingerprint_changed, self._product_in_doubt, self._invoice_in_doubt, self._invoice_not_done)

    def _take(self, resource: str, *, unused: bool = False) -> tuple[str, str]:
        """A record that nothing has damaged: its key, and its id."""
        keys = (self._unused if unused else self._free)[resource]
        assert keys, f"there are too few records of {resource}"
        key = keys.pop()
        for pool in (self._free, self._unused):
            if key in pool.get(resource, ()):
                pool[resource].remove(key)
        return key, self._ids[resource][key]

    # ---- at the platform

    def _patch(self, resource: str, target_id: str, **members: Any) -> str:
        return self.stage.sandbox.patch(f"{LISTS[resource]}/{target_id}", members)

    def _product_changed(self) -> None:
        key, target_id = self._take("product")
        self._patch("product", target_id, name="changed by hand")
        self.seeded.add("product changed", "diverged", "product", key)

    def _customer_changed(self) -> None:
        key, target_id = self._take("customer")
        self._patch("customer", target_id, name="changed by hand")
        self.seeded.add("customer changed", "diverged", "customer", key)

    def _product_deleted(self) -> None:
        self._deleted("product", unused=True)

    def _customer_deleted(self) -> None:
        self._deleted("customer", unused=True)

    def _invoice_deleted(self) -> None:
        self._deleted("invoice")

    def _deleted(self, resource: str, *, unused: bool = False) -> None:
        key, target_id = self._take(resource, unused=unused)
        self.stage.sandbox.delete(f"{LISTS[resource]}/{target_id}")
        self.seeded.add(f"{resource} deleted", "missing", resource, key)

    def _product_added(self) -> None:
        key = f"ADDED{self.seeded.kinds['product added']}"
        self.stage.sandbox.create(LISTS["product"], {"externalId": f"shop:{key}", "sku": key, "name": "of nobody"})
        self.seeded.add("product added", "extra", "product", key)

    def _invoice_doubled(self) -> None:
        _, target_id = self._take("invoice")
        held = self._held["invoice"][target_id]
        body = {name: held[name] for name in ("customerId", "currency", "items")}
        copy = self.stage.sandbox.create(LISTS["invoice"], body)["id"]
        self.stage.others.add(copy)
        self.seeded.add("invoice doubled", "duplicate", "invoice", copy, stays=True)

    def _invoice_changed(self) -> None:
        key, target_id = self._take("invoice")
        items = [dict(each) for each in self._held["invoice"][target_id]["items"]]
        items[0]["quantity"] += 1_000_000
        self._patch("invoice", target_id, items=items)
        self.seeded.add("invoice changed", "diverged", "invoice", key, stays=True)

    # ---- in the state

    def _bind(self, resource: str, key: str, **columns: object) -> None:
        assigned = ", ".join(f"{name} = ?" for name in columns)
        self.stage.sql(
            f"UPDATE bindings SET {assigned} WHERE resource = ? AND key = ?", *columns.values(), resource, key
        )

    def _unbind(self, resource: str, key: str) -> None:
        self.stage.sql("DELETE FROM bindings WHERE resource = ? AND key = ?", resource, key)

    def _product_unbound(self) -> None:
        key, _ = self._take("product")
        self._unbind("product", key)
        self.seeded.add("product unbound", "extra", "product", key)

    def _invoice_unbound(self) -> None:
        key, _ = self._take("invoice")
        self._unbind("invoice", key)
        self.seeded.add("invoice unbound", "extra", "invoice", key)

    def _bound_to_another(self) -> None:
        key, (_, another) = self._take("customer")[0], self._take("customer")
        self._bind("customer", key, target_id=another)
        self.seeded.add("customer bound to another", "duplicate", "customer", key)

    def _invoice_to_another(self) -> None:
        key, (_, another) = self._take("invoice")[0], self._take("invoice")
        self._bind("invoice", key, target_id=another)
        self.seeded.add("invoice bound to another", "duplicate", "invoice", key)

    def _other_id(self) -> None:
        key, _ = self._take("product")
        self._bind("product", key, target_id=f"unknown-{key}"[:64])
        self.seeded.add("product bound to no record", "diverged", "product", key)

    def _invoice_other_id(self) -> None:
        key, _ = self._take("invoice")
        self._bind("invoice", key, target_id=f"unknown-{key}")
        self.seeded.add("invoice bound to no record", "diverged", "invoice", key)

    def _payload_changed(self) -> None:
        key, _ = self._take("product")
        self._put_payload("product", key, name="never sent")
        self.seeded.add("payload changed", "diverged", "product", key)

    def _put_payload(self, resource: str, key: str, **members: Any) -> None:
        query = "SELECT payload FROM bindings WHERE resource = ? AND key = ?"
        payload = exact_json.loads(self.stage.sql(query, resource, key)[0][0].encode())
        self._bind(resource, key, payload=exact_json.dumps({**payload, **members}).decode())

    def _not_delivered(self) -> None:
        """The state and the platform hold an older version, under the fingerprint of the newest."""
        key, target_id = self._take("product")
        self._bind("product", key, etag=self._patch("product", target_id, name="an older name"))
        self._put_payload("product", key, name="an older name")
        self.seeded.add("old under a new fingerprint", "stale", "product", key)

    def _fingerprint_changed(self) -> None:
        """Only the next comparison with the source is slower: nothing differs."""
        key, _ = self._take("product")
        self._bind("product", key, record_fp=self.stage.random.randbytes(16))
        self.seeded.kinds["fingerprint changed"] += 1

    def _doubt(self, resource: str, key: str) -> None:
        """Its create is in doubt, as after an answer that was lost."""
        self._unbind(resource, key)
        statement = "UPDATE intents SET status = 'in_doubt', target_id = NULL, settled_at = NULL, http_status = NULL"
        self.stage.sql(f"{statement} WHERE resource = ? AND key = ? AND operation = 'create'", resource, key)
        self.seeded.add(f"{resource} in doubt", "in doubt", resource, key)

    def _product_in_doubt(self) -> None:
        self._doubt("product", self._take("product", unused=True)[0])

    def _invoice_in_doubt(self) -> None:
        self._doubt("invoice", self._take("invoice")[0])

    def _invoice_not_done(self) -> None:
        key, target_id = self._take("invoice")
        self.stage.sandbox.delete(f"{LISTS['invoice']}/{target_id}")
        self._doubt("invoice", key)
        new = self.stage.random.randbytes(32).hex()  # under the old key the platform would repeat its answer
        statement = "UPDATE intents SET idempotency_key = ? WHERE resource = 'invoice' AND key = ?"
        self.stage.sql(statement, new, key)

    # ---- in the source

    def _change_sources(self, each: int) -> None:
        customers = [self._take("customer")[0] for _ in range(each)]
        products = [self._take("product")[0] for _ in range(each)]
        changed = [self._take("invoice")[0] for _ in range(each)]
        self.stage.exports.correct_newest(self._expected, customers, products)
        for resource, keys in (("customer", customers), ("product", products)):
            for key in keys:
                self.seeded.add(f"{resource} changed in the source", "stale", resource, key)
        first: set[str] = set()

        def doubled(row: Row) -> Row | None:
            number = row["InvoiceNo"]
            if number not in changed or number in first:
                return None
            first.add(number)
            return {**row, "Quantity": str(int(row["Quantity"]) + 1_000_000)}

        assert self.stage.exports.change(doubled) == each
        for key in changed:
            self.seeded.add("invoice changed in the source", "rejected", "invoice", key, stays=True)
        self._add_lines(each)

    def _add_lines(self, each: int) -> None:
        """New invoices: one that is sent, one that waits for a product, one that cannot be mapped."""
        sample = next(
            row for row in rows(next(iter(sorted(self.stage.exports.folder.glob("*.csv.gz"))))) if _is_sold(row)
        )
        lines = []
        for number in range(each):
            new, waits, bad = (f"{kind}{number:05}" for kind in (900, 910, 920))
            lines += [
                {**sample, "InvoiceNo": new, "Quantity": str(500_000 + number)},
                {**sample, "InvoiceNo": waits, "StockCode": f"NEVER{number}", "Description": ""},
                {**sample, "InvoiceNo": bad, "Quantity": "many"},
            ]
            self.seeded.add("invoice added to the source", "missing", "invoice", new)
            self.seeded.add("invoice waits", "waiting", "invoice", waits, stays=True)
            self.seeded.add("invoice cannot be mapped", "rejected", "invoice", bad, stays=True)
        self.stage.exports.add(lines)


def _is_sold(row: Row) -> bool:
    return bool(row["CustomerID"] and row["Description"]) and not row["InvoiceNo"].startswith("C")
