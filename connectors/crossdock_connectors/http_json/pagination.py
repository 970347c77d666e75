"""How an API splits a list into pages, as a config declares it: the paginators of `crossdock.sources`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from crossdock import ConfigModel
from crossdock.json_values import is_pointer
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
)
from crossdock_connectors.http_json.credentials import HeaderName


def pointer(path: str) -> str:
    """The JSON pointer of a dotted path or of a JSON pointer.

    Raises:
        ValueError: If *path* begins with a slash and is no JSON pointer.
    """
    if path and not path.startswith("/"):
        path = "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in path.split("."))
    if not is_pointer(path):
        raise ValueError("must be a dotted path such as data.items, or a JSON pointer such as /data/items (RFC 6901)")
    return path


Place = Annotated[str, AfterValidator(pointer)]
Size = Annotated[int, Field(ge=1)]


class _Pages(ConfigModel):
    made: ClassVar[type[Paginator]] = Paginator
    needs_records: ClassVar[bool] = False

    def paginator(self, records: str) -> Paginator:
        """The paginator for a list at the JSON pointer *records*."""
        given: dict[str, Any] = self.model_dump(exclude={"kind"})
        return self.made(**(given | {"records": records} if self.needs_records else given))


class SinglePage(_Pages):
    """The whole list in one answer."""

    kind: Literal["single_page"]


class LinkHeaderPages(_Pages):
    """The header ``Link`` with ``rel="next"`` (RFC 8288)."""

    kind: Literal["link_header"]
    made = LinkHeader


class NextUrlPages(_Pages):
    """The address of the next page in the body."""

    kind: Literal["next_url"]
    path: Place
    """Where it is; null or absent on the last page."""
    made = NextUrl


class _SizedPages(_Pages):
    size: Size | None = None
    """Records per page, halved after a time-out. Default: the server decides."""
    size_param: str = "limit"
    """The parameter for it."""


class CursorInBodyPages(_SizedPages):
    """A cursor in the body, sent back as a parameter."""

    kind: Literal["cursor_in_body"]
    path: Place
    """Where it is; null, empty or absent on the last page."""
    param: str = "cursor"
    repeat_params: bool = True
    """False if a request with a cursor must not repeat the other parameters."""
    made = CursorInBody


class AfterIdPages(_SizedPages):
    """Records in the order of their ids: the last id of a page is sent for the next; an empty page is the last."""

    kind: Literal["after_id"]
    param: str
    """The parameter, such as since_id or starting_after."""
    id: str = "id"
    """The member of a record with its id."""
    made = AfterId
    needs_records = True


class CursorInHeaderPages(_SizedPages):
    """A cursor in a header of the answer, sent back as a parameter."""

    kind: Literal["cursor_in_header"]
    header: HeaderName
    """Absent or empty on the last page."""
    param: str = "cursor"
    made = CursorInHeader


class PageNumberPages(_SizedPages):
    """Pages with numbers; the first page without records is the last one."""

    kind: Literal["page_number"]
    param: str = "page"
    start: Annotated[int, Field(ge=0)] = 1
    """The number of the first page."""
    pages: Place | None = None
    """Where the answer has the number of pages; it saves the request of an empty page."""
    cap: Size | None = None
    """The number of pages after which the API lists no more; a list that reaches it is refused."""
    made = PageNumber
    needs_records = True


class OffsetPages(_SizedPages):
    """The number of records to skip; the first page without records is the last one."""

    kind: Literal["offset"]
    param: str = "offset"
    total: Place | None = None
    """Where the answer has the number of all records; a list that ends before it is refused."""
    cap: Size | None = None
    """The number of records after which the API lists no more; a list that reaches it is refused."""
    made = Offset
    needs_records = True


class GraphQLPages(_Pages):
    """A GraphQL connection with ``pageInfo { hasNextPage endCursor }``."""

    kind: Literal["graphql_connection"]
    path: Place
    """Where the connection is, such as data.products."""
    cursor: str = "after"
    """The variable for the cursor."""
    size: Size | None = None
    """Records per page, halved after a time-out. Default: the query decides."""
    size_variable: str = "first"
    """The variable for it."""
    made = GraphQLConnection


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
