"""Bindings are stored exactly, replaced, deleted and found by key."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests import sqlite_steps
from tests.conftest import PIN
from tests.examples import examples
from tests.unit.state.samples import AT, SCOPE, binding, start

from crossdock.state import AcceptedBinding, Scope, State, parse_database_url
from crossdock.values import exact_json

OTHER = Scope("platform", "invoice", "wms")
hashes = st.integers(0, (1 << 128) - 100)


def test_bindings_come_back_as_they_went_in(state: State) -> None:
    """A binding keeps hashes of 128 bits and exact payloads; a newer one of the same key replaces it."""
    run = start(state)
    top = (1 << 128) - 1
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(top, fingerprint=top), binding(2)], run_id=run, at=AT)
        tx.bindings.put(SCOPE, [binding(2, counter=7, position="2026")], run_id=run, at=AT)
    with state.begin() as tx:
        assert tx.bindings.get(SCOPE, [top, 2, 3]) == {
            top: binding(top, fingerprint=top),
            2: binding(2, counter=7, position="2026"),
        }
        assert tx.bindings.target_id_by_key_hash(SCOPE, [top]) == {top: f"prd_{top}"}
        assert tx.bindings.get(Scope("platform", "product", "other"), [2]) == {}
    assert min(state.key_index_frame_of_scope(SCOPE).rows()) == (2, 12, "2026")


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.lists(hashes, max_size=30, unique=True), asked=st.lists(hashes, max_size=30), number=st.integers(1, 9))
def test_look_ups_find_what_there_is(state: State, kept: list[int], asked: list[int], number: int) -> None:
    """Of any keys, some asked for twice, those of the scope are found and no others, with what was put last."""
    run, wanted = start(state), [*asked, *kept[::2], *kept[:3]]
    scope = Scope("platform", "product", f"n{run}")
    with state.begin() as tx:
        tx.bindings.put(scope, [binding(each, counter=1) for each in kept], run_id=run, at=AT)
        tx.bindings.put(scope, [binding(each, counter=number) for each in kept[::3]], run_id=run, at=AT)
        tx.bindings.put(OTHER, [binding(each, target_id="other") for each in asked], run_id=run, at=AT)
    with state.begin_read_only() as tx:
        last = dict.fromkeys(kept, 1) | dict.fromkeys(kept[::3], number)
        there = {each: last[each] for each in wanted if each in last}
        assert tx.bindings.idempotency_counters(scope, wanted) == there
        assert {key: found.counter for key, found in tx.bindings.get(scope, wanted).items()} == there
        assert tx.bindings.target_id_by_key_hash(scope, wanted) == {each: f"prd_{each}" for each in there}
        assert set(tx.bindings.target_id_by_key_hash(OTHER, asked).values()) <= {"other"}


def test_what_is_accepted_is_bound(state: State) -> None:
    """A record that was just accepted is bound as any other, whatever its scope, and replaces what was bound."""
    run, payload = start(state), {"name": "é", "unitPrice": Decimal("0.10")}
    facts = binding(7, payload=payload, etag='"2"', counter=4)
    text = exact_json.dumps(payload).decode()
    accepted = AcceptedBinding(
        SCOPE, 7, facts.key, facts.target_id, facts.fingerprint, None, "whole", text, facts.etag, facts.counter
    )
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(7)], run_id=run, at=AT)
        tx.bindings.put_accepted([accepted, structs.replace(accepted, scope=OTHER)], run_id=run, at=AT)
        assert tx.bindings.get(SCOPE, [7]) == tx.bindings.get(OTHER, [7]) == {7: facts}


def test_a_contribution_renews_the_version_of_the_whole_record(state: State) -> None:
    """And what others have changed since is not known to be of that time any more."""
    run, part = start(state), SCOPE.contribution_scope_of_stream("depot.bins")
    accepted = AcceptedBinding(part, 1, "K1", "prd_1", None, None, "whole", "{}", '"2"', 2, "then")
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1, etag='"1"'), binding(2, etag='"1"', changed_at="first")], run_id=run, at=AT)
        tx.bindings.put_accepted([accepted], run_id=run, at=AT)
        tx.bindings.store_record_versions([accepted])
    with state.begin() as tx:
        versions = {number: (each.etag, each.changed_at) for number, each in tx.bindings.get(SCOPE, [1, 2]).items()}
        assert versions == {1: ('"2"', "then"), 2: ('"1"', "first")}
        tx.bindings.clear_change_times([("platform", "product", "prd_1"), ("platform", "customer", "prd_2")])
        tx.bindings.clear_change_times([])
    with state.begin() as tx:
        found = [tx.bindings.get(scope, [1, 2]) for scope in (SCOPE, part)]
    versions = {number: (each.etag, each.changed_at) for number, each in found[0].items()}
    assert versions == {1: ('"2"', None), 2: ('"1"', "first")}
    assert found[1][1].changed_at is None


def test_pages_of_a_resource_have_contributions_on_request(state: State) -> None:
    """In the order of namespace and key hash, and each once."""
    run, part, shop = (
        start(state),
        SCOPE.contribution_scope_of_stream("depot.bins"),
        Scope("platform", "product", "shop"),
    )
    with state.begin() as tx:
        for scope in (part, OTHER, SCOPE, shop):
            tx.bindings.put(scope, [binding(1), binding(2)], run_id=run, at=AT)

    def listed(*, contributions: bool) -> list[tuple[Scope, int]]:
        found, after = list[tuple[Scope, int]](), None
        with state.begin_read_only() as tx:
            while page := tx.bindings.page_of_resource_bindings(
                "platform", SCOPE.resource, after=after, limit=1, contributions=contributions
            ):
                found += [(scope, each.key_hash) for scope, each in page]
                after = found[-1][0].namespace, found[-1][1]
        return found

    wholes = [(scope, number) for scope in (shop, SCOPE) for number in (1, 2)]
    assert listed(contributions=False) == wholes
    assert listed(contributions=True) == [*wholes, (part, 1), (part, 2)]


def test_the_last_page_of_a_resource_costs_no_more_than_the_second(empty_state: Path, tmp_path: Path) -> None:
    """In steps of SQLite: it does not read the pages before it again."""
    shutil.copy(empty_state, tmp_path / "state.db")
    with sqlite_steps.counted() as steps:
        state = State(parse_database_url("sqlite:///state.db", tmp_path), PIN)
        run = start(state)
        with state.begin() as tx:
            tx.bindings.put(SCOPE, [binding(number) for number in range(2_000)], run_id=run, at=AT)
        pages, taken, after = list[int](), list[int](), None
        with state.begin_read_only() as tx:
            for _ in range(20):
                before = steps.taken
                page = tx.bindings.page_of_resource_bindings(SCOPE.target, SCOPE.resource, after=after, limit=100)
                pages.append(len(page))
                taken.append(steps.taken - before)
                after = SCOPE.namespace, page[-1][1].key_hash
        state.close()
    assert set(pages) == {100}
    assert taken[-1] < 1.2 * taken[1]


def test_what_was_buried_is_bound_again(state: State) -> None:
    """A record that is gone keeps its counter alone, until it is delivered once more."""
    run = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1, counter=5), binding(2)], run_id=run, at=AT)
        tx.bindings.mark_deleted(SCOPE, [1, 9], at=AT)
        assert (tx.bindings.get(SCOPE, [1]), tx.bindings.idempotency_counters(SCOPE, [1])) == ({}, {1: 5})
        assert tx.bindings.counts_by_resource() == {"product": 1}
        tx.bindings.put(SCOPE, [binding(1, counter=6)], run_id=run, at=AT)
        assert tx.bindings.get(SCOPE, [1, 2]) == {1: binding(1, counter=6), 2: binding(2)}


def test_what_something_else_has_changed_is_in_doubt(state: State) -> None:
    """Nothing is known any more of live records of the resource whose keys begin so, and of no others."""
    run, stock = start(state), Scope("shop", "stock", "depot")
    others = [Scope("shop", "stock", "wms"), Scope("shop", "parcels", "depot"), Scope("other", "stock", "depot")]
    keys = {1: "A%7C|1", 2: "A%7C|2", 3: "AB|1", 4: "A", 5: "B|A%7C|"}
    with state.begin() as tx:
        for scope in (stock, *others):
            tx.bindings.put(scope, [binding(number, key=key) for number, key in keys.items()], run_id=run, at=AT)
        tx.bindings.mark_deleted(stock, [2], at=AT)
    with state.begin() as tx:
        tx.bindings.clear_payloads_by_key_prefix("shop", "stock", "A%7C|")
        tx.bindings.clear_payloads_by_key_prefix("shop", "stock", "A%7C|")
    with state.begin() as tx:
        found = {scope: tx.bindings.get(scope, list(keys)) for scope in (stock, *others)}
    doubted = {(scope, number) for scope, each in found.items() for number, one in each.items() if not one.payload}
    assert doubted == {(stock, 1), (others[0], 1), (others[0], 2)}
    assert (found[stock][1].fingerprint, found[stock][1].step, found[stock][1].target_id) == (None, "import", "prd_1")
    known = {row[0]: row[1] for row in state.key_index_frame_of_scope(stock).rows()}
    assert (known[1], known[3]) == (None, 13)


def test_contributions_to_records_that_were_created_again_are_found(state: State) -> None:
    """The others are as they were: their record is the same, gone, or not compared with the target yet."""
    run_id, part = start(state), SCOPE.contribution_scope_of_stream("wms.prices")
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(number) for number in range(4)], run_id=run_id, at=AT)
        tx.bindings.put(
            part,
            [structs.replace(binding(number), payload={"price": number}) for number in range(4)],
            run_id=run_id,
            at=AT,
        )
        tx.bindings.mark_deleted(SCOPE, [1, 2, 3], at=AT)
        again = [structs.replace(binding(number), target_id=f"new{number}") for number in (1, 2)]
        tx.bindings.put(SCOPE, again, run_id=run_id, at=AT)
        tx.bindings.clear_contribution_fingerprints(SCOPE, [0, 1, 2])
        tx.bindings.mark_unverified(part, [binding(2)])
        (found,) = tx.bindings.contributions_to_recreated_records(part)
        assert (found.key_hash, found.payload, found.fingerprint) == (1, {"price": 1}, None)
        assert tx.bindings.contributions_to_recreated_records(SCOPE) == []
