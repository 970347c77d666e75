"""Further requests for each record of a list: they read its members, such as lists below it and other records that it
names. A record for which the API always fails keeps no others from being read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import model_validator

from crossdock import Context, Filter, RecordError, RefusedError
from crossdock.errors import CrossdockError, RemoteError, StoppedError, UnauthorizedError
from crossdock.reading.sources import path_filling_and_answered_records
from crossdock.reading.sources.api_token_buckets import RequestAllowanceOfRun
from crossdock.reading.sources.retried_requests import ForbiddenError, ThrottledError
from crossdock.sources import ApiAnswer, NotFoundError, UnavailableError
from crossdock.values.config_base_types import differs_from_default, make_pydantic_error_at_key
from crossdock.values.json_paths import (
    json_value_as_column_text,
    names_in_path,
    path_of_names,
    value_at_path_or_missing,
)
from crossdock_connectors.http_json import request_templates
from crossdock_connectors.http_json.pagination_settings import Pagination, Place
from crossdock_connectors.http_json.request_declarations import DeclaredRequest

_UNPROVED = 3  # records that may fail before one is answered
_MOST = 10  # records that are set aside in a run; with more, the API is out of order

Ask = Callable[[Any], tuple[Any, bool]]
"""Returns a record with what the API answered for it, and whether anything had to be requested."""


class FailingRecords:
    """Tells a record for which the API fails, or only answers 429, from an API that does so for all.

    A record is set aside if its requests failed, those of another record were answered after that, and its own failed
    once more. Without another record, or with too many that fail and are not forbidden, the first error ends the
    reading. What its own 429s have taught of the rate limit is forgotten.
    """

    def __init__(self, allowance: RequestAllowanceOfRun) -> None:
        self._allowance, self._before = allowance, allowance.bucket_state
        self._answered: Any = None
        self._set_aside = 0

    def request_each_or_set_aside(
        self, items: Sequence[Any], ask: Ask, failed: Callable[[Any, CrossdockError], Any]
    ) -> list[Any]:
        """Return what *ask* returns for each of *items*, and *failed* of those that are set aside.

        Raises:
            UnauthorizedError, UnavailableError: If *ask* raises it, and no single record is the reason.
        """
        made, left = list(items), dict[int, CrossdockError]()
        for number, item in enumerate(items):
            if not left:
                self._before = self._allowance.bucket_state
            try:
                made[number], is_answered = ask(item)
            except (UnauthorizedError, UnavailableError) as error:
                left[number] = error
                if self._answered is not None:
                    ask(self._answered)  # this raises the error if the API fails for all
                elif len(left) < _UNPROVED:
                    continue
                else:
                    raise
            else:
                if not is_answered:
                    continue
                self._answered = item
            for place in left:
                made[place] = self._retry_or_set_aside(items[place], ask, failed)
            left.clear()
        if left:
            raise next(iter(left.values()))
        return made

    def _retry_or_set_aside(self, item: Any, ask: Ask, failed: Callable[[Any, CrossdockError], Any]) -> Any:
        try:
            return ask(item)[0]
        except (UnauthorizedError, UnavailableError) as error:
            self._set_aside += not isinstance(error, ForbiddenError)  # some APIs say so of what does not exist
            if self._set_aside > _MOST:
                raise
            if isinstance(error, ThrottledError):
                self._allowance.forget_refusals_since(self._before)
            return failed(item, error)


FAILED = "\x1dfailed"
"""The member of what takes the place of an answer that cannot be used; no API has such a name."""
_NOT_FOUND_AT_MOST = 10  # records, while nothing shows that the API finds any
_IGNORED = "correct its name: an API that does not know a parameter ignores it, and each record gets what is of others"


class ExpandedMember(DeclaredRequest):
    """A request for each record of the list, whose answer becomes a member of the record: a list below it, or another
    record that it names. Members of the record are in braces in ``path``, ``params``, ``body`` and ``variables``:
    ``/orders/{id}/products``. Where one of them is empty, nothing is requested, and the member is null.
    """

    numbers: tuple[str, ...] = ()
    """Members of the record that ``body`` and ``variables`` have as numbers."""
    records: Place | None = None
    """Where the list is in an answer; an empty text if the answer is the list. All of its pages are read."""
    record: Place = ""
    """Without ``records``: where the one record is in the answer. Default: the answer is the record."""
    pagination: Pagination | None = None
    """How the API splits the list into pages; default: that of the stream."""

    @model_validator(mode="after")
    def _check_request(self) -> Self:
        if not self.record_members_in_request:
            raise make_pydantic_error_at_key(("path",), "names no member of the record, such as {id}")
        if self.records is not None and differs_from_default(self, "record"):
            raise make_pydantic_error_at_key(
                ("record",), "cannot be used with records: the answer is a list or one record"
            )
        if self.pagination is not None and self.records is None:
            raise make_pydantic_error_at_key(("pagination",), "needs records: one record has no pages")
        return self

    @property
    def record_members_in_request(self) -> list[str]:
        """The members of the record that the request has."""
        texts = request_templates.texts_within_value([self.path, self.params, self.body, self.variables])
        return [name for text in texts for name in path_filling_and_answered_records.columns_in_braces(text)]


class LatestAnswerForMember:
    """What the API answered last for one member.

    Attributes:
        record: The answer with a record; None if there was none.
        values: The members of the record that were sent and answered, by their names.
        found: The record or list that was answered for them.
        is_filtered: Whether the API is known to heed what is sent besides the path.
        not_found: How many records in a row the API did not find, while it has found none.
    """

    def __init__(self) -> None:
        self.record: ApiAnswer | None = None
        self.values: Mapping[str, str] = {}
        self.found: Any = None
        self.is_filtered = False
        self.not_found = 0


def request_and_add_members(
    ctx: Context[Any],
    item: Any,
    members: Mapping[str, ExpandedMember],
    paging: Pagination,
    key: str,
    latest_answers: Mapping[str, LatestAnswerForMember],
) -> Any:
    """Return *item* with what the requests of *members* have answered, in their order; a later one may use an earlier.

    What the API refuses, or answers in another form, is an error of this record alone: `error_of_first_failed_member`
    finds it. *key* is the place of *members* in the config, and *latest_answers* are those for each of them.

    Raises:
        RefusedError: If the API ignores what a request sends.
        UnauthorizedError, UnavailableError: As `ctx.api.request`; also if the API does not find any more what it found.
        StoppedError: If the run is interrupted.
    """
    for name, member in members.items() if isinstance(item, dict) else ():
        if ctx.run.interrupt.is_set():
            raise StoppedError("stopped between two records", hint="run again to continue")
        made = _MemberRequest(ctx, member, member.pagination or paging, f"{key}.{name}", latest_answers[name])
        values = {
            each: json_value_as_column_text(value_at_path_or_missing(item, each)) or ""
            for each in member.record_members_in_request
        }
        try:
            value = made.answer(values)
        except (UnauthorizedError, UnavailableError):
            raise
        except (RefusedError, RemoteError) as error:
            if isinstance(error, NotFoundError):
                made.raise_if_known_record_is_not_found(error)
            value = {FAILED: str(error)}
        else:
            made.raise_if_values_are_ignored(values, value)
        item = {**item, name: value}
    return item


def with_members_marked_as_failed(item: Any, members: Mapping[str, ExpandedMember], error: CrossdockError) -> Any:
    """Return *item* as one of which *members* could not be read: `error_of_first_failed_member` finds *error*."""
    return {**item, **{name: {FAILED: str(error)} for name in members}}


def error_of_first_failed_member(item: Any, paths: Iterable[str]) -> RecordError | None:
    """Return the error of the first member at *paths* that could not be read for *item*, or None."""
    for name in paths:
        value = value_at_path_or_missing(item, name)
        if isinstance(value, dict) and FAILED in value:
            return RecordError("unmatched", f"could not be read: {value[FAILED]}", pointer=name)
    return None


def column_of_member_failure(path: str) -> str:
    """Return the column that is not empty in rows of which the member at *path* could not be read."""
    return path_of_names([*names_in_path(path), FAILED])


def condition_of_failed_member(column: str, paths: Iterable[str]) -> Filter | None:
    """Return the condition for rows of which the member at one of *paths* that has *column* could not be read."""
    names = [*names_in_path(column)]
    path = next((each for each in paths if names[: len(part := [*names_in_path(each)])] == part), None)
    return None if path is None else Filter(field=column_of_member_failure(path), empty=False)


@dataclass(frozen=True)
class _MemberRequest:
    """The request for one member. *key* is its place in the config."""

    ctx: Context[Any]
    member: ExpandedMember
    paging: Pagination
    key: str
    latest: LatestAnswerForMember

    def answer(self, values: Mapping[str, str]) -> Any:
        """Return the record or the list that the API has for *values*; None if one of these is empty."""
        sent = self._request_arguments_or_none(values)
        if sent is None:
            return None
        if self.member.records is None:
            found, self.latest.record = self._record(sent)
            return found
        place, paginator = self.member.records, self.paging.paginator(self.member.records)
        return path_filling_and_answered_records.read_whole_list(
            lambda: self._pages(sent), place, sent["path"], by_record=paginator.by_record
        )

    def raise_if_values_are_ignored(self, values: Mapping[str, str], found: Any) -> None:
        """Refuse *found* if the API gives the same for any values: each record would have what belongs to others.

        Only a request whose path is always the same can be ignored. If two records get the same, the API is asked for a
        value that no record has.
        """
        latest, before = self.latest, self.latest.values
        if found is not None:
            latest.not_found = 0
        if not found:
            return
        is_fixed = not path_filling_and_answered_records.columns_in_braces(self.member.path)
        is_same = is_fixed and not latest.is_filtered and bool(before) and before != values and latest.found == found
        latest.values, latest.found = values, found
        if not is_same:
            return
        if self._is_answered_alike({name: _unused_value(text) for name, text in values.items()}, found):
            raise RefusedError(
                f"{', '.join(self._names_of_sent_values)} is ignored by the API, which answers the same for any value",
                where=self.key,
                hint=_IGNORED,
                code="filter_ignored",
            )
        latest.is_filtered = True

    def raise_if_known_record_is_not_found(self, error: NotFoundError) -> None:
        """Raise UnavailableError if the API does not find what it found before, either, as a gateway out of order.

        So may be one that has found nothing in the run, for more than a few records.
        """
        if not self.latest.values:
            self.latest.not_found += 1
            if self.latest.not_found <= _NOT_FOUND_AT_MOST:
                return
            message = (
                f"{error.message}, and so it is for {_NOT_FOUND_AT_MOST} records before; none was found in the run"
            )
            hint = f"check {self.key}, and whether the API is in order; the next run reads the list from here on"
            raise UnavailableError(message, where=error.where, hint=hint, code="api_unavailable")
        try:
            self.answer(self.latest.values)
        except NotFoundError:
            message = f"{error.message}, and so it is for a record for which it was found before"
            raise UnavailableError(message, where=error.where, code="api_unavailable") from None
        except (UnauthorizedError, UnavailableError):
            raise
        except (RefusedError, RemoteError):
            return

    @property
    def _names_of_sent_values(self) -> Sequence[str]:
        """The names of parameters, and of members of the body or the variables, that have a value of the record."""
        sent = {**self.member.params, **self.member.variables}
        sent |= self.member.body if isinstance(self.member.body, Mapping) else {"body": self.member.body}
        texts = {name: request_templates.texts_within_value(part) for name, part in sent.items()}
        return [
            name
            for name, inside in texts.items()
            if any(path_filling_and_answered_records.columns_in_braces(text) for text in inside)
        ]

    def _is_answered_alike(self, values: Mapping[str, str], found: Any) -> bool:
        """Return whether the answer for *values*, which no record has, is *found*, or the first page of it.

        Some APIs fail for such values, or refuse the credentials: then they do not ignore them.
        """
        sent = self._request_arguments_or_none(values)
        assert sent is not None
        try:
            if self.member.records is None:
                return bool(self._record(sent)[0] == found)
            first = next(iter(self._pages(sent)), None)
        except (RefusedError, RemoteError):
            return False
        elements = [] if first is None else first.items(self.member.records)
        return bool(elements) and elements == found[: len(elements)]

    def _request_arguments_or_none(self, values: Mapping[str, str]) -> dict[str, Any] | None:
        member, path = self.member, path_filling_and_answered_records.fill_path(self.member.path, values)
        if path is None or not all(values.values()):
            return None
        try:
            params, body, variables = request_templates.fill_braced_names_in_template(
                [member.params, member.body, member.variables], values, member.numbers
            )
        except ValueError:
            raise RefusedError("has no whole number for the request", where=self.key, code="answer_misplaced") from None
        return {"path": path, "params": params, "json": body, "graphql": member.graphql, "variables": variables}

    def _record(self, sent: Mapping[str, Any]) -> tuple[dict[str, Any], ApiAnswer]:
        answer = self.ctx.api.request("POST" if self.member.is_post else "GET", **sent)
        ignored = self.paging.members_and_headers_to_ignore
        return (
            path_filling_and_answered_records.record_at_pointer_or_raise(
                answer, self.member.record, ignored, self.latest.record
            ),
            answer,
        )

    def _pages(self, sent: Mapping[str, Any]) -> Iterator[ApiAnswer]:
        place = self.member.records
        assert place is not None
        ignored = self.paging.members_and_headers_to_ignore
        return self.ctx.api.pages(paginator=self.paging.paginator(place), records=place, ignore=ignored, **sent)


def _unused_value(text: str) -> str:
    """Return a value that no record has, of the kind of *text*: servers take other texts for the number 0."""
    return "2147483647" if text.isdecimal() else "no-such-value-of-crossdock"
