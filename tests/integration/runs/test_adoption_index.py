"""The records of a real sandbox that may be taken over, and those that belong to a record of crossdock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from msgspec import structs
from tests.integration.platform_source.reading import COPIES, Reading, reading
from tests.unit.state.samples import AT, SCOPE, binding, intent, start

from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import RefusedError, StoppedError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs import adoptable_record_reading
from crossdock.runs.adoptable_record_reading import AdoptableRecordReader
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.runs.planning.adoptable_records import TargetMemberValueIndex
from crossdock.runs.platform_source import live_records_for_comparisons
from crossdock.state import Binding, Intent, RecordIdentity, State
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress

OTHER = structs.replace(SCOPE, namespace="shop")


@pytest.fixture
def erp(tmp_path: Path) -> Iterator[Reading]:
    with reading(tmp_path) as made:
        made.configure({"products": COPIES})
        yield made


@pytest.fixture
def state(erp: Reading) -> Iterator[State]:
    with erp.project.open_state_exclusively() as opened:
        yield opened


def reader(erp: Reading, state: State, clock: Clock | None = None) -> AdoptableRecordReader:
    run = SourceContext(clock or SystemClock(), SilentProgress(), EmptyIntakeLog(), erp.folder, erp.folder, erp.folder)
    return AdoptableRecordReader(erp.project.platform, run, state, SCOPE, "sku")


def read(erp: Reading, state: State) -> TargetMemberValueIndex:
    index = TargetMemberValueIndex()
    reader(erp, state).read_changes_into_index(index)
    index.sort()
    return index


def bound(key: str, target_id: str) -> Binding:
    return binding(key_hashes([key])[key], key=key, target_id=target_id)


def left(key: str, **changes: object) -> Intent:
    return intent(1, identity=RecordIdentity("wms.products", key, key_hashes([key])[key], 5, None, "f", 2), **changes)


def test_what_is_bound_belongs_to_its_record(erp: Reading, state: State) -> None:
    """In the stream's own namespace it is taken, in another one it is no candidate at all."""
    free, own, others = erp.products(3)
    run = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [bound("1", own)], run_id=run, at=AT)
        tx.bindings.put(OTHER, [bound("1", others)], run_id=run, at=AT)
    index = read(erp, state)
    assert [index.find(each) for each in ("P0", "P1", "P2")] == [[(free, False)], [(own, True)], []]


def test_what_has_the_name_of_a_bound_record_belongs_to_it(erp: Reading, state: State) -> None:
    """Somebody has created it again under another id. The name of a record that is not bound says nothing."""
    (named,), (forgotten,) = erp.products(1, "wms:"), erp.products(1, "shop:")
    run = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [bound("0", "prd_gone")], run_id=run, at=AT)
    index = read(erp, state)
    assert (index.find("wms:0"), index.find("shop:0")) == ([(named, True)], [(forgotten, False)])


def test_what_an_unsettled_operation_is_about_belongs_to_its_record(erp: Reading, state: State) -> None:
    """By its id, or by the name under which it may have been created already."""
    (created,), (updated,) = erp.products(1, "wms:"), erp.products(1)
    run = start(state)
    with state.begin() as tx:
        pending = [left("0", status="in_doubt"), left("7", operation="update", target_id=updated, idempotency_key="k")]
        tx.intents.add(pending, run_id=run, fence=state.fence_number, at=AT)
    index = read(erp, state)
    assert (index.find("wms:0"), index.find("P0")) == ([(created, True)], [(updated, True)])


def test_later_only_what_has_changed_is_read(erp: Reading, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the platform says when; and a run that is stopped reads no further."""
    monkeypatch.setattr(adoptable_record_reading, "OVERLAP_S", 0.0)
    monkeypatch.setattr(live_records_for_comparisons, "PAGE_SIZE", 1)
    ids, index, made = erp.products(3), TargetMemberValueIndex(), reader(erp, state)
    made.read_changes_into_index(index)
    index.sort()
    erp.client.products.update(ids[1], {"sku": "new"})
    made.read_changes_into_index(index)
    index.sort()
    assert (index.find("P1"), index.find("new"), len(index)) == ([], [(ids[1], False)], 3)
    assert len(erp.requested("/api/v1/catalog/products")) == 3 + 2  # the last one again, and what was changed

    def stop() -> None:
        raise StoppedError("stopped")

    made.check = stop
    with pytest.raises(StoppedError):
        made.read_changes_into_index(index)


def test_a_time_in_the_future_hides_no_later_change(
    erp: Reading, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no record has a time that has come, all are read again."""
    monkeypatch.setattr(adoptable_record_reading, "OVERLAP_S", 0.0)
    monkeypatch.setattr(live_records_for_comparisons, "PAGE_SIZE", 1)
    erp.products(3)
    made = reader(erp, state, ManualClock())  # long before the platform's clock
    for _ in range(2):
        made.read_changes_into_index(TargetMemberValueIndex())
    assert len(erp.requested("/api/v1/catalog/products")) == 3 + 3


@pytest.mark.parametrize("item", [{"sku": "A"}, {"id": "", "sku": "A"}, {"id": 1.5, "sku": "A"}])
def test_a_record_without_an_id_is_refused(erp: Reading, state: State, item: object) -> None:
    """Such a list is not what it seems to be, so nothing is decided with it."""
    page, made = {"data": [item], "nextCursor": None}, reader(erp, state)
    made.run = replace(made.run, transport=httpx.MockTransport(lambda _: httpx.Response(200, json=page)))
    with pytest.raises(RefusedError, match="without a valid id"):
        made.read_changes_into_index(TargetMemberValueIndex())
