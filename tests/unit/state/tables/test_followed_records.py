"""Records that are not final, in the state."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.state.samples import AT

from crossdock.state import FollowedRecord, State

STREAM = "shop.orders"


def test_those_come_first_that_were_read_longest_ago(state: State) -> None:
    """A record that is read again goes to the end, a final one is forgotten, and streams are apart."""
    records = [FollowedRecord(STREAM, 2**128 - n, f"K{n}", AT + timedelta(days=n)) for n in range(1, 5)]
    with state.begin() as tx:
        tx.followed_records.put([*records, FollowedRecord("shop.others", 1, "K", AT)])
        tx.followed_records.put([FollowedRecord(STREAM, 2**128 - 1, "K1", AT + timedelta(days=9), missed=2)])
        tx.followed_records.forget(STREAM, [2**128 - 2])
    with state.begin_read_only() as tx:
        assert [each.key for each in tx.followed_records.least_recently_read(STREAM, 2)] == ["K3", "K4"]
        assert [(each.key, each.missed) for each in tx.followed_records.least_recently_read(STREAM, 9)][-1] == ("K1", 2)
        assert tx.followed_records.count(STREAM) == 3
        assert tx.followed_records.key_hashes("shop.others") == {1}


def test_a_full_list_is_remembered_by_stream(state: State) -> None:
    """The time is that of the newest one."""
    with state.begin() as tx:
        assert tx.full_lists.last_read_time(STREAM) is None
        tx.full_lists.put_read_time(STREAM, at=AT)
        tx.full_lists.put_read_time(STREAM, at=AT + timedelta(days=7))
    with state.begin_read_only() as tx:
        assert tx.full_lists.last_read_time(STREAM) == AT + timedelta(days=7)
