"""What stays after an undo keeps what it refers to, at any distance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.state.samples import AT, binding, intent, start

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.mapping.resource_types import WRITABLE_RESOURCE_TYPES
from crossdock.runs import still_referenced_records
from crossdock.runs.platform_and_state_comparison import load_bindings_by_target_id
from crossdock.runs.still_referenced_records import ListedReferences, ReferencesRemainingAfterUndo
from crossdock.state import Binding, RecordIdentity, Scope, State
from crossdock.targets import Target
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import Record
from crossdock.writing.delivery.operations_and_intents import Operation

ORDER = ("invoice", "order", "inventory_lot", "warehouse_bin", "product", "customer", "ledger_account")
TARGETS = cast("Mapping[str, Target]", {"platform": SimpleNamespace(resources=WRITABLE_RESOURCE_TYPES)})


def scope(resource: str) -> Scope:
    return Scope("platform", resource, "wms")


def sold(customer: str, *products: str) -> dict[str, Any]:
    return {"customerId": customer, "items": [{"productId": each} for each in products]}


class Books:
    """A state, and what of it is undone."""

    def __init__(self, state: State) -> None:
        self.state, self._run, self._number = state, start(state), 0
        self._operations: dict[str, list[Operation]] = {resource: [] for resource in ORDER}
        self._live = ListedReferences()

    def list(self, resource: str, *page: dict[str, Any]) -> None:
        """The platform lists these records."""
        ids = [each["id"] for each in page if isinstance(each.get("id"), str)]
        self._live.add_unrecorded_references(resource, page, load_bindings_by_target_id(self.state, resource, ids))

    def bind(self, resource: str, target_id: str, payload: Any = None, *, contributes: str = "") -> Binding:
        self._number += 1
        made = binding(self._number, target_id=target_id, payload=payload or {"name": "x"})
        of = scope(resource).contribution_scope_of_stream(contributes) if contributes else scope(resource)
        with self.state.begin() as tx:
            tx.bindings.put(of, [made], run_id=self._run, at=AT)
        return made

    def delete(self, resource: str, target_id: str, payload: Any = None) -> None:
        """A record that would be deleted."""
        bound = self.bind(resource, target_id, payload)
        self._plan(resource, bound, "delete", {})

    def restore(self, resource: str, target_id: str, payload: Any, before: Any) -> None:
        """A record that gets back what it held *before*."""
        self._plan(resource, self.bind(resource, target_id, payload), "update", before)

    def _plan(self, resource: str, bound: Binding, kind: Any, after: Any) -> None:
        identity = RecordIdentity(f"wms.{resource}", bound.key, bound.key_hash, None, None, "undo", 0)
        record = Record(bound.key, (), "undo", (0,))
        self._operations[resource].append(Operation(kind, identity, scope(resource), record, after, {}, bound))

    def kept(self) -> dict[str, str]:
        """The ids that must stay, each with the resource that refers to it."""
        streams = cast(
            "Sequence[BoundStream]",
            [
                SimpleNamespace(scope=scope(name), resource_type=WRITABLE_RESOURCE_TYPES[name])
                for name in ORDER
                if self._operations[name]
            ],
        )

        def operations(bound: BoundStream) -> Iterator[Operation]:
            return iter(self._operations[bound.scope.resource])

        found = ReferencesRemainingAfterUndo(self.state, TARGETS, self._live)
        found.find_references_after_undo(streams, operations)
        return {
            name: resource
            for bound in streams
            for name, resource in found.referring_resource_by_id(
                bound.scope,
                [each.binding.target_id for each in operations(bound) if each.kind == "delete" and each.binding],
            ).items()
        }


@pytest.fixture
def books(state: State) -> Books:
    return Books(state)


def test_what_a_remaining_record_names_stays(books: Books) -> None:
    """And nothing else, even if it has the same id among another resource."""
    books.bind("invoice", "1", sold("1", "2"))
    for number in ("1", "2", "3"):
        books.delete("customer", number)
        books.delete("product", f"{number}")
    assert books.kept() == {"1": "invoice", "2": "invoice"}


def test_records_that_go_together_hold_nothing_back(books: Books) -> None:
    """An order that is deleted refers to nothing afterwards."""
    books.delete("order", "ord_1", sold("cus_1", "prd_1"))
    books.delete("customer", "cus_1")
    books.delete("product", "prd_1")
    assert books.kept() == {}


def test_a_chain_stays_whole(books: Books) -> None:
    """However long it is, and in whichever order its records are decided about."""
    for number in range(9):
        books.delete("ledger_account", f"acc_{number}", {"parentId": f"acc_{number + 1}"})
    for number in range(9, 0, -1):
        books.delete("ledger_account", f"top_{number - 1}", {"parentId": f"top_{number}"})
    books.bind("ledger_account", "mine", {"parentId": "acc_3"})
    books.bind("ledger_account", "too", {"parentId": "top_6"})
    expected = {*(f"acc_{number}" for number in range(3, 9)), *(f"top_{number}" for number in range(6, 9))}
    assert books.kept().keys() == expected


def test_what_stays_for_a_reference_holds_its_own(books: Books) -> None:
    """A lot that a movement refers to stays, and so do its product and its bin, that of a contribution too."""
    books.delete("inventory_lot", "lot_1", {"productId": "prd_1", "binId": "bin_1"})
    books.bind("inventory_lot", "lot_1", {"binId": "bin_3"}, contributes="depot.bins")
    books.delete("inventory_lot", "lot_2", {"productId": "prd_2"})
    books.bind("inventory_lot", "lot_2", {"binId": "bin_3"}, contributes="depot.bins")
    books.bind("lot_movement", "mov_1", {"lotId": "lot_1", "toBinId": "bin_2", "quantity": 1})
    for number in ("1", "2", "3", "4"):
        books.delete("product", f"prd_{number}")
        books.delete("warehouse_bin", f"bin_{number}")
    assert books.kept() == {
        "lot_1": "lot_movement",
        "prd_1": "inventory_lot",
        "bin_1": "inventory_lot",
        "bin_2": "lot_movement",
        "bin_3": "inventory_lot",
    }


def test_a_restored_record_refers_to_what_it_named_before(books: Books) -> None:
    """Not to what it names now."""
    books.restore("order", "ord_1", sold("cus_1", "prd_1"), sold("cus_1", "prd_2"))
    for number in ("1", "2"):
        books.delete("product", f"prd_{number}")
        books.delete("customer", f"cus_{number}")
    assert books.kept() == {"prd_2": "order", "cus_1": "order"}


def test_an_operation_that_is_not_settled_counts(books: Books) -> None:
    """It may still be carried out."""
    body = exact_json.dumps(sold("cus_1", "prd_1"))
    with books.state.begin() as tx:
        tx.intents.add([intent(70, resource="invoice", body=body)], run_id=1, fence=0, at=AT)
    books.delete("product", "prd_1")
    books.delete("product", "prd_2")
    assert books.kept() == {"prd_1": "invoice"}


def test_what_a_record_of_others_names_stays(books: Books) -> None:
    """The state knows nothing of it; what hostile records hold is left out."""
    for number in ("1", "2", "3"):
        books.delete("customer", f"cus_{number}")
        books.delete("product", f"prd_{number}")
    books.list("order", {"id": "ord_9", **sold("cus_1", "prd_1", "prd_2")}, sold("cus_3"))
    books.list("invoice", {"id": ["x"], "customerId": 3, "items": [7, {"productId": {}}]}, {"id": 1, "items": "prd_3"})
    books.list("customer", {"id": "cus_9", "name": "x"})
    assert books.kept() == {"cus_1": "order", "cus_3": "order", "prd_1": "order", "prd_2": "order"}


def test_what_others_have_made_a_record_name_stays(books: Books) -> None:
    """What it names by our own doing does not count, if it goes."""
    books.delete("inventory_lot", "lot_1", {"productId": "prd_1", "binId": "bin_1"})
    books.bind("inventory_lot", "lot_1", {"binId": "bin_2"}, contributes="depot.bins")
    books.bind("order", "ord_1", sold("cus_1", "prd_2"))
    books.list("inventory_lot", {"id": "lot_1", "productId": "prd_1", "binId": "bin_2"})
    books.list("order", {"id": "ord_1", **sold("cus_2", "prd_2")})
    for number in ("1", "2"):
        for resource, name in (("customer", "cus"), ("product", "prd"), ("warehouse_bin", "bin")):
            books.delete(resource, f"{name}_{number}")
    assert books.kept() == {"cus_1": "order", "cus_2": "order", "prd_2": "order"}


def test_many_records_are_read_in_pages(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left out between two pages."""
    monkeypatch.setattr(still_referenced_records, "_PAGE", 2)
    for number in range(7):
        books.bind("invoice", f"inv_{number}", sold(f"cus_{number}", "prd_1"))
        books.delete("customer", f"cus_{number}")
    books.delete("customer", "cus_7")
    assert books.kept().keys() == {f"cus_{number}" for number in range(7)}
