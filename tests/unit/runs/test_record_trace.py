"""A record is found by any of its names, and records of several streams are never mixed."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.report_page import dead_letter, sqlite_state, waiting
from tests.unit.state.samples import AT, binding, intent, start

from crossdock.delta.fingerprint import key_hashes
from crossdock.runs.record_history import RecordSearch
from crossdock.state import Scope, State
from crossdock.values.record_keys import key_text

CUSTOMERS, PRODUCTS = (Scope("platform", resource, "wms") for resource in ("customer", "product"))
SHOP = Scope("platform", "customer", "shop")
SCOPES = {"wms.customers": CUSTOMERS, "wms.products": PRODUCTS, "shop.people": SHOP}


def hashed(key: str) -> int:
    return key_hashes([key])[key]


def deliver(state: State, stream: str, scope: Scope, key: str, *, line: int = 2) -> None:
    """A record that was created; its id is the name of its stream and its key."""
    run, key_hash, name = start(state), hashed(key), f"{stream}/{key}"
    facts = {"stream": stream, "key": key, "key_hash": key_hash, "idempotency_key": f"{name}-1"[:64], "line": line}
    made = intent(0, target=scope.target, resource=scope.resource, namespace=scope.namespace, **facts)
    with state.begin() as tx:
        tx.intents.add([made], run_id=run, fence=1, at=AT)
        made.status, made.target_id = "delivered", name[:64]
        tx.intents.write_outcomes([made], at=AT)
        bound = binding(0, key=key, key_hash=key_hash, target_id=name[:64])
        tx.bindings.put(scope, [bound], run_id=run, at=AT)


def found(state: State, name: str, scopes: dict[str, Scope] = SCOPES) -> list[tuple[tuple[str, ...], str]]:
    with state.begin_read_only() as tx:
        return [(each.streams, each.key) for each in RecordSearch(tx, scopes).find(name)[0]]


def test_records_that_share_a_key_are_told_apart(state: State) -> None:
    """Each stream's record has its own operations, binding, rejection and wait."""
    for stream, scope in SCOPES.items():
        deliver(state, stream, scope, "7")
    facts = {"key": "7", "key_hash": hashed("7")}
    with state.begin() as tx:
        tx.dead_letters.put([dead_letter(7, stream="wms.products", **facts)], run_id=1, at=AT)
        tx.waiting_records.put([waiting(7, stream="shop.people", **facts)], run_id=1, at=AT)
    with state.begin_read_only() as tx:
        histories, _ = RecordSearch(tx, SCOPES).find("7")
    assert [(each.streams, each.scope) for each in histories] == [
        (("shop.people",), SHOP), (("wms.customers",), CUSTOMERS), (("wms.products",), PRODUCTS),
    ]  # fmt: skip
    assert [len(each.operations) for each in histories] == [1, 1, 1]
    assert [[row["target_id"] for row in each.bindings] for each in histories] == [
        ["shop.people/7"], ["wms.customers/7"], ["wms.products/7"],
    ]  # fmt: skip
    assert [len(each.dead_letters) for each in histories] == [0, 0, 1]
    assert [len(each.waits) for each in histories] == [1, 0, 0]


@pytest.mark.parametrize(
    "name", ["wms.products/7", "wms.products/7-1", "f.csv:9", "exports/f.csv:9"], ids=["id", "key", "line", "path"]
)
def test_a_name_of_one_record_finds_no_other(state: State, name: str) -> None:
    """A record of another stream with the same key is not shown for an id, an idempotency key or a line."""
    deliver(state, "wms.customers", CUSTOMERS, "7")
    deliver(state, "wms.products", PRODUCTS, "7", line=9)
    assert found(state, name) == [(("wms.products",), "7")]


def test_an_external_id_finds_the_records_of_its_namespace(state: State) -> None:
    """A customer and a product may have the same external id; a customer of another namespace has another one."""
    for stream, scope in SCOPES.items():
        deliver(state, stream, scope, "7")
    assert [streams for streams, _ in found(state, "wms:7")] == [("wms.customers",), ("wms.products",)]
    assert found(state, "shop:7") == [(("shop.people",), "7")]
    assert found(state, "other:7") == []


def test_records_of_streams_that_are_not_configured_any_more_are_found(state: State) -> None:
    """By their key, with the name of their stream; a rejection is part of the history of its record."""
    deliver(state, "old.products", PRODUCTS, "7")
    facts = {"key": "7", "key_hash": hashed("7")}
    other = {"key": "8", "key_hash": hashed("8")}
    with state.begin() as tx:
        letters = [dead_letter(n, stream="old.products", **each) for n, each in ((1, facts), (2, other))]
        tx.dead_letters.put(letters, run_id=1, at=AT)
    with state.begin_read_only() as tx:
        ((history,), _) = RecordSearch(tx, {}).find("7")
    assert (history.streams, history.scope, len(history.dead_letters)) == (("old.products",), PRODUCTS, 1)
    assert found(state, "8", {}) == [(("old.products",), "8")]


KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40)


@settings(max_examples=examples(40))  # each has a state of its own; `tests.long.test_properties` has more
@given(key=KEYS)
def test_any_key_is_found_by_each_of_its_texts(key: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """As in the source, in text form, and as an external id."""
    is_found_by_each_of_its_texts(key, tmp_path_factory.mktemp("state"))


def is_found_by_each_of_its_texts(key: str, folder: Path) -> None:
    with sqlite_state(folder) as state:
        deliver(state, "wms.products", PRODUCTS, key_text([key]))
        for name in (key, quote(key, safe=""), f"wms:{quote(key, safe='')}", f"wms:{key}"):
            assert (("wms.products",), key_text([key])) in found(state, name)
