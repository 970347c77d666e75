"""Settings of a connection that is a target: its resources, requests and answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock import ConfigModel, Filter
from crossdock.config_file import MAX_S, misplaced
from crossdock.delivery_settings import InFlight, Retry
from crossdock_connectors.http_json.credentials import HeaderName, without_literal_secrets
from crossdock_connectors.http_json.draft_models import Members
from crossdock_connectors.http_json.pagination import Place
from crossdock_connectors.http_json.recognized_answers import RepeatedAnswer
from crossdock_connectors.http_json.request_templates import Param, Path, texts_in

NAME, ID = "{name}", "{id}"
ResourceKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,32}$")]
_Seconds = Annotated[float, Field(ge=0, le=MAX_S)]


def _request(methods: str, *, of_one: bool) -> AfterValidator:
    """Checks a method and a path; *of_one* record, whose id is in it."""
    form = re.compile(rf"({methods}) (/[^\s?#{{}}]*)({re.escape(ID)})?([^\s?#{{}}]*)")
    example = f"{methods.partition('|')[0]} /orders" + ("/{id}" if of_one else "")

    def check(text: str) -> str:
        found = form.fullmatch(text)
        if found is None or (found[3] is not None) is not of_one:
            raise ValueError(f"must be a method ({methods.replace('|', ', ')}) and a path, such as {example}")
        return text

    return AfterValidator(check)


class LookUpByName(ConfigModel):
    """A list of records by our name for them."""

    path: Path
    """Below the base URL, without a query."""
    params: Annotated[Mapping[str, Param], AfterValidator(without_literal_secrets)]
    """The query, with ``{name}``."""
    records: Place
    """Where the list is in the answer; an empty text if the answer is the list."""

    @model_validator(mode="after")
    def _asks_for_the_name(self) -> Self:
        if not any(NAME in text for text in texts_in(self.params)):
            raise misplaced(("params",), "the query does not use {name}, so it would list any record")
        return self


class FailedAnswer(ConfigModel):
    """An answer of success whose body says that the request was refused."""

    when: Filter
    """A condition on the body; fields are dotted paths."""
    statuses: Mapping[str, Annotated[int, Field(ge=400, le=599)]] = {}
    """The status that such an answer stands for, by a part of its text, in upper or lower case; the first that is found
    counts. Default: 422, a rejected record."""


class TargetResourceConfig(ConfigModel):
    """A type of record that can be written."""

    members: Members
    """The members of a record, by their names in the API."""
    name: Annotated[str, Field(min_length=1)] | None = None
    """The member with our name for the record, ``NAMESPACE:KEY``; none if the API has no such member."""
    name_max_length: Annotated[int, Field(ge=1, le=500)] = 100
    """The most characters of a name; a record with a longer one is a dead letter."""
    id: Place = "/id"
    """Where a record has the id that the API assigned: a text or a whole number."""
    record: Place = ""
    """Where an answer about one record has it; an empty text if the answer is the record."""
    create: Annotated[str, _request("POST", of_one=False)]
    """Method and path of the request that creates a record, such as ``POST /orders``."""
    update: Annotated[str, _request("PATCH|PUT|POST", of_one=True)] | None = None
    """That changes one: PATCH sends the changed members (RFC 7396), PUT and POST all. Without it, a record is written
    once, and one that changes later is a dead letter."""
    delete: Annotated[str, _request("DELETE|POST|PUT", of_one=True)] | None = None
    """That deletes or cancels one, without a body; ``on_gone: delete`` needs it."""
    deleted: Filter | None = None
    """How a deleted record looks where the API still shows it, such as a cancelled order; fields are dotted paths."""
    read: Annotated[str, _request("GET", of_one=True)] | None = None
    """That reads one; ``update`` and ``delete`` need it."""
    look_up: LookUpByName | Literal[False] = False
    """How a record is found by our name; false if it cannot be."""
    idempotency_header: HeaderName | None = None
    """The header by which the API carries out a repeated request once, such as Idempotency-Key; none if it has none."""
    repeated: RepeatedAnswer | None = None
    """The answer by which the API refuses a second record with the same name; none if it accepts one."""
    conditional: bool = False
    """Changes honour ``If-Match`` (RFC 9110 section 13.1.1)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        changed = self.update is not None or self.delete is not None
        named = self.name is not None
        for key, is_set, problem in (
            ("read", changed and self.read is None, "is missing: an update or delete in doubt is looked up by its id"),
            ("look_up", bool(self.look_up) and not named, "needs name: the member that is asked for"),
            ("repeated", self.repeated is not None and not self.look_up, "needs look_up, which finds the id"),
            ("deleted", self.deleted is not None and self.delete is None, "needs delete"),
            ("conditional", self.conditional and not changed, "needs update or delete"),
            ("name", self.name in self.members, "holds our name for the record: leave it out of members"),
            ("name_max_length", "name_max_length" in self.model_fields_set and not named, "needs name"),
        ):
            if is_set:
                raise misplaced((key,), problem)
        return self


class TargetConfig(ConfigModel):
    """What makes a connection a target of streams, ``to: CONNECTION.RESOURCE``."""

    resources: Annotated[Mapping[ResourceKey, TargetResourceConfig], Field(min_length=1)]
    """By name, those that others depend on first."""
    failed: FailedAnswer | None = None
    """How an answer of success says that a request was refused; none if refusals have a status of their own."""
    retry: Retry = Retry()
    """Retries of requests that failed in transit or with a temporary error."""
    in_flight: InFlight = 8
    """Most requests in flight, and thus most that can be in doubt after a crash."""
    kept_s: _Seconds = 86_400
    """Seconds for which the API remembers an idempotency key."""
    settle_s: _Seconds = 60
    """Seconds after which an unanswered request has either taken effect or never will."""
