"""Lists in records that a GraphQL query cuts, if nothing in the answer shows whether they have more elements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from crossdock.values.graphql_tokens import graphql_tokens

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


def count_full_lists(items: Iterable[Any], sizes: Mapping[str, int]) -> Counter[str]:
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
