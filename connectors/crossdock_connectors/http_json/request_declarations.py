"""Requests other than those of a list: for one record, for existing records, and for a target."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, model_validator

from crossdock import ConfigModel
from crossdock.values import exact_json
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock_connectors.http_json.credential_settings import raise_if_literal_secret
from crossdock_connectors.http_json.pagination_settings import Place
from crossdock_connectors.http_json.request_templates import (
    Param,
    Path,
    fill_braced_names_in_template,
    graphql_variable_fault,
    texts_within_value,
)

_OF_RECORD = re.compile(r"\{(?:changes|record(?:\.([^{}.]+)[^{}]*)?)\}")


class DeclaredRequest(ConfigModel):
    """A request besides that of the list."""

    path: Path
    """The path below the base URL, without a query. Names in braces, such as ``{id}``, stand for values."""
    params: Annotated[Mapping[str, Param], AfterValidator(raise_if_literal_secret)] = {}
    """The query, which may have names in braces, too; a list is a repeated parameter."""
    body: Any = None
    """A JSON body; the request is then a POST, which must only read."""
    graphql: str | None = None
    """A GraphQL query, posted with ``variables``."""
    variables: Mapping[str, Any] = {}
    """The variables of the GraphQL query, which may have names in braces, too."""

    @model_validator(mode="after")
    def _check_body_or_graphql(self) -> Self:
        raise_if_graphql_parts_conflict(self.graphql, self.variables, self.body)
        return self

    @property
    def is_post(self) -> bool:
        return self.body is not None or self.graphql is not None

    def filled_body(self, values: Mapping[str, Any], numbers: Collection[str] = ()) -> bytes:
        """Return the body of a POST with *values*. Raises ValueError if one of *numbers* is no whole number."""
        body, variables = fill_braced_names_in_template([self.body, self.variables], values, numbers)
        return exact_json.dumps(body if self.graphql is None else {"query": self.graphql, "variables": variables})


def raise_if_graphql_parts_conflict(graphql: str | None, variables: Mapping[str, Any], body: Any) -> None:
    if graphql is not None and body is not None:
        raise make_pydantic_error_at_key(("body",), "cannot be used with graphql")
    if variables and graphql is None:
        raise make_pydantic_error_at_key(("variables",), "needs graphql")
    for name in variables:
        if graphql is not None and (unnamed := graphql_variable_fault(graphql, name)):
            raise make_pydantic_error_at_key(("variables", name), unnamed)


class PostedRequest(DeclaredRequest):
    """A request of a target whose body is not the record alone, such as a GraphQL mutation or a JSON-RPC call. Texts in
    ``body`` and ``variables`` may be ``{record}``, ``{record.MEMBER}``, ``{changes}`` (an update's changed members) or
    ``{id}``, which may also be in ``path`` and ``params``. An alias in the query gives the record the same place in all
    answers.
    """

    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    """A GET has neither ``body`` nor ``graphql``."""
    numbers: tuple[Literal["id"], ...] = ()
    """``id``, if the API has it as a number."""
    id: Place | None = None
    """Of ``create``: where its answer has the id, if it has that alone and not the record, such as ``result.0``."""

    @model_validator(mode="after")
    def _check_body_and_method(self) -> Self:
        if self.method == "GET" and self.is_post:
            raise make_pydantic_error_at_key(("method",), "cannot be used with body or graphql: a GET has neither")
        if self.method != "GET" and not self.is_post:
            raise make_pydantic_error_at_key(
                ("body",), "is missing: a request other than a GET has a body or a GraphQL query"
            )
        for text in texts_within_value([self.body, self.variables]):
            if _OF_RECORD.search(text) and not _OF_RECORD.fullmatch(text):
                key = "variables" if self.graphql else "body"
                raise make_pydantic_error_at_key(
                    (key,), f"{text} has a value of the record among other text: it must be alone"
                )
        return self

    def uses_any_placeholder(self, *names: str) -> bool:
        inside, beside = (
            tuple(texts_within_value([self.body, self.variables])),
            tuple(texts_within_value([self.path, self.params])),
        )
        return any(
            f"{{{name}}}" in text or f"{{{name}." in text
            for name in names
            for text in inside + (beside if name == "id" else ())
        )

    @property
    def record_members(self) -> list[str]:
        """The members of the record that are values of their own, by their first names."""
        found = (_OF_RECORD.fullmatch(text) for text in texts_within_value([self.body, self.variables]))
        return [each[1] for each in found if each and each[1]]
