"""Which file follows which: derived where it is unambiguous, as declared, or refused with both names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter

from crossdock.errors import RefusedError
from crossdock.reading.sources.file_order import FileOrder, Order
from crossdock.reading.transport.file_store import RemoteFile
from crossdock.state import FileFacts

NOW = datetime(2026, 11, 26, tzinfo=UTC)
AT = 1_764_000_000


def files(*names: str, times: str = "") -> list[FileFacts]:
    """One for each name, changed in the seconds that *times* has, by default all in the same."""
    return [
        FileFacts(name, f"{name}@{second}", 1, datetime.fromtimestamp(AT + int(second), UTC), "")
        for name, second in zip(names, times or "0" * len(names), strict=True)
    ]


def remote(facts: FileFacts) -> RemoteFile:
    return RemoteFile(facts.name, 1, facts.modified_epoch_s)


def order(declared: Any = None, *, snapshot: bool = False) -> FileOrder:
    return FileOrder(None if declared is None else TypeAdapter(Order).validate_python(declared), snapshot=snapshot)


IN_ORDER = [
    (("S_20261125_9", "S_20261125_10"), "00"),
    (("S_31102026", "S_01112026"), "00"),
    (("S_20261124", "S_20261125"), "01"),
    (("S_20261125", "S_20261125-CORR"), "01"),
    (("HAM_20261125", "BRE_20261125"), "01"),
    (("STOCK", "STOCK"), "01"),
]
DOUBTFUL = [
    (("S_20261125", "S_20261125-CORR"), "00"),
    (("S_20261125-CORR", "S_20261125"), "01"),
    (("S_20261125", "S_20261125_v2"), "00"),
    (("S_20261125", "S_20261124"), "01"),
    (("S_02102026", "S_01112026"), "00"),
    (("HAM_20261125", "BRE_20261125"), "00"),
    (("A_1", "A_01"), "00"),
    (("S_9999", "S_0001"), "01"),
]


@pytest.mark.parametrize(("names", "times"), IN_ORDER)
def test_an_unambiguous_order_needs_no_declaration(names: tuple[str, str], times: str) -> None:
    """Names and times agree, or one of them says nothing; the same in one night and in two."""
    older, newer = files(*names, times=times)
    if older.name != newer.name:
        assert order(snapshot=True).newest([remote(newer), remote(older)], NOW).name == newer.name
        assert order().sorted_oldest_first([newer, older], NOW) == [older, newer]
        order().raise_if_unread_file_is_not_newer([older, newer], [], NOW)
    for snapshot in (False, True):
        order(snapshot=snapshot).raise_if_unread_file_is_not_newer([newer], [older], NOW)
        with pytest.raises(RefusedError, match="is older than"):
            order(snapshot=snapshot).raise_if_unread_file_is_not_newer([older], [newer], NOW)
    order().raise_if_unread_file_is_not_newer([older], [newer], NOW, late=True)


@pytest.mark.parametrize(("names", "times"), DOUBTFUL)
def test_a_doubtful_order_is_refused_with_both_names(names: tuple[str, str], times: str) -> None:
    """A tie, or two orders that disagree; a declared one of either kind decides, and the advice says so."""
    older, newer = files(*names, times=times)
    for snapshot in (False, True):
        with pytest.raises(RefusedError) as refused:
            order(snapshot=snapshot).raise_if_unread_file_is_not_newer(
                order().sorted_oldest_first([newer, older], NOW), [], NOW
            )
        assert all(name in f"{refused.value.where}: {refused.value.message}" for name in names)
        assert "order" in str(refused.value.hint)
    with pytest.raises(RefusedError):
        order(snapshot=True).newest([remote(older), remote(newer)], NOW)
    if times == "01":
        assert order("modified", snapshot=True).newest([remote(newer), remote(older)], NOW).name == newer.name
        order("modified").raise_if_unread_file_is_not_newer([newer], [older], NOW)
    order("any").raise_if_unread_file_is_not_newer([older, newer], [older, newer], NOW)


def test_declared_forms_follow_each_other() -> None:
    """Of names that say the same, the later form is the newer one; other names have no place."""
    declared = order({"name": ["S_{date:%Y%m%d}", "S_{date:%Y%m%d}_v{number}", "S_{date:%Y%m%d}-CORR"]})
    names = ["S_20261124-CORR", "S_20261125", "S_20261125-CORR", "S_20261125_v2", "S_20261125_v10"]
    assert [facts.name for facts in declared.sorted_oldest_first(files(*names[::-1]), NOW)] == names
    declared.raise_if_unread_file_is_not_newer(files(*names), [], NOW)
    assert declared.fits_no_template("S_20261325")
    assert declared.sortable_date_text_in_name("S_20261125_v2") == "2026-11-25"


def test_names_that_say_the_same_have_no_order() -> None:
    """A text does not order files: of snapshots one cannot be chosen, and of deltas the time decides."""
    form = {"name": "S_{date:%Y%m%d}_{text}"}
    older, newer = files("S_20261125_HAM", "S_20261125_BRE", times="01")
    order(form).raise_if_unread_file_is_not_newer([older, newer], [], NOW)
    with pytest.raises(RefusedError, match="is as new as"):
        order(form, snapshot=True).newest([remote(older), remote(newer)], NOW)
    with pytest.raises(RefusedError, match="is as new as"):
        order(form).raise_if_unread_file_is_not_newer(files("S_20261125_HAM", "S_20261125_BRE"), [], NOW)
    with pytest.raises(RefusedError, match="is as new as"):
        order("modified").raise_if_unread_file_is_not_newer(files("S_1", "S_2"), [], NOW)


@pytest.mark.parametrize("name", ["S_{number}", "S_{date:%Y%m%d}_{number}"])
def test_a_counter_that_begins_anew_is_not_taken_for_an_older_file(name: str) -> None:
    """Files after the last number would count as older for a whole round; the times show it, and then decide."""
    last, first = (name.format(number=number, date=datetime(2026, 11, 25, tzinfo=UTC)) for number in ("9999", "0001"))
    older, newer = files(last, first, times="01")
    for snapshot in (False, True):
        declared = order({"name": name}, snapshot=snapshot)
        for unread, known in (([newer], [older]), (declared.sorted_oldest_first([older, newer], NOW), [])):
            with pytest.raises(RefusedError, match="by its time of change") as refused:
                declared.raise_if_unread_file_is_not_newer(unread, known, NOW)
            assert "declare order: modified" in str(refused.value.hint)
        assert not declared.is_older(newer, older, NOW)
        order("modified", snapshot=snapshot).raise_if_unread_file_is_not_newer([newer], [older], NOW)
    with pytest.raises(RefusedError, match="by its time of change"):
        order({"name": name}, snapshot=True).newest([remote(older), remote(newer)], NOW)


@pytest.mark.parametrize(
    ("names", "times"),
    [
        (("S_0001", "S_9999"), "01"),  # a whole round is kept
        (("S_0042", "S_0043"), "10"),  # the former one was written again
        (("S_3", "S_9"), "10"),
        (("S_0400", "S_9500"), "01"),
        (("S_7", "S_1200"), "10"),  # a number without leading zeros has no last one
        (("S_0001", "S_9999"), "00"),
    ],
)
def test_other_names_decide_whatever_the_times_are(names: tuple[str, str], times: str) -> None:
    """A file that is written again keeps its place."""
    older, newer = files(*names, times=times)
    declared = order({"name": "S_{number}"}, snapshot=True)
    assert declared.newest([remote(older), remote(newer)], NOW).name == newer.name
    declared.raise_if_unread_file_is_not_newer([newer], [older], NOW)
    with pytest.raises(RefusedError, match="is older than"):
        declared.raise_if_unread_file_is_not_newer([older], [newer], NOW)


def test_files_that_are_read_again_have_only_to_be_the_newest() -> None:
    """After a change of the mapping they keep the order in which they came, unless a newer one is there no more."""
    first, second, third = known = files("HAM_20261125", "BRE_20261125", "BRE_20261126", times="001")
    order().raise_if_unread_file_is_not_newer([first, second, third], known, NOW)
    with pytest.raises(RefusedError, match="older than 'BRE_20261126'"):
        order().raise_if_unread_file_is_not_newer([first, second], known, NOW)


def test_a_late_file_of_changes_is_not_advised_to_be_refused_again() -> None:
    """If the names decide, it stays too late; the advice says what else can be done."""
    older, newer = files("S_20261125", "S_20261126", times="10")
    with pytest.raises(RefusedError, match="is older than 'S_20261126' taken in before by its name") as refused:
        order().raise_if_unread_file_is_not_newer([older], [newer], NOW)
    assert "Else it comes too late: ask the sender" in str(refused.value.hint)
    with pytest.raises(RefusedError, match="is older than"):
        order({"name": "S_{date:%Y%m%d}"}).raise_if_unread_file_is_not_newer([older], [newer], NOW)
    order("modified").raise_if_unread_file_is_not_newer([older], [newer], NOW)
