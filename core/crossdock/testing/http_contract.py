"""Tests that every stream of a paged JSON API should pass, to inherit."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from unittest import SkipTest
from urllib.parse import urlsplit

import httpx

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import RecordError
from crossdock.mapping.row_order_and_cursors import Checkpoint, Cursor
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.runs.batches_read_from_connector import pull_checked_batches
from crossdock.runs.stream_trial import Trial, TriedRecord
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.testing.connector_under_test import shown_method_name, shown_record_place
from crossdock.testing.contract import StreamContract
from crossdock.testing.cursors_and_times_in_requests import (
    contains_cursor_or_slightly_earlier,
    find_descending_order_parameter,
    parse_instant,
)
from crossdock.testing.httpx_test_transports import (
    FAULTY_ANSWERS,
    RequestRecorder,
    SelectedMembersTransport,
    transport_with_faults,
)
from crossdock.testing.lists_in_answers import (
    RecordList,
    TransportWithContinuedList,
    UnpagedLists,
    collect_paths_read_in_pages,
    pages_with_reversed_lists,
    pages_without_some_records,
    possible_record_lists,
)
from crossdock.testing.record_variants import drifted_objects
from crossdock.values import exact_json
from crossdock.values.json_paths import json_value_as_column_text, value_at_path_or_missing
from crossdock.values.raw_rows_and_records import JSON, RawBatch

PART = (
    "a part of a record lacks, and nothing says so; catch no error of ctx.api, or let to_resource raise a RecordError "
    "or call record.count for a record whose part could not be read"
)


def describe_silent_reading_loss(trial: Trial, whole: Trial) -> str | None:
    """Return what *trial* lacks of the records of *whole* although neither an error nor a record says so, or None."""
    if trial.error is not None:
        return None
    found, wanted = len(trial.records), len(whole.records)
    if found != wanted:
        return f"{found} of {wanted} records, and no error; catch no error of ctx.api"
    pairs = zip(trial.records, whole.records, strict=True)
    return PART if any(_differs(*pair) and not _record_reports_new_problem(*pair) for pair in pairs) else None


def reports_new_problem(trial: Trial, whole: Trial) -> bool:
    """Return whether records of *trial* tell of a problem or of a missing part that those of *whole* do not have."""
    return any(_record_reports_new_problem(*pair) for pair in zip(trial.records, whole.records, strict=False))


def _differs(found: TriedRecord, wanted: TriedRecord) -> bool:
    return (found.record.rows, found.members) != (wanted.record.rows, wanted.members)


def _record_reports_new_problem(found: TriedRecord, wanted: TriedRecord) -> bool:
    is_refused = found.problem is not None and wanted.problem is None
    return is_refused or found.record.parts != wanted.record.parts


__all__ = ["HttpStreamContract"]

_DATE = len("2026-11-19")
_EARLIER = timedelta(days=2)  # more than a request may ask for before its cursor
_OF_CHANGE = re.compile("updated|modified|changed|edited|last_?change|last_?update|mtime", re.IGNORECASE)
_SHOWN = 5  # members in a message


class HttpStreamContract(StreamContract):
    """Tests of one stream of an API that answers with pages of JSON.

    Rows may differ from what the API lists: members may be added, renamed or left out.

    Attributes:
        pages: The bodies of at least two pages, each with at least one record.
        is_paged: False if the API answers with everything at once; `pages` then has one body.
        filters_on: Dotted paths of members by which `pull` leaves out records, such as those of another channel.
        whole_lists: Patterns of paths such as ``/orders/*/products`` whose answers have all elements of a list, as the
            vendor documents it.
        cursor_param: The parameter, or the member of a body or of GraphQL variables, by which the vendor documents that
            a list is limited to what has changed from a time on.
    """

    pages: Sequence[Any]
    is_paged: bool = True
    filters_on: Collection[str] = ()
    whole_lists: Collection[str] = ()
    cursor_param: str | None = None

    def transport(self, pages: Sequence[Any]) -> httpx.BaseTransport:
        """Return an API that returns *pages* in this order, for any cursor, with links as in the real API.

        Give the bodies with ``json.dumps``; they are variants of `pages`.
        """
        raise NotImplementedError

    def network(self) -> httpx.BaseTransport:
        return self.transport(self.pages)

    def network_since(self, since: str | None) -> httpx.BaseTransport:
        """Return an API that lists the records of `pages` from *since* on, if one of their members is the cursor."""
        is_asked_for = None if since is None else self._listed_since_predicate(since)
        if is_asked_for is None:
            return self.network()
        return self.transport(pages_without_some_records(self.pages, self._listed_records_and_lists()[1], is_asked_for))

    def networks_in_another_order(self) -> Iterator[httpx.BaseTransport]:
        """Yield APIs with the records of each page in reverse order, unless the stream relies on their order."""
        trial = self.example()
        keys = [tried.record.key for tried in trial.records]
        if not _has_declared_sorted_cursor(trial) and len(set(keys)) == len(keys):
            yield self.transport(pages_with_reversed_lists(self.pages, self._listed_records_and_lists()[1]))

    def read_from(self, transport: httpx.BaseTransport, since: str | None = None) -> Trial:
        """Read and map the stream in a new run over *transport*."""
        return self.read_in(self.context_over(transport), since)

    # ---- tests

    def test_every_record_of_every_page_is_read(self) -> None:
        """No page and no record of a page is left out."""
        expected, places = self._listed_records_and_lists()
        trial = self.example()
        pull = shown_method_name(trial.bound.stream, "pull")
        read, keys = _json_rows_of_trial(trial), _record_keys(trial)
        for number, item in expected:
            is_read = item in read or self._is_read_or_filtered(item, keys, places)
            hint = "if it leaves out records of others, name the members that show them in filters_on"
            assert is_read, f"{pull} does not yield a record of page {number + 1}; {hint}"
        if self.filters_on:  # what is left out must not depend on its place
            other = self.read_from(self.transport(pages_with_reversed_lists(self.pages, places)))
            is_same = _record_keys(other) <= keys
            assert is_same, f"{pull} yields a record only when its page has the opposite order"
        hint = "or set is_paged to False if the API answers with everything at once"
        is_enough = len({number for number, _ in expected}) > 1 or not self.is_paged
        assert is_enough, f"pages: give at least two pages with records, {hint}"

    def test_keys_do_not_depend_on_the_order(self) -> None:
        """The same records in another order have the same keys."""
        trial = self.example()
        reversed_pages = pages_with_reversed_lists(self.pages, self._listed_records_and_lists()[1])
        before, after = (
            {tried.record.key: sorted(_json_texts_of_rows(tried)) for tried in each.records}
            for each in (trial, self.read_from(self.transport(reversed_pages)))
        )
        assert before == after, (
            f"{shown_method_name(trial.bound.stream, 'pull')}: records have other keys when the source lists them in "
            "another "
            "order; make no key of a position"
        )

    def test_one_bad_record_does_not_end_reading(self) -> None:
        """If the first record has a missing or null member, or one of another type, it is read, and so are all
        others.
        """
        count = _count_read_and_omitted_rows(self.example())
        page_number, place, index, item = self._first_record_not_left_out()
        others = _record_keys(self._read_without_record(item))
        for change, changed in drifted_objects(item):
            pages = copy.deepcopy(list(self.pages))
            elements = place.elements(pages[page_number])
            elements[index] = place.element_with_replaced_record(elements[index], changed)
            trial = self.read_from(self.transport(pages))
            pull, hint = (
                shown_method_name(trial.bound.stream, "pull"),
                "read members of records in the mapping alone",
            )
            assert trial.error is None, f"{pull}: a record with {change} ends reading: {trial.error}; {hint}"
            assert others <= _record_keys(trial), f"{pull}: a record with {change}: others are not read; {hint}"
            is_complete = _count_read_and_omitted_rows(trial) == count or self._may_change_decide_filter(change)
            hint = "if it leaves out records by this member, name it in filters_on"
            assert is_complete, (
                f"{pull}: of a record with {change}, {_count_read_and_omitted_rows(trial)} of {count} are read; {hint}"
            )

    def test_a_record_that_moves_while_paging_is_read_in_its_last_form(self) -> None:
        """A record that changes, and is listed again on the last page, is read again there, or the list is in doubt.

        In a list that is paged by position, a record that comes again has taken the place of another.
        """
        if not self.is_paged:
            raise SkipTest("the API answers with everything at once")
        page_number, place, index, item = self._first_record_not_left_out()
        moved, key, row = self._changed_record_with_key_and_row(item)
        pages = copy.deepcopy(list(self.pages))
        place.elements(pages[-1]).append(
            place.element_with_replaced_record(place.elements(pages[page_number])[index], moved)
        )
        trial = self.read_from(self.transport(pages))
        if isinstance(trial.error, DoubtfulListError):
            return
        pull = shown_method_name(trial.bound.stream, "pull")
        assert trial.error is None, f"{pull}: reading failed: {trial.error}"
        last = [text for tried in trial.records if tried.record.key == key for text in _json_texts_of_rows(tried)][-1:]
        where = f"record {index + 1} of page {page_number + 1}"
        hint = "yield records that come again, of which the last one counts"
        assert last == [row], f"{pull}: {where} is listed again on the last page, and is not read there; {hint}"

    def test_faults_of_the_network_lose_nothing_silently(self) -> None:
        """After 429, 5xx, a cut or foreign answer to any request, all records are read whole, or an error, a problem of
        the record or `Record.count` says what lacks. 404 to a request about a part of a record may say that there is
        none.
        """
        recorded = RequestRecorder(self.network())
        whole = self.read_from(recorded)
        pull = shown_method_name(whole.bound.stream, "pull")
        listing = self._listing_paths(recorded)
        for fault in FAULTY_ANSWERS:
            for number in range(len(recorded.requests)):
                for times in (1, None):
                    sent = RequestRecorder(
                        transport_with_faults(self.network(), fault, number, times, [*self.environment.values()])
                    )
                    lost = describe_silent_reading_loss(self.read_from(sent), whole)
                    path = urlsplit(recorded.requests[number][1]).path
                    if fault == "404" and path not in listing and lost == PART:
                        lost = None
                    often = "once" if times else "from then on"
                    where = f"{pull}: request {number + 1} ({path}) answered with {fault} {often}"
                    assert not lost, f"{where}: {lost}"
                    if len(sent.requests) <= number + 1:
                        break  # no later request can have the fault

    def test_lists_of_other_requests_are_read_to_their_end(self) -> None:
        """A list that is requested for one record, such as its lines, may have several pages, as the list of records.

        The answer says so in all customary ways. What follows is requested, or the record or the run says what lacks.
        """
        recorded = RequestRecorder(self.network())
        with collect_paths_read_in_pages() as paged:
            whole = self.read_from(recorded)
        records = [item for _, item in self._listed_records_and_lists()[0]]
        pull = shown_method_name(whole.bound.stream, "pull")
        for path, place in UnpagedLists(recorded, paged, records, self.whole_lists):
            continued = TransportWithContinuedList(self.network(), path, place)
            trial = self.read_from(continued)
            assert continued.is_continued or trial.error is not None or reports_new_problem(trial, whole), (
                f"{pull}: the list that {path} answers with is read without its next page: with more elements than an "
                "answer has, the record would lack some; read it with ctx.api.pages, or name the path in whole_lists "
                "if the vendor documents that its answer has all elements"
            )

    def test_throttling_is_survived(self) -> None:
        """A request that is answered with 429 once is repeated."""
        recorded = RequestRecorder(self.network())
        count = len(self.read_from(recorded).records)
        pull = shown_method_name(self.example().bound.stream, "pull")
        for number in range(len(recorded.requests)):
            trial = self.read_from(transport_with_faults(self.network(), "429", number, 1))
            where = f"{pull}: request {number + 1} answered with 429 once"
            assert trial.error is None, f"{where}: {trial.error}; send requests with ctx.api, which repeats them"
            assert len(trial.records) == count, f"{where}: {len(trial.records)} of {count} records; catch no error"

    def test_a_query_selects_what_is_read(self) -> None:
        """A stream of a GraphQL API reads the same if answers have only the members that its query selects."""
        selected = SelectedMembersTransport(self.network())
        trial, whole = self.read_from(selected), self.example()
        if not selected.left_out:
            return
        pull, lacking = shown_method_name(whole.bound.stream, "pull"), ", ".join(selected.left_out[:_SHOWN])
        text = f"{pull}: the query does not select {lacking}, as the answers of the test have it"
        hint = "select in the query what is read"
        assert trial.error is None, f"{text}, and without it reading fails: {trial.error}; {hint}"
        for one, other in zip(whole.records, trial.records, strict=False):
            what = "record is another one" if one.record.key != other.record.key else "draft is another one"
            is_same = (one.record.key, one.members) == (other.record.key, other.members)
            assert is_same, f"{text}, and without it the {what}: {shown_record_place(one.record)}; {hint}"
        assert len(trial.records) == len(whole.records), f"{text}, and without it records are missing; {hint}"
        cursor = whole.bound.stream.cursor
        if cursor is not None:
            before, after = (_values_of_column(each, cursor.column) for each in (whole, trial))
            assert before == after, f"{text}, and without it records have no {cursor.column}, their cursor; {hint}"

    def test_a_sorted_cursor_asks_for_the_oldest_change_first(self) -> None:
        """A stream whose cursor says that its source is sorted does not ask for the opposite order."""
        declared = self._bound_stream().stream.cursor
        if declared is None or not declared.sorted:
            return
        recorded = RequestRecorder(self.network())
        self.read_from(recorded)
        for request in recorded.requests:
            found = find_descending_order_parameter(request, declared.column)
            assert found is None, (
                f"{self._shown_method_name('pull')}: a request asks for the newest change first, by {found}, and the "
                "cursor says "
                "that the source is sorted by it, ascending; ask for the oldest change first, or declare sorted=False"
            )

    def test_a_cursor_is_not_ahead_of_what_was_read(self) -> None:
        """Records that are read after a cursor have no lower value, and each cursor is a value that was read."""
        batches = list(self._read_batches_with_cursors())
        self._last_cursor(batches)
        pull, declared = self._shown_method_name("pull"), self._bound_stream().stream.cursor

        def listed(name: str) -> set[str]:
            return {str(item.get(name)) for _, item in self._listed_records_and_lists()[0] if isinstance(item, dict)}

        for name in {name for batch in batches for item in batch[1] for name in item}:
            values = [[str(item.get(name)) for item in items] for _, items in batches]
            used = [cursor for cursor, _ in batches if cursor is not None]
            if not any(cursor in inner for cursor in used for inner in values):
                continue  # not the member that cursors are taken from
            is_declared = declared is not None and declared.column == name
            for number, (cursor, _) in enumerate(batches):
                if cursor is None:
                    continue
                read = [value for inner in values[: number + 1] for value in inner]
                later = [value for inner in values[number + 1 :] for value in inner]
                message = f"{pull}: the cursor after page {number + 1}"
                is_listed = cursor in read or (bool(self.filters_on) and cursor in listed(name))
                hint = "take the latest value of the batch, of a source that is asked to sort by it"
                assert is_listed, f"{message} is ahead of the records that were read; {hint}"
                is_lowest = all(
                    _is_cursor_not_before_other(value, cursor, declared if is_declared else None) for value in later
                )
                assert is_lowest, f"{message} is higher than {name} of a later record; {hint}"

    def test_the_cursor_is_used_and_its_value_read_again(self) -> None:
        """With a cursor, other requests are sent than without one, which contain its value, or a time before it, and
        records with the cursor's value are not dropped. With an earlier time as the cursor, they contain that. A source
        that cannot be asked so may be read until a record from before the cursor.
        """
        batches = list(self._read_batches_with_cursors())
        cursor = self._cursor_of_next_run(batches)
        first, second = RequestRecorder(self.network()), RequestRecorder(self.network())
        self.read_from(first)
        trial = self.read_from(second, cursor)
        pull, hint = (
            shown_method_name(trial.bound.stream, "pull"),
            "ask for what changed from since on, that value included",
        )
        is_used = first.requests != second.requests
        assert is_used, f"{pull}: the cursor changes no request: everything is read in each run; {hint}"
        assert trial.error is None, f"{pull}: reading with a cursor failed: {trial.error}"
        self._assert_all_since_cursor_read(trial, cursor, batches)
        earlier = _two_days_before(cursor)
        if {*second.requests} < {*first.requests}:  # reading ends at a record from before the cursor
            if earlier is not None:
                self._assert_all_since_cursor_read(self.read_from(self.network(), earlier), earlier, batches)
            return
        self._assert_cursor_requested(
            pull, cursor, [request for request in second.requests if request not in first.requests]
        )
        if earlier is not None:  # the time that is asked for depends on the cursor
            third = RequestRecorder(self.network())
            self.read_from(third, earlier)
            self._assert_cursor_requested(pull, earlier, third.requests)

    def _assert_all_since_cursor_read(
        self, trial: Trial, cursor: str, batches: Sequence[tuple[str | None, list[Any]]]
    ) -> None:
        """Check that *trial*, which continues from *cursor*, has read the records from there on."""
        read, declared, of_records = (
            _json_rows_of_trial(trial),
            trial.bound.stream.cursor,
            _json_rows_of_trial(self.example()),
        )
        for item in (each for _, items in batches for each in items if each in of_records):  # and no filter leaves out
            if cursor in map(str, item.values()) if declared is None else _is_listed_since(declared, cursor, item):
                assert item in read, (
                    f"{shown_method_name(trial.bound.stream, 'pull')}: a record whose value equals the cursor is not "
                    "read "
                    "again, or a later one; ask for what changed from since on, that value included"
                )

    def _assert_cursor_requested(self, pull: str, cursor: str, requests: Sequence[tuple[str, str, bytes]]) -> None:
        """Check that one of *requests* contains the cursor or an earlier value, where `cursor_param` says.

        Times without an offset are in the zone that the cursor declares.
        """
        declared = self._bound_stream().stream.cursor
        zone = None if declared is None else declared.timezone
        is_asked = any(contains_cursor_or_slightly_earlier(request, cursor, zone=zone) for request in requests)
        hint = "the source would list everything or something else; send since, or a time made of it"
        assert is_asked, f"{pull}: no request contains the cursor {cursor} or a time before it: {hint}"
        named = self.cursor_param
        if named is not None:
            is_named = any(contains_cursor_or_slightly_earlier(request, cursor, named, zone) for request in requests)
            assert is_named, f"{pull}: no request has the cursor in {named}, as cursor_param of the test says"

    def _listing_paths(self, recorded: RequestRecorder) -> set[str]:
        """Return the paths whose answers list records of the stream."""
        records = [item for _, item in self._listed_records_and_lists()[0]]
        return {
            urlsplit(url).path
            for (_, url, _), body in zip(recorded.requests, recorded.answers, strict=True)
            for page in [_json_or_none(body)]
            for each in possible_record_lists(page)
            if any(item in records for item in each.records(page))
        }

    def other_gaps(self) -> Iterator[str]:
        """Yield that no two records have one value of the cursor, if it is a member of them, that a wrong parameter is
        not seen, and that another member looks like the time of the last change.
        """
        batches, declared = list(self._read_batches_with_cursors()), self._bound_stream().stream.cursor
        cursors = {cursor for cursor, _ in batches if cursor is not None}
        values = Counter(
            text for _, items in batches for item in items for text in _member_texts(item) if text in cursors
        )
        if values and max(values.values()) < 2:
            yield "no two records have the value of a cursor: one that is lost at the edge would not be seen"
        if declared is not None:
            for name in _members_later_than_cursor_member(declared, [item for _, items in batches for item in items]):
                yield (
                    f"{name} is later than the cursor {declared.column}: whether the source lists by it, as the time "
                    "of the last change, would not be seen"
                )
        if (cursors or declared is not None) and self.cursor_param is None:
            yield "cursor_param is not set: a misspelt parameter, which a source ignores, would not be seen"

    # ---- where records are in pages

    def _read_batches_with_cursors(self) -> Iterator[tuple[str | None, list[Any]]]:
        """Yield the JSON objects of each batch, and the cursor or checkpoint after it."""
        bound, read = self._bound_stream(), list[tuple[str | None, list[Any]]]()
        declared = bound.stream.cursor
        with self.in_environment():
            for batch in pull_checked_batches(bound, None):
                if isinstance(batch, Checkpoint):
                    read[-1:] = [(batch.cursor, items) for _, items in read[-1:]]
                    continue
                items = _json_objects_of_raw_batch(batch)
                is_sorted = declared is not None and declared.sorted and items
                value = (
                    json_value_as_column_text(value_at_path_or_missing(items[-1], declared.column))
                    if declared and is_sorted
                    else None
                )
                read.append((value or batch.cursor, items))
        return iter(read)

    @staticmethod
    def _last_cursor(batches: Sequence[tuple[str | None, list[Any]]]) -> str:
        cursors = [cursor for cursor, _ in batches if cursor is not None]
        if cursors:
            return cursors[-1]
        raise SkipTest("no batch of the example has a cursor or a checkpoint, and no cursor sorts the source")

    def _cursor_of_next_run(self, batches: Sequence[tuple[str | None, list[Any]]]) -> str:
        """Return the argument of `pull` in the run after one that reads everything."""
        since = None if self._bound_stream().stream.cursor is None else self._since_of_next_run(self._bound_stream())
        return since or self._last_cursor(batches)

    def _listed_since_predicate(self, since: str) -> Callable[[Any], bool] | None:
        """Return whether a source lists a record in a request from *since* on; None if no member is the cursor."""
        stream = self._bound_stream().stream
        declared = stream.cursor
        if declared is not None:
            places, pages = self._listed_records_and_lists()[1], [_with_exact_numbers(page) for page in self.pages]
            assert any(_has_record_with_cursor_member(declared, place, pages) for place in places), (
                f"network_since of the test: no record of pages has the member {declared.column}, the cursor of "
                f"{type(stream).__name__}; override network_since, and return what the source lists from a cursor on"
            )
            return partial(_is_record_not_before_cursor, declared, since)
        items = [item for _, items in self._read_batches_with_cursors() for item in items]
        names = {name for item in items for name, value in item.items() if str(value) == since}
        return (
            (lambda item: all(_is_cursor_not_before_other(str(item.get(name)), since) for name in names))
            if names
            else None
        )

    def _bound_stream(self) -> BoundStream:
        return bind_checked_stream(self.connector, self.new_context(), self.stream)

    def _listed_records_and_lists(self) -> tuple[list[tuple[int, Any]], set[RecordList]]:
        """Return the records of `pages` with the numbers of their pages, and the paths of the lists that contain
        them: as they are read or, if no row is what the API lists, those without which records are missing.
        """
        read = [item for _, items in self._read_batches_with_cursors() for item in items]
        exact = [_with_exact_numbers(page) for page in self.pages]
        found = {
            each
            for page in exact
            for each in possible_record_lists(page)
            if any(item in read for item in each.records(page))
        }
        places = {each for each in found if not each.inner} or found or {*self._indispensable_record_lists(exact)}
        assert places, "no list in `pages` contains what is read: records do not change when lists of `pages` are empty"
        listed = [
            (number, item)
            for number, page in enumerate(exact)
            for place in sorted(places, key=str)
            for item in place.records(page)
        ]
        return listed, places

    def _indispensable_record_lists(self, exact: Sequence[Any]) -> Iterator[RecordList]:
        """Yield the lists without which records are missing, with the place of records that have the cursor."""
        keys, cursor = _record_keys(self.example()), self._bound_stream().stream.cursor
        known = {each for page in exact for each in possible_record_lists(page) if each.elements(page)}
        for place in (each for each in known if not each.inner):
            emptied = pages_without_some_records(self.pages, [place], lambda _: False)
            if keys - _record_keys(self.read_from(self.transport(emptied))):
                inner = [
                    each
                    for each in known
                    if each.path == place.path and _has_record_with_cursor_member(cursor, each, exact)
                ]
                yield min(inner, key=lambda each: len(each.inner), default=place)

    def _read_filtered_pages(self, places: set[RecordList], is_kept: Callable[[Any], bool]) -> Trial:
        return self.read_from(self.transport(pages_without_some_records(self.pages, places, is_kept)))

    def _read_without_record(self, item: Any) -> Trial:
        wanted = _with_exact_numbers(item)
        return self._read_filtered_pages(
            self._listed_records_and_lists()[1], lambda each: _with_exact_numbers(each) != wanted
        )

    def _is_read_or_filtered(self, item: Any, keys: set[str], places: set[RecordList]) -> bool:
        """Return whether a listed record is read, or left out as `filters_on` permits.

        What is read when it is listed alone must also be read among the others.
        """
        alone = self._read_filtered_pages(places, _predicate_of_equal_record(item))
        if _count_read_and_omitted_rows(alone):  # without a key, if a filter of the stream counts it
            return _record_keys(alone) <= keys
        if alone.error is not None:  # it needs others, which are read with it
            return bool(keys - _record_keys(self._read_without_record(item)))
        return bool(self.filters_on)

    def _first_record_not_left_out(self) -> tuple[int, RecordList, int, Any]:
        """Return page, path of the list, index and object of the first record that is not left out."""
        keys = _record_keys(self.example())
        found = next(
            (each for each in self._items_of_pages() if keys - _record_keys(self._read_without_record(each[3]))), None
        )
        return found or next(self._items_of_pages())

    def _may_change_decide_filter(self, change: str) -> bool:
        """Return whether a change of `drifted_objects` may decide that the record is left out."""
        place = f"{change.removesuffix(' missing').rpartition(' as ')[2]}/"
        named = [f"/{path.replace('.', '/')}/" for path in self.filters_on]
        return any(place.startswith(each) or each.startswith(place) for each in named)

    def _changed_record_with_key_and_row(self, item: Any) -> tuple[Any, str, str | None]:
        """Return a changed form of a listed record, the key that it is read with, and the row that shows the change."""
        places = self._listed_records_and_lists()[1]
        forms = [{**item, "crossdock_changed": 1}, *(form for _, form in drifted_objects(item))]
        alone = self._read_filtered_pages(places, _predicate_of_equal_record(item))
        before, keys = {text for tried in alone.records for text in _json_texts_of_rows(tried)}, _record_keys(alone)
        for form in forms:
            pages = pages_without_some_records(self.pages, places, _predicate_of_equal_record(item))
            place, first = next((each, found) for page in pages for each in places if (found := each.elements(page)))
            first[0] = place.element_with_replaced_record(first[0], form)
            records = self.read_from(self.transport(pages)).records
            if len(records) == 1 and {records[0].record.key} == keys and records[0].record.row.get(JSON) not in before:
                return form, records[0].record.key, records[0].record.row.get(JSON)
        raise SkipTest("no change of a member of the first record changes its row alone")

    def _items_of_pages(self) -> Iterator[tuple[int, RecordList, int, Any]]:
        """Yield page, path of the list, index and object of each record in `pages`."""
        _, places = self._listed_records_and_lists()
        for number, page in enumerate(self.pages):
            for place in sorted(places, key=str):
                for index, item in enumerate(place.records(page)):
                    yield number, place, index, item


def _with_exact_numbers(value: Any) -> Any:
    """Return *value* as it is read: with the digits of its numbers in place of floats."""
    if isinstance(value, dict):
        return {name: _with_exact_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_exact_numbers(inner) for inner in value]
    return exact_json.loads(json.dumps(value)) if isinstance(value, float) else value


def _predicate_of_equal_record(item: Any) -> Callable[[Any], bool]:
    wanted = _with_exact_numbers(item)
    return lambda each: bool(_with_exact_numbers(each) == wanted)


def _has_record_with_cursor_member(cursor: Cursor | None, place: RecordList, pages: Sequence[Any]) -> bool:
    """Return whether a record at *place* has the member that is the cursor."""
    records = (item for page in pages for item in place.records(page))
    return cursor is not None and any(
        json_value_as_column_text(value_at_path_or_missing(item, cursor.column)) is not None for item in records
    )


def _json_or_none(body: bytes) -> Any:
    try:
        return exact_json.loads(body)
    except ValueError:
        return None


def _json_objects_of_raw_batch(batch: RawBatch) -> list[Any]:
    return [exact_json.loads(text or "null") for text in batch.load()[JSON].to_list()]


def _member_texts(item: Any) -> set[str]:
    return {str(value) for value in item.values()} if isinstance(item, dict) else set()


def _json_rows_of_trial(trial: Trial) -> list[Any]:
    return [exact_json.loads(text) for tried in trial.records for text in _json_texts_of_rows(tried)]


def _json_texts_of_rows(tried: TriedRecord) -> list[str]:
    """Return the object of each row of a record: of several, if the stream has grouped them."""
    return [row.get(JSON) or "null" for row in tried.record.rows]


def _values_of_column(trial: Trial, column: str) -> list[str | None]:
    return [json_value_as_column_text(value_at_path_or_missing(row, column)) for row in _json_rows_of_trial(trial)]


def _record_keys(trial: Trial) -> set[str]:
    return {tried.record.key for tried in trial.records}


def _count_read_and_omitted_rows(trial: Trial) -> int:
    """Return how many rows were read, or counted as filtered or deleted."""
    return sum(len(tried.record.rows) for tried in trial.records) + trial.filtered.total() + trial.deleted


def _has_declared_sorted_cursor(trial: Trial) -> bool:
    cursor = trial.bound.stream.cursor
    return cursor is not None and cursor.sorted


def _is_cursor_not_before_other(text: str, cursor: str, declared: Cursor | None = None) -> bool:
    """Compare two cursors as they are *declared*, else as numbers or instants if both are, else as texts."""
    if declared is not None:
        return _is_record_not_before_cursor(declared, cursor, {declared.column: text})
    for read in (Decimal, datetime.fromisoformat):
        with suppress(ValueError, ArithmeticError, TypeError):  # TypeError: only one of two instants has an offset
            return bool(read(text) >= read(cursor))  # type: ignore[operator]  # both are of one type
    return text >= cursor


def _two_days_before(cursor: str) -> str | None:
    """Return an instant two days before one that is a cursor, in the same form; None for other cursors."""
    if parse_instant(cursor) is None:
        return None
    try:
        return f"{date.fromisoformat(cursor[:_DATE]) - _EARLIER}{cursor[_DATE:]}"
    except ValueError:  # another form of ISO 8601
        return None


def _is_listed_since(cursor: Cursor, since: str, item: Any) -> bool:
    """Return whether a source lists a record when it is asked for what changed from *since*, an argument of `pull`."""
    asked = Cursor(column=cursor.column, as_="instant") if cursor.as_ == "instant" else cursor  # ISO 8601 in any case
    try:
        found = cursor.position(
            {cursor.column: json_value_as_column_text(value_at_path_or_missing(item, cursor.column))}
        )
        return bool(found) and found >= asked.position({cursor.column: since})
    except RecordError:
        return False


def _members_later_than_cursor_member(cursor: Cursor, items: Sequence[Any]) -> Iterator[str]:
    """Yield members with a name of a time of changes that are never before the cursor, and later in some record."""
    names = dict.fromkeys(name for item in items if isinstance(item, dict) for name in item)
    for name in (name for name in names if name != cursor.column and _OF_CHANGE.search(name)):
        pairs = [
            [
                parse_instant(json_value_as_column_text(value_at_path_or_missing(item, each)))
                for each in (name, cursor.column)
            ]
            for item in items
        ]
        known = [(change, own) for change, own in pairs if change is not None and own is not None]
        if any(change > own for change, own in known) and all(change >= own for change, own in known):
            yield name


def _is_record_not_before_cursor(cursor: Cursor, since: str, item: Any) -> bool:
    try:
        return cursor.position(
            {
                cursor.column: json_value_as_column_text(
                    value_at_path_or_missing(_with_exact_numbers(item), cursor.column)
                )
            }
        ) >= cursor.position({cursor.column: since})
    except RecordError:
        return True
