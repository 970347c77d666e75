"""GraphQL connections in records that have more elements than the list of records gives: the rest is requested."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from crossdock import ConfigModel, Context, CrossdockError, RefusedError
from crossdock.errors import RemoteError, UnauthorizedError
from crossdock.reading.sources.list_completeness_evidence import PagePositions
from crossdock.reading.sources.path_filling_and_answered_records import columns_in_braces, read_whole_list
from crossdock.sources import ApiAnswer, ApiRequest, GraphQLConnection, UnavailableError
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.json_paths import (
    copy_with_value_at_path,
    json_value_as_column_text,
    names_in_path,
    value_at_path_or_missing,
)
from crossdock_connectors.http_json.graphql_variables import unnamed_variable_text
from crossdock_connectors.http_json.members_from_further_requests import FAILED
from crossdock_connectors.http_json.pagination_settings import Place
from crossdock_connectors.http_json.request_declarations import check_body_or_graphql
from crossdock_connectors.http_json.request_templates import Path, fill_braced_names_in_template, texts_in

_MOST = 50_000  # elements; a record with more is a dead letter


class RestOfConnection(ConfigModel):
    """How the rest of a GraphQL connection in a record is requested."""

    path: Path
    """The path below the base URL, without a query."""
    graphql: Annotated[str, Field(min_length=1)]
    """A GraphQL query for one record."""
    variables: Mapping[str, Any]
    """The variables; members of the record are in braces, such as ``{node.id}``."""
    connection: Place
    """Where the connection is in the answer, such as data.order.line_items."""
    cursor: Annotated[str, Field(min_length=1)] = "after"
    """The variable for the cursor."""
    numbers: tuple[str, ...] = ()
    """Those of these members that ``variables`` have as numbers."""

    @model_validator(mode="after")
    def _check_variables(self) -> Self:
        if not self._columns_in_variables:
            raise make_pydantic_error_at_key(("variables",), "name no member of the record, such as {id}")
        check_body_or_graphql(self.graphql, self.variables, None)
        if unnamed := unnamed_variable_text(self.graphql, names_in_path(self.cursor)[0]):
            raise make_pydantic_error_at_key(("cursor",), unnamed)
        return self

    @property
    def _columns_in_variables(self) -> Collection[str]:
        return {column for text in texts_in(self.variables) for column in columns_in_braces(text)}

    def variables_of_item(self, item: Any) -> Any:
        """Return the variables without a cursor; None if *item* lacks one of the members."""
        found = {
            column: json_value_as_column_text(value_at_path_or_missing(item, column))
            for column in self._columns_in_variables
        }
        if None in found.values():
            return None
        try:
            return fill_braced_names_in_template(self.variables, found, self.numbers)
        except ValueError:
            return None


def complete_connections(ctx: Context[Any], item: Any, rests: Mapping[str, RestOfConnection]) -> Any:
    """Return *item* with all elements of its connections in *rests*, by their paths. One that cannot be completed, or
    that the API gives from its beginning again, stays as it is, and the record becomes a dead letter, since its
    ``pageInfo`` tells of more. Of one that the API refuses, `error_of_expansion` finds why.

    Raises:
        UnauthorizedError, UnavailableError: As `ctx.api.request`.
    """
    for path, rest in rests.items():
        item = _complete_connection(ctx, item, path, rest)
    return item


def mark_connections_as_failed(item: Any, paths: Collection[str], error: CrossdockError) -> Any:
    """Return *item* as one of which the connections at *paths* cannot be read: `error_of_expansion` finds *error*."""
    for path in paths:
        held = value_at_path_or_missing(item, path)
        if isinstance(held, dict):
            item = copy_with_value_at_path(item, path, held | {FAILED: str(error)})
    return item


def _complete_connection(ctx: Context[Any], item: Any, path: str, rest: RestOfConnection) -> Any:
    held = value_at_path_or_missing(item, path)
    cursor = value_at_path_or_missing(held, "pageInfo.endCursor")
    if value_at_path_or_missing(held, "pageInfo.hasNextPage") is not True or not isinstance(cursor, str):
        return item
    name = next((each for each in ("edges", "nodes") if isinstance(value_at_path_or_missing(held, each), list)), None)
    variables = rest.variables_of_item(item)
    if name is None or variables is None:
        return item
    reading = _Reading(ctx, rest, f"{rest.connection}/{name}", variables)
    try:
        elements = reading.elements_after(cursor, list(value_at_path_or_missing(held, name)))
    except (UnauthorizedError, UnavailableError):
        raise
    except (RefusedError, RemoteError) as error:
        return item if error.code == "list_without_end" else mark_connections_as_failed(item, [path], error)
    if elements is None:
        return item
    info = held["pageInfo"] | {"hasNextPage": False, "endCursor": reading.cursor}  # as in a list that has all elements
    return copy_with_value_at_path(item, path, held | {name: elements, "pageInfo": info})


class _Reading:
    """Reads the connection of one record. `cursor` is that of the latest page."""

    def __init__(self, ctx: Context[Any], rest: RestOfConnection, place: str, variables: Any) -> None:
        self._ctx, self._rest, self._place, self._variables = ctx, rest, place, variables
        self.cursor: Any = None

    def elements_after(self, cursor: str, first: Sequence[Any]) -> Sequence[Any] | None:
        """Return *first* and what follows *cursor*; None if that is nothing, begins again, or is too much.

        With a position as cursor, an element that comes or goes meanwhile moves others to another page: the list is
        read as a whole, until two readings agree.
        """
        if _is_position(cursor, first):
            whole = read_whole_list(lambda: self._pages(self._variables), self._place, self._rest.path, by_record=False)
            return whole if len(whole) <= _MOST else None
        elements = list(first)
        for page in self._pages(copy_with_value_at_path(self._variables, self._rest.cursor, cursor)):
            found = page.items(self._place)
            elements += found
            if _begins_again(found, first) or len(elements) > _MOST:
                return None
        return elements if len(elements) > len(first) else None

    def _pages(self, variables: Any) -> Iterator[ApiAnswer]:
        rest, paginator = self._rest, GraphQLConnection(self._rest.connection, self._rest.cursor)
        for page in self._ctx.api.pages(rest.path, paginator=paginator, graphql=rest.graphql, variables=variables):
            self.cursor = page.at(f"{rest.connection}/pageInfo/endCursor")
            yield page


def _is_position(cursor: str, first: Sequence[Any]) -> bool:
    """Return whether the cursor after the *first* elements is their number."""
    begin = ApiRequest("POST", "")
    return PagePositions().add_request_and_detect_paging(begin, begin.with_page(after=cursor), len(first))


def _begins_again(found: Sequence[Any], first: Sequence[Any]) -> bool:
    """Return whether a page begins with the *first* elements of its connection: the API ignores the cursor."""
    number = min(len(found), len(first))
    return number > 0 and found[:number] == first[:number]
