"""A request to an HTTP API that is read, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlencode

from crossdock.errors import RefusedError
from crossdock.values.json_paths import (
    MISSING,
    copy_with_value_at_path,
    list_at_pointer_with_asterisk,
    type_description,
    value_at_pointer_or_missing,
)

Params = Mapping[str, str | int | Sequence[str | int] | None]
"""Query parameters: a list is a repeated parameter, None is left out."""

PagePlace = Literal["query", "body", "variables"]
"""Where a request has the parameters of its paginator: in the query, its JSON body, or the variables of GraphQL."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request.

    Attributes:
        path: Below the base URL; or the whole address of a following page.
        params: Never shown, since they may contain credentials or personal data.
        page_params: The parameters of the paginator. In the query they are shown in addresses; elsewhere their names
            are dotted paths or JSON pointers.
        form: The body as the fields of a form.
        graphql: A GraphQL query, sent as JSON with *variables*.
        headers: In addition to those of the client.
        ends: Statuses by which the API says that a list has no further page, so that they are not errors.
    """

    method: str
    path: str
    params: Params = field(default_factory=dict)
    page_params: Mapping[str, str | int] = field(default_factory=dict)
    json: Any = None
    form: Mapping[str, str] | None = None
    graphql: str | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    place: PagePlace = "query"
    ends: frozenset[int] = frozenset()

    @property
    def query(self) -> str:
        own = (each for each in parameter_pairs(self.params) if each[0] not in self.shown_params)
        text = urlencode([*own, *self.shown_params.items()])
        return f"?{text}" if text else ""

    @property
    def shown_params(self) -> Mapping[str, str | int]:
        return self.page_params if self.place == "query" else {}

    @property
    def content(self) -> Any:
        """The body as a JSON value, including the paginator's parameters; None without a body."""
        body, variables = self.json, dict(self.variables)
        for name, value in self.page_params.items() if self.place != "query" else ():
            if self.place == "variables":
                variables = copy_with_value_at_path(variables, name, value)
            else:
                body = copy_with_value_at_path(body, name, value)
        return body if self.graphql is None else {"query": self.graphql, "variables": variables}

    @property
    def position(self) -> str:
        """The part of a request that differs between the pages of one list."""
        return repr((self.path, sorted(self.page_params.items())))

    def with_page(self, **params: str | int) -> ApiRequest:
        return replace(self, page_params={**self.page_params, **params})

    def with_param(self, name: str, value: int) -> ApiRequest:
        if name in self.page_params:
            return self.with_page(**{name: value})
        if name in self.variables:
            return replace(self, variables={**self.variables, name: value})
        if isinstance(self.json, Mapping) and name in self.json:
            return replace(self, json={**self.json, name: value})
        return replace(self, params={**self.params, name: value})

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """The parameters of the query, and those at the top of the body and the variables that are whole numbers."""
        sent = (part for part in (self.variables, self.json) if isinstance(part, Mapping))
        inside = [(name, str(value)) for part in sent for name, value in part.items() if type(value) is int]
        return [*parameter_pairs(self.params), *inside]

    def following(self, address: str) -> ApiRequest:
        """Return the request for the page at *address*, which holds all parameters."""
        return replace(self, path=address, params={}, page_params={})


def parameter_pairs(params: Params) -> list[tuple[str, str]]:
    found = []
    for name, value in params.items():
        values = [value] if isinstance(value, str | int) else value or ()
        found += [(name, str(each)) for each in values]
    return found


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer, such as one page of a list.

    Attributes:
        address: Where it was read. Parameters that the server repeats in its links are ``***``, and credentials
            ``(secret)``.
        body: JSON with exact numbers; None for an empty body.
        status: 200 to 299.
        headers: Names in lower case, lines of one name joined by commas.
    """

    address: str
    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def at(self, pointer: str) -> Any:
        """Return the value at a JSON pointer (RFC 6901) such as ``/meta/next``, or None. ``""`` is the whole body."""
        found = self._value_or_missing(pointer)
        return None if found is MISSING else found

    def items(self, pointer: str, *, default: Sequence[Any] = MISSING) -> list[Any]:
        """Return the list at *pointer*. Raises RefusedError without one: that is not an empty list.

        An asterisk stands for each element, of which the rest of *pointer* gives the record: ``/data/x/edges/*/node``.

        Args:
            default: Returned if an object does not have the list, for an API that leaves out empty ones.
        """
        found, pointer = list_at_pointer_with_asterisk(self.body, pointer), pointer.partition("/*")[0]
        if found is MISSING and default is not MISSING and isinstance(self.body, dict):
            return [*default]
        if not isinstance(found, list):
            place = f"has no list at {pointer or 'the top'}"
            if self.body is None:
                raise RefusedError(f"{place}: the answer is empty or null", where=self.address, code="answer_failed")
            what = (
                f"it {type_description(found)}"
                if isinstance(self.body, dict)
                else f"the answer {type_description(self.body)}"
            )
            raise RefusedError(f"{place}: {what}", where=self.address, code="answer_failed")
        return found

    def _value_or_missing(self, pointer: str) -> Any:
        return value_at_pointer_or_missing(self.body, pointer)
