"""References that only the lists of a target show."""

from __future__ import annotations

from tests.unit.state.samples import AT, SCOPE, binding, start

from crossdock.state import State, UnrecordedReference


def shown(by_id: str, target_id: str = "cus_1") -> UnrecordedReference:
    return UnrecordedReference("product", by_id, "customer", target_id)


def test_a_list_replaces_what_it_has_shown_before(state: State) -> None:
    """Until it has ended, it may have shown too little, which holds for no other list and no other target."""
    with state.begin() as tx:
        tx.unrecorded_references.begin_reading_references("platform", "product")
        tx.unrecorded_references.add("platform", [shown("prd_1"), shown("prd_1"), shown("prd_2", "cus_2")])
        tx.unrecorded_references.begin_reading_references("platform", "order")
        tx.unrecorded_references.complete_reading_references("platform", "product")
        assert tx.unrecorded_references.unread_resources("platform") == {"order"}
        assert tx.unrecorded_references.unread_resources("depot") == set()
        assert list(tx.unrecorded_references.references_to("platform", "customer", ["cus_1"])) == [shown("prd_1")]
        assert not list(tx.unrecorded_references.references_to("depot", "customer", ["cus_1"]))
        tx.unrecorded_references.begin_reading_references("platform", "product")
        assert not list(tx.unrecorded_references.references_to("platform", "customer", ["cus_1", "cus_2"]))
        assert tx.unrecorded_references.unread_resources("platform") == {"order", "product"}


def test_a_record_that_was_deleted_since_refers_to_nothing(state: State) -> None:
    """A record counts whose id is bound to another key, and one that the state never knew."""
    run = start(state)
    with state.begin() as tx:
        tx.unrecorded_references.add("platform", [shown(f"prd_{number}") for number in (1, 2, 3)])
        tx.bindings.put(SCOPE, [binding(1), binding(2), binding(4, target_id="prd_2")], run_id=run, at=AT)
        tx.bindings.mark_deleted(SCOPE, [1, 2], at=AT)
        found = tx.unrecorded_references.references_to("platform", "customer", ["cus_1"])
        assert {each.by_id for each in found} == {"prd_2", "prd_3"}
