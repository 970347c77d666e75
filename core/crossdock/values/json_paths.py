"""Members of JSON values: by JSON pointer with a type, by dotted path as text, lists as rows. Errors quote no value.

Also what members beside a list say of it, such as its length or its next page, and texts that no state can hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType

from crossdock.errors import RecordError
from crossdock.values import exact_json

# ---- members beside a list: the number of elements, and whether more follow than are listed


Kind = Literal["total", "pages", "next", "more", "last", "previous"]

RECORDS = "(record|item|element|result|row|entr(y|ie)|object|doc(ument)?|match(e)?|hit)s?"
_NAME_PATTERNS_BY_KIND: Mapping[Kind, re.Pattern[str]] = {
    "total": re.compile(
        f"count|i?(grand|overall)?total(count|num(ber)?|size|of|found|{RECORDS})*|nbhits"
        f"|({RECORDS}|data)(count|total)|(num(ber)?|nb)(of)?(found|{RECORDS})|(items|records|results)available"
    ),
    "pages": re.compile("pages|lastpage|maxpage|nbpages|(total|num|number)(of)?pages?(count)?|pages?(count|total)"),
    "last": re.compile("last|islast(page)?|done|endofstream|iscomplete"),
    "previous": re.compile("prev(ious)?(page)?(url|uri|link|cursor|token)?|has(prev|previous)(page)?"),
    "more": re.compile(
        f"(has|have|is|are|there)*more(pages?|data|{RECORDS})?(available|incollection|left|remaining|exist)?"
        f"|has(next|additional|further)(pages?|data|{RECORDS})?"
        f"|(is|has|was|list|data|page|response|{RECORDS})*truncated"
    ),
    "next": re.compile(
        "next(page|records|start)*(url|uri|link|href|sinceid|cursor|token|number|offset|index|key|marker)?"
        "|continu(e|ation)(token)?|resumptiontoken|lastevaluatedkey|offset"
    ),
}
_DESCRIBED = "meta|paging|pagination|pages?|info|context|cursors?|links|hits|data|results?|response|payload"
_ENVELOPE = re.compile(f"(search|query|list|set|additional)*({_DESCRIBED})(set|{_DESCRIBED})*")
_NAMESPACE = re.compile(r"^@?[A-Za-z]+\.")  # such as @odata. or @iot.
_XML_ATTRIBUTES = "@attributes"  # of the element that was the list, in JSON made of XML
_STEP = re.compile(
    "href|ur[il]|link|(starting)?after|cursor|token|page|offset|start|[a-z]*continue"
)  # members of a next page
_NONE = frozenset({"", "null", "none", "false", "0", "-1"})
_YES, _NO = frozenset({"true", "yes", "y", "t"}), frozenset({"false", "no", "n", "f"})
_OTHER = re.compile(r"[\W_]")
_DIGITS = 18
_GROUPED, _GROUP_MARKS = re.compile(r"[0-9]{1,3}([, '\u00a0\u202f][0-9]{3})+"), re.compile(r"[^0-9]")


LINKS = frozenset({"link", "links"})
"""Members that may be lists of links, each with its relation."""


@lru_cache(4096)
def member_name_without_separators(name: str) -> str:
    """Return *name* in lower case, without separators between its words."""
    return _OTHER.sub("", name).lower()


@lru_cache(4096)
def pagination_member_kind(name: str) -> Kind | None:
    plain = member_name_without_separators(_NAMESPACE.sub("", name, count=1))
    return next((kind for kind, names in _NAME_PATTERNS_BY_KIND.items() if names.fullmatch(plain)), None)


@lru_cache(4096)
def is_envelope_name(name: str) -> bool:
    """Return whether an object with this name describes a list or has one, or both."""
    return name == _XML_ATTRIBUTES or _ENVELOPE.fullmatch(member_name_without_separators(name)) is not None


def whole_number_or_none(value: Any) -> int | None:
    """Return *value* or its ``value`` as a whole number, increased by one with a ``relation`` of ``gte``, or None.

    The digits of a text may be in groups, as in ``1,002``.
    """
    if isinstance(value, dict):
        number = whole_number_or_none(value.get("value"))
        return number if number is None else number + (value.get("relation") == "gte")
    if isinstance(value, str):
        digits = value if _GROUPED.fullmatch(value) is None else _GROUP_MARKS.sub("", value)
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def member_states_that_more_follow(kind: Kind, value: Any) -> bool:
    """Return whether a member states that something follows or, for the *kind* ``previous``, precedes."""
    if kind in {"more", "last"}:
        return _is_yes(value) if kind == "more" else _is_no(value)
    if isinstance(value, list):
        return any(isinstance(each, dict) and member_states_that_more_follow(kind, each) for each in value)
    if isinstance(value, dict):
        steps = (
            each
            for name, each in value.items()
            if _STEP.fullmatch(member_name_without_separators(name)) and not isinstance(each, dict)
        )
        return any(member_states_that_more_follow(kind, each) for each in steps)
    if isinstance(value, str):
        return value.strip().lower() not in _NONE and not (kind == "previous" and value.isdigit())
    if kind == "previous":
        return value is True  # the number of a page before the first one may be any
    return isinstance(value, int) and value > 0


def _is_yes(value: Any) -> bool:
    return value is True or (whole_number_or_none(value) or 0) > 0 or (isinstance(value, str) and value.lower() in _YES)


def _is_no(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.lower() in _NO)


def member_states_next_page(name: str, value: Any) -> bool:
    if member_name_without_separators(name) == "offset":  # a number is that of the request
        return isinstance(value, str) and not value.isdigit() and member_states_that_more_follow("next", value)
    if member_name_without_separators(name) == "lastevaluatedkey":
        return bool(value)
    kind = pagination_member_kind(name)
    if kind == "last" and whole_number_or_none(value) == 0:  # of another name, it may be the number of the last page
        return member_name_without_separators(name).startswith("is")
    return kind in {"next", "more", "last"} and member_states_that_more_follow(kind, value)


def is_next_link(link: Any) -> bool:
    """Return whether an element of a list of links is that of a next page."""
    if not isinstance(link, Mapping):
        return False
    relation = link.get("rel", link.get("relation"))
    relations = relation if isinstance(relation, list) else [relation]
    is_next = any(isinstance(each, str) and "next" in each.lower().split() for each in relations)
    return is_next and bool(link.get("href", link.get("url", True)))


def is_list_at_names_cut(item: Any, names: Sequence[str]) -> bool:
    """Return whether members beside the list at *names* in *item* state that it has more elements than are listed.

    Members of an object that describes only the list count, as of a connection of GraphQL. Others must be named after
    the list: a number may be that of ordered pieces.
    """
    around: Any = item
    for depth, name in enumerate(names):
        if isinstance(around, list) and name.isdecimal() and int(name) < len(around):
            around = around[int(name)]
            continue
        if not isinstance(around, dict):
            return False
        if any(_member_states_cut(rest, value) for rest, value in _members_without_list_name(around, name)):
            return True
        if isinstance(around.get(name), list) and _annotations_state_cut(around, name):
            return True
        inside = around.get(name)
        if depth and isinstance(inside, list):
            number = len(inside)
            if any(_member_states_cut(*each) or _total_exceeds(*each, number) for each in _members_about_list(around)):
                return True
        around = inside
    return False


def _annotations_state_cut(around: Mapping[str, Any], name: str) -> bool:
    """Return whether annotations of the list *name*, such as ``lines@odata.nextLink`` (OData 4.01, 4.6), state that."""
    annotations = (
        (other.removeprefix(f"{name}@"), value) for other, value in around.items() if other.startswith(f"{name}@")
    )
    return any(_member_states_cut(*each) or _total_exceeds(*each, len(around[name])) for each in annotations)


def _members_about_list(around: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object around a list, and of objects in it that describe the list."""
    for name, value in around.items():
        yield name, value
        if isinstance(value, dict) and is_envelope_name(name):
            yield from value.items()


def _members_without_list_name(around: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """Yield the members named after the member *name*, such as ``lines_has_more``, with the rest of their names."""
    own = member_name_without_separators(name)
    for other, value in around.items():
        if own and other != name and own in (text := member_name_without_separators(other)):
            yield text.replace(own, "", 1), value


def _member_states_cut(name: str, value: Any) -> bool:
    """Do the same as `member_states_next_page` in a record, where ``done`` or ``last`` may be about the record."""
    if member_name_without_separators(name) in LINKS and isinstance(value, list):
        return any(map(is_next_link, value))
    return pagination_member_kind(name) != "last" and member_states_next_page(name, value)


def _total_exceeds(name: str, value: Any, number: int) -> bool:
    return pagination_member_kind(name) == "total" and (whole_number_or_none(value) or 0) > number


MISSING: Final[Any] = object()
"""A marker for a member that does not exist."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    Decimal: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_SHOWN_ERRORS = 3
_SAFE_CONTEXT = {
    "class", "class_name", "decimal_places", "expected", "field_type", "ge", "gt", "le", "lt", "max_digits",
    "max_length", "method_name", "min_length", "multiple_of", "pattern", "whole_digits",
}  # fmt: skip
_PYDANTIC_ERRORS = frozenset(get_args(ErrorType))


# ---- by pointer, with a type


def is_pointer(text: str) -> bool:
    return _POINTER.fullmatch(text) is not None


def _check_pointer(pointer: str) -> None:
    if not is_pointer(pointer):
        raise ValueError(f"{pointer!r} is not a JSON pointer (RFC 6901), such as /customer/id")


def value_at_pointer_refusing_wrong_containers(
    document: Any, pointer: str, *, format_pointer: Callable[[str], str] = str
) -> Any:
    """Return the value at *pointer* (RFC 6901); `MISSING` if it is missing, or its container is missing or null.

    Raises RecordError if a value around it has no members, or is a list and *pointer* names a member of it.
    """
    _check_pointer(pointer)
    value, place = document, ""
    for part in pointer.split("/")[1:]:
        if value is None or value is MISSING:
            return MISSING
        name = unescaped_pointer_part(part)
        if not isinstance(value, dict) and not (isinstance(value, list) and _INDEX.fullmatch(name)):
            raise _type_error(value, "a list" if _INDEX.fullmatch(name) else "an object", format_pointer(place))
        value = member_or_missing(value, name)
        place += f"/{part}"
    return value


def unescaped_pointer_part(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def escaped_pointer_part(name: str) -> str:
    """Return the part of a JSON pointer that names a member, the inverse of `unescaped_pointer_part`."""
    return name.replace("~", "~0").replace("/", "~1")


def require_json_type(value: Any, kind: type[Any], pointer: str) -> Any:
    """Return *value* if it is of *kind*, or raise RecordError. A whole number is a `Decimal`; a boolean is not."""
    if kind not in _NAMES or kind is type(None):
        raise TypeError(f"choose str, bool, int, Decimal, list or dict instead of {kind.__name__}")
    if kind is Decimal and type(value) is int:
        return Decimal(value)
    if type(value) is not kind:
        raise _type_error(value, _NAMES[kind], pointer)
    return value


def parse_exact_number(value: Any, pointer: str, minor_units: int) -> Decimal:
    """Return a JSON number, or the text of one. *minor_units* is for example 2 if it counts cents, and 0 otherwise."""
    if isinstance(value, str):
        if not _NUMBER.fullmatch(text := value.strip()):
            raise RecordError("bad_value", "is text that is not a number", pointer=pointer)
        given = Decimal(text)
    else:
        text, given = "", require_json_type(value, Decimal, pointer)
    if minor_units and ("." in text or given != given.to_integral_value()):
        raise RecordError("bad_value", "has a decimal point, and should be a number of minor units", pointer=pointer)
    sign, digits, exponent = given.as_tuple()
    assert isinstance(exponent, int)
    try:
        return Decimal(exact_json.decimal_text(Decimal((sign, digits, exponent - minor_units))))
    except ValueError:
        raise RecordError("bad_value", exact_json.BEYOND, pointer=pointer) from None


def _type_error(value: Any, expected: str, pointer: str) -> RecordError:
    message = (
        type_description(value)
        if value is MISSING or value is None
        else f"{type_description(value)}, and should be {expected}"
    )
    return RecordError("bad_value", message, pointer=pointer)


def type_description(value: Any) -> str:
    return "is missing" if value is MISSING else f"is {_NAMES.get(type(value), 'of another type')}"


# ---- as a model


def validation_error_pointers_and_messages(error: ValidationError, document: Any) -> list[tuple[str, str]]:
    """Return pointer and message of the first errors. A message that may quote a value is replaced by its type."""
    found = error.errors(include_url=False, include_input=False)
    listed = [(_pointer_of_error(item, document), _message_without_value(item)) for item in found[:_SHOWN_ERRORS]]
    if more := len(found) - len(listed):
        listed.append(("", f"and {more:,} more"))
    return listed


def _pointer_of_error(item: ErrorDetails, document: Any) -> str:
    """Return the place of an error without parts that pydantic adds, such as the members of a union."""
    value, pointer, last = document, "", len(item["loc"]) - 1
    for number_of_part, part in enumerate(item["loc"]):
        inner = member_or_missing(value, str(part))
        if inner is MISSING and not (item["type"] == "missing" and number_of_part == last):
            continue
        value = inner
        pointer += "/" + escaped_pointer_part(str(part))
    return pointer


def _message_without_value(item: ErrorDetails) -> str:
    if item["type"] in _PYDANTIC_ERRORS and set(item.get("ctx", {})) <= _SAFE_CONTEXT:
        return item["msg"]
    return f"is not valid ({item['type']})"


# ---- by dotted path, as text


def value_at_path_or_missing(value: Any, path: str) -> Any:
    """Return the value at a dotted *path* or JSON pointer, or `MISSING`. A member with the name *path* comes first."""
    for name in _names_or_exact_member(value, path):
        value = member_or_missing(value, name)
    return value


def value_at_path_refusing_wrong_containers(value: Any, path: str) -> Any:
    """Do as `value_at_path_or_missing`, but raise RecordError if a value around the one at *path* has no such members.

    An empty text, list or object, and false, stand for nothing there, as null does: PHP writes an empty object as [].
    """
    passed = list[str]()
    for name in _names_or_exact_member(value, path):
        if is_null_false_or_empty(value):
            return MISSING
        if (expected := _expected_container_if_wrong(value, name)) is not None:
            place = path_of_names(passed) if passed else "what has it"
            message = f"cannot be read: {place} {type_description(value)}, and should be {expected}"
            raise RecordError("bad_value", message, pointer=path)
        value = member_or_missing(value, name)
        passed.append(name)
    return value


def is_null_false_or_empty(value: Any) -> bool:
    """Return whether a value stands for nothing: null, false, or an empty text, list or object."""
    return value is None or value is MISSING or value is False or (isinstance(value, str | list | dict) and not value)


def _expected_container_if_wrong(value: Any, name: str) -> str | None:
    """Return what *value* should be so that it may have a member *name*; None if it may."""
    if isinstance(value, list):
        return None if is_index(name) else _NAMES[dict]
    if not isinstance(value, dict):
        return _NAMES[list if is_index(name) else dict]
    is_one_element = name == "0" and not any(map(is_index, value))  # where a list of one is written as its element
    return _NAMES[list] if is_one_element else None


def is_index(name: str) -> bool:
    return _INDEX.fullmatch(name) is not None


def path_of_names(names: Sequence[str]) -> str:
    """Return the path of *names*: dotted, or a JSON pointer if one of them has a dot or is empty."""
    if all(name and "." not in name for name in names) and not names[0].startswith("/"):
        return ".".join(names)
    return "".join("/" + escaped_pointer_part(name) for name in names)


def json_value_as_column_text(value: Any) -> str | None:
    """Return a value as the text of a column: text unchanged, null for null and `MISSING`, others as canonical JSON."""
    if value is None or value is MISSING:
        return None
    return value if isinstance(value, str) else exact_json.dumps(value).decode()


def explode_list_with_pointers(item: Any, path: str, *, keeps_empty: bool = False) -> Iterator[tuple[Any, str | None]]:
    """Yield *item* once for each element of its list at *path*, in place of the list, with the element's JSON pointer.

    An empty list or null yields nothing, or if *keeps_empty*, *item* with null in its place, and no pointer. Without a
    list, or if it is cut, *item* is yielded unchanged, and no pointer.
    """
    names = _names_or_exact_member(item, path)
    elements = value_at_path_or_missing(item, path)
    is_cut = isinstance(elements, list) and is_list_at_names_cut(item, names)
    if elements is None or (elements == [] and not is_cut):
        if keeps_empty:
            yield _with_value_at_names(item, names, None), None
        return
    if not isinstance(elements, list) or is_cut:
        yield item, None
        return
    pointer = "".join("/" + escaped_pointer_part(name) for name in names)
    for index, element in enumerate(elements):
        yield _with_value_at_names(item, names, element), f"{pointer}/{index}"


LIST_CUT_MESSAGE = "is cut: the record says that it has more elements; request all of them, or fetch such records"


def is_list_at_path_cut(item: Any, path: str) -> bool:
    """Return whether members beside the list at *path* in *item* state that it has more elements than are listed."""
    return is_list_at_names_cut(item, _names_or_exact_member(item, path))


def _names_or_exact_member(value: Any, path: str) -> Sequence[str]:
    return [path] if isinstance(value, dict) and path in value else names_in_path(path)


def names_in_path(path: str) -> Sequence[str]:
    """Return the names of a dotted path or JSON pointer."""
    return _names_in_pointer(path) if path.startswith("/") else path.split(".")


def value_at_pointer_or_missing(document: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer (RFC 6901), or `MISSING`. ``""`` is *document*."""
    for name in _names_in_pointer(pointer):
        document = member_or_missing(document, name)
    return document


def list_at_pointer_with_asterisk(document: Any, pointer: str) -> Any:
    """Do as `value_at_pointer_or_missing`, where an asterisk stands for each element of a list.

    The rest of *pointer* gives a part of the element, or null: ``/edges/*/node``.
    """
    around, is_each, inner = pointer.partition("/*")
    found = value_at_pointer_or_missing(document, around)
    if not is_each or not isinstance(found, list):
        return found
    parts = (value_at_pointer_or_missing(each, inner) for each in found)
    return [None if part is MISSING else part for part in parts]


@lru_cache(maxsize=1024)
def _names_in_pointer(pointer: str) -> tuple[str, ...]:
    _check_pointer(pointer)
    return tuple(map(unescaped_pointer_part, pointer.split("/")[1:]))


def member_or_missing(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, MISSING)
    if isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
        return value[int(name)]
    return MISSING


def object_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def copy_with_value_at_path(document: Any, path: str, value: Any) -> Any:
    """Return a copy of *document* with *value* at a dotted *path* or JSON pointer.

    Missing objects around it are created.
    """
    return _with_value_at_names(document, _names_or_exact_member(document, path), value)


def _with_value_at_names(value: Any, names: Sequence[str], element: Any) -> Any:
    if not names:
        return element
    name, *rest = names
    held = member_or_missing(value, name)
    if isinstance(value, list) and held is not MISSING:
        index = int(name)
        return [*value[:index], _with_value_at_names(held, rest, element), *value[index + 1 :]]
    if value is not None and value is not MISSING and not isinstance(value, dict):
        raise ValueError(f"{type_description(value)} without {name}")
    return {**object_or_empty(value), name: _with_value_at_names(held, rest, element)}


def texts_within(value: Any) -> Iterator[str]:
    """Yield all texts in *value*, without names of members."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from texts_within(inner)


def pointer_and_fault_of_invalid_value(text: str) -> tuple[str, str] | None:
    """Return JSON pointer and fault of the first value in canonical JSON that stands for an invalid one, or None."""
    return _pointer_and_fault(exact_json.loads(text), "") if exact_json.REPLACED_VALUE in text else None


def _pointer_and_fault(value: Any, pointer: str) -> tuple[str, str] | None:
    if isinstance(value, dict) and (fault := exact_json.fault_of_replaced_value(value)) is not None:
        return pointer, fault
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = (_pointer_and_fault(each, f"{pointer}/{escaped_pointer_part(str(name))}") for name, each in members)
    return next((each for each in found if each is not None), None)
