"""The interface of a target for delivery, planning and state: its resources, requests and answers.

`ConnectorTarget` is the base of the targets of connectors, with what their connection gives them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, final
from urllib.parse import quote, urlencode
from uuid import uuid4

from msgspec import Struct

from crossdock.errors import RecordError
from crossdock.mapping.external_ids import DEFAULT_FORM, NameMembers, make_external_id_from_form
from crossdock.mapping.resource_types import ResourceType
from crossdock.mapping.stream_declaration import Filter
from crossdock.pacing import answer_headers
from crossdock.pacing.answer_headers import RateHeaders
from crossdock.pacing.rate_limit_and_retry_settings import LimitSettings, Retry
from crossdock.pacing.token_bucket import BucketState, LimitEstimate
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.values import exact_json
from crossdock.values.clock import Clock
from crossdock.values.json_paths import copy_with_value_at_path
from crossdock.writing.targets.answer_outcomes import STANDARD, ExpectedRecord, Outcome, RecordShape

if TYPE_CHECKING:
    from crossdock.reading.sources.api_declaration import Api

_UNKNOWN = "crossdock"  # the namespace of names that do not exist

Rule = Literal["resend", "verify", "park"]
"""What is done about a request that may have been executed: send the same bytes again, look the record up, or leave it
to a person.
"""


@dataclass(frozen=True, slots=True)
class Request:
    """The exact bytes of an operation, before it has an idempotency key.

    Attributes:
        path: The path below the target's address.
        holds_payload: Whether the body is exactly the canonical JSON of the payload, so that the state stores it once.
        receipt: Of a stored batch, the last `Outcome.receipt`; empty without one.
    """

    method: str
    path: str
    body: bytes | None = None
    holds_payload: bool = False
    receipt: str = ""

    @classmethod
    def json(cls, method: str, path: str, value: Any) -> Request:
        """Make a request with a JSON body. Its numbers are `int` or `Decimal`."""
        return cls(method, path, exact_json.dumps(value))


@dataclass(frozen=True, slots=True)
class Update:
    """What an update does to a record.

    Attributes:
        before: What the target holds, as far as known: the last accepted payload, or what a look-up found.
        changes: A JSON merge patch (RFC 7396).
        after: The whole payload.
    """

    before: Mapping[str, Any]
    changes: dict[str, Any]
    after: dict[str, Any]


class Client(Protocol):
    """Sends requests of one thread."""

    def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """Send one request and read its whole answer.

        Raises:
            NotSentError, AmbiguousError: See `crossdock.reading.transport.http_answers_and_errors`.
            UnauthorizedError: If no token is granted; nothing was sent.
        """

    def close(self) -> None: ...


@final
@dataclass(frozen=True, slots=True)
class EndpointProfile:
    """The guarantees of the endpoint of a resource.

    Attributes:
        idempotent: Whether the same create, sent again, has no second effect: the target keeps idempotency keys, or
            refuses a second record with the same external id.
        look_up: Whether a record can be looked up by its external id.
        conditional: Whether updates honour ``If-Match`` (RFC 9110 section 13.1.1).
        compares: Whether updates contain the values that they replace, from `Update.before`. A record is looked up
            before the first update, which is made after that.
        looks_up_first: The operations before which a record is looked up each time. Their requests are made only after
            that, of what was found: a create by `Requests.create_from`, an update with it as `Update.before`.
        header: The header with the idempotency key; None for a target that relies on the external id.
        key_member: The member of a body that has the idempotency key, in place of a header: a path or JSON pointer. A
            deletion is looked up, since it may have no body.
        rules: What is done about an operation in doubt, by operation, where it is not what the other guarantees give.
        reads: Whether a record can be read by its id.
        accepted: Whether 202 Accepted counts as delivered, because the target refuses nothing after it. Otherwise the
            record is looked up, and in doubt until it is seen.
    """

    idempotent: bool = False
    look_up: bool = False
    reads: bool = field(default=True, kw_only=True)
    accepted: bool = field(default=False, kw_only=True)
    conditional: bool = False
    compares: bool = False
    looks_up_first: frozenset[Literal["create", "update"]] = frozenset()
    header: str | None = None
    key_member: str | None = field(default=None, kw_only=True)
    rules: Mapping[str, Rule] = field(default_factory=dict)

    def has_key(self, operation: str) -> bool:
        """Return whether the target keeps the idempotency key of such a request."""
        return self.header is not None or (self.key_member is not None and operation != "delete")

    def rule(self, operation: str) -> Rule:
        """Return what to do about an operation that may have been executed."""
        if operation in self.rules:
            return self.rules[operation]
        if self.has_key(operation) or (self.idempotent and operation == "create"):
            return "resend"
        return self.rule_without_key(operation)

    def rule_without_key(self, operation: str) -> Rule:
        """Return the rule for when the idempotency key has expired at the target."""
        return "verify" if self.can_verify(operation) else "park"

    def can_verify(self, operation: str) -> bool:
        """Return whether a look-up can verify the operation: by the known id, or a create by external id."""
        return self.look_up if operation == "create" else self.reads


@final
@dataclass(frozen=True, slots=True)
class BatchProfile:
    """Operations that the endpoint takes together, several in one request with an outcome for each.

    Attributes:
        size: The most operations in one request, at least 1. A single one is sent in the same form.
        operations: The operations that it takes; others are sent one by one.
        atomic: Whether a request that is refused as a whole has changed nothing. If it may have changed something, its
            operations are in doubt, and `EndpointProfile.rule` decides about each.
        stored: Whether it is made once, by `Requests.stored_batch`, and stored with a number, as a file is. It is sent
            in two parts, `STAGE` and `HAND_OVER`, of which only the second has an effect, and never divided.
        mixed: Whether a stored batch has operations of different kinds, in their order.
        by: The member of payloads whose value all operations of a stored batch have in common; None for none.
        most_bytes: The most bytes of a stored batch, as `Requests.stored_size` counts them; None for any number.
        results_within_s: Seconds in which a run waits for the outcomes of a stored batch that is ``pending``. The next
            run asks for those that are still to come. A batch that the target does not know in all of that time is in
            doubt.
        acknowledged_within_s: Seconds in which the target acknowledges each operation of a stored batch, by other
            means; None if it does not, and a batch that was handed over is delivered.
    """

    size: int
    operations: frozenset[Literal["create", "update", "delete"]] = frozenset({"create"})
    atomic: bool = False
    stored: bool = field(default=False, kw_only=True)
    mixed: bool = field(default=False, kw_only=True)
    by: str | None = field(default=None, kw_only=True)
    most_bytes: int | None = field(default=None, kw_only=True)
    results_within_s: float = field(default=0.0, kw_only=True)
    acknowledged_within_s: float | None = field(default=None, kw_only=True)


STAGE, HAND_OVER, HAND_OVER_AGAIN = "STAGE", "HAND_OVER", "HAND_OVER_AGAIN"
"""The methods of the requests of a stored batch: one that has no effect and may be repeated, such as the upload under a
temporary name; the one that has the effect; and that again, after one that may have had it.
"""


@final
class BatchItem(Struct, frozen=True):
    """One operation of a stored batch.

    Attributes:
        name: The external id of its record.
        payload: What the target will hold; of a delete, what it holds.
    """

    operation: Literal["create", "update", "delete"]
    name: str
    payload: Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class TargetResource(ResourceType):
    """A type of record that a target writes.

    Attributes:
        shape: Where answers have records and ids. The external id is in `name_member` of a record.
        name_member: The member of a payload that holds the external id; None if records have none.
        name_parts: How several members hold the external id together, such as ``{"source": "{namespace}", "number":
            "{key}"}``; ``{key.0}`` and ``{key.1}`` are the parts of a key of two columns. `name_member` is the one of
            them by which records are looked up.
        name_limit: The maximum number of characters of an external id, or of each of `name_parts`.
        name_form: How an external id is made of ``{namespace}`` and ``{key}``; ``{key}`` alone only where the account
            has no records of others.
        holds_records: Whether the target keeps what is created; False for an action, which is only executed.
        look_up_setting: The setting below the target's section that controls look-ups, for hints.
        path: Where the API has the records, such as ``/v1/orders``. It gives each request for which the target has no
            method: POST to it creates a record, PATCH and DELETE of ``PATH/ID`` change and delete one, GET of
            ``PATH/ID`` looks one up by its id and GET of ``PATH?look_up_filter=NAME`` by its external id.
        update_method: The method of the request of an update: PATCH sends the changed members, PUT and POST the whole
            record.
        body: The member that has the record in the bodies of creates and updates; None if they are the record.
        look_up_filter: The parameter of a look-up by external id; None for `name_member`.
        deleted: How a record looks that was deleted or cancelled, if the API still shows it; fields are dotted paths. A
            look-up by its id takes it for absent. One by its external id leaves it out beside others, and says
            ``removed`` if there is no other.
        shown: The members of a payload that a look-up shows as they were sent; None for all. Others are not compared
            with what it shows, such as the code of a country where it shows an object.
        divided_name: How several members hold the external id, made of `name_parts`; None if one does.
        batch: The operations that are sent together; None if each has a request of its own.
        acknowledges: Whether its records are acknowledgements of what was handed over to this target, which are
            settled and not sent; its draft is `crossdock.writing.targets.file_target.Acknowledgement`.
    """

    endpoint: EndpointProfile = EndpointProfile()
    shape: RecordShape = STANDARD
    name_member: str | None = None
    name_limit: int = 100
    holds_records: bool = field(default=True, kw_only=True)
    look_up_setting: str = field(default="look_up", kw_only=True)
    path: str | None = field(default=None, kw_only=True)
    update_method: Literal["PATCH", "PUT", "POST"] = field(default="PATCH", kw_only=True)
    body: str | None = field(default=None, kw_only=True)
    look_up_filter: str | None = field(default=None, kw_only=True)
    deleted: Filter | None = field(default=None, kw_only=True)
    name_parts: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    name_form: str = field(default=DEFAULT_FORM, kw_only=True)
    shown: frozenset[str] | None = field(default=None, kw_only=True)
    batch: BatchProfile | None = field(default=None, kw_only=True)
    acknowledges: bool = field(default=False, kw_only=True)
    divided_name: NameMembers | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.name_parts:  # once, and not for each record
            object.__setattr__(self, "divided_name", NameMembers(self.name_parts, self.name_form))
        if self.divided_name is not None and self.name_member not in self.name_parts:
            raise ValueError("name_member must be one of name_parts: the one by which records are looked up")

    def together(self, operation: str) -> int | None:
        """Return how many operations of this kind one request takes at most; None if each has its own form."""
        return self.batch.size if self.batch is not None and operation in self.batch.operations else None

    def comparable(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the *members* of a payload, or of what was found, that a look-up shows as they were sent."""
        shown = self.shown
        names = {*(shown or ()), *self.name_members}
        return {name: each for name, each in members.items() if shown is None or name in names}

    def in_body(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the body that has *record*, or members of one."""
        return record if self.body is None else {self.body: record}

    @property
    def name_members(self) -> frozenset[str]:
        """The members of a payload that hold the external id."""
        return frozenset(self.name_parts or ((self.name_member,) if self.name_member is not None else ()))

    @property
    def name_pointer(self) -> str:
        """The JSON pointer by which an answer reports that another record has the external id."""
        return self.shape.name if self.name_member is None else f"/{self.name_member}"


class RecordNames:
    """The external ids of records, and payloads that have them. All of it is pure.

    Attributes:
        resources: The resources by name, parents before those that refer to them.
    """

    resources: Mapping[str, TargetResource]

    def check_key(self, resource: str, namespace: str, key: str) -> None:
        """Raise RecordError if the target cannot give this record an external id."""
        kind, name = self.resources[resource], self.name_of(resource, namespace, key)
        divided = kind.divided_name
        texts = [name or ""] if divided is None else divided.members_of_key(namespace, key).values()
        if any(len(text) > kind.name_limit for text in texts):
            message = f"namespace and record key together exceed {kind.name_limit} characters"
            raise RecordError("invalid_draft", message, pointer=kind.name_pointer)

    def name_of(self, resource: str, namespace: str, key: str) -> str | None:
        """Return the record's external id at the target, by which it can be looked up; None if it has none."""
        kind = self.resources[resource]
        return None if kind.name_member is None else make_external_id_from_form(kind.name_form, namespace, key)

    def name_in(self, resource: str, payload: Mapping[str, Any]) -> str | None:
        """Return the external id in a payload that the target accepted; None if it has none."""
        kind = self.resources[resource]
        if (divided := kind.divided_name) is not None:
            found = divided.external_id_in(payload)
            return found if isinstance(found, str) else None
        name: str | None = payload.get(kind.name_member or "")
        return name

    def members_of_name(self, resource: str, name: str) -> dict[str, str]:
        """Return the members of a payload that hold this external id: one, or those of `TargetResource.name_parts`."""
        kind = self.resources[resource]
        if (divided := kind.divided_name) is not None:
            return divided.members_of_external_id(name)
        return {} if kind.name_member is None else {kind.name_member: name}

    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return what the target will hold: the members of a draft with resolved references, and the external id."""
        name = self.name_of(resource, namespace, key)
        return members if name is None else {**self.members_of_name(resource, name), **members}


class Requests(RecordNames):
    """The requests of operations. All of it is pure.

    A subclass has the methods of the operations that its resources declare, and those for which `TargetResource.path`
    does not suffice.
    """

    def record_path(self, resource: str, target_id: str) -> str:
        """Return the path of a record: that of its resource, and its id, percent-encoded."""
        return f"{self.resources[resource].path}/{quote(target_id, safe='')}"

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        kind = self.resources[resource]
        body = exact_json.dumps(kind.in_body(payload))
        return Request("POST", kind.path or "", body, holds_payload=kind.body is None)

    def create_from(self, resource: str, payload: dict[str, Any], held: dict[str, Any]) -> Request:
        """Make the request that creates a record of a resource that is looked up before each create.

        Args:
            held: What a look-up has found in place of the record, such as the order of a shipment.

        Raises:
            RecordError: If it cannot be created there.
        """
        raise NotImplementedError

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        """Make the request that changes a record, of *update* alone.

        If the record is looked up first (`EndpointProfile.looks_up_first`), it is called only after that, and
        ``update.before`` has all members that were found, such as the version that the API wants back.
        """
        kind = self.resources[resource]
        sent = update.changes if kind.update_method == "PATCH" else update.after
        return Request.json(kind.update_method, self.record_path(resource, target_id), kind.in_body(sent))

    def delete(self, resource: str, target_id: str) -> Request:
        return Request("DELETE", self.record_path(resource, target_id))

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        """Make the request that looks a record up by its id, or by its external id if the id is unknown."""
        if target_id is not None:
            return Request("GET", self.record_path(resource, target_id))
        kind = self.resources[resource]
        asked = self.members_of_name(resource, name or "").get(kind.name_member or "", name)
        return Request("GET", f"{kind.path}?{urlencode({kind.look_up_filter or kind.name_member or '': asked})}")

    def ping(self, resource: str) -> Request:
        """Make a harmless request that shows whether the target answers."""
        return Request("GET", self.resources[resource].path or "")

    def batch(self, resource: str, requests: Sequence[Request]) -> Request:
        """Make one request of *requests*: operations of one kind with the same method and path, in this order.

        For resources with `TargetResource.batch`. Each comes as `create`, `update` or `delete` made it, with its key.
        """
        raise NotImplementedError

    def stored_batch(self, resource: str, items: Sequence[BatchItem], number: int, at: datetime) -> Request:
        """Make the request of a batch that is stored, for resources with `BatchProfile.stored`.

        Args:
            number: Of the batches of this target, from 1. None has it twice.
            at: When it is made.

        Returns:
            A request whose path is a slash and a name that no other batch of the target has, and whose body has its
            exact bytes.
        """
        raise NotImplementedError

    def stored_size(self, resource: str, item: BatchItem) -> int:
        """Return the most bytes that *item* takes in a stored batch, for resources with `BatchProfile.most_bytes`."""
        raise NotImplementedError

    def batch_name(self, resource: str, number: int, at: datetime) -> str:
        """Return the name of a stored batch with these facts, before it is made."""
        raise NotImplementedError

    def destination(self, resource: str) -> str:
        """Describe where stored batches are handed over. Another one holds nothing of what was begun at this one."""
        raise NotImplementedError

    def with_key(self, resource: str, request: Request, idempotency_key: str) -> Request:
        """Add the idempotency key to the body of *request*, where `EndpointProfile.key_member` says."""
        member = self.resources[resource].endpoint.key_member
        if member is None or request.body is None:
            return request
        body = copy_with_value_at_path(exact_json.loads(request.body), member, idempotency_key)
        return replace(request, body=exact_json.dumps(body), holds_payload=False)

    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:  # noqa: ARG002
        """Return the headers of a request in addition to those of the client.

        Args:
            if_match: The entity tag of the version that may be changed; None for any.
        """
        return {}


class Answers(ABC):
    """The meaning of answers. All of it is pure."""

    @abstractmethod
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        """Return the outcome of a create, update or delete with this answer."""

    def batch_outcomes(
        self, resource: str, answer: Answer, expected: Sequence[ExpectedRecord]
    ) -> Outcome | Sequence[Outcome]:
        """Return the outcome of each operation of a batch, in the order of *expected*, or one outcome of them all.

        An operation that *answer* says nothing about is ``in_doubt``. One that is ``rejected`` with the status 424 was
        not executed because of another one, and is sent again with fewer others.
        """
        raise NotImplementedError

    @abstractmethod
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        """Return the outcome of a look-up: ``found`` with the members that the target holds, or ``absent``.

        By external id it may also be ``removed``: only removed records at the target have it. If a resource is looked
        up before each create, ``absent`` has the argument of `Requests.create_from` in `Outcome.held`.
        """

    def limit(self, answer: Answer) -> RateHeaders | None:
        """Return the rate limit, in requests, that an answer reports, or None."""
        return answer_headers.read_rate_limit_headers(answer.headers)

    def also_changes(self, resource: str, payload: Mapping[str, Any]) -> Iterable[tuple[str, str]]:  # noqa: ARG002
        """Return what else a write of *payload* changes at the target, such as the stock of a shipped product.

        The content of these records becomes unknown, and the next run looks them up. Each resource comes with a prefix
        of the keys of its changed records.
        """
        return ()

    @abstractmethod
    def advice(self, resource: str, status: int | None) -> str:
        """Return what to check after a refusal that concerns every record."""


class Target(Requests, Answers):
    """A system that operations are sent to. It is thread-safe.

    Attributes:
        resources: The resources by name, parents before those that refer to them.
        name: The name in the state, in reports, and in ``to`` of streams.
        title: The words for the target in a sentence.
        account: The account whose data the requests change; part of idempotency keys.
        place: Its section in the config, for hints.
        retry: How often a request is sent again, and after which pauses.
        in_flight: Most requests in flight, and thus most that can be in doubt after a crash.
        kept_s: Seconds for which the target keeps an idempotency key; a request is not resent after that.
        settle_s: Seconds after which an unanswered request has either taken effect or never will.
        is_of_author: Whether an author has written it, so that its code may fail.
        first_number: The number of its first stored batch, or of the next one if that is higher.
        account_at_address: What tells accounts at one address apart, such as a channel: records of one are not those of
            another. Empty if the address tells it.
    """

    name: str
    title: str
    account: str
    place: str
    retry: Retry
    in_flight: int
    kept_s: float
    settle_s: float
    is_of_author: bool = True
    first_number: int = 1
    account_at_address: str = ""

    @property
    @abstractmethod
    def address(self) -> str:
        """The address to which requests are sent, for messages."""

    def folder_at_address(self, resource: str) -> str:  # noqa: ARG002
        """Return the part of the address that only *resource* has, such as a folder; empty if there is none."""
        return ""

    @property
    @abstractmethod
    def rate(self) -> LimitSettings:
        """The rate limit before the first answer."""

    def estimate(self, earlier: BucketState | None) -> LimitEstimate:
        """Return the rate limit, with what *earlier* runs found."""
        return self.rate.estimate(earlier.estimate if earlier else None)

    @abstractmethod
    def client(self) -> Client:
        """Make an authorized client for one thread. Raises ConfigError if it cannot read the credential."""

    def send(
        self,
        client: Client,
        resource: str,
        request: Request,
        idempotency_key: str | None = None,
        if_match: str | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """Send a request as long as *may_leave* returns True. Fails as `Client.send`."""
        headers = self.headers(resource, idempotency_key, if_match)
        return client.send(request.method, request.path, body=request.body, headers=headers, may_leave=may_leave)


def external_id_of_no_record(target: RecordNames, resource: str) -> str | None:
    """Return an external id that no record has. It is no longer than the target permits."""
    kind = target.resources[resource]
    most = max(1, kind.name_limit - len(make_external_id_from_form(kind.name_form, _UNKNOWN, "")))
    parts = 0 if kind.divided_name is None else kind.divided_name.key_part_count
    return target.name_of(resource, _UNKNOWN, "|".join([uuid4().hex[:most]] * max(1, parts)))


GONE = frozenset({404, 410})


def reason_if_gone_is_unproved(
    target: Target, resource: str, gone: Answer, send: Callable[[str, Request], Answer], *, is_doubted: bool = False
) -> str | None:
    """Ask for something else after a look-up by id that was answered *gone*, and return why that proves nothing.

    A server in front of the target, or at a wrong address, gives the same answer to both. It may have the path or the
    time in it, so that no 404 is believed if the list that look-ups filter is not there, either.

    Args:
        is_doubted: Whether no other record of the resource was found, so that any answer of 404 is the same.
    """
    ping = target.ping(resource)
    answer = send(resource, ping)
    is_same = (answer.status, answer.body) == (gone.status, gone.body)
    if not is_same and not (answer.status in GONE and (is_doubted or _is_look_up_list(target, resource, ping))):
        return None
    message = f"answers HTTP {gone.status} to {ping.method} {ping.path.partition('?')[0]}, too"
    return f"{message}, which does not show that a record is gone"


def _is_look_up_list(target: Target, resource: str, ping: Request) -> bool:
    kind = target.resources[resource]
    if not kind.endpoint.look_up or kind.name_member is None:
        return False
    asked = target.look_up(resource, external_id_of_no_record(target, resource), None)
    return asked.path.partition("?")[0] == ping.path.partition("?")[0]


def lacking_method_problem(target: Target) -> str | None:
    """Return which method *target* lacks for an operation that one of its resources declares, or None."""
    for kind in target.resources.values():
        create = "create_from" if "create" in kind.endpoint.looks_up_first else "create"
        needed = {create: kind.creates, "update": not kind.write_once, "delete": kind.deletes}
        needed |= {"look_up": True, "ping": True}
        if kind.path is not None:  # it gives all of them but `create_from`
            needed = {"create_from": kind.creates and create == "create_from"}
        is_stored = kind.batch is not None and kind.batch.stored
        needed |= {"batch": kind.batch is not None and not is_stored, "stored_batch": is_stored}
        needed |= {"batch_outcomes": kind.batch is not None}
        for method in (name for name, is_needed in needed.items() if is_needed):
            if getattr(type(target), method) is getattr(Target, method):
                return f"it has no method {method}, which its resource {kind.name} needs"
    return None


class ConnectorTarget(Target):
    """The base of `ApiTarget` and of targets that are no APIs, with the attributes of both."""

    retry = Retry()
    in_flight = 8
    kept_s: float = 86_400
    settle_s: float = 60.0

    def connect(self, connection: str, account: str, api: Callable[[], Api], clock: Clock) -> None:
        """Called by the engine before anything is sent. *api* declares the API of the connection, if it has one."""
        self.name = self.title = connection
        self.account, self.place = account, f"connections.{connection}"
        self._declared, self._clock = api, clock

    def advice(self, resource: str, status: int | None) -> str:  # noqa: ARG002  for subclasses
        return f"check {self.place}"

    @abstractmethod
    def reach(self) -> str:
        """Test whether the target can be reached, and return what that shows. Changes nothing.

        Raises:
            CrossdockError: If it cannot.
        """
