"""The inbox takes each webhook once, and keeps a hint until the record was fetched after it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import structs
from tests.unit.state.samples import AT

from crossdock.state import NamedRecord, ReceivedWebhook, State, StreamAndKey
from crossdock.state.tables.webhooks_and_records_to_fetch import LONGEST_PAUSE, UnreadableWebhook

LATER = AT + timedelta(minutes=1)
OF = ["shop.orders"]
ONE, TWO = NamedRecord("shop.orders", "1", 2**128 - 1), NamedRecord("shop.orders", "2", 1)
HASHES = {record.key: record.key_hash for record in (ONE, TWO)}


def _received(delivery: str, *records: NamedRecord) -> ReceivedWebhook:
    named = tuple(StreamAndKey(record.stream, record.key) for record in records)
    return ReceivedWebhook("shop", delivery, "orders/updated", records=named)


def test_a_copy_of_a_webhook_changes_nothing(state: State) -> None:
    """A delivery that was received before leaves no second hint, also within one transaction."""
    with state.begin() as tx:
        tx.inbox.receive([_received("a", ONE), _received("a", ONE), _received("b", TWO)], HASHES, at=AT)
    with state.begin() as tx:
        tx.inbox.receive([_received("a", ONE, TWO)], HASHES, at=LATER)
    with state.begin_read_only() as tx:
        found = tx.inbox.records_to_fetch_now(AT, OF, limit=5)
    assert [(each.named_record, each.number, each.last_at) for each in found] == [(TWO, 1, AT), (ONE, 1, AT)]


def test_a_copy_of_an_unreadable_webhook_replaces_it(state: State) -> None:
    """Once the config is corrected, a webhook that is sent again gives its hints, and is listed no more."""
    unreadable = structs.replace(_received("a"), problem="/id is missing")
    for received, number in ((unreadable, 0), (unreadable, 0), (_received("a", ONE), 1), (_received("a", ONE), 1)):
        with state.begin() as tx:
            tx.inbox.receive([received], HASHES, at=AT)
            assert [each.number for each in tx.inbox.records_to_fetch_now(AT, OF, limit=5)] == [1] * number
            assert len(tx.inbox.unreadable_webhooks(limit=5)) == 1 - number


def test_many_hints_for_a_record_are_one(state: State) -> None:
    """The number of a record grows with each hint, and it is due at once even after failures."""
    with state.begin() as tx:
        tx.inbox.receive([_received("a", ONE)], HASHES, at=AT)
        (first,) = tx.inbox.records_to_fetch_now(AT, OF, limit=5)
        tx.inbox.store_next_fetch_times([structs.replace(first, due_at=LATER, attempts=1, error="unavailable")])
        assert tx.inbox.records_to_fetch_now(AT, OF, limit=5) == []
        assert tx.inbox.next_fetch_time(OF) == LATER
        assert [(each.stream, each.failing) for each in tx.inbox.record_counts_by_stream()] == [("shop.orders", 1)]
        tx.inbox.receive([_received("b", ONE)], HASHES, at=AT + timedelta(seconds=1))
        (again,) = tx.inbox.records_to_fetch_now(AT + timedelta(seconds=1), OF, limit=5)
    assert (again.number, again.attempts, again.first_at, again.error) == (2, 0, AT, "unavailable")


@pytest.mark.parametrize("failed", [False, True])
def test_a_hint_that_comes_while_the_record_is_fetched_stays(state: State, failed: bool) -> None:
    """A record that was hinted at again since it was listed is fetched again at once, also if the fetch failed."""
    with state.begin() as tx:
        tx.inbox.schedule_fetch_of_records([ONE, TWO], at=AT)
        listed = tx.inbox.records_to_fetch_now(AT, OF, limit=5)
        tx.inbox.schedule_fetch_of_records([ONE], at=LATER)
        again = [structs.replace(each, due_at=LATER + timedelta(hours=1), attempts=9, error="away") for each in listed]
        tx.inbox.store_next_fetch_times(again) if failed else tx.inbox.remove_fetched(listed)
        (found,) = tx.inbox.records_to_fetch_now(LATER, OF, limit=5)
        assert (found.named_record, found.number, found.attempts, found.error) == (ONE, 2, 0, None)
        assert tx.inbox.count_records_to_fetch() == (2 if failed else 1)
        assert tx.inbox.key_hashes_among("shop.orders", [1, 2**128 - 1]) == (
            {1, 2**128 - 1} if failed else {2**128 - 1}
        )
        tx.inbox.remove_records("shop.orders", [ONE.key_hash, TWO.key_hash])
        assert tx.inbox.next_fetch_time(OF) is None


def test_what_is_due_is_told_of_each_stream(state: State) -> None:
    """The streams come longest due first, without those of which nothing is due, and each has its own records."""
    other, later = NamedRecord("erp.items", "1", 1), NamedRecord("erp.bins", "1", 1)
    with state.begin() as tx:
        tx.inbox.schedule_fetch_of_records([ONE, later], at=LATER)
        tx.inbox.schedule_fetch_of_records([other], at=AT)
        assert tx.inbox.due_streams(AT) == ["erp.items"]
        assert tx.inbox.due_streams(LATER)[0] == "erp.items"
        assert [
            each.named_record for each in tx.inbox.records_to_fetch_now(LATER, ["erp.items", "erp.bins"], limit=5)
        ] == [
            other,
            later,
        ]
        assert tx.inbox.next_fetch_time(OF) == LATER


def test_a_time_that_a_wrong_clock_has_set_is_due(state: State) -> None:
    """A record that is due later than after the longest pause is fetched now, and one due within it is not."""
    ahead, soon = NamedRecord("shop.orders", "3", 3), NamedRecord("erp.items", "1", 1)
    with state.begin() as tx:
        tx.inbox.schedule_fetch_of_records([ahead], at=AT + LONGEST_PAUSE + timedelta(seconds=1))
        tx.inbox.schedule_fetch_of_records([soon], at=AT + LONGEST_PAUSE)
        assert tx.inbox.due_streams(AT) == ["shop.orders"]
        found = tx.inbox.records_to_fetch_now(AT, ["shop.orders", "erp.items"], limit=5)
    assert [each.named_record for each in found] == [ahead]


def test_webhooks_are_forgotten_by_age(state: State) -> None:
    """Old webhooks are removed, and their hints stay."""
    with state.begin() as tx:
        tx.inbox.receive([_received("a", ONE)], HASHES, at=AT)
        tx.inbox.receive([structs.replace(_received("b"), problem="/id is missing")], HASHES, at=LATER)
        assert tx.inbox.unreadable_webhooks(limit=5) == [
            UnreadableWebhook(LATER, "shop", "orders/updated", "/id is missing")
        ]
        assert tx.inbox.has_readable_webhook("shop")
        assert not tx.inbox.has_readable_webhook("other")
        assert tx.inbox.remove_old_webhooks(LATER) == 1
        assert not tx.inbox.has_readable_webhook("shop")
        assert tx.inbox.count_records_to_fetch() == 1
