"""Tests of a stream's mapping: what its drafts must be, and what records of other forms must not do to them.

Their assertions name the record by its place. Values appear only where they are the author's example data.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple
from unittest import SkipTest, mock

import polars as pl

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.delta.row_preparation import FP, KEY, add_key_filter_and_fingerprint_columns
from crossdock.errors import RecordError
from crossdock.runs.planning.mapping_to_drafts import map_record_to_draft_members
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.testing.connector_under_test import (
    StreamUnderTest,
    normalized_key_text,
    shown_key,
    shown_method_name,
    shown_record_place,
)
from crossdock.testing.expected_values_and_example_gaps import (
    first_mismatch,
    gaps_of_drafts,
    gaps_of_records,
    stated_member_names,
    unstated_number_and_time_members,
)
from crossdock.testing.record_variants import (
    LongerList,
    all_numbers_in,
    drift_variants,
    lists_of_objects,
    longer_lists,
    paths_of_all_values,
    replaceable_numbers,
    value_at_path_or_none,
)
from crossdock.values.raw_rows_and_records import JSON, LINE, Record

_SHORT, _LONG = Decimal(4321), Decimal("123456789012345.6789")  # as many digits as a resource accepts; a float has 17
_OTHER = Decimal(8642)
_NUMBERS = re.compile(r"/\d+(?=/|$)")
_NO_NUMBER = "\N{SNOWMAN}"
_MANY = 120  # elements of a list
_SHOWN = 5  # keys in a message
_ZONES = ("UTC", "America/St_Johns", "Pacific/Kiritimati")


class MappingContract(StreamUnderTest):
    """Tests of `Stream.to_resource`.

    Attributes:
        expects: What must become of some records of the example, as the author reads it off the vendor's documents: by
            record key, the members of the draft as ``crossdock try`` shows them. Members that are not stated may have
            any value; None states that the draft has no such member.
        decimals: Decimal places to which the mapping rounds amounts, as the source's own sums do; None if it rounds
            nothing.
    """

    expects: Mapping[Any, Any] = {}
    decimals: int | None = None

    def example_records(self) -> tuple[BoundStream, list[Record]]:
        trial = self.example()
        return trial.bound, [tried.record for tried in trial.records]

    def test_drafts_are_as_expected(self) -> None:
        """The drafts have the members that `expects` states. No other test knows what a record means."""
        trial = self.example()
        to_resource = shown_method_name(trial.bound.stream, "to_resource")
        drafts = {tried.record.key: tried.members for tried in trial.records}
        problems = {tried.record.key: tried.problem for tried in trial.records if tried.problem is not None}
        if not self.expects:
            raise SkipTest(
                f"expects is not set: what {to_resource} makes of a record is compared with nothing, so that a price "
                "divided by 100, a wrong member or a time in another zone is not found; state the draft of a record, "
                f"as the vendor means it: expects = {{{shown_key(next(iter(drafts)))}: {{...}}}}"
            )
        for key, wanted in self.expects.items():
            text = normalized_key_text(key, drafts)
            known, pull = ", ".join(map(shown_key, [*drafts][:_SHOWN])), shown_method_name(trial.bound.stream, "pull")
            assert text in drafts, (
                f"expects states a record {shown_key(text)}, which {pull} does not read; it reads {known}; look for "
                "the record in the example, and at the key of the stream"
            )
            assert text not in problems, f"{to_resource}, record {shown_key(text)}: there is no draft: {problems[text]}"
            wrong = first_mismatch(wanted, drafts[text])
            assert not wrong, f"{to_resource}, record {shown_key(text)}: {wrong}"

    def test_the_example_can_show_bugs(self) -> None:
        """Names what no test can find with this example; it never fails."""
        trial = self.example()
        drafts = [tried.members for tried in trial.records if tried.members is not None]
        found = [*gaps_of_records([tried.record for tried in trial.records]), *gaps_of_drafts(drafts)]
        if self.expects and (
            names := unstated_number_and_time_members(drafts, stated_member_names(self.expects.values()))
        ):
            found.append(f"expects states no {', '.join(names)}: a wrong value would not be seen")
        found += _gaps_because_chosen_by_position(trial.bound, [tried.record for tried in trial.records])
        found += self.other_gaps()
        if found:
            raise SkipTest(
                f"the example of {type(trial.bound.stream).__name__} cannot show everything: {'; '.join(found)}"
            )

    def other_gaps(self) -> Iterator[str]:
        """Yield what else the example cannot show."""
        return iter(())

    def test_the_mapping_is_pure(self) -> None:
        """A draft depends on its record alone: not on other records, their order, the time or the time zone."""
        bound, records = self.example_records()
        expected = [_draft_or_problem(bound, record) for record in records]
        for record in records:
            for _, changed in drift_variants(record):
                _draft_or_problem(bound, changed)  # a mapping that keeps records now keeps others
        again = [_draft_or_problem(bound, record) for record in reversed(records)][::-1]
        own = shown_method_name(bound.stream, "to_resource")
        hint = "use nothing but the record: no clock, no attribute that changes, no other record"
        for record, one, other in zip(records, expected, again, strict=True):
            assert one == other, f"{own}, {shown_record_place(record)}: mapped twice, the drafts differ; {hint}"
        fresh = bind_checked_stream(self.connector, bound.context, self.stream)
        for record, one in zip(records, expected, strict=True):
            is_same = one == _draft_or_problem(fresh, record)
            assert is_same, (
                f"{own}, {shown_record_place(record)}: a new instance of the stream maps it differently; {hint}"
            )
        for zone in _ZONES:
            with _temporary_process_time_zone(zone):
                for record, one in zip(records, expected, strict=True):
                    is_same = one == _draft_or_problem(bound, record)
                    zones = "read times with record.instant, and give the zone of those without an offset"
                    assert is_same, (
                        f"{own}, {shown_record_place(record)}: the draft depends on the time zone of the machine; "
                        f"{zones}"
                    )

    def test_drift_of_a_record_never_breaks_the_mapping(self) -> None:
        """A record with an unknown, missing or null member, or one of another type, gives a draft or a
        `RecordError`.
        """
        bound, records = self.example_records()
        own = shown_method_name(bound.stream, "to_resource")
        for record in records:
            for change, changed in drift_variants(record):
                made = _draft_or_problem(bound, changed)
                if isinstance(made, _Problem):
                    text = (
                        f"{own}, {shown_record_place(record)} with {change}: {made.text}; read it with a method of "
                        "the record, or"
                    )
                    assert made.code != "mapping_failed", f"{text} raise RecordError"
                if change == "an unknown member":
                    is_same = made == _draft_or_problem(bound, record)
                    assert is_same, (
                        f"{own}, {shown_record_place(record)}: the draft changes with {change}; read members by name"
                    )

    def test_numbers_are_exact(self) -> None:
        """A number of a record that its draft shows has all its digits, also if it has 19 of them, or is rounded to
        `decimals`.
        """
        bound, records = self.example_records()
        own = shown_method_name(bound.stream, "to_resource")
        hint = "use record.decimal or Decimal(text), never float; if the source rounds its sums, set decimals"
        wanted = {_LONG} if self.decimals is None else {_LONG, round(_LONG, self.decimals)}
        for record in records:
            before = _numbers(_draft_or_problem(bound, record))
            for place, with_number in replaceable_numbers(record):
                if _SHORT in before or _SHORT not in _numbers(_draft_or_problem(bound, with_number(_SHORT))):
                    continue  # the draft does not show this number
                longer = _draft_or_problem(bound, with_number(_LONG))
                is_exact = isinstance(longer, _Problem) or not wanted.isdisjoint(_numbers(longer))
                assert is_exact, f"{own}, {shown_record_place(record)}: {place} loses digits, as in a float; {hint}"

    def test_a_bad_number_is_never_another_number(self) -> None:
        """A number of a record that its draft shows makes a `RecordError` or is left out if it is a text without
        digits: 0 in place of it would be delivered.
        """
        bound, records = self.example_records()
        own = shown_method_name(bound.stream, "to_resource")
        for record in records:
            before = _numbers(_draft_or_problem(bound, record))
            for place, with_value in replaceable_numbers(record):
                shown = _draft_or_problem(bound, with_value(_SHORT))
                if _SHORT in before or isinstance(shown, _Problem) or _SHORT not in _numbers(shown):
                    continue  # the draft does not show this number
                made = _draft_or_problem(bound, with_value(_NO_NUMBER))
                if isinstance(made, _Problem):
                    continue
                for path in (
                    path for path in paths_of_all_values(shown) if value_at_path_or_none(shown, path) == _SHORT
                ):
                    other = value_at_path_or_none(made, path)
                    assert not all_numbers_in(other), (
                        f"{own}, {shown_record_place(record)}: with {_NO_NUMBER!r} as {place}, "
                        f"/{'/'.join(map(str, path))} of "
                        f"the draft is {other}; raise RecordError for what is not a number"
                    )

    def test_every_change_of_a_draft_is_noticed(self) -> None:
        """A record whose draft changes counts as changed, also if the stream declares `uses`; else it is not sent."""
        bound, records = self.example_records()
        if bound.stream.uses is None:
            return  # any change counts
        for record in records:
            before, known = _draft_or_problem(bound, record), _row_keys_and_fingerprints(bound, record)
            numbers = [
                (f"another number as {place}", with_number(_SHORT))
                for place, with_number in replaceable_numbers(record)
            ]
            for change, changed in (*drift_variants(record), *numbers):
                made = _draft_or_problem(bound, changed)
                if isinstance(made, _Problem) or made == before:
                    continue
                assert _row_keys_and_fingerprints(bound, changed) != known, (
                    f"{type(bound.stream).__name__}.uses, {shown_record_place(record)}: with {change} the draft is "
                    "another one, "
                    "and the record does not count as changed, so that it is not sent; name all that the mapping reads"
                )

    def test_no_element_of_a_long_list_is_left_out(self) -> None:
        """A list with numbers that becomes a list of the draft is read to its end, also if it has 120 elements, or
        makes a `RecordError`.
        """
        bound, records = self.example_records()
        own = shown_method_name(bound.stream, "to_resource")
        for record in records:
            for each in longer_lists(record):
                if not _draft_has_whole_list(bound, each):
                    continue  # the draft has no such list
                made = [
                    _draft_or_problem(bound, each.record_with_more_elements(number, _MANY, -1))
                    for number in (_SHORT, _OTHER)
                ]
                assert isinstance(made[0], _Problem) or made[0] != made[1], (
                    f"{own}, {shown_record_place(record)}: of {each.place} with {_MANY} more elements, the last one "
                    "is left out "
                    "of the draft; read all of them, or raise RecordError if they are too many"
                )


class _Problem(NamedTuple):
    code: str
    text: str


def _draft_or_problem(bound: BoundStream, record: Record) -> dict[str, Any] | _Problem:
    try:
        return map_record_to_draft_members(bound, record)[0]
    except RecordError as error:
        return _Problem(error.code, str(error))


def _row_keys_and_fingerprints(bound: BoundStream, record: Record) -> list[tuple[Any, ...]]:
    """Return the key and the fingerprint of each row, as a run compares them."""
    rows = [{JSON: row[JSON]} if JSON in row else row for row in record.rows]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String)).with_row_index(LINE, 1).cast({LINE: pl.UInt64})
    return add_key_filter_and_fingerprint_columns(bound.stream, record.source, frame).select(KEY, FP).rows()


def _numbers(made: dict[str, Any] | _Problem) -> Collection[Decimal]:
    return () if isinstance(made, _Problem) else all_numbers_in(made)


def _draft_has_whole_list(bound: BoundStream, each: LongerList) -> bool:
    """Return whether the draft has a list of as many elements as the record's, with a number of its first one."""
    for more in (0, 1):
        made = _draft_or_problem(bound, each.record_with_more_elements(_SHORT, more, 0))
        if isinstance(made, _Problem) or (more == 0 and each.original_element_count == 1):
            continue  # of one element alone, the draft may take only the first one
        places = [path for path in paths_of_all_values(made) if value_at_path_or_none(made, path) == _SHORT]
        inside = [path[:index] for path in places for index, name in enumerate(path) if isinstance(name, int)]
        if any(len(value_at_path_or_none(made, path)) == each.original_element_count + more for path in inside):
            return True
    return False


def _gaps_because_chosen_by_position(bound: BoundStream, records: Sequence[Record]) -> Iterator[str]:
    """Yield the lists of which the draft shows one element alone that is at the same end in all records."""
    chosen: dict[str, set[str]] = {}
    for record in records:
        before = _draft_or_problem(bound, record)
        for place, elements, with_elements in lists_of_objects(record):
            without = [with_elements([*elements[:index], *elements[index + 1 :]]) for index in range(len(elements))]
            used = [index for index, each in enumerate(without) if _draft_or_problem(bound, each) != before]
            if len(elements) > 1 and len(used) == 1:
                end = {0: "first", len(elements) - 1: "last"}.get(used[0], "")
                chosen.setdefault(_NUMBERS.sub("/*", place), set()).add(end)
    for place, ends in chosen.items():
        if len(ends) == 1 and (end := min(ends)):
            yield f"of {place} always the {end} element is chosen: whether it is because of its place would not be seen"


@contextmanager
def _temporary_process_time_zone(name: str) -> Iterator[None]:
    """Set another time zone for the process."""
    try:
        with mock.patch.dict(os.environ, {"TZ": name}):
            time.tzset()
            yield
    finally:
        time.tzset()
