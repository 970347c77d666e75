"""Waiting records are grouped by what they wait for in the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report_page import AT, dead_letter, sqlite_state, start, waiting

from crossdock.delta.fingerprint import key_hashes
from crossdock.runs.open_records import group_waiting_records_by_root_cause
from crossdock.state import RecordFilter, Scope, WaitingRecord

STREAM = "wms.accounts"
SCOPES = {STREAM: Scope("platform", "ledger_account", "wms")}


def account(key: str, *parents: str) -> WaitingRecord:
    waits_for = [{"resource": "ledger_account", "namespace": "wms", "key": parent} for parent in parents]
    return waiting(1, stream=STREAM, key=key, key_hash=key_hashes([key])[key], waits_for=waits_for)


def groups(
    folder: pytest.TempPathFactory, records: list[WaitingRecord], *rejected: str
) -> list[tuple[list[str], int, list[str]]]:
    """The keys of the roots, the number of records and the keys of rejected roots of each group."""
    with sqlite_state(folder.mktemp("state")) as state, state.begin() as tx:
        run = start(tx)
        tx.waiting_records.put(records, run_id=run, at=AT)
        letters = [dead_letter(1, stream=STREAM, key=key, key_hash=key_hashes([key])[key]) for key in rejected]
        tx.dead_letters.put(letters, run_id=run, at=AT)
        found = group_waiting_records_by_root_cause(tx, SCOPES, RecordFilter())
    return [([key for *_, key in each.roots], each.number, [key for *_, key in each.rejected]) for each in found]


def test_a_hierarchy_waits_for_its_root(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Children, and children of children, are one group; the root is marked as rejected."""
    records = [account("10", "1"), account("11", "1"), account("100", "10"), account("1000", "100"), account("20", "2")]
    assert groups(tmp_path_factory, records, "1") == [(["1"], 4, ["1"]), (["2"], 1, [])]


def test_a_record_may_wait_for_several(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Records with the same roots are one group, whatever the way."""
    records = [account("10", "1", "2"), account("100", "10"), account("20", "2")]
    assert sorted(groups(tmp_path_factory, records)) == [(["1", "2"], 2, []), (["2"], 1, [])]


@given(parents=st.dictionaries(st.integers(0, 12), st.lists(st.integers(0, 20), min_size=1, max_size=3, unique=True)))
def test_every_record_is_in_one_group(parents: dict[int, list[int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also where records wait for each other in a circle; every group has a root."""
    records = [account(str(key), *map(str, others)) for key, others in parents.items()]
    found = groups(tmp_path_factory, records)
    assert sum(number for _, number, _ in found) == len(records)
    assert all(roots for roots, *_ in found)
