"""The accounts of a run: every row and record that enters leaves by exactly one term."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from crossdock.values.run_states_and_tally import DELIVERED, IN, NOTHING_OPEN, OUT, OpenCounts, Tally, Term

NUMBER = st.integers(0, 1_000)
TALLY = st.builds(
    Tally,
    rows_read=NUMBER,
    rows_filtered=st.dictionaries(st.sampled_from(["test", "closed"]), NUMBER),
    rows_superseded=NUMBER,
    rows_rejected=NUMBER,
    rows_in_records=NUMBER,
    parts=st.dictionaries(st.sampled_from(["city assumed", "name cut"]), st.integers(1, 9)).map(Counter),
)


@given(st.lists(st.sampled_from(OUT), max_size=20), st.sampled_from(IN))
def test_records_balance_if_each_leaves_once(ends: list[Term], entry: Term) -> None:
    """As many records enter as leave; one more of either kind does not balance."""
    tally = Tally()
    tally.count(entry, len(ends))
    for end in ends:
        tally.count(end)
    assert tally.balanced
    assert tally.delivered == sum(end in DELIVERED for end in ends)
    for term in (entry, OUT[0]):
        tally.count(term)
        assert tally.balanced is (term == OUT[0])


@given(filtered=st.lists(NUMBER, max_size=3), superseded=NUMBER, rejected=NUMBER, in_records=NUMBER)
def test_rows_balance(filtered: list[int], superseded: int, rejected: int, in_records: int) -> None:
    """Rows read are filtered, superseded, rejected or in records."""
    total = sum(filtered) + superseded + rejected + in_records
    by_name = {f"filter {number}": rows for number, rows in enumerate(filtered)}
    assert Tally(total, by_name, superseded, rejected, in_records).balanced
    assert not Tally(total + 1, by_name, superseded, rejected, in_records).balanced


@given(one=TALLY, other=TALLY)
def test_rows_of_two_tallies_add_up(one: Tally, other: Tally) -> None:
    """Sums of every account, with the filters in their order."""
    whole = Tally()
    whole.take_rows(one)
    whole.take_rows(other)
    shown, parts = whole.as_json()["rows"], [one.as_json()["rows"], other.as_json()["rows"]]
    for name in ("read", "superseded", "rejected", "in_records"):
        assert shown[name] == sum(part[name] for part in parts)
    names = list(dict.fromkeys([*one.rows_filtered, *other.rows_filtered]))
    assert whole.parts == one.parts + other.parts
    assert Tally.of_json(whole.as_json()) == whole
    assert list(shown["filtered"]) == names
    assert shown["filtered"] == {name: sum(part["filtered"].get(name, 0) for part in parts) for name in names}


def test_the_json_form_has_every_term() -> None:
    """All terms are present, also those with 0, so that a consumer need not know defaults."""
    shown = Tally().as_json()
    assert shown["balanced"] is True
    assert shown["records"] == dict.fromkeys([*IN, *OUT, "delivered"], 0)


OPEN = st.builds(OpenCounts, rejected=NUMBER, waiting=NUMBER, pending=NUMBER, in_doubt=NUMBER)


@given(OPEN, OPEN)
def test_open_counts_add_up_and_are_kept_exactly(first: OpenCounts, second: OpenCounts) -> None:
    """Stored and read they are the same; a sum has the total of both, and exceeds one where the other adds to it."""
    assert OpenCounts.of_json(first.as_json()) == first
    both = first + second
    assert both.total == first.total + second.total
    assert both.has_any_more_than(first) is bool(second.total)
    assert not first.has_any_more_than(both)


def test_open_counts_are_a_phrase() -> None:
    """States without a record are left out."""
    assert str(OpenCounts(rejected=6, waiting=1_045, in_doubt=1)) == "6 rejected, 1,045 waiting, 1 in doubt"
    assert str(NOTHING_OPEN) == "none"
