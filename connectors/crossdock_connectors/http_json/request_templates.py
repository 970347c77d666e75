"""Parts of a request: path, parameters, ``{since}``, ``{start}`` and ``{end}`` in their texts, keys in paths, and the
variables of GraphQL queries.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag, WithJsonSchema

from crossdock.errors import RefusedError
from crossdock.reading.sources.path_filling_and_answered_records import IN_BRACES
from crossdock.values import exact_json
from crossdock.values.graphql_tokens import graphql_variables
from crossdock.values.json_paths import MISSING, value_at_path_or_missing


def graphql_variable_fault(query: str, name: str) -> str | None:
    """Return what is wrong if *query* does not name the variable *name*, or None."""
    named = graphql_variables(query)
    if name in named:
        return None
    listed = ", ".join(f"${each}" for each in named) or "no variable"
    return f"the query does not name ${name}, and servers ignore a variable that they do not know; it names {listed}"


NAMES = frozenset({"since", "start", "end"})
_PLACE = re.compile(r"\{(since|start|end)\}")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")


def _param_text(value: Any) -> Any:
    """Return a parameter as text: ``true`` and ``false`` as in JSON, other values as they are written."""
    if isinstance(value, list | tuple):
        return tuple(_param_text(each) for each in value)
    return exact_json.dumps(value).decode() if isinstance(value, bool | int | Decimal) else value


_Param = Annotated[
    Annotated[str, Tag("one")] | Annotated[tuple[str, ...], Tag("several")],
    Discriminator(lambda value: "several" if isinstance(value, tuple) else "one"),
]
Param = Annotated[
    _Param, BeforeValidator(_param_text), WithJsonSchema({"type": ["string", "number", "boolean", "array"]})
]


def _checked_path(path: str) -> str:
    if not path or "://" in path or path.startswith("//") or re.search(r"[?#\s]", path):
        raise ValueError("must be a path below base_url, such as /orders, without a query: use params")
    return path


Path = Annotated[str, AfterValidator(_checked_path)]


def texts_within_value(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from texts_within_value(inner)
        case list() | tuple():
            for inner in value:
                yield from texts_within_value(inner)


def since_start_end_placeholders_in(value: Any) -> Iterator[str]:
    for text in texts_within_value(value):
        yield from _PLACE.findall(text)


def fill_braced_names_in_template(value: Any, key: Mapping[str, Any], numbers: Collection[str] = ()) -> Any:
    """Replace each ``{COLUMN}`` in *value* by its text in *key*, or by a number if it is one of *numbers*. A text
    that is ``{NAME}`` or ``{NAME.MEMBER}`` of an object in *key* becomes this object or member, or null without it.

    Raises ValueError if one of them is no whole number as JSON has it: ``017`` is another key than 17.
    """
    match value:
        case str() if value[1:-1] in numbers and value == f"{{{value[1:-1]}}}":
            if _WHOLE.fullmatch(key[value[1:-1]]) is None:
                raise ValueError("no whole number")
            return int(key[value[1:-1]])
        case str() if value == f"{{{value[1:-1]}}}" and isinstance(key.get(value[1:-1].partition(".")[0]), Mapping):
            found = value_at_path_or_missing(key, value[1:-1])
            return None if found is MISSING else found
        case str():
            return IN_BRACES.sub(lambda place: key.get(place[1], place[0]), value)
        case Mapping():
            return {name: fill_braced_names_in_template(inner, key, numbers) for name, inner in value.items()}
        case list() | tuple():
            return [fill_braced_names_in_template(inner, key, numbers) for inner in value]
    return value


def fill_or_remove_placeholders(value: Any, values: Mapping[str, str | None], numbers: Collection[str] = ()) -> Any:
    """Insert *values* into the texts of *value*, and remove what needs a missing one.

    A member is left out, and an object that has no other. A list in a body that compares with it, such as
    ``[write_date, ">=", "{since}"]``, is left out whole; a list of such lists or objects stays without them.
    """
    found = _fill_or_missing(value, values, numbers)
    return None if found is MISSING else found


def _fill_or_missing(value: Any, values: Mapping[str, str | None], numbers: Collection[str]) -> Any:
    match value:
        case str():
            if any(values.get(name) is None for name in since_start_end_placeholders_in(value)):
                return MISSING
            if (name := value[1:-1]) in numbers and value == f"{{{name}}}":
                return _number_value(name, values[name] or "")
            return _PLACE.sub(lambda place: values[place[1]] or "", value)
        case Mapping():
            members = {name: _fill_or_missing(inner, values, numbers) for name, inner in value.items()}
            kept = {name: inner for name, inner in members.items() if inner is not MISSING}
            return MISSING if value and not kept else kept
        case list() | tuple():
            found = [_fill_or_missing(each, values, numbers) for each in value]
            kept_items = [inner for inner in found if inner is not MISSING]
            compares = isinstance(value, list) and not all(isinstance(each, list | Mapping) for each in value)
            return MISSING if compares and len(kept_items) < len(found) else kept_items
        case _:
            return value


def _number_value(name: str, text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite():
        raise RefusedError(
            f"numbers has {name!r}, but its value {text!r} is no number", hint="see time_format", code="number_invalid"
        )
    return found
