"""GraphQL lists in records that have more elements than the list of records gives: the rest of connections is
requested, and lists that a query cuts are found if nothing in the answer shows whether they have more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Self

from msgspec import Struct
from pydantic import Field, model_validator

from crossdock import ConfigModel, Context, CrossdockError, RefusedError
from crossdock.errors import RemoteError, UnauthorizedError
from crossdock.reading.sources.list_completeness_evidence import PagingByPositionDetector
from crossdock.reading.sources.path_filling_and_answered_records import columns_in_braces, read_whole_list
from crossdock.sources import ApiAnswer, ApiRequest, GraphQLConnection, UnavailableError
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.graphql_tokens import graphql_tokens
from crossdock.values.json_paths import (
    copy_with_value_at_path,
    json_value_as_column_text,
    names_in_path,
    value_at_path_or_missing,
)
from crossdock_connectors.http_json.further_requests_per_record import FAILED
from crossdock_connectors.http_json.pagination_settings import Place
from crossdock_connectors.http_json.request_declarations import raise_if_graphql_parts_conflict
from crossdock_connectors.http_json.request_templates import (
    Path,
    fill_braced_names_in_template,
    graphql_variable_fault,
    texts_within_value,
)

_NAME = re.compile(r"[_A-Za-z]\w*")
_SIZES = frozenset({"first", "last", "limit"})
_COUNTING = frozenset({"pageInfo", "totalCount", "..."})  # a fragment may have one of them


class _Selection(Struct):
    """What is selected in braces. *size* is how many elements are asked for; None if no number is."""

    name: str
    size: int | None
    is_counted: bool = False


def sizes_of_uncounted_lists(query: str, variables: Mapping[str, Any]) -> Mapping[str, int]:
    """Return how many elements *query* asks for of lists without ``pageInfo``, by their names in an answer.

    A query for one element needs no others.
    """
    tokens, around, found = graphql_tokens(query), list[_Selection](), dict[str, int]()
    field, at = _Selection("", None), 0
    while at < len(tokens):
        match tokens[at]:
            case "(":
                at, field.size = _end_and_size_of_arguments(tokens, at, variables)
            case "{":
                around.append(field)
                field = _Selection("", None)
            case "}" if around:
                ended = around.pop()
                if ended.size is not None and ended.size > 1 and not ended.is_counted:
                    found[ended.name] = ended.size
            case name if name in _COUNTING and around:
                around[-1].is_counted = True
            case name if _NAME.fullmatch(name) and tokens[at - 1 : at] != [":"]:  # before a colon it is the alias
                field = _Selection(name, None)
        at += 1
    return found


def _end_and_size_of_arguments(tokens: list[str], at: int, variables: Mapping[str, Any]) -> tuple[int, int | None]:
    """Return the place of the closing bracket, and the number of elements that the arguments ask for."""
    depth, size = 0, None
    for place in range(at, len(tokens)):
        depth += (tokens[place] in {"(", "{"}) - (tokens[place] in {")", "}"})
        if not depth:
            return place, size
        if (
            depth == 1
            and tokens[place] in _SIZES
            and tokens[place - 1] != "$"
            and tokens[place + 1 : place + 2] == [":"]
        ):
            mark, name = (*tokens[place + 2 : place + 4], "", "")[:2]
            value = variables.get(name) if mark == "$" else int(mark) if mark.isdecimal() else None
            size = value if type(value) is int else size
    return len(tokens), size


def count_lists_as_long_as_asked(items: Iterable[Any], sizes: Mapping[str, int]) -> Counter[str]:
    """Return how many of the lists in *items* have as many elements as was asked for, by their names."""
    return Counter(name for item in items for name in _full_lists_in(item, sizes))


def _full_lists_in(value: Any, sizes: Mapping[str, int]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _full_lists_in(each, sizes)
    for name, member in value.items() if isinstance(value, dict) else ():
        lists = [member, *(member.get(each) for each in ("nodes", "edges") if isinstance(member, dict))]
        if any(isinstance(each, list) and len(each) == sizes.get(name) for each in lists):
            yield name
        yield from _full_lists_in(member, sizes)


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
        raise_if_graphql_parts_conflict(self.graphql, self.variables, None)
        if unnamed := graphql_variable_fault(self.graphql, names_in_path(self.cursor)[0]):
            raise make_pydantic_error_at_key(("cursor",), unnamed)
        return self

    @property
    def _columns_in_variables(self) -> Collection[str]:
        return {column for text in texts_within_value(self.variables) for column in columns_in_braces(text)}

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


def request_rest_of_connections(ctx: Context[Any], item: Any, rests: Mapping[str, RestOfConnection]) -> Any:
    """Return *item* with all elements of its connections in *rests*, by their paths. One that cannot be completed, or
    that the API gives from its beginning again, stays as it is, and the record becomes a dead letter, since its
    ``pageInfo`` tells of more. Of one that the API refuses, `error_of_first_failed_member` finds why.

    Raises:
        UnauthorizedError, UnavailableError: As `ctx.api.request`.
    """
    for path, rest in rests.items():
        item = _request_rest_of_connection(ctx, item, path, rest)
    return item


def with_connections_marked_as_failed(item: Any, paths: Collection[str], error: CrossdockError) -> Any:
    """Return *item* as one of which the connections at *paths* cannot be read.

    `error_of_first_failed_member` finds *error*.
    """
    for path in paths:
        held = value_at_path_or_missing(item, path)
        if isinstance(held, dict):
            item = copy_with_value_at_path(item, path, held | {FAILED: str(error)})
    return item


def _request_rest_of_connection(ctx: Context[Any], item: Any, path: str, rest: RestOfConnection) -> Any:
    held = value_at_path_or_missing(item, path)
    cursor = value_at_path_or_missing(held, "pageInfo.endCursor")
    if value_at_path_or_missing(held, "pageInfo.hasNextPage") is not True or not isinstance(cursor, str):
        return item
    name = next((each for each in ("edges", "nodes") if isinstance(value_at_path_or_missing(held, each), list)), None)
    variables = rest.variables_of_item(item)
    if name is None or variables is None:
        return item
    reading = _ConnectionReading(ctx, rest, f"{rest.connection}/{name}", variables)
    try:
        elements = reading.elements_after(cursor, list(value_at_path_or_missing(held, name)))
    except (UnauthorizedError, UnavailableError):
        raise
    except (RefusedError, RemoteError) as error:
        return item if error.code == "list_without_end" else with_connections_marked_as_failed(item, [path], error)
    if elements is None:
        return item
    info = held["pageInfo"] | {"hasNextPage": False, "endCursor": reading.cursor}  # as in a list that has all elements
    return copy_with_value_at_path(item, path, held | {name: elements, "pageInfo": info})


class _ConnectionReading:
    """Reads the connection of one record. `cursor` is that of the latest page."""

    def __init__(self, ctx: Context[Any], rest: RestOfConnection, place: str, variables: Any) -> None:
        self._ctx, self._rest, self._place, self._variables = ctx, rest, place, variables
        self.cursor: Any = None

    def elements_after(self, cursor: str, first: Sequence[Any]) -> Sequence[Any] | None:
        """Return *first* and what follows *cursor*; None if that is nothing, begins again, or is too much.

        With a position as cursor, an element that comes or goes meanwhile moves others to another page: the list is
        read as a whole, until two readings agree.
        """
        if _is_cursor_number_of_elements(cursor, first):
            whole = read_whole_list(lambda: self._pages(self._variables), self._place, self._rest.path, by_record=False)
            return whole if len(whole) <= _MOST else None
        elements = list(first)
        for page in self._pages(copy_with_value_at_path(self._variables, self._rest.cursor, cursor)):
            found = page.items(self._place)
            elements += found
            if _repeats_first_elements(found, first) or len(elements) > _MOST:
                return None
        return elements if len(elements) > len(first) else None

    def _pages(self, variables: Any) -> Iterator[ApiAnswer]:
        rest, paginator = self._rest, GraphQLConnection(self._rest.connection, self._rest.cursor)
        for page in self._ctx.api.pages(rest.path, paginator=paginator, graphql=rest.graphql, variables=variables):
            self.cursor = page.at(f"{rest.connection}/pageInfo/endCursor")
            yield page


def _is_cursor_number_of_elements(cursor: str, first: Sequence[Any]) -> bool:
    """Return whether the cursor after the *first* elements is their number."""
    begin = ApiRequest("POST", "")
    return PagingByPositionDetector().add_request_and_detect_paging(begin, begin.with_page(after=cursor), len(first))


def _repeats_first_elements(found: Sequence[Any], first: Sequence[Any]) -> bool:
    """Return whether a page begins with the *first* elements of its connection: the API ignores the cursor."""
    number = min(len(found), len(first))
    return number > 0 and found[:number] == first[:number]
