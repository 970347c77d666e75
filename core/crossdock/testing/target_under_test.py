"""The description of a connector's target for its tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from urllib.parse import parse_qsl, unquote

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.errors import RecordError
from crossdock.resources import Reference
from crossdock.targets import Answer, ConnectorTarget, ExpectedRecord, Request, Update
from crossdock.testing.connector_context_and_reading import context
from crossdock.testing.connector_under_test import ConnectorUnderTest, shown_method_name
from crossdock.testing.graphql_selection import GraphQLRequest
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import exact_json
from crossdock.values.record_keys import key_text
from crossdock.values.texts_of_numbers_and_times import json_time_text
from crossdock.writing.targets.payload_comparison import merge_patch_between
from crossdock.writing.targets.target_code_guard import author_target_without_guard

__all__ = ["Example", "Refusals", "TargetUnderTest"]

NAMESPACE = "examples"
_ACCOUNT = "account"
Refusals = Sequence[tuple[Answer, str]]
"""Answers, each with a part of the reason in it."""
STATUS = {"create": 201, "update": 200, "delete": 200, "look_up": 200}


class TargetUnderTest(ConnectorUnderTest):
    """A target with example data; set the attributes of `ConnectorUnderTest` as well, and define `members`.

    Attributes:
        harmless: Requests other than GET that change nothing, such as ``POST /graphql``.
        throttling: Answers other than 429 by which the API limits the rate, each with the requested pause in seconds,
            or None.
        refusals: Answers other than 400 and 422 by which the API refuses a record, such as errors in an answer of
            success, each with a part of the reason in it. A mapping states them by operation, or by resource and
            operation, if an answer to one of them means nothing to another.
        ambiguous: Answers other than 5xx, 408 and redirects after which a write may have been executed, or still be in
            progress, such as the 409 while an earlier request with the same idempotency key is executed.
        expects: The requests that must be sent, as the author reads them off the vendor's documents: by resource and
            operation, the method, the path, and the body or None. A create sends `members` 0, an update changes them to
            `members` 1, and the id of the record is that of `target_id`. Members of the body that are not stated may
            have any value. Look-ups are ``look_up by id`` and ``look_up by name``; the name of the record is that of
            the key of record 0, such as ``examples:0000``.
        lists_others: Resources whose look-up by external id lists records of other names as well, such as all parcels
            of an order.
    """

    harmless: Collection[str] = ()
    throttling: Sequence[tuple[Answer, float | None]] = ()
    refusals: Refusals | Mapping[str | tuple[str, str], Refusals] = ()
    ambiguous: Sequence[Answer] = ()
    expects: Mapping[tuple[str, str], tuple[str, str, Any]] = {}
    lists_others: Collection[str] = ()

    def members(self, resource: str, number: int) -> Mapping[str, Any]:
        """Return the members of a draft of *resource*, without the external id. Each *number* from 0 gives other
        members.

        A reference is a `Reference` whose key is the number of the other record, as four digits.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method members")

    def key(self, resource: str, number: int) -> tuple[str, ...]:  # noqa: ARG002  a subclass uses it
        """Return the parts of the record key of *number*; by default its four digits.

        A target that looks records up by the parts of their keys, such as an order and a tracking number, defines it.
        """
        return (f"{number:04}",)

    def target_id(self, resource: str, number: int) -> str:  # noqa: ARG002  a subclass uses it
        """Return the id by which crossdock knows record *number*; by default 4711 for record 0, 4712 for the next one.

        An id that has parts, such as an order and a parcel, or that is the external id defines it.
        """
        return str(4711 + number)

    def operations(self, resource: str) -> Sequence[str]:
        """Return what streams may do to records of *resource*: by default what the target declares."""
        kind = self.new_target().resources[resource]
        declared = {"create": kind.creates, "update": not kind.write_once, "delete": kind.deletes}
        return [operation for operation, is_possible in declared.items() if is_possible]

    def before_create(self, resource: str, number: int) -> dict[str, Any]:  # noqa: ARG002  a subclass uses it
        """Return what the look-up before a create of record *number* finds in place of it, such as the order of a
        shipment: the argument ``held`` of `create_from`.
        """
        return {}

    # ---- answers of the API: JSON, or an `Answer` with another status, with headers, or without a body

    def stored(self, resource: str, target_id: str, payload: Mapping[str, Any]) -> Any:  # noqa: ARG002  a subclass uses it
        """Return the record as the API shows it after *payload* was sent; by default the payload with the member
        ``id``.
        """
        return {"id": target_id, **payload}

    def answered(self, resource: str, operation: str, record: Any) -> Any:  # noqa: ARG002  a subclass uses it
        """Return the JSON that answers an operation, or a ``look_up`` by id; by default the record itself."""
        return record

    def listing(self, resource: str, records: Sequence[Any]) -> Any:  # noqa: ARG002  a subclass uses it
        """Return the JSON that answers a look-up by external id; by default the list is the member ``data``.

        A target whose look-ups by external id answer with one record (`RecordShape.listed` is None) needs `answered`
        alone.
        """
        return {"data": list(records)}

    def removed(self, resource: str, record: Any) -> Any:  # noqa: ARG002  a subclass uses it
        """Return *record*, which `stored` made, as a look-up by its id shows it after it was deleted or cancelled; None
        if that answers as `missing`. Without this method it is not tested what the target makes of such a record.
        """
        return None

    def missing(self, resource: str) -> Answer:
        """Return the answer to the look-up of one record that does not exist; by default 404, or null in place of the
        record if that alone says so (`RecordShape.null_is_absent`).
        """
        shape = self.new_target().resources[resource].shape
        if shape.null_is_absent:
            given = self.answered(resource, "look_up", None)
            return given if isinstance(given, Answer) else json_answer(STATUS["look_up"], given)
        text = shape.absent or "not found"
        return Answer(404, {"content-type": "application/json"}, exact_json.dumps({"message": text}))

    def repeated(self, resource: str) -> Answer | None:  # noqa: ARG002  a subclass uses it
        """Return the API's answer to a second create with the same external id: its refusal, or the record if the API
        replaces it. A target that relies on it needs this.
        """
        return None

    def replaces(self, resource: str) -> bool:
        """Return whether `repeated` states that a second create with the same external id replaces the record."""
        answer = self.repeated(resource)
        return answer is not None and 200 <= answer.status < 300

    def refusals_of(self, resource: str, operation: str) -> Refusals:
        """Return those of `refusals` that are stated for an operation."""
        stated = self.refusals
        if not isinstance(stated, Mapping):
            return stated
        return [*stated.get(operation, ()), *stated.get((resource, operation), ())]

    # ---- the target

    def new_target(self) -> ConnectorTarget:
        """Make the target of a connection with *settings*, connected as crossdock does. Tests of your own call its
        methods, such as ``self.new_target().found(...)``.
        """
        with self.in_environment():
            settings = context(self.connector, self.settings).settings
            made = Connection(self.connector.name, self.connector, settings, ()).target(_ACCOUNT, ManualClock())
        assert made is not None, f"the connector {self.connector.name!r} declares no target, or no API"
        return made

    def example(self, target: ConnectorTarget, resource: str, number: int = 0, key: str | None = None) -> Example:
        """Return a record with the members of *number*, under its own key unless another one is given."""
        draft = target.resources[resource].draft.model_validate(dict(self.members(resource, number)))
        members = convert_to_json_value(draft.payload(), lambda reference: f"id-{reference.resource}-{reference.key}")
        own_key = key_text(self.key(resource, number)) if key is None else key
        one = Example.of(
            target, resource, own_key, members, self.target_id(resource, number), self.before_create(resource, number)
        )
        is_looked_up = "update" in target.resources[resource].endpoint.looks_up_first
        return replace(one, found=self._found_members(one)) if is_looked_up else one

    def beside(self, one: Example) -> Iterator[Example]:
        """Yield records that the look-up of *one* by its external id requests, too: those with the same parent, such as
        two parcels of an order. Their keys are that of *one* with some parts of the key of another record.
        """
        if not self._uses_record_keys_of_partner or not one.target.resources[one.resource].endpoint.look_up:
            return
        parts, others = (self.key(one.resource, number) for number in (0, 1))
        for number, part in enumerate(others[: len(parts)]):
            try:
                key = key_text((*parts[:number], part, *parts[number + 1 :]))
                another = self.example(one.target, one.resource, 1, key)
                same = (one.target.look_up(one.resource, each.name, None) for each in (one, another))
                if another.name != one.name and next(same) == next(same):
                    yield another
            except RecordError:
                continue  # there is no such record

    @property
    def _uses_record_keys_of_partner(self) -> bool:
        """Whether keys are parts that the partner knows, such as an order and a number, and not any texts."""
        return type(self).key is not TargetUnderTest.key

    def _api_answer_to_operation(self, one: Example, operation: str, record: Any) -> Answer:
        """Return the answer of the API to an operation, or to a look-up by id."""
        given = self.answered(one.resource, operation, record)
        return given if isinstance(given, Answer) else json_answer(STATUS[operation], given)

    def _found_members(self, one: Example) -> Mapping[str, Any]:
        """Return the members that a look-up by id finds."""
        shown = self._api_answer_to_operation(one, "look_up", self.stored(one.resource, one.target_id, one.payload))
        shown = answer_with_selected_members(one.target.look_up(one.resource, None, one.target_id), shown)
        return one.target.found(one.resource, shown, ExpectedRecord(target_id=one.target_id, name=one.name)).held or {}


@dataclass(frozen=True, slots=True)
class Example:
    """A record that is sent to a target.

    Attributes:
        held: What the look-up before a create finds in place of it.
        found: What the look-up before an update finds, if there is one.
    """

    target: ConnectorTarget
    resource: str
    key: str
    payload: dict[str, Any]
    name: str | None
    target_id: str
    held: dict[str, Any]
    found: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        target: ConnectorTarget,
        resource: str,
        key: str,
        members: dict[str, Any],
        target_id: str,
        held: dict[str, Any],
    ) -> Example:
        payload, name = target.payload(resource, NAMESPACE, key, members), target.name_of(resource, NAMESPACE, key)
        own_id = name if name and target.resources[resource].shape.id is None else target_id
        return cls(target, resource, key, payload, name, own_id, held)

    def method(self, operation: str) -> str:
        """Return how messages name the method of an operation, or of a look-up, and the resource."""
        name, _, how = operation.partition(" ")
        name = "create_from" if name == "create" and self._looks_up_first else name
        shown = shown_method_name(author_target_without_guard(self.target), name)
        return f"{shown}, {self.resource}{f' {how}' if how else ''}"

    @property
    def _looks_up_first(self) -> bool:
        return "create" in self.target.resources[self.resource].endpoint.looks_up_first

    @property
    def name_pointer(self) -> str:
        """Where the payload has the external id."""
        return self.target.resources[self.resource].name_pointer

    @property
    def name_in_payload(self) -> str | None:
        """The external id, as the engine finds it in the accepted payload."""
        return self.target.name_in(self.resource, self.payload)

    def is_named_in(self, request: Request, *, whole: bool) -> bool:
        """Return whether a request has the external id; unless *whole*, `name_member` of several suffices."""
        members = self.target.members_of_name(self.resource, self.name or "") or {"": self.name or ""}
        member = self.target.resources[self.resource].name_member
        wanted = [text for name, text in members.items() if whole or name in {"", member}]
        return all(any(each in text for text in texts_in_request(request)) for each in wanted)

    def create(self) -> Request:
        if self._looks_up_first:
            return self.target.create_from(self.resource, self.payload, deepcopy(self.held))
        return self.target.create(self.resource, self.payload)

    def update_to(self, after: dict[str, Any], target_id: str) -> Request:
        """Make the request that changes the payload to *after*."""
        before = deepcopy({**self.found, **self.payload})
        return self.target.update(
            self.resource, target_id, Update(before, merge_patch_between(self.payload, after), after)
        )

    def requests(self, after: dict[str, Any], target_id: str, operations: Collection[str]) -> dict[str, Request]:
        """Return every request about the record, by operation.

        Args:
            after: The payload that an update makes.
        """
        target, found = self.target, {"ping": self.target.ping(self.resource)}
        if "create" in operations:
            found["create"] = self.create()
        if "update" in operations:
            found["update"] = self.update_to(after, target_id)
        if "delete" in operations:
            found["delete"] = target.delete(self.resource, target_id)
        if {*operations} - {"create"}:
            found["look_up by id"] = target.look_up(self.resource, None, target_id)
        if target.resources[self.resource].endpoint.look_up:
            found["look_up by name"] = target.look_up(self.resource, self.name, None)
        return found

    def expected(self, request: Request, target_id: str | None) -> ExpectedRecord:
        return ExpectedRecord(request.path, target_id, self.name)


def answer_with_selected_members(request: Request, answer: Answer) -> Answer:
    """Return an answer with the members that a GraphQL request selects alone, as an API gives them."""
    asked = GraphQLRequest.parse_body(request.body)
    try:
        body = exact_json.loads(answer.body or b"null")
    except ValueError:
        return answer
    if asked is None or not asked.unselected_members(body):
        return answer
    return replace(answer, body=exact_json.dumps(asked.answer_with_selected_members(body)))


def json_answer(status: int, body: Any) -> Answer:
    return Answer(status, {"content-type": "application/json"}, exact_json.dumps(body))


def convert_to_json_value(value: Any, of_reference: Callable[[Reference], Any]) -> Any:
    """Convert *value* to JSON, with times as the engine writes them and the result of *of_reference* for references."""
    match value:
        case Reference():
            return of_reference(value)
        case dict():
            return {name: convert_to_json_value(inner, of_reference) for name, inner in value.items()}
        case list():
            return [convert_to_json_value(inner, of_reference) for inner in value]
        case date():
            return json_time_text(value)
    return value


def texts_in_request(request: Request) -> Iterator[str]:
    """Yield the parts of the path, decoded, the values of the query, and the texts of the JSON body."""
    path, _, query = request.path.partition("?")
    yield unquote(path)
    yield from (value for _, value in parse_qsl(query, keep_blank_values=True))
    if request.body is not None:
        yield from _texts(exact_json.loads(request.body))


def _texts(value: Any) -> Iterator[str]:
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)
    if isinstance(value, str | int):
        yield str(value)
