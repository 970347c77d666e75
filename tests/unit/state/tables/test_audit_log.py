"""The audit log: one row for each change, found by who, what and when."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from msgspec import structs
from tests.unit.state.samples import AT, start
from tests.unit.state.upkeep.old_rows import NOW, purge

from crossdock.errors import RefusedError, UnavailableError
from crossdock.state import AuditEntry, AuditFilter, State, StateUrl
from crossdock.state.retention import AUDIT_KEPT
from crossdock.state.tables.audit_log import LONGEST_SUBJECT
from crossdock.values.acting_person_and_process import LONGEST_NAME, Actor, acting_as

ALL = AuditFilter()
MINUTE = timedelta(minutes=1)


def entry(number: int, action: str = "records drop", person: str = "ann", **changes: Any) -> AuditEntry:
    with acting_as(Actor(person, "10.0.0.7", "asked")):
        return structs.replace(
            AuditEntry.new_by_current_actor(action, f"record wms.lots {number}", at=AT + number * MINUTE), **changes
        )


def put(state: State, *entries: AuditEntry) -> None:
    with state.begin() as tx:
        for each in entries:
            tx.audit_log.put(each)


def listed(state: State, choice: AuditFilter = ALL, **options: Any) -> list[AuditEntry]:
    with state.begin_read_only() as tx:
        return tx.audit_log.listed(choice, limit=options.pop("limit", 99), **options)


def test_an_entry_is_kept_as_it_is(state: State) -> None:
    """With exact numbers, and with what a database would refuse as escapes."""
    kept = entry(1, before={"rejected": 3}, after={"amount": Decimal("0.10"), "keys": ["a", None, True]})
    odd = entry(2, subject="record wms.lots a\0\udcff", before="waiting", error="x" * 9_999)
    put(state, kept, odd, entry(3, subject="é" * 9_999, person="é" * 999, reason="\0"))
    last, second, first = listed(state)
    assert structs.replace(first, id=0) == kept
    assert second.subject == r"record wms.lots a\x00\udcff"
    assert (len(second.error), last.subject) == (1_000, "é" * LONGEST_SUBJECT)
    assert (last.person, last.reason) == ("é" * LONGEST_NAME, r"\x00")


def test_a_change_has_one_row(state: State) -> None:
    """What has begun gets its end, of which the first counts; a repeated transaction adds nothing."""
    begun = entry(1, outcome="begun")
    refused = structs.replace(begun, after={"done": 1}).with_failure(RefusedError("too many", hint="look"))
    for each in (begun, begun, structs.replace(refused, at=AT), begun, structs.replace(begun, outcome="done")):
        put(state, each)
    (found,) = listed(state)
    assert (found.outcome, found.error, found.after, found.at) == ("refused", "too many; look", {"done": 1}, begun.at)
    assert begun.with_failure(UnavailableError("away")).outcome == "failed"


def test_entries_are_found(state: State) -> None:
    """Newest first, page by page, by person, command, group of commands, time and subject."""
    actions = ("records drop", "records resolve", "recordsx", "approve")
    put(state, *(entry(number, actions[number % 4], person="ab"[number // 4]) for number in reversed(range(8))))
    every = listed(state)
    assert [each.at for each in every] == sorted((each.at for each in every), reverse=True)
    assert [*listed(state, limit=3), *listed(state, before=every[2].id)] == every
    assert listed(state, before=999) == []

    def numbers(choice: AuditFilter) -> list[int]:
        found = [int(each.subject.split()[-1]) for each in listed(state, choice)]
        with state.begin_read_only() as tx:
            assert tx.audit_log.count(choice) == len(found)
        return found

    assert numbers(AuditFilter(person="b")) == [7, 6, 5, 4]
    assert numbers(AuditFilter(action="records")) == [5, 4, 1, 0]
    assert numbers(AuditFilter(action="records drop")) == [4, 0]
    assert numbers(AuditFilter(action="record_")) == []
    assert numbers(AuditFilter(since=AT + 2 * MINUTE, until=AT + 4 * MINUTE)) == [3, 2]
    assert numbers(AuditFilter(subject="record wms.lots 5", person="b")) == [5]
    assert numbers(AuditFilter(person="a\0")) == []


def test_entries_of_one_instant_are_each_on_one_page(state: State) -> None:
    """Their numbers decide the order."""
    put(state, *(structs.replace(entry(number), at=AT) for number in range(5)))
    first = listed(state, limit=2)
    rest = listed(state, before=first[-1].id)
    assert [each.id for each in (*first, *rest)] == [5, 4, 3, 2, 1]


def test_a_killed_run_of_a_person_has_failed(state: State) -> None:
    """Only this one, and only while its end is not known."""
    run = start(state)
    put(
        state, *(entry(n, subject=f"run {n}", outcome="begun") for n in (run, run + 10)), entry(3, subject=f"run {run}")
    )
    with state.begin() as tx:
        tx.audit_log.mark_run_of_person_as_killed(run)
    assert [each.outcome for each in listed(state)] == ["begun", "done", "failed"]


def test_entries_stay_for_a_year(state: State, state_url: StateUrl) -> None:
    """However soon other rows go."""
    old, young = (structs.replace(entry(1), at=NOW - AUDIT_KEPT - days * timedelta(days=1)) for days in (1, -1))
    put(state, old, young)
    assert purge(state, state_url).audit_entries_removed == 1
    assert [each.at for each in listed(state)] == [young.at]
