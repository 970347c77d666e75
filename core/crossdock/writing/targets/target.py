"""What delivery, planning and state know of a target: its resources, its requests, and what its answers mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from crossdock.errors import ConnectorError, RecordError
from crossdock.mapping.resource_types import ResourceType, external_id
from crossdock.pacing import rate_headers
from crossdock.pacing.rate_headers import RateHeaders
from crossdock.pacing.rate_limit import LimitSettings
from crossdock.platform.delivery_settings import Retry
from crossdock.reading.transport.http_answers import Answer
from crossdock.values import exact_json
from crossdock.writing.targets.outcomes import STANDARD, ExpectedRecord, Outcome, RecordShape

Rule = Literal["resend", "verify", "park"]
"""What is done about a request that may have been carried out: send the same bytes again, look the record up, or leave
it to a person."""


@dataclass(frozen=True, slots=True)
class Request:
    """The exact bytes of an operation, before it has an idempotency key.

    Attributes:
        path: Below the target's address.
        holds_payload: The body is the canonical JSON of the payload and nothing else, so the state keeps it once.
    """

    method: str
    path: str
    body: bytes | None = None
    holds_payload: bool = False

    @classmethod
    def json(cls, method: str, path: str, value: Any) -> Request:
        """A request with a JSON body; its numbers are `int` or `Decimal`."""
        return cls(method, path, exact_json.dumps(value))


@dataclass(frozen=True, slots=True)
class Update:
    """What an update does to a record.

    Attributes:
        before: What the target holds as far as it is known: what it last accepted, or what a look-up found.
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
            NotSentError, AmbiguousError: See `crossdock.reading.transport.http_answers`.
            UnauthorizedError: If no token is granted; nothing was sent.
        """

    def close(self) -> None: ...


class Target(ABC):
    """A system that operations are sent to; thread-safe. Everything but `client` is pure.

    Attributes:
        name: In the state, in reports, and in ``to`` of streams.
        title: The target in a sentence.
        account: Whose data the requests change; part of idempotency keys.
        place: Its section of the config, for hints.
        resources: By name, parents before those that refer to them.
        in_flight: Most requests in flight, and thus most that can be in doubt after a crash.
        kept_s: Seconds for which the target remembers an idempotency key; a request is not resent after that.
        settle_s: Seconds after which an unanswered request has either taken effect or never will.
        is_of_author: Whether an author has written it, so that its code may fail.
    """

    name: str
    title: str
    account: str
    place: str
    resources: Mapping[str, ResourceType]
    retry: Retry
    in_flight: int
    kept_s: float
    settle_s: float
    is_of_author: bool = True

    def take_defects(self) -> Sequence[ConnectorError]:
        """Errors in its code that harmed no record, and that no run has reported yet."""
        return ()

    @property
    @abstractmethod
    def address(self) -> str:
        """Where requests are sent, for messages."""

    @property
    @abstractmethod
    def rate(self) -> LimitSettings:
        """The limit before the first answer."""

    # ---- requests

    @abstractmethod
    def name_member(self, resource: str) -> str | None:
        """The member of a payload that holds our name for a record; None for a record without a name."""

    @abstractmethod
    def name_limit(self, resource: str) -> int:
        """The most characters of a name."""

    def name_pointer(self, resource: str) -> str:
        """Where an answer reports that another record has the name, as a JSON pointer."""
        return f"/{self.name_member(resource)}"

    def check_key(self, resource: str, namespace: str, key: str) -> None:
        """Check that the target can name this record.

        Raises:
            RecordError: If it cannot.
        """
        name, limit = self.name_of(resource, namespace, key), self.name_limit(resource)
        if name is not None and len(name) > limit:
            message = f"namespace and record key together exceed {limit} characters"
            raise RecordError("invalid_draft", message, pointer=self.name_pointer(resource))

    def name_of(self, resource: str, namespace: str, key: str) -> str | None:
        """The name of our record at the target, by which it can be looked up; None if it has none."""
        return None if self.name_member(resource) is None else external_id(namespace, key)

    def name_in(self, resource: str, payload: Mapping[str, Any]) -> str | None:
        """Our name for the record in a payload that the target accepted; None if it has none."""
        name: str | None = payload.get(self.name_member(resource) or "")
        return name

    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        """What the target will hold: the members of a draft, references resolved, and our name where it has one."""
        member = self.name_member(resource)
        return members if member is None else {member: self.name_of(resource, namespace, key), **members}

    @abstractmethod
    def create(self, resource: str, payload: dict[str, Any]) -> Request: ...

    def create_from(self, resource: str, payload: dict[str, Any], held: dict[str, Any]) -> Request:
        """Create a record of which `looks_up_first` is true.

        Args:
            held: What a look-up has found in place of the record, such as the order that a shipment belongs to.

        Raises:
            RecordError: If it cannot be created there.
        """
        raise NotImplementedError

    @abstractmethod
    def update(self, resource: str, target_id: str, update: Update) -> Request:
        """Change a record."""

    @abstractmethod
    def delete(self, resource: str, target_id: str) -> Request: ...

    @abstractmethod
    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        """Look a record up by its id, or by our name for it if that is unknown."""

    @abstractmethod
    def ping(self, resource: str) -> Request:
        """A harmless request that shows whether the target answers."""

    def compares(self, resource: str) -> bool:  # noqa: ARG002  for subclasses
        """Whether updates have values that they replace, so that what the target holds must be known before."""
        return False

    def is_conditional(self, resource: str) -> bool:  # noqa: ARG002  for subclasses
        """Whether the target refuses an update or delete of another version of the record (RFC 9110 section 13.1.1)."""
        return False

    def looks_up_first(self, resource: str, operation: str) -> bool:  # noqa: ARG002  for subclasses
        """Whether the record is looked up before each request of this kind, which is made of what is found."""
        return False

    def with_key(self, resource: str, request: Request, idempotency_key: str) -> Request:  # noqa: ARG002
        """*request* with its idempotency key, for a target that takes it in the body; see `headers` for others."""
        return request

    def also_changes(self, resource: str, payload: Mapping[str, Any]) -> Iterable[tuple[str, str]]:  # noqa: ARG002
        """What else a delivered write of *payload* changes at the target, such as the stock that a parcel leaves.

        Of these records it is no longer known what the target holds; the next run looks them up.

        Returns:
            Resources, each with the beginning of the keys of records that are changed.
        """
        return ()

    # ---- answers

    @abstractmethod
    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        """What the answer to a create, update or delete means."""

    @abstractmethod
    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        """What the answer to a look-up means: ``found`` with the members that the target holds, or ``absent``.

        By name it may also be ``removed``: the target shows only records of this name that were removed there. Where
        `looks_up_first` is true of a create, ``absent`` has what `create_from` is given in `Outcome.held`.
        """

    def limit(self, answer: Answer) -> RateHeaders | None:
        """The rate limit, in requests, that an answer reports; None if it reports none."""
        return rate_headers.read(answer.headers)

    def advice(self, resource: str, status: int | None) -> str:  # noqa: ARG002  for subclasses
        """What to check after a refusal that concerns every record."""
        return f"check {self.place}"

    # ---- after an ambiguous answer

    @abstractmethod
    def can_look_up(self, resource: str) -> bool:
        """Whether a record can be looked up by our name for it."""

    @abstractmethod
    def look_up_setting(self, resource: str) -> str:
        """The setting that says whether it can, for a hint."""

    @abstractmethod
    def rule(self, resource: str, operation: str) -> Rule:
        """What to do about an operation that may have been carried out."""

    def can_verify(self, resource: str, operation: str) -> bool:
        """An update can always be verified by its id, a create only by its name."""
        return operation != "create" or self.can_look_up(resource)

    def look_up_filter(self, resource: str) -> str:  # noqa: ARG002  for subclasses
        """What a look-up by name filters by, for a message."""
        return "of a look-up"

    def rule_without_key(self, resource: str, operation: str) -> Rule:
        """The rule once the target has forgotten the idempotency key."""
        return "verify" if self.can_verify(resource, operation) else "park"

    # ---- sending

    @abstractmethod
    def client(self) -> Client:
        """A client for one thread; it authorizes each request.

        Raises:
            ConfigError: If the credential cannot be read.
        """

    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:  # noqa: ARG002
        """The headers of a request besides those of the client.

        Args:
            if_match: The entity tag of the version that may be changed; None for any.
        """
        return {}

    def send(
        self,
        client: Client,
        resource: str,
        request: Request,
        idempotency_key: str | None = None,
        if_match: str | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """Send a request as long as *may_leave* allows it; fails as `Client.send` does."""
        headers = self.headers(resource, idempotency_key, if_match)
        return client.send(request.method, request.path, body=request.body, headers=headers, may_leave=may_leave)


@dataclass(frozen=True, slots=True)
class EndpointProfile:
    """What the endpoint of a resource promises.

    Attributes:
        idempotent: The same create, sent again, has no second effect: the target remembers idempotency keys, or refuses
            a second record of the same name.
        look_up: A record can be looked up by our name for it.
        conditional: Updates honour ``If-Match`` (RFC 9110 section 13.1.1).
        compares: Updates have values that they replace, from `Update.before`; a record is looked up before the first.
        looks_up_first: The operations before which a record is looked up each time.
        header: The header that carries the idempotency key; None for a target that goes by our name.
    """

    idempotent: bool = False
    look_up: bool = False
    conditional: bool = False
    compares: bool = False
    looks_up_first: frozenset[Literal["create", "update"]] = frozenset()
    header: str | None = None


@dataclass(frozen=True, slots=True)
class TargetResource(ResourceType):
    """A type of record that a connector writes.

    Attributes:
        shape: Where answers have records and ids; our name is in `name_member` of a record.
        name_member: The member of a payload that holds our name for a record; None for one without a name.
        name_limit: The most characters of a name.
    """

    endpoint: EndpointProfile = EndpointProfile()
    shape: RecordShape = STANDARD
    name_member: str | None = None
    name_limit: int = 100
