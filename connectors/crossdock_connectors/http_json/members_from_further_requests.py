"""Members of a record that further requests read: lists below it, and other records that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import model_validator

from crossdock import Context, RecordError, RefusedError
from crossdock.errors import CrossdockError, RemoteError, StoppedError, UnauthorizedError
from crossdock.reading.sources import path_filling_and_answered_records
from crossdock.sources import ApiAnswer, UnavailableError
from crossdock.values.config_base_types import differs_from_default, finding_about_key
from crossdock.values.json_paths import at_path, column_text
from crossdock_connectors.http_json import request_templates
from crossdock_connectors.http_json.pagination_settings import Pagination, Place
from crossdock_connectors.http_json.request_declarations import DeclaredRequest

_FAILED = "\x1dfailed"
"""The only member of what takes the place of an answer that cannot be used; no API has such a name."""


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
            raise finding_about_key(("path",), "names no member of the record, such as {id}")
        if self.records is not None and differs_from_default(self, "record"):
            raise finding_about_key(("record",), "cannot be used with records: the answer is a list or one record")
        if self.pagination is not None and self.records is None:
            raise finding_about_key(("pagination",), "needs records: one record has no pages")
        return self

    @property
    def record_members_in_request(self) -> list[str]:
        """The members of the record that the request has."""
        texts = request_templates.texts_in([self.path, self.params, self.body, self.variables])
        return [name for text in texts for name in path_filling_and_answered_records.columns_in_braces(text)]


def add_requested_members(
    ctx: Context[Any],
    item: Any,
    members: Mapping[str, ExpandedMember],
    paging: Pagination,
    key: str,
    latest_answers: dict[str, ApiAnswer],
) -> Any:
    """Return *item* with what the requests of *members* have answered, in their order; a later one may use an earlier.

    What the API refuses, or answers in another form, is an error of this record alone: `error_of_expansion` finds it.
    *key* is the place of *members* in the config, and *latest_answers* keeps that with a record for each of them.

    Raises:
        UnauthorizedError, UnavailableError: As `ctx.api.request`.
        StoppedError: If the run is interrupted.
    """
    for name, member in members.items() if isinstance(item, dict) else ():
        if ctx.run.interrupt.is_set():
            raise StoppedError("stopped between two records", hint="run again to continue")
        try:
            value = _request_member_value(
                ctx, item, member, member.pagination or paging, f"{key}.{name}", latest_answers
            )
        except (UnauthorizedError, UnavailableError):
            raise
        except (RefusedError, RemoteError) as error:
            value = {_FAILED: str(error)}
        item = {**item, name: value}
    return item


def mark_as_failed(item: Any, members: Mapping[str, ExpandedMember], error: CrossdockError) -> Any:
    """Return *item* as one of which *members* could not be read: `error_of_expansion` finds *error*."""
    return {**item, next(iter(members)): {_FAILED: str(error)}}


def error_of_expansion(item: Any, members: Mapping[str, ExpandedMember]) -> RecordError | None:
    """Return the error of the first of *members* that could not be read for *item*, or None."""
    for name in members:
        value = at_path(item, name)
        if isinstance(value, dict) and _FAILED in value:
            return RecordError("unmatched", f"could not be read: {value[_FAILED]}", pointer=name)
    return None


def _request_member_value(
    ctx: Context[Any],
    item: Any,
    member: ExpandedMember,
    paging: Pagination,
    key: str,
    answers: dict[str, ApiAnswer],
) -> Any:
    values = {name: column_text(at_path(item, name)) or "" for name in member.record_members_in_request}
    path = path_filling_and_answered_records.fill_path(member.path, values)
    if path is None or not all(values.values()):
        return None
    try:
        sent = request_templates.fill_braced_names_in_template(
            [member.params, member.body, member.variables], values, member.numbers
        )
    except ValueError:
        raise RefusedError("has no whole number for the request", where=key, code="answer_misplaced") from None
    params, body, variables = sent
    request: Any = {"params": params, "json": body, "graphql": member.graphql, "variables": variables}
    if member.records is None:
        answer = ctx.api.request("POST" if member.is_post else "GET", path, **request)
        found = path_filling_and_answered_records.record_at_place(
            answer, member.record, paging.members_and_headers_to_ignore, answers.get(key)
        )
        answers[key] = answer
        return found
    place, paginator = member.records, paging.paginator(member.records)

    def read() -> Iterator[ApiAnswer]:
        return ctx.api.pages(
            path, paginator=paginator, records=place, ignore=paging.members_and_headers_to_ignore, **request
        )

    return path_filling_and_answered_records.read_whole_list(read, place, path, by_record=paginator.by_record)
