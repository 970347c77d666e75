"""A partner in memory, made of what the tests of a target state about its API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from zlib import crc32

from msgspec import Struct

from crossdock.targets import Answer, Request, TargetResource, Update
from crossdock.testing.target_under_test import Example, TargetUnderTest, json_answer
from crossdock.values import exact_json
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock.writing.targets.payload_comparison import with_patch_applied

if TYPE_CHECKING:
    import httpx

_TOKEN = json_answer(200, {"access_token": "token-of-the-example", "token_type": "Bearer", "expires_in": 3600})
_NOTHING = json_answer(404, {"message": "nothing is here"})


class _Route(Struct, frozen=True):
    """The requests of one operation.

    Attributes:
        path: Their path, with groups for the id and the external id.
        query: The parameters that they have, in the same form; others may be there.
        merges: Of an update, whether it sends the changed members only.
    """

    operation: str
    resource: str
    method: str
    path: re.Pattern[str]
    query: Mapping[str, re.Pattern[str]]
    merges: bool = False

    def match(self, method: str, path: str, query: Mapping[str, str]) -> dict[str, str] | None:
        """Return the id or external id in a request; None if it is another one."""
        if method != self.method or not self.query.keys() <= query.keys():
            return None
        found = [self.path.fullmatch(path), *(each.fullmatch(query[name]) for name, each in self.query.items())]
        if None in found:
            return None
        in_path = {name: unquote(text) for name, text in found[0].groupdict().items()} if found[0] else {}
        return in_path | {name: text for each in found[1:] if each for name, text in each.groupdict().items()}


class _Stored(Struct):
    resource: str
    payload: dict[str, Any]
    is_removed: bool = False


@dataclass(slots=True)
class ExamplePartner:
    """Keeps what it is sent, and gives the answers that the methods of *case* state.

    Its requests are those of the target, which `expects` of *case* states as well. It keeps idempotency keys as the
    profile says, so it cannot show that the API does not.

    Raises:
        AssertionError: If a target sends anything else than a record, its changes, or a path.
    """

    case: TargetUnderTest
    records: dict[str, _Stored] = field(default_factory=dict)
    _ids_by_key: dict[str, str] = field(default_factory=dict)
    _created: Counter[str] = field(default_factory=Counter)
    _kinds: Mapping[str, TargetResource] = field(init=False)
    _routes: list[_Route] = field(init=False)

    def __post_init__(self) -> None:
        target = self.case.new_target()
        self._kinds = target.resources
        created = [name for name in target.resources if "create" in self.case.operations(name)]
        for name in created:
            kind = self._kinds[name]
            is_usual = kind.batch is None and not kind.endpoint.looks_up_first
            assert is_usual, f"{name} is sent in batches, or looked up before each write: define partner"
        self._routes = [route for name in created for route in _routes(self.case, self.case.example(target, name))]

    def stored_records(self) -> list[dict[str, Any]]:
        """Return the records, without their ids."""
        return [{**each.payload, **({"removed": True} if each.is_removed else {})} for each in self.records.values()]

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one request. That of a token (RFC 6749) is granted."""
        import httpx  # noqa: PLC0415  only acceptances need it

        given = self._answer(request)
        return httpx.Response(given.status, headers=dict(given.headers), content=given.body)

    def _answer(self, request: httpx.Request) -> Answer:
        path = request.url.raw_path.decode().partition("?")[0]
        for route in self._routes:
            found = route.match(request.method, path, dict(request.url.params))
            if found is not None:
                return self._execute_route(route, found, request)
        is_form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        return _TOKEN if is_form and "grant_type" in dict(parse_qsl(request.content.decode())) else _NOTHING

    def _execute_route(self, route: _Route, found: Mapping[str, str], request: httpx.Request) -> Answer:
        resource = route.resource
        if route.operation == "create":
            return self._create(resource, request)
        if route.operation == "look_up by name":
            return self._look_up_by_name(resource, found["name"])
        one = self.records.get(found["id"])
        if one is None or one.resource != resource or (one.is_removed and route.operation == "update"):
            return self.case.missing(resource)
        if route.operation == "update":
            sent = self._record_in_body(resource, exact_json.loads(request.content))
            one.payload = with_patch_applied(one.payload, sent) if route.merges else sent
        elif route.operation == "delete":
            one.is_removed = True
        shown = self._shown_record(found["id"])
        if shown is None and route.operation == "delete":
            del self.records[found["id"]]
            return json_answer(200, {})
        return self._answer_with_record(resource, route.operation.partition(" ")[0], shown)

    def _create(self, resource: str, request: httpx.Request) -> Answer:
        endpoint, body = self._target_resource(resource).endpoint, exact_json.loads(request.content)
        record = self._record_in_body(resource, body)
        key = request.headers.get(endpoint.header) if endpoint.header is not None else None
        key = value_at_path_or_missing(body, endpoint.key_member) if endpoint.key_member is not None else key
        same = next(self._ids_of_name(resource, self._name_in_payload(resource, record)), None)
        if key is None and same is not None and (repeated := self.case.repeated(resource)) is not None:
            if self.case.replaces(resource):
                self.records[same].payload = record
            return repeated
        record_id = self._new_id(resource, record)
        if key is not None:
            record_id = self._ids_by_key.setdefault(f"{resource} {key}", record_id)
        self.records.setdefault(record_id, _Stored(resource, record))
        return self._answer_with_record(resource, "create", self._shown_record(record_id))

    def _look_up_by_name(self, resource: str, name: str) -> Answer:
        shown = [
            each
            for record_id in self._ids_of_name(resource, name)
            if (each := self._shown_record(record_id)) is not None
        ]
        if not self._target_resource(resource).shape.finds_one:
            return json_answer(200, self.case.listing(resource, shown))
        return self._answer_with_record(resource, "look_up", shown[0]) if shown else self.case.missing(resource)

    def _answer_with_record(self, resource: str, operation: str, shown: Any) -> Answer:
        if shown is None:
            return self.case.missing(resource)
        given = self.case.answered(resource, operation, shown)
        return given if isinstance(given, Answer) else json_answer(201 if operation == "create" else 200, given)

    def _shown_record(self, record_id: str) -> Any:
        one = self.records[record_id]
        stored = self.case.stored(one.resource, record_id, one.payload)
        return self.case.removed(one.resource, stored) if one.is_removed else stored

    def _record_in_body(self, resource: str, body: Any) -> dict[str, Any]:
        kind = self._target_resource(resource)
        record = body[kind.body] if kind.body is not None else body
        member = kind.endpoint.key_member
        top = member.strip("/") if member is not None and kind.body is None else None
        return {name: value for name, value in record.items() if name != top}

    def _ids_of_name(self, resource: str, name: str | None) -> Iterator[str]:
        if name is None:
            return
        for record_id, each in [*self.records.items()]:
            if each.resource == resource and self._name_in_payload(resource, each.payload) == name:
                yield record_id

    def _name_in_payload(self, resource: str, payload: Mapping[str, Any]) -> str | None:
        """Return the member by which records are looked up."""
        name: str | None = payload.get(self._target_resource(resource).name_member or "")
        return name

    def _new_id(self, resource: str, record: Mapping[str, Any]) -> str:
        if self._target_resource(resource).shape.id is None:
            return self._name_in_payload(resource, record) or ""
        name = self._name_in_payload(resource, record)
        number = self._created[f"{resource} {name}"] = self._created[f"{resource} {name}"] + 1
        # The order of creates differs from run to run, and other records may hold the id.
        return str(crc32(f"{resource} {name} {number}".encode()))

    def _target_resource(self, resource: str) -> TargetResource:
        return self._kinds[resource]


def _routes(case: TargetUnderTest, one: Example) -> Iterator[_Route]:
    """Yield a route for each request that streams may cause, as the target makes it of record *one*."""
    kind, prefix = one.target.resources[one.resource], urlsplit(one.target.address).path.rstrip("/")
    name = str(one.payload.get(kind.name_member or "", ""))
    changes = dict([*one.payload.items()][-1:])
    for operation, request in _example_request_per_operation(case, one, changes):
        path, _, query = request.path.partition("?")
        content = None if request.body is None else exact_json.loads(request.body)
        sent: Mapping[str, Sequence[Any]] = {"create": [one.payload], "update": [changes, one.payload]}
        is_record = operation in sent and content in [kind.in_body(each) for each in sent[operation]]
        is_known = is_record or (operation not in sent and (content is None or operation == "delete"))
        assert is_known, (
            f"{one.method(operation)}: no partner can be made of the example, since the request has another form than "
            "the record; define partner"
        )
        texts = {"id": one.target_id, "name": name}
        yield _Route(
            operation,
            one.resource,
            request.method,
            _pattern_with_group_per_variable(
                prefix + path, {each: quote(text, safe="") for each, text in texts.items()}
            ),
            {
                each: _pattern_with_group_per_variable(text, texts)
                for each, text in parse_qsl(query, keep_blank_values=True)
            },
            merges=content == kind.in_body(changes),
        )


def _example_request_per_operation(
    case: TargetUnderTest, one: Example, changes: dict[str, Any]
) -> Iterator[tuple[str, Request]]:
    target, resource, operations = one.target, one.resource, case.operations(one.resource)
    endpoint = target.resources[resource].endpoint
    yield "create", target.create(resource, dict(one.payload))
    if "update" in operations:
        yield "update", target.update(resource, one.target_id, Update(one.payload, changes, dict(one.payload)))
    if "delete" in operations:
        yield "delete", target.delete(resource, one.target_id)
    if endpoint.reads:
        yield "look_up by id", target.look_up(resource, None, one.target_id)
    if endpoint.look_up:
        yield "look_up by name", target.look_up(resource, one.name, None)


def _pattern_with_group_per_variable(text: str, variables: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern of *text* with a group for each of the texts of *variables* in it."""
    pattern = re.escape(text)
    for name, each in variables.items():
        pattern = pattern.replace(re.escape(each), f"(?P<{name}>.+)") if each else pattern
    return re.compile(pattern)
