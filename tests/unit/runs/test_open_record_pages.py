"""Pages of open records, and their groups: nothing is left out and nothing twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs
from tests.report_page import dead_letter, waiting
from tests.unit.state.samples import AT, SCOPE, binding, intent, start

from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import ConfigError
from crossdock.runs import open_records
from crossdock.runs.open_records import group_waiting_records_by_root_cause
from crossdock.state import NamedRecord, RecordFilter, State, Transaction

ALL = RecordFilter()
SCOPES = {SCOPE: "wms.products"}
KINDS = ("rejected", "waiting", "pending", "in-doubt", "inbox", "unverified")


def pages(tx: Transaction, kind: str, limit: int, choice: RecordFilter = ALL, **more: Any) -> list[list[str]]:
    """The streams and keys of each page."""
    found, after = list[list[str]](), ""
    while not found or after:
        page = open_records.page_of_open_records(tx, kind, choice, SCOPES, after=after, limit=limit, **more)
        found.append([f"{item['stream']} {item['key']}" for item in page.items])
        after = page.after
    return found


def fill(state: State) -> None:
    """Seven records in each of `ASSET_MEDIA_TYPES`, which differ in stream, reason, time and key."""
    run = start(state)
    with state.begin() as tx:
        for number in range(1, 8):
            at, stream = AT + timedelta(hours=number % 3), f"wms.s{number % 2}"
            facts: dict[str, Any] = {"stream": stream, "key": f"|%{number}"}
            code = ("conflict", "bad_value")[number % 2]
            tx.dead_letters.put([dead_letter(number, code=code, **facts)], run_id=run, at=at)
            tx.waiting_records.put([waiting(number, **facts)], run_id=run, at=at)
            tx.inbox.schedule_fetch_of_records([NamedRecord(stream, f"|{number}", number)], at=at)
            statuses = {"status": "in_doubt" if number > 5 else "sending" if number > 2 else "pending"}
            made = [intent(number, **statuses), intent(10 + number, status="in_doubt")]
            tx.intents.add(made[: 2 if number < 6 else 1], run_id=run, fence=1, at=at)
        tx.bindings.put(SCOPE, [binding(number) for number in range(1, 10)], run_id=run, at=AT)
        tx.unverified.mark_bindings_and_resource(SCOPE, [binding(number) for number in range(1, 8)])


@pytest.mark.parametrize("kind", KINDS)
def test_pages_have_each_record_once(state: State, kind: str) -> None:
    """Whatever their size, in the same order, and as many as are counted."""
    fill(state)
    with state.begin_read_only() as tx:
        (whole,) = pages(tx, kind, 50)
        assert len(whole) == len(set(whole)) == open_records.count_records_in_state(tx, kind, ALL, SCOPES) > 4
        for limit in (1, 2, 3, len(whole)):
            assert [each for page in pages(tx, kind, limit) for each in page] == whole


@pytest.mark.parametrize("kind", [*KINDS, "dropped"])
def test_a_place_of_no_list_is_refused(state: State, kind: str) -> None:
    """By an error that says so: a wrong number of parts, a time without a zone, or no number."""
    without_zone = {"rejected": "a|b|2026-01-01|1", "waiting": "2026-01-01|a|1", "inbox": "2026-01-01|a|b"}
    for after in ("x", "a|b", "1|2|3", "a|b|c|-1", "a|b|c|" + "f" * 40, "%", without_zone.get(kind, "x")):
        with state.begin_read_only() as tx, pytest.raises(ConfigError, match="names no place"):
            open_records.page_of_open_records(tx, kind, ALL, SCOPES, after=after, limit=2)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_have_all_records(state: State, kind: str) -> None:
    """Their numbers add up, and those of one reason are found by it."""
    fill(state)
    with state.begin_read_only() as tx:
        waits = group_waiting_records_by_root_cause(tx, {}, ALL)
        groups = open_records.group_open_records(tx, kind, ALL, SCOPES, waits)
        assert sum(each.number for each in groups) == open_records.count_records_in_state(tx, kind, ALL, SCOPES)
        for each in groups:
            choice = RecordFilter(each.choice["stream"], code=each.choice.get("reason"))
            group = open_records.find_waiting_group_by_name(tx, {}, each.choice.get("group", ""))
            assert [len(found) for found in pages(tx, kind, 50, choice, group=group)] == [each.number]


def test_records_that_wait_for_one_in_the_end_are_one_list(state: State) -> None:
    """Also those that wait for it through others: what they wait for directly differs."""
    run = start(state)

    def account(key: str, parent: str) -> Any:
        parents = [{"resource": "product", "namespace": "wms", "key": parent}]
        return waiting(1, stream="wms.products", key=key, key_hash=key_hashes([key])[key], waits_for=parents)

    with state.begin() as tx:
        tx.waiting_records.put([account("10", "1"), account("100", "10"), account("20", "2")], run_id=run, at=AT)
        found = group_waiting_records_by_root_cause(tx, {"wms.products": SCOPE}, ALL)
        listed = [sorted(pages(tx, "waiting", 1, group=each)) for each in found]
    assert sorted(listed) == [[["wms.products 10"], ["wms.products 100"]], [["wms.products 20"]]]


def test_records_are_chosen_by_file_and_message(state: State) -> None:
    """In upper or lower case, and by no wildcard; a state without files or messages has none of them."""
    run = start(state)
    letters = [dead_letter(1, message="is No_number"), dead_letter(2, source="g.csv"), dead_letter(3, message="50 %")]
    with state.begin() as tx:
        tx.dead_letters.put(letters, run_id=run, at=AT)
        tx.inbox.schedule_fetch_of_records([NamedRecord("wms.a", "1", 1)], at=AT)

        def numbers(choice: RecordFilter) -> list[int]:
            return [open_records.count_records_in_state(tx, kind, choice, SCOPES) for kind in ("rejected", "inbox")]

        assert numbers(RecordFilter(text="no_NUMBER")) == [1, 0]
        assert numbers(RecordFilter(text="%")) == [1, 0]
        assert numbers(RecordFilter(source="g.csv")) == [1, 0]
        assert numbers(structs.replace(ALL, handed_over_in="g.csv")) == [0, 0]
