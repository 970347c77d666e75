"""Members that APIs put beside a list in JSON: the number of elements, and whether more follow than are listed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

Kind = Literal["total", "pages", "next", "more", "last", "previous"]

RECORDS = "(record|item|element|result|row|entr(y|ie)|object|doc(ument)?|match(e)?|hit)s?"
_NAMES: Mapping[Kind, re.Pattern[str]] = {
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
def plain_name(name: str) -> str:
    """Return *name* in lower case, without separators between its words."""
    return _OTHER.sub("", name).lower()


@lru_cache(4096)
def member_kind(name: str) -> Kind | None:
    plain = plain_name(_NAMESPACE.sub("", name, count=1))
    return next((kind for kind, names in _NAMES.items() if names.fullmatch(plain)), None)


@lru_cache(4096)
def is_envelope_name(name: str) -> bool:
    """Return whether an object with this name describes a list or has one, or both."""
    return name == _XML_ATTRIBUTES or _ENVELOPE.fullmatch(plain_name(name)) is not None


def whole_number(value: Any) -> int | None:
    """Return *value* or its ``value`` as a whole number, increased by one with a ``relation`` of ``gte``, or None.

    The digits of a text may be in groups, as in ``1,002``.
    """
    if isinstance(value, dict):
        number = whole_number(value.get("value"))
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
            each for name, each in value.items() if _STEP.fullmatch(plain_name(name)) and not isinstance(each, dict)
        )
        return any(member_states_that_more_follow(kind, each) for each in steps)
    if isinstance(value, str):
        return value.strip().lower() not in _NONE and not (kind == "previous" and value.isdigit())
    if kind == "previous":
        return value is True  # the number of a page before the first one may be any
    return isinstance(value, int) and value > 0


def _is_yes(value: Any) -> bool:
    return value is True or (whole_number(value) or 0) > 0 or (isinstance(value, str) and value.lower() in _YES)


def _is_no(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.lower() in _NO)


def member_states_next_page(name: str, value: Any) -> bool:
    if plain_name(name) == "offset":  # a number is that of the request
        return isinstance(value, str) and not value.isdigit() and member_states_that_more_follow("next", value)
    if plain_name(name) == "lastevaluatedkey":
        return bool(value)
    kind = member_kind(name)
    if kind == "last" and whole_number(value) == 0:  # of another name, it may be the number of the last page
        return plain_name(name).startswith("is")
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
    own = plain_name(name)
    for other, value in around.items():
        if own and other != name and own in (text := plain_name(other)):
            yield text.replace(own, "", 1), value


def _member_states_cut(name: str, value: Any) -> bool:
    """Do the same as `member_states_next_page` in a record, where ``done`` or ``last`` may be about the record."""
    if plain_name(name) in LINKS and isinstance(value, list):
        return any(map(is_next_link, value))
    return member_kind(name) != "last" and member_states_next_page(name, value)


def _total_exceeds(name: str, value: Any, number: int) -> bool:
    return member_kind(name) == "total" and (whole_number(value) or 0) > number
