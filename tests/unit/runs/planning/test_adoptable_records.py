"""Which record of the platform a new record takes over: the only one with its value, or none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RecordError, UnavailableError
from crossdock.runs.planning.adoptable_records import (
    AdoptionCounts,
    AdoptionMatcher,
    TargetMemberValue,
    TargetMemberValueIndex,
    count_adoption_decisions,
)


def index(*values: TargetMemberValue) -> TargetMemberValueIndex:
    made = TargetMemberValueIndex()
    made.add(values)
    made.sort()
    return made


def decided(matches: AdoptionMatcher, key_hash: int, value: str | None) -> str:
    try:
        return matches.match(key_hash, value) or "created"
    except RecordError as error:
        return error.message


def test_the_text_must_be_exactly_the_same() -> None:
    """Case, blanks and leading zeros count."""
    matches = AdoptionMatcher("sku", index(TargetMemberValue("p1", "A1")))
    for number, value in enumerate(["a1", "A1 ", " A1", "0A1", "", None]):
        assert decided(matches, number, value) == "created"
    assert decided(matches, 9, "A1") == "p1"


def test_several_records_with_the_value_are_named_by_their_ids() -> None:
    """Five of them at most; the value is not shown."""
    matches = AdoptionMatcher("sku", index(*(TargetMemberValue(f"p{number}", "A1") for number in range(7))))
    with pytest.raises(RecordError) as refused:
        matches.match(1, "A1")
    error = refused.value
    assert (error.code, error.pointer) == ("ambiguous_match", "/sku")
    assert error.message.startswith("7 records of the target have its sku: p0, p1, p2, p3, p4, ...")
    assert "A1" not in error.message


def test_a_record_is_taken_over_once() -> None:
    """A second record with the value is refused, also once the first one is bound; the first may ask again."""
    matches = AdoptionMatcher("sku", index(TargetMemberValue("p1", "A"), TargetMemberValue("p2", "B", taken=True)))
    assert [decided(matches, 1, "A"), decided(matches, 1, "A")] == ["p1", "p1"]
    assert decided(matches, 2, "A") == "another record of this stream has the same sku"
    assert decided(matches, 3, "B") == "the target's p2 has its sku, and is bound to another record"
    assert [decided(matches, 4, "C"), decided(matches, 5, "C")] == [
        "created",
        "another record of this stream has the same sku",
    ]


def test_a_record_that_is_listed_again_replaces_the_earlier_one() -> None:
    """In the same list and in a later one; also if it has no value any more, or belongs to others."""
    live = index(TargetMemberValue("p1", "A"), TargetMemberValue("p2", "B"), TargetMemberValue("p1", "C"))
    assert [live.find(each) for each in "ABC"] == [[], [("p2", False)], [("p1", False)]]
    live.add([TargetMemberValue("p2", None), TargetMemberValue("p3", "C")])
    live.sort()
    assert [live.find(each) for each in "ABC"] == [[], [], [("p1", False), ("p3", False)]]
    assert len(live) == 2


def test_the_list_is_read_once_until_it_expires() -> None:
    """And again at the next decision if it could not be read."""
    reads: list[TargetMemberValueIndex] = []

    def read(live: TargetMemberValueIndex) -> None:
        reads.append(live)
        if len(reads) == 1:
            raise UnavailableError("gone")
        live.add([TargetMemberValue(f"p{len(reads)}", "A")])

    matches = AdoptionMatcher("sku", TargetMemberValueIndex(), read)
    with pytest.raises(UnavailableError):
        matches.read_unless_current()
    for _ in range(3):
        matches.read_unless_current()
    assert len(reads) == 2
    assert decided(matches, 1, "A") == "p2"
    matches.mark_outdated()
    matches.read_unless_current()
    assert decided(matches, 1, "A").startswith("2 records")


SKUS = st.sampled_from(["A", "B", "C", "a", "A ", ""])
LIVE = st.lists(st.tuples(st.one_of(SKUS, st.none()), st.sampled_from(["free", "ours", "others"])), max_size=12)


@given(LIVE, st.lists(st.one_of(SKUS, st.none()), max_size=12), st.integers(1, 5))
def test_any_catalogues_are_matched_as_a_simple_model_says(
    live: list[tuple[str | None, str]], wanted: list[str | None], size: int
) -> None:
    """Duplicates on both sides; pages of any size."""
    made = TargetMemberValueIndex()
    listed = [
        TargetMemberValue(f"p{number}", None if whose == "others" else value, whose == "ours")
        for number, (value, whose) in enumerate(live)
    ]
    for start in range(0, len(listed), size):
        made.add(listed[start : start + size])
    made.sort()
    matches = AdoptionMatcher("sku", made)
    said = [decided(matches, number, value) for number, value in enumerate(wanted)]
    kinds = Counter[str]()
    for number, value in enumerate(wanted):
        kind = simple(live, wanted[:number], value)
        kinds[kind] += 1
        if kind == "one":
            (free,) = [each for each, (has, whose) in enumerate(live) if has == value and whose != "others"]
            assert said[number] == f"p{free}"
        else:
            assert (said[number] == "created") == (kind == "none")
            assert kind == "none" or "sku" in said[number]
    assert count_adoption_decisions(made, wanted) == AdoptionCounts(kinds["one"], kinds["several"], kinds["none"])


def test_a_record_of_others_under_our_name_is_a_conflict() -> None:
    """Unless it is the one that is taken over."""
    made = index(TargetMemberValue("p1", "A"), TargetMemberValue("p2", "B"), TargetMemberValue("p3", "C"))
    holders = {0: "p1", 1: "p9", 2: "p9"}
    assert count_adoption_decisions(made, ["A", "B", "X", "Y", "C"], named=holders.get) == AdoptionCounts(
        2, 0, 1, (1, 2)
    )


def simple(live: list[tuple[str | None, str]], earlier: list[str | None], value: str | None) -> str:
    """What becomes of a record with *value*: the rules in the words of the documentation."""
    if value is None:
        return "none"
    has: list[Any] = [whose for each, whose in live if each == value and whose != "others"]
    if len(has) > 1 or "ours" in has or value in earlier:
        return "several"
    return "one" if has else "none"
