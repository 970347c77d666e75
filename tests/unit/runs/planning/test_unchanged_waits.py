"""Which waiting records a run decides about, and which stay idle."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
from msgspec import structs
from tests.unit.runs.planning.accounts import Accounts, account, bound_accounts

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.connector import Settings
from crossdock.delta.fingerprint import key_hashes
from crossdock.delta.row_preparation import FP, KEY_HASH, SAME
from crossdock.delta.state_comparison import compare_latest_records_with_state
from crossdock.runs.planning.waiting_records import (
    IdleWaitSeparator,
    hash_of_waiting_decision_inputs,
    installed_package_versions,
)
from crossdock.state import Binding, Intent, Scope, State, WaitingRecord
from crossdock.state.sidecar_files import key_index_files

AT = datetime(2026, 1, 1, tzinfo=UTC)
BOUND = bound_accounts()
VERSION = hash_of_waiting_decision_inputs(BOUND)


def waiting(state: State, *pairs: tuple[str, str], version: str | None = VERSION) -> None:
    """Waiting records for pairs of key and parent, marked with *version*."""
    scope = BOUND.scope
    records = []
    for key, parent in pairs:
        read = account(BOUND, key, parent)
        waits_for = [{"resource": scope.resource, "namespace": scope.namespace, "key": parent}]
        records.append(WaitingRecord(read.identity, waits_for, read.record.raw(), idle_under=version))
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-01-01", at=AT)
        tx.waiting_records.put(records, run_id=run_id, at=AT)


def taken_up(state: State, unsettled: Sequence[Intent] = (), *, takes_up_all: bool = False) -> list[str]:
    """The keys of the records to decide about; all of them are found."""
    records = IdleWaitSeparator(BOUND, takes_up_all=takes_up_all)
    with state.begin_read_only() as tx:
        found = [each.identity.key for each in records.separate_idle_and_return_others(tx, unsettled)]
    assert len(records.found) == len(found) + len(records.left)
    return found


def test_a_record_is_idle_while_nothing_that_it_waits_for_exists(state: State) -> None:
    """Its parent is created, deleted and created again: the state of this moment counts, not what happened before."""
    waiting(state, ("A", "P"), ("B", "Q"))
    hashes = key_hashes(["P"])
    assert taken_up(state) == []
    for counter in (1, 2):
        with state.begin() as tx:
            run_id = tx.runs.start(business_date="2026-01-01", at=AT)
            binding = Binding(hashes["P"], "P", f"id-{counter}", 1, None, "whole", {}, None, counter)
            tx.bindings.put(BOUND.scope, [binding], run_id=run_id, at=AT)
        assert taken_up(state) == ["A"]
        with state.begin() as tx:
            tx.bindings.mark_deleted(BOUND.scope, [hashes["P"]], at=AT)
        assert taken_up(state) == []


def test_a_record_is_decided_about_until_a_run_has_marked_it(state: State) -> None:
    """No mark, a mark of another mapping, or a run that takes up all."""
    waiting(state, ("A", "P"), version=None)
    waiting(state, ("B", "P"), version="other")
    waiting(state, ("C", "P"))
    assert taken_up(state) == ["A", "B"]
    assert taken_up(state, takes_up_all=True) == ["A", "B", "C"]


def test_a_mark_ends_when_the_record_waits_anew(state: State) -> None:
    """A later version of the record has no mark before a run has decided about it and come to its end."""
    waiting(state, ("A", "P"))
    waiting(state, ("A", "P"), version=None)
    assert taken_up(state) == ["A"]


def test_a_record_with_an_unsettled_operation_is_not_idle(state: State) -> None:
    """What becomes of the operation decides about the record."""
    waiting(state, ("A", "P"), ("B", "P"))
    identity = account(BOUND, "A", "P").identity
    intent = Intent(identity, BOUND.scope, "create", "open", 1, "key", "POST", "/", None, None, {}, {})
    assert taken_up(state, [intent]) == ["A"]


def test_records_below_one_that_is_decided_about_are_decided_about_too(state: State) -> None:
    """Their whole chain, and no other; what was read in a newer version is left to the comparison."""
    waiting(state, ("B", "A"), ("C", "B"), ("D", "X"), ("E", "D"))
    hashes = key_hashes(["A", "E"])
    latest = pl.DataFrame(
        {KEY_HASH: list(hashes.values()), FP: [8, 8], SAME: [False, False]},
        schema={KEY_HASH: pl.UInt128, FP: pl.UInt64, SAME: pl.Boolean},
    )
    records = IdleWaitSeparator(BOUND, takes_up_all=False)
    with state.begin_read_only() as tx:
        assert records.separate_idle_and_return_others(tx, []) == []
        found = compare_latest_records_with_state(
            latest,
            key_index_files.empty_key_index_frame(),
            waiting=[],
            idle=[*records.left.values()],
            unsettled=[],
            snapshot=False,
        )
        assert sorted(each.identity.key for each in records.release_children_of_decided(tx, found, [])) == ["B", "C"]
    assert [each.identity.key for each in records.left.values()] == ["D"]


def test_whatever_a_mapping_may_use_ends_the_marks() -> None:
    """Its version, the settings, namespaces, the target, keys that were renamed or are not trimmed."""
    newer, renamed = Accounts(), Accounts()
    newer.mapping_version, renamed.earlier_keys = "2", {"P": " P"}
    settings = replace(BOUND.context, settings=Settings(kind="none", namespace="n"))
    others = [
        structs.replace(BOUND, stream=newer),
        structs.replace(BOUND, stream=renamed),
        structs.replace(BOUND, context=settings),
        structs.replace(BOUND, connection_namespace="other"),
        structs.replace(BOUND, scope=Scope("platform", "ledger_account", "other")),
        structs.replace(BOUND, scope=Scope("second", "ledger_account", "w")),
        structs.replace(BOUND, untrimmed_key_scopes=frozenset({BOUND.scope})),
    ]
    versions = [hash_of_waiting_decision_inputs(each) for each in (BOUND, bound_accounts(), *others)]
    assert versions[0] == versions[1]
    assert None not in versions
    assert len(set(versions)) == 1 + len(others)


@pytest.mark.nightly
def test_another_process_knows_the_mark() -> None:
    """No address of an object and no order of a set is in it; otherwise no record would ever be idle."""
    code = "from tests.unit.runs.planning.test_unchanged_waits import VERSION; print(VERSION)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "7"}
    shown = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == VERSION


@pytest.mark.parametrize("package", [False, True])
def test_code_beside_the_mapping_ends_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, package: bool
) -> None:
    """A mapping may call it, also from another folder of its package; its author may not raise ``mapping_version``."""

    def version_with(text: str) -> str | None:
        folder = tmp_path / text
        (folder / "helpers").mkdir(parents=True)
        (folder / ("helpers/helper.py" if package else "helper.py")).write_text(f"# {text}\n", encoding="utf-8")
        name = f"streams_{text}"
        module = ModuleType(f"{name}.orders" if package else name)
        module.__file__ = str(folder / "streams.py")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        if package:
            above = ModuleType(name)
            above.__path__ = [str(folder)]
            monkeypatch.setitem(sys.modules, name, above)
        made: type[Accounts] = type("Other", (Accounts,), {"__module__": module.__name__})
        return hash_of_waiting_decision_inputs(structs.replace(BOUND, stream=made()))

    assert version_with("one") != version_with("two")


def test_another_version_of_an_installed_package_ends_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """crossdock, or one that the mapping uses."""
    before = hash_of_waiting_decision_inputs(BOUND)
    (tmp_path / "holidays-2.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    installed_package_versions.cache_clear()
    try:
        assert hash_of_waiting_decision_inputs(BOUND) != before
    finally:
        installed_package_versions.cache_clear()


def test_a_stream_that_gets_its_own_writes_back_has_no_idle_records() -> None:
    """What it makes of a record depends on what was written to the other system meanwhile."""
    bound: BoundStream = structs.replace(
        BOUND, read_target_and_type=("shop", BOUND.resource_type), namespaces_of_target_system=frozenset({"w"})
    )
    assert hash_of_waiting_decision_inputs(bound) is None
