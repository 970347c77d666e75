"""The pagination of an API in a config: the paginators of `crossdock.sources`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from crossdock import ConfigModel, Filter
from crossdock.reading.sources.pagination import END_STATUSES, SizedPages
from crossdock.sources import (
    AfterId,
    CursorInBody,
    CursorInHeader,
    GraphQLConnection,
    LinkHeader,
    NextUrl,
    Offset,
    PageNumber,
    Paginator,
    Stop,
)
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.json_paths import copy_with_value_at_path, is_pointer, names_in_path, value_at_path_or_missing
from crossdock_connectors.http_json.credential_settings import HeaderName
from crossdock_connectors.http_json.request_templates import graphql_variable_fault


def json_pointer_of_dotted_path(path: str) -> str:
    if path and not path.startswith("/"):
        path = "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in path.split("."))
    if not is_pointer(path):
        raise ValueError("must be a dotted path such as data.items, or a JSON pointer such as /data/items (RFC 6901)")
    return path


def pointers_and_headers_to_ignore(given: Collection[str]) -> frozenset[str]:
    """Return what an ``ignore`` names as JSON pointers and names of headers."""
    return frozenset({*given, *map(json_pointer_of_dotted_path, given)})


Place = Annotated[str, AfterValidator(json_pointer_of_dotted_path)]
Ignored = tuple[Annotated[str, Field(min_length=1)], ...]
Size = Annotated[int, Field(ge=1)]


class StopConfig(ConfigModel):
    """What ends a list, besides a page without records or without a next one."""

    when: Filter | None = None
    """What the last page has, a condition on its body; fields are dotted paths. A list that ends without it is in
    doubt."""
    statuses: tuple[int, ...] = ()
    """Statuses of the answer after the last page: 400, 404, 410, 416 or 422, with ``total``, ``pages`` or ``cap``; or
    204 and 304, also in place of the first page."""
    repeated: bool = False
    """Whether the last page comes once more in place of one after it; this needs ``total`` or ``pages``."""

    @model_validator(mode="after")
    def _check_statuses(self) -> Self:
        if unknown := sorted({*self.statuses} - END_STATUSES):
            raise make_pydantic_error_at_key(
                ("statuses",), f"{unknown[0]} is none of {', '.join(map(str, sorted(END_STATUSES)))}"
            )
        return self

    @property
    def stop_rule(self) -> Stop:
        is_last = None if self.when is None else self.when.json_predicate()
        when = None if is_last is None else lambda page: is_last(page.body)
        return Stop(when=when, statuses=frozenset(self.statuses), repeated=self.repeated)


class _Pages(ConfigModel):
    ignore: Ignored = ()
    """Members of an answer, as dotted paths or JSON pointers, and names of headers that look like a number of records
    or pages, a next page or an error, and are none; or the parameter for the size of a single page that may be full.
    Others that tell of more than was read, or are only beside no records, end the list in doubt."""
    paginator_class: ClassVar[type[Paginator]] = Paginator
    needs_records: ClassVar[bool] = False

    def paginator(self, records: str) -> Paginator:
        given: dict[str, Any] = self.model_dump(exclude={"kind", "ignore", "stop"})
        return self.paginator_class(**(given | {"records": records} if self.needs_records else given))

    @property
    def members_and_headers_to_ignore(self) -> Collection[str]:
        return pointers_and_headers_to_ignore(self.ignore)


class SinglePage(_Pages):
    """The whole list in one answer."""

    kind: Literal["single_page"]


class LinkHeaderPages(_Pages):
    """The header ``Link`` with ``rel="next"`` (RFC 8288)."""

    kind: Literal["link_header"]
    paginator_class = LinkHeader


class NextUrlPages(_Pages):
    """The address of the next page in the body."""

    kind: Literal["next_url"]
    path: Place
    """Where it is; null or absent on the last page."""
    rel: Annotated[str, Field(min_length=1)] | None = None
    """For a list of links at ``path``, each with ``rel`` and ``href``: the relation of the one that is followed."""
    paginator_class = NextUrl


class _SizedPages(_Pages):
    size: Size | None = None
    """Records per page, halved after a time-out. Default: the server decides."""
    size_param: str = "limit"
    """The parameter for it."""
    total: Place | None = None
    """Where the answer has the number of all records; it must be that of the distinct records that are read."""
    place: Annotated[Literal["query", "body", "variables"] | None, Field(alias="in")] = None
    """Where the request has these parameters; required for a POST. In the body or the variables of a GraphQL query,
    their names are dotted paths or JSON pointers. Default: the query."""

    stop: StopConfig | None = None
    """What else ends the list."""

    def paginator(self, records: str) -> Paginator:
        made = super().paginator(records)
        return replace(made, stop=self.stop.stop_rule) if self.stop and isinstance(made, SizedPages) else made

    @model_validator(mode="after")
    def _check_stop(self) -> Self:
        stated = self.total is not None or getattr(self, "pages", None) is not None
        if self.stop and self.stop.repeated and not stated:
            raise make_pydantic_error_at_key(
                ("stop", "repeated"), "needs total or pages: an API that ignores a parameter repeats pages"
            )
        is_known = stated or getattr(self, "cap", None) is not None
        if self.stop and max(self.stop.statuses, default=0) >= 400 and not is_known:
            message = "needs total, pages or cap, to tell the end from an error or a limit of the API"
            raise make_pydantic_error_at_key(("stop", "statuses"), message)
        return self

    @property
    def param_name_by_setting(self) -> Mapping[str, str]:
        sent = ["param", *([] if self.size is None else ["size_param"])]
        return {key: getattr(self, key) for key in sent}

    @property
    def first_page_value_by_setting(self) -> Mapping[str, int]:
        return {} if self.size is None else {"size_param": self.size}


class CursorInBodyPages(_SizedPages):
    """A cursor in the body, sent back as a parameter."""

    kind: Literal["cursor_in_body"]
    path: Place
    """Where it is; null, empty or absent on the last page, or 0 or -1 after other cursors or in a member that is named
    after what is next."""
    param: str = "cursor"
    """The parameter for the cursor."""
    repeat_params: bool = True
    """Whether a request with a cursor repeats the other parameters."""
    paginator_class = CursorInBody


class AfterIdPages(_SizedPages):
    """Records in the order of their ids: the last id of a page is sent for the next; an empty page is the last."""

    kind: Literal["after_id"]
    param: str
    """The parameter, such as since_id or starting_after."""
    id: str = "id"
    """The member of a record with its id."""
    sorted: bool = True
    """Whether ids that are numbers must ascend or descend. False if ``param`` names a place in a list of any order."""
    paginator_class = AfterId
    needs_records = True


class CursorInHeaderPages(_SizedPages):
    """A cursor in a header of the answer, sent back as a parameter."""

    kind: Literal["cursor_in_header"]
    header: HeaderName
    """The name of the header, which is absent or empty on the last page."""
    param: str = "cursor"
    """The parameter for the cursor."""
    paginator_class = CursorInHeader


class PageNumberPages(_SizedPages):
    """Pages with numbers; the first page without records is the last one."""

    kind: Literal["page_number"]
    param: str = "page"
    """The parameter for the number of the page."""
    start: Annotated[int, Field(ge=0)] = 1
    """The number of the first page."""
    pages: Place | None = None
    """Where the answer has the number of pages."""
    cap: Size | None = None
    """The number of pages after which the API lists no more; a list that reaches it is refused."""
    paginator_class = PageNumber
    needs_records = True

    @property
    def first_page_value_by_setting(self) -> Mapping[str, int]:
        return {**super().first_page_value_by_setting, "param": self.start}


class OffsetPages(_SizedPages):
    """The number of records to skip; the first page without records is the last one."""

    kind: Literal["offset"]
    param: str = "offset"
    """The parameter for the number of records to skip."""
    start: Annotated[int, Field(ge=0, le=1)] = 0
    """What the parameter is for the first record: 1 if it is the number of a record and not of those to skip."""
    cap: Size | None = None
    """The number of records after which the API lists no more; a list that reaches it is refused."""
    paginator_class = Offset
    needs_records = True

    @property
    def first_page_value_by_setting(self) -> Mapping[str, int]:
        return {**super().first_page_value_by_setting, "param": self.start}


class GraphQLPages(_Pages):
    """A GraphQL connection with ``pageInfo { hasNextPage endCursor }``."""

    kind: Literal["graphql_connection"]
    path: Place
    """Where the connection is, such as data.products."""
    cursor: str = "after"
    """The variable for the cursor; a dotted path if it is a member of one."""
    size: Size | None = None
    """Records per page, halved after a time-out. Default: the query decides."""
    size_variable: str = "first"
    """The variable for it; a dotted path if it is a member of one."""
    total: Place | None = None
    """Where the answer has the number of all records; it must be that of the distinct records that are read."""

    def paginator(self, records: str) -> Paginator:  # noqa: ARG002  it knows its own
        return GraphQLConnection(
            self.path, self.cursor, size=self.size, size_param=self.size_variable, total=self.total
        )

    @property
    def param_name_by_setting(self) -> Mapping[str, str]:
        return {"cursor": self.cursor} | ({} if self.size is None else {"size_variable": self.size_variable})

    @property
    def first_page_value_by_setting(self) -> Mapping[str, int]:
        return {} if self.size is None else {"size_variable": self.size}


Pagination = Annotated[
    SinglePage
    | LinkHeaderPages
    | NextUrlPages
    | CursorInBodyPages
    | AfterIdPages
    | CursorInHeaderPages
    | PageNumberPages
    | OffsetPages
    | GraphQLPages,
    Field(discriminator="kind"),
]


def has_page_parameters_in_body(paging: Pagination) -> bool:
    return isinstance(paging, GraphQLPages) or (
        isinstance(paging, _SizedPages) and paging.place in {"body", "variables"}
    )


def raise_if_parameter_place_is_unusable(
    paging: Pagination,
    place: tuple[str | int, ...],
    *,
    graphql: str | None = None,
    variables: Any = None,
    body: Any = None,
    params: Any = None,
    stream: str = "",
) -> None:
    """Check that a request, by default a GET, has an unused place for the parameters of *paging*."""
    if not isinstance(paging, GraphQLPages | _SizedPages):
        return

    def wrong(key: str, message: str) -> PydanticCustomError:
        return make_pydantic_error_at_key((*place, key), f"{message} (for the stream {stream})" if stream else message)

    names, is_post = paging.param_name_by_setting, graphql is not None or body is not None
    where = "variables" if isinstance(paging, GraphQLPages) else paging.place
    if is_post and where is None:
        fitting = "body" if graphql is None else "variables"
        message = f"is missing: the request is a POST; say where it has the parameters for pages, such as in: {fitting}"
        raise wrong("in", message)
    if where == "body" and (body is None or graphql is not None):
        needed = "in: variables" if graphql is not None else "body, the JSON body of a POST"
        raise wrong("in", f"needs {needed}")
    if where == "variables" and graphql is None:
        key = "kind" if isinstance(paging, GraphQLPages) else "in"
        raise wrong(key, "needs graphql: this request has no variables")
    documents = {"body": body, "variables": variables}
    for key, name in names.items():
        if where in documents and (problem := _unusable_place_text(where, documents[where], name, graphql or "")):
            raise wrong(key, problem)
        held = value_at_path_or_missing(documents[where], name) if where in documents else (params or {}).get(name)
        sent = paging.first_page_value_by_setting.get(key)
        if sent is not None and isinstance(held, int | str) and str(held) != str(sent):
            part = where if where in documents else "params"
            message = f"{name} is {held} in {part}, and the first request would have {sent}: name another place, or"
            raise wrong(key, f"{message} write {sent} in {part}")


def _unusable_place_text(where: str, document: Any, name: str, graphql: str) -> str | None:
    """Return why the parameter *name* cannot be in *document*, the body or the variables of a request, or None."""
    if where == "variables" and (unnamed := graphql_variable_fault(graphql, names_in_path(name)[0])):
        return unnamed
    try:
        copy_with_value_at_path(document, name, 0)
    except ValueError as error:
        return f"has no place in {where}: what is around it {error}"
    return None
