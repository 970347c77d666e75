"""Settings of a connection that is a target: its resources, requests and answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from crossdock import ConfigModel, Filter
from crossdock.platform.retry_settings import InFlight, Retry
from crossdock.sources import NameForm
from crossdock.values.config_models import MAX_S, misplaced
from crossdock_connectors.http_json.credentials import HeaderName
from crossdock_connectors.http_json.draft_models import MemberName, Members
from crossdock_connectors.http_json.other_requests import OtherRequest, PostedRequest
from crossdock_connectors.http_json.pagination import Place
from crossdock_connectors.http_json.recognized_answers import FailedAnswer, OutdatedAnswer, RepeatedAnswer
from crossdock_connectors.http_json.request_templates import texts_in

NAME, ID = "{name}", "{id}"
IN_PATH = re.compile(r"\{([A-Za-z0-9_]+)\}")
ResourceKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,32}$")]
_Seconds = Annotated[float, Field(ge=0, le=MAX_S)]


def _form(methods: str, path: str) -> re.Pattern[str]:
    return re.compile(rf"({methods}) (/{path})")


_ONE = rf"[^\s?#{{}}]*{re.escape(ID)}[^\s?#{{}}]*"
_FORMS = {
    "create": (_form("POST", rf"([^\s?#{{}}]|{IN_PATH.pattern})*"), "POST", "POST /orders"),
    "update": (_form("PATCH|PUT|POST", _ONE), "PATCH, PUT, POST", f"PATCH /orders/{ID}"),
    "delete": (_form("DELETE|POST|PUT", _ONE), "DELETE, POST, PUT", f"DELETE /orders/{ID}"),
    "read": (_form("GET", _ONE), "GET", f"GET /orders/{ID}"),
}
_IN_BODY = {"create": ("record",), "update": ("record", "changes"), "delete": ("id",), "read": ("id",)}
_Request = Annotated[
    Annotated[str, Tag("text")] | Annotated[PostedRequest, Tag("posted")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "posted"),
]


class LookUpByName(OtherRequest):
    """A look-up of records by their external ids. ``{name}`` is in ``path`` or ``params``, or in the ``body`` or the
    ``variables`` of a POST.
    """

    records: Place | None = None
    """Where the list is in the answer; an empty text if the answer is the list."""
    absent: str | None = None
    """In place of ``records``, if the answer is about one record, as that of ``read`` is: part of the body of the 404
    for a name that no record has, in upper or lower case. A 404 without it is a wrong path. An empty text takes each
    404, also that of a wrong path."""

    @model_validator(mode="after")
    def _asks_for_the_name(self) -> Self:
        if (self.records is None) == (self.absent is None):
            raise misplaced(("records",), "give either records, if it lists records, or absent, if it answers with one")
        if not any(NAME in text for text in texts_in([self.path, self.params, self.body, self.variables])):
            raise misplaced(("params",), "the query does not use {name}, so it would list any record")
        return self


class TargetResourceConfig(ConfigModel):
    """A type of record that can be written."""

    members: Members
    """The members of a record, by their names in the API."""
    name: Annotated[str, Field(min_length=1)] | None = None
    """The member with the external id of the record; none if the API has no such member."""
    name_form: NameForm = "{namespace}:{key}"
    """How it is made of ``{namespace}`` and ``{key}``, such as ``{key}`` where the account has no records of others."""
    name_max_length: Annotated[int, Field(ge=1, le=500)] = 100
    """The most characters of a name; a record with a longer one is a dead letter."""
    id: Literal["{name}"] | Place = "/id"
    """Where a record has the id that the API assigned: a text or a whole number. ``{name}`` if the external id is the
    id, as that of an adjustment, and answers show something else."""
    id_form: Annotated[str, Field(pattern=r"^[^{}]*\{id\}[^{}]*$")] = ID
    """How a text there ends: ``/orders/{id}/`` if it is the address of the record, on any host."""
    record: Place = ""
    """Where an answer about one record has it; an empty text if the answer is the record."""
    body: MemberName | None = None
    """The member of a request's body that has the record, such as ``order``; none if the body is the record."""
    create: _Request | None = None
    """Method and path of the request that creates a record, such as ``POST /orders``. A member in braces is sent in the
    path in place of the body: ``POST /stock/{stock_id}/adjustments``. Without it, records can only be completed, by
    streams with ``contributes``. A GraphQL mutation or a JSON-RPC call is an object with ``path``, and ``graphql`` with
    ``variables`` or ``body``; so are those of the next keys."""
    update: _Request | None = None
    """That changes one: PATCH sends the changed members (RFC 7396), PUT and POST all. Without it, a record is written
    once, and one that changes later is a dead letter."""
    delete: _Request | None = None
    """That deletes or cancels one, without a body; ``on_gone: delete`` needs it."""
    deleted: Filter | None = None
    """How a deleted record looks where the API still shows it, such as a cancelled order; fields are dotted paths."""
    read: _Request | None = None
    """That reads one; ``update`` and ``delete`` need it."""
    look_up: LookUpByName | Literal[False] = False
    """How a record is found by its external id; false if it cannot be."""
    idempotency_header: HeaderName | None = None
    """The header by which the API carries out a repeated request once, such as Idempotency-Key; none if it has none."""
    repeated: RepeatedAnswer | Literal["ignored"] | None = None
    """The answer by which the API refuses a second record with the same name; ``ignored`` if it answers with success
    and changes nothing; none if it accepts one."""
    conditional: bool = False
    """Changes honour ``If-Match`` (RFC 9110 section 13.1.1)."""
    compare: Mapping[str, MemberName] = {}
    """Compare-and-set: by member, the member of an update that has the value which the API should hold, such as
    ``quantity: expected_quantity``."""
    outdated: OutdatedAnswer | None = None
    """The answer by which the API refuses an update because the record has changed; 412 always says so."""

    @model_validator(mode="after")
    def _requests_fit(self) -> Self:
        for key, (form, methods, example) in _FORMS.items():
            request = getattr(self, key)
            if isinstance(request, str) and form.fullmatch(request) is None:
                raise misplaced((key,), f"must be a method ({methods}) and a path, such as {example}")
            if not isinstance(request, PostedRequest):
                continue
            needed = [_IN_BODY[key], ("id",)] if key == "update" else [_IN_BODY[key]]
            if missing := [names[0] for names in needed if not request.uses(*names)]:
                raise misplaced((key,), f"has no {{{missing[0]}}} in its body or variables")
            if request.id is not None and key != "create":
                raise misplaced((key, "id"), "is for create: other requests are about a known id")
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        changed = self.update is not None or self.delete is not None
        named, is_refused = self.name is not None, isinstance(self.repeated, RepeatedAnswer)
        missing = [name for name in self.members_in_path if name not in self.members or not self.members[name].required]
        for key, is_set, problem in (
            ("create", self.create is None and self.update is None, "is missing: without it, update is needed"),
            ("create", bool(missing), f"has {', '.join(missing)} in the path, which must be a required member"),
            ("read", changed and self.read is None, "is missing: an update or delete in doubt is looked up by its id"),
            ("look_up", bool(self.look_up) and not named, "needs name: the member that is asked for"),
            ("repeated", self.repeated == "ignored" and not named, "needs name: what the API knows a record by"),
            ("repeated", is_refused and not self.look_up, "needs look_up, which finds the id"),
            ("id", self.id == NAME and not named, "needs name: the member that is the id"),
            ("id_form", self.id == NAME and "id_form" in self.model_fields_set, "needs id: the place of an address"),
            ("compare", bool(self.compare) and self.update is None, "needs update"),
            ("compare", not self.members.keys() >= self.compare.keys(), "has a key that is not one of members"),
            ("outdated", self.outdated is not None and self.update is None, "needs update"),
            ("deleted", self.deleted is not None and self.delete is None, "needs delete"),
            ("conditional", self.conditional and not changed, "needs update or delete"),
            ("name", self.name in self.members, "holds the external id of the record: leave it out of members"),
            ("name_max_length", "name_max_length" in self.model_fields_set and not named, "needs name"),
            ("name_form", "name_form" in self.model_fields_set and not named, "needs name"),
        ):
            if is_set:
                raise misplaced((key,), problem)
        return self

    @property
    def is_posted(self) -> bool:
        """Whether requests are GraphQL mutations or calls, whose refusals are answers of success."""
        return any(isinstance(each, PostedRequest) for each in (self.create, self.update, self.delete, self.read))

    @property
    def members_in_path(self) -> list[str]:
        return IN_PATH.findall(self.create) if isinstance(self.create, str) else []


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
