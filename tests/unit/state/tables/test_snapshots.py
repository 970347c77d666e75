"""What the state keeps of past snapshots and of approvals, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crossdock.state import Binding, PastSnapshot, PendingApproval, Scope, State, Step
from crossdock.state.tables.pending_approvals_and_begun_undos import packed_key_hashes

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
SCOPE = Scope("platform", "product", "wms")
TOP = (1 << 128) - 1


def test_the_latest_snapshots_come_newest_first(state: State) -> None:
    """So many as asked for of one stream; the same content worked through again is one snapshot, of the later day."""
    with state.begin() as tx:
        for day, content in enumerate(("a", "b", "c", "a")):
            tx.snapshots.record_snapshot(
                "wms.p", content, PastSnapshot(100 + day, day or None), at=AT + timedelta(days=day)
            )
        tx.snapshots.record_snapshot("wms.q", "d", PastSnapshot(7, 7), at=AT)
        assert tx.snapshots.latest_snapshots("wms.p", 2) == [PastSnapshot(103, 3), PastSnapshot(102, 2)]
        assert tx.snapshots.latest_snapshots("wms.p", 9) == [
            PastSnapshot(103, 3),
            PastSnapshot(102, 2),
            PastSnapshot(101, 1),
        ]
        assert tx.snapshots.latest_snapshots("wms.r", 9) == []
        assert (
            tx.snapshots.was_snapshot_read_before("wms.p", "b"),
            tx.snapshots.was_snapshot_read_before("wms.q", "b"),
        ) == (True, False)


def test_a_snapshot_replaces_its_unproved_export(state: State) -> None:
    """The export counts once among the latest snapshots, and that of another stream stays."""
    with state.begin() as tx:
        for stream in ("wms.p", "wms.q"):
            tx.snapshots.record_snapshot(stream, "export", PastSnapshot(5, 5), at=AT)
        tx.snapshots.record_snapshot("wms.p", "content", PastSnapshot(6, 6), at=AT, instead_of="export")
        assert tx.snapshots.latest_snapshots("wms.p", 9) == [PastSnapshot(6, 6)]
        assert tx.snapshots.latest_snapshots("wms.q", 9) == [PastSnapshot(5, 5)]


def test_only_live_records_count(state: State) -> None:
    """What was deleted is nowhere, and what was archived when it went is not present."""
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        steps: dict[int, Step] = {1: "whole", 2: "remove", 3: "whole", TOP: "import"}
        made = [Binding(key, f"K{key}", "p", None, None, step, {}, None, 1) for key, step in steps.items()]
        tx.bindings.put(SCOPE, made, run_id=run, at=AT)
        tx.bindings.mark_deleted(SCOPE, [3], at=AT)
        assert sorted(tx.snapshots.accepted_steps_of_live_bindings(SCOPE, [1, 2, 3, 4, TOP])) == [
            (1, "whole"),
            (2, "remove"),
            (TOP, "import"),
        ]
        assert tx.snapshots.count_records_present_at_target(SCOPE) == 2
        assert tx.snapshots.count_records_present_at_target(Scope("platform", "product", "other")) == 0


def test_an_approval_is_of_exactly_what_was_asked(state: State) -> None:
    """Asked for again it keeps its date and its approval; anything else takes its place without one."""
    asked = PendingApproval("wms.p", "delete product of wms on the platform", packed_key_hashes([TOP, 2, 1]), AT)
    assert (asked.record_count, asked.key_hashes) == (3, [1, 2, TOP])
    with state.begin() as tx:
        tx.pending_approvals.request_approval(asked)
        tx.pending_approvals.approve(asked, at=AT)
        tx.pending_approvals.request_approval(PendingApproval("wms.p", asked.what, asked.keys, AT + timedelta(days=1)))
        assert tx.pending_approvals.listed() == [PendingApproval("wms.p", asked.what, asked.keys, AT, AT)]
        other = PendingApproval("wms.p", "archive product of wms on the platform", asked.keys, AT)
        tx.pending_approvals.request_approval(other)
        assert tx.pending_approvals.get("wms.p") == other
        tx.pending_approvals.forget("wms.p")
        assert tx.pending_approvals.get("wms.p") is None


@pytest.mark.parametrize("keys", [[], [1], list(range(600))])
def test_facts_are_found_in_any_number(state: State, keys: list[int]) -> None:
    """More keys than one statement takes are asked for in several."""
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.bindings.put(SCOPE, [Binding(k, "K", "p", 9, None, "whole", {}, None, 1) for k in keys], run_id=run, at=AT)
        assert sorted(tx.snapshots.accepted_steps_of_live_bindings(SCOPE, keys)) == [(key, "whole") for key in keys]
