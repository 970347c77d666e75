"""Proposes streams from an OpenAPI document: its lists, how they are split into pages, and where they continue."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field, structs

from crossdock.cli.new.openapi_operations_and_swagger_conversion import (
    Operation,
    Pointer,
    json_pointer,
    json_schema_and_example,
    json_type_instant_or_day,
    members,
    needs_no_escaping,
    nested_members,
    normalized_name,
    operations_of_path,
    success_response,
    words_of_name,
    yaml_value_as_json,
)
from crossdock.errors import ConfigError
from crossdock.platform.openapi_file import Json, OpenApiDocument, list_or_empty, mapping_or_empty
from crossdock.resources import ResourceName

MOST_LISTS = 10
_LONGEST_PATH = 60
_VERSION = re.compile(r"v?\d+(\.\d+)*|api|rest|admin|json")

PagingKind = Literal["none", "link", "next_url", "cursor", "after_id", "page", "offset"]

_CURSORS = {
    "cursor", "pagetoken", "nexttoken", "nextcursor", "pageinfo", "continuationtoken", "after", "startcursor",
    "pagecursor", "continuation", "paginationtoken", "marker", "nextpagetoken", "pageafter",
}  # fmt: skip
_NEXT_CURSORS = {"nextcursor", "nextpagetoken", "nexttoken", "continuationtoken", "nextpagecursor", "nextmarker"}
_AFTER_IDS = {"startingafter", "sinceid", "afterid"}
_PAGES = {"page", "pagenumber", "pagenum", "pageno", "pageindex", "currentpage", "p"}
_OFFSETS = {"offset", "skip", "start", "startindex", "from", "pageoffset", "startat"}
_SIZES = {
    "limit", "perpage", "pagesize", "size", "count", "top", "maxresults", "first", "take", "resultsperpage",
    "pagelimit",
}  # fmt: skip
_TOTALS = {"total", "totalcount", "totalresults", "totalitems", "totalrecords", "totalelements"}
_PAGE_COUNTS = {"pages", "totalpages", "pagecount", "lastpage", "numpages"}
_URLS = {"nexturl", "nextpageurl", "nextlink", "odatanextlink", "nexthref"}
_CHANGED = {"updated", "update", "modified", "modification", "changed", "change"}
_AFTER = {"since", "after", "min", "from", "start", "gte", "gt", "ge", "begin"}
_DATA = {"data", "items", "results", "records", "value"}
_IDS = ("id", "uuid", "guid", "key", "number", "code", "sku", "name")

_RESOURCES: Mapping[str, ResourceName] = {
    "order": "order", "product": "product", "item": "product", "sku": "product", "variant": "product",
    "article": "product", "customer": "customer", "contact": "customer", "client": "customer", "company": "customer",
    "invoice": "invoice", "bill": "invoice", "inventory": "inventory_lot", "stock": "inventory_lot",
    "lot": "inventory_lot", "bin": "warehouse_bin", "location": "warehouse_bin",
}  # fmt: skip


class Paging(Struct, frozen=True):
    """How a list is split into pages.

    Attributes:
        place: Where the body has the next cursor or address.
        total: Where it has the number of all records; `pages` that of all pages. Empty if nowhere.
    """

    kind: PagingKind
    param: str = ""
    place: str = ""
    start: int | None = None
    size: int | None = None
    size_param: str = ""
    total: str = ""
    pages: str = ""


class ChangeFilter(Struct, frozen=True):
    """How a list is asked for what changed.

    Attributes:
        column: The member of a record with the time of its last change; `form` is its format, if that is not ISO 8601.
    """

    param: str
    column: str
    form: str = ""
    has_offset: bool = True
    takes_day: bool = False


class ListProposal(Struct, frozen=True):
    """A list that can be a stream.

    Attributes:
        records: Where the body of an answer has the list.
        key: The member that identifies a record.
        required: Parameters that the document requires, with a value that it states.
        unknown: What the author must find out.
    """

    name: str
    operation: Operation
    records: str
    record: Json
    key: str
    resource: ResourceName
    is_known_resource: bool
    paging: Paging
    changes: ChangeFilter | None
    required: Mapping[str, Any]
    examples: Sequence[Json]
    unknown: Sequence[str] = field(default=())


class SkippedOperation(Struct, frozen=True):
    operation: str
    reason: str


def nothing_proposed_error(
    document: OpenApiDocument, what: str, left_out: Sequence[SkippedOperation], hint: str
) -> ConfigError:
    """Return the error of a document that describes *what*, such as ``no list``, and why operations were left out."""
    reasons = "; ".join(f"{each.operation}: {each.reason}" for each in left_out[:3])
    return ConfigError(
        f"describes {what}{f': {reasons}' if reasons else ''}",
        where=f"{document.name}#/paths",
        hint=hint,
        code="openapi_unsuitable",
    )


def propose_lists(
    document: OpenApiDocument, chosen: Collection[str]
) -> tuple[list[ListProposal], list[SkippedOperation]]:
    """Return the lists of a document, at most `MOST_LISTS`, and the GET operations that list nothing.

    Args:
        chosen: The paths of the lists that are wanted; empty for those that are found.

    Raises:
        ConfigError: If there is none.
    """
    found: list[ListProposal] = []
    left_out: list[SkippedOperation] = []
    for path, item in mapping_or_empty(document.data.get("paths")).items():
        if chosen and path not in chosen:
            continue
        try:
            gets = [
                each for each in operations_of_path(document, str(path), mapping_or_empty(item)) if each.method == "GET"
            ]
            for operation in gets:
                one = _proposed_list(document, operation)
                if isinstance(one, ListProposal):
                    found.append(one)
                else:
                    left_out.append(one)
        except ConfigError as error:
            left_out.append(SkippedOperation(f"GET {path}", f"{error.message} ({error.where})"))
    if unknown := sorted(set(chosen) - {str(path) for path in mapping_or_empty(document.data.get("paths"))}):
        raise ConfigError(f"has no path {unknown[0]}", where=f"{document.name}#/paths", code="openapi_unsuitable")
    if not found:
        hint = "a list is a GET that answers with an array of objects, or with an object that has one"
        raise nothing_proposed_error(document, "no list", left_out, hint)
    found.sort(key=lambda each: not each.is_known_resource)
    left_out += [
        SkippedOperation(each.operation.method_and_path, f"more than {MOST_LISTS} lists; choose by --list PATH")
        for each in found[MOST_LISTS:]
    ]
    return _with_distinct_names(found[:MOST_LISTS]), left_out


def _proposed_list(document: OpenApiDocument, operation: Operation) -> ListProposal | SkippedOperation:
    response = success_response(document, operation)
    body, example = json_schema_and_example(document, response)
    arrays = _record_arrays(document, body, operation.path.rstrip("/").rpartition("/")[2])
    if reason := _reason_not_a_list(operation, body, arrays):
        return SkippedOperation(operation.method_and_path, reason)
    place, record = arrays[0]
    name = _stream_name(operation.path)
    key, is_certain = _key_member(document, record, name)
    if not key:
        return SkippedOperation(operation.method_and_path, "its records have no member with a text or a number")
    paging = _paging(document, operation, body, response, place)
    examples = _records_in_example(example, place)
    changes = _change_filter(document, operation, record, examples)
    resource, is_known = _guess_resource(operation.path)
    required = _required_params(operation, paging, changes)
    questions = {
        f"which resource these records become; {resource} is only a placeholder": not is_known,
        f"what identifies a record; {key} is a guess": not is_certain,
        "how the list is split into pages; the document names no such parameter or link": paging.kind == "none",
        **{f"the parameter {each}, which the document requires": True for each in required},
    }
    unknown = [question for question, is_open in questions.items() if is_open]
    return ListProposal(
        name,
        operation,
        json_pointer(place),
        record,
        key,
        resource,
        is_known,
        paging,
        changes,
        required,
        examples,
        unknown,
    )


def _reason_not_a_list(operation: Operation, body: Json, arrays: Sequence[tuple[Pointer, Json]]) -> str:
    """Return why an operation is not a list that can be read; empty if it is one."""
    reason = ""
    if "{" in operation.path:
        reason = "it is below one record"
    elif (
        not needs_no_escaping(operation.path)
        or len(operation.path) > _LONGEST_PATH
        or not operation.path.startswith("/")
    ):
        reason = "its path is too long, or has characters that must be escaped"
    elif not body:
        reason = "the document describes no JSON answer"
    elif not arrays:
        reason = "its answer has no list of objects"
    elif len({place for place, _ in arrays}) > 1:
        reason = f"its answer has several lists: {', '.join(json_pointer(place) for place, _ in arrays)}"
    return reason


def _record_arrays(document: OpenApiDocument, body: Json, operation_name: str) -> list[tuple[Pointer, Json]]:
    """Return the lists of objects in an answer, each with the schema of a record: those nearest to the top."""
    if json_type_instant_or_day(body) == "array":
        record = document.merged_schema(body.get("items"))
        return [((), record)] if members(document, record) else []
    found = [
        (place, record)
        for place, schema in nested_members(document, body)
        if json_type_instant_or_day(schema) == "array"
        and members(document, record := document.merged_schema(schema.get("items")))
    ]
    nearest = min((len(place) for place, _ in found), default=0)
    top = [each for each in found if len(each[0]) == nearest]
    last = normalized_name(operation_name)
    usual = [each for each in top if normalized_name(each[0][-1]) == last] or [
        each for each in top if normalized_name(each[0][-1]) in _DATA
    ]
    return usual[:1] or top


def _records_in_example(example: Any, place: Pointer) -> list[Json]:
    for part in place:
        example = mapping_or_empty(example).get(part)
    return [each for each in list_or_empty(example) if isinstance(each, dict)]


def telling_path_segments(path: str) -> list[str]:
    """Return the parts of a path that say what it is about."""
    parts = [each.partition(".")[0] for each in path.split("/") if each and "{" not in each]
    return [each for each in parts if not _VERSION.fullmatch(each.lower())] or parts


def _stream_name(path: str) -> str:
    name = "_".join(
        word
        for word in words_of_name(telling_path_segments(path)[-1] if telling_path_segments(path) else "")
        if word.isascii()
    )
    return (name if name[:1].isalpha() else f"list_{name}".rstrip("_"))[:40]


def singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) and len(word) > 2 else word


def _guess_resource(path: str) -> tuple[ResourceName, bool]:
    for part in reversed(telling_path_segments(path)):
        for word in reversed(words_of_name(part)):
            if found := _RESOURCES.get(singular(word)):
                return found, True
    return "product", False


def _with_distinct_names(found: Sequence[ListProposal]) -> list[ListProposal]:
    taken: dict[str, int] = {}
    result = []
    for each in found:
        number = taken[each.name] = taken.get(each.name, 0) + 1
        result.append(each if number == 1 else structs.replace(each, name=f"{each.name}_{number}"))
    return result


def _key_member(document: OpenApiDocument, record: Json, name: str) -> tuple[str, bool]:
    """Return the member that identifies a record, and whether its name says so; empty if no member can."""
    able = {
        each: schema
        for each, schema in members(document, record).items()
        if json_type_instant_or_day(schema) in {"string", "integer"}
    }
    stem = "".join(singular(word) for word in name.split("_"))
    by_plain = {normalized_name(each): each for each in reversed(able)}
    for wanted in ("id", f"{stem}id", *_IDS[1:3]):
        if wanted in by_plain:
            return by_plain[wanted], True
    ids = [each for each in able if words_of_name(each)[-1:] == ["id"]]
    guess = next(iter(ids), None) or next((by_plain[each] for each in _IDS if each in by_plain), None)
    return guess or next(iter(able), ""), False


# ---- pages


def _paging(document: OpenApiDocument, operation: Operation, body: Json, response: Json, records: Pointer) -> Paging:
    params = {
        normalized_name(name): (name, mapping_or_empty(each.get("schema")))
        for name, each in operation.query_parameters()
        if needs_no_escaping(name)
    }
    sizes = [params[each] for each in params if each in _SIZES]
    size_param, size_schema = sizes[0] if sizes else ("", {})
    size = _largest_page_size(size_schema) if size_param else None
    beside = [each for each in nested_members(document, body) if each[0][: len(records)] != records or not records]
    next_cursor, next_url = _next_page_places(beside, params)
    cursor = next((params[each][0] for each in params if each in _CURSORS), "")
    after = next((params[each][0] for each in params if each in _AFTER_IDS), "")
    page = next((params[each] for each in params if each in _PAGES), ("", {}))
    offset = next((params[each] for each in params if each in _OFFSETS), ("", {}))
    first = 1 if normalized_name(offset[0]) == "startindex" else 0
    total = _pointer_to_stated_count(beside, _TOTALS)
    sized: dict[str, Any] = {"size": size, "size_param": size_param}
    pages = _pointer_to_stated_count(beside, _PAGE_COUNTS)
    has_link = "link" in {str(each).lower() for each in mapping_or_empty(response.get("headers"))}
    choices: list[tuple[bool, Paging]] = [
        (bool(cursor and next_cursor), Paging("cursor", cursor, next_cursor, **sized)),
        (bool(after), Paging("after_id", after, **sized)),
        (has_link, Paging("link", **sized)),
        (bool(next_url), Paging("next_url", place=next_url, **sized)),
        (
            bool(page[0]),
            Paging("page", page[0], start=_first_page_number_or_offset(page[1], 1), total=total, pages=pages, **sized),
        ),
        (
            bool(offset[0]),
            Paging("offset", offset[0], start=_first_page_number_or_offset(offset[1], first), total=total, **sized),
        ),
    ]
    return next((paging for is_one, paging in choices if is_one), Paging("none", **sized))


def _largest_page_size(schema: Json) -> int | None:
    """Return the largest size of a page that the document permits."""
    stated = (schema.get(name) for name in ("maximum", "default"))
    found = next((each for each in stated if isinstance(each, int) and not isinstance(each, bool) and each > 0), None)
    return min(found, 1000) if found else None


def _first_page_number_or_offset(schema: Json, usual: int) -> int:
    stated = (schema.get(name) for name in ("default", "minimum"))
    return next((each for each in stated if type(each) is int and each in {0, 1}), usual)


def _pointer_to_stated_count(beside: Sequence[tuple[Pointer, Json]], names: Collection[str]) -> str:
    return next(
        (
            json_pointer(at)
            for at, each in beside
            if json_type_instant_or_day(each) == "integer" and normalized_name(at[-1]) in names
        ),
        "",
    )


def _next_page_places(beside: Sequence[tuple[Pointer, Json]], params: Collection[str]) -> tuple[str, str]:
    """Return where a body has the cursor and the address of the next page."""
    cursor = url = ""
    has_cursor = any(each in _CURSORS for each in params)
    for place, schema in beside:
        name, outer = normalized_name(place[-1]), normalized_name(place[-2]) if len(place) > 1 else ""
        if json_type_instant_or_day(schema) not in {"string", "integer"}:
            continue
        is_next = name == "next" or (outer == "next" and name in {"href", "url", "link"})
        is_address = name in _URLS or str(schema.get("format")) in {"uri", "url"} or outer in {"links", "link", "next"}
        is_after = name == "after" and outer in {"next", "cursors", "cursor"}
        if name in _URLS or (is_next and (is_address or not has_cursor)):
            url = url or json_pointer(place)
        elif name in _NEXT_CURSORS or is_next or is_after or (name == "cursor" and has_cursor):
            cursor = cursor or json_pointer(place)
    return cursor, url


# ---- changes


def _change_filter(
    document: OpenApiDocument, operation: Operation, record: Json, examples: Sequence[Json]
) -> ChangeFilter | None:
    for name, each in operation.query_parameters():
        found = set(words_of_name(name))
        if (
            not (found & _CHANGED and found & _AFTER and needs_no_escaping(name))
            or json_type_instant_or_day(mapping_or_empty(each.get("schema"))) == "integer"
        ):
            continue
        for column, schema in members(document, record).items():
            if (
                set(words_of_name(column)) & _CHANGED
                and json_type_instant_or_day(schema) in {"instant", "string"}
                and "." not in column
            ):
                example = next(
                    (one[column] for one in examples if column in one), yaml_value_as_json(schema.get("example"))
                )
                form = time_format(example)
                if form is None and json_type_instant_or_day(schema) == "string":
                    continue
                layout, has_offset = form or ("", True)
                return ChangeFilter(
                    name,
                    column,
                    layout,
                    has_offset,
                    json_type_instant_or_day(mapping_or_empty(each.get("schema"))) == "day",
                )
    return None


def time_format(example: Any) -> tuple[str, bool] | None:
    """Return the format of a time, empty for ISO 8601, and whether it has an offset; None if it is not a known time."""
    if not isinstance(example, str):
        return None
    try:
        return "", datetime.fromisoformat(example).tzinfo is not None
    except ValueError:
        pass
    try:
        datetime.strptime(example, RFC_2822)  # noqa: DTZ007  only the form counts
    except ValueError:
        return None
    return RFC_2822, True


RFC_2822 = "%a, %d %b %Y %H:%M:%S %z"


def _required_params(operation: Operation, paging: Paging, changes: ChangeFilter | None) -> dict[str, Any]:
    """Return the parameters that must be sent, each with a value that the document states, or an empty one."""
    known = {paging.param, paging.size_param, changes.param if changes else ""}
    found: dict[str, Any] = {}
    for name, each in operation.query_parameters():
        if each.get("required") is True and name not in known and needs_no_escaping(name):
            schema = mapping_or_empty(each.get("schema"))
            stated = [
                each.get("example"),
                schema.get("default"),
                schema.get("example"),
                *list_or_empty(schema.get("enum")),
            ]
            element = mapping_or_empty(schema.get("items"))
            stated += [element.get("default"), *list_or_empty(element.get("enum"))]
            found[name] = next((one for one in stated if isinstance(one, str | int) and one != ""), "TODO")
    return found
