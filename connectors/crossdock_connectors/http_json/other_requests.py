"""Requests other than those of a list: for one record, for existing records, and for a target."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, model_validator

from crossdock import ConfigModel
from crossdock.values import exact_json
from crossdock.values.config_models import misplaced
from crossdock_connectors.http_json.credentials import without_literal_secrets
from crossdock_connectors.http_json.pagination import Place
from crossdock_connectors.http_json.request_templates import Param, Path, texts_in, with_key


class OtherRequest(ConfigModel):
    """A request besides that of the list."""

    path: Path
    """Below the base URL, without a query."""
    params: Annotated[Mapping[str, Param], AfterValidator(without_literal_secrets)] = {}
    """The query; a list is a repeated parameter."""
    body: Any = None
    """A JSON body; the request is then a POST, which must only read."""
    graphql: str | None = None
    """A GraphQL query, posted with ``variables``."""
    variables: Mapping[str, Any] = {}

    @model_validator(mode="after")
    def _request_fits(self) -> Self:
        check_body(self.graphql, self.variables, self.body)
        return self

    @property
    def is_post(self) -> bool:
        return self.body is not None or self.graphql is not None

    def content(self, values: Mapping[str, Any], numbers: Collection[str] = ()) -> bytes:
        """Return the body of a POST with *values*. Raises ValueError if one of *numbers* is no whole number."""
        body, variables = with_key([self.body, self.variables], values, numbers)
        return exact_json.dumps(body if self.graphql is None else {"query": self.graphql, "variables": variables})


def check_body(graphql: str | None, variables: Mapping[str, Any], body: Any) -> None:
    if graphql is not None and body is not None:
        raise misplaced(("body",), "cannot be used with graphql")
    if variables and graphql is None:
        raise misplaced(("variables",), "needs graphql")


class PostedRequest(OtherRequest):
    """A POST of a target whose body is not the record alone, such as a GraphQL mutation or a JSON-RPC call. Texts in
    ``body`` and ``variables`` may be ``{record}``, ``{changes}`` (an update's changed members) or ``{id}``, which may
    be in the path instead. An alias in the query gives the record the same place in all answers.
    """

    numbers: tuple[Literal["id"], ...] = ()
    """``id``, if the API has it as a number."""
    id: Place | None = None
    """Of ``create``: where its answer has the id, if it has that alone and not the record, such as ``result.0``."""

    @model_validator(mode="after")
    def _has_a_body(self) -> Self:
        if not self.is_post:
            raise misplaced(("body",), "is missing: a request has a body or a GraphQL query")
        return self

    def uses(self, *names: str) -> bool:
        path = self.path if "{id}" in self.path else ""
        texts = tuple(texts_in([path, self.body, self.variables]))
        return any(f"{{{name}}}" in text for text in texts for name in names)
