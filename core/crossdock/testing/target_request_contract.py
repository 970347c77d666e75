"""Tests of the requests that a target makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from crossdock.errors import RecordError
from crossdock.targets import ApiTarget, Request
from crossdock.testing.target_under_test import NAMESPACE, Example, TargetUnderTest, texts_of
from crossdock.values import exact_json
from crossdock.values.json_paths import found_at
from crossdock.values.record_keys import key_text

_SAFE = {"GET", "HEAD", "OPTIONS"}  # RFC 9110 section 9.2.1
_METHODS = _SAFE | {"POST", "PUT", "PATCH", "DELETE"}
_ODD_ID, _PLAIN_ID = "a/b c?d#e%2F&f=g", "7"
_ODD_KEY = "k%2F1%26x%3Dy"  # keys are percent-encoded
_LONGEST = 20_000  # characters of a key, more than any API takes
_DIGITS = "1234567890123456789"  # as many as a number may have; a float has 17
_SHORT = "4321"


class TargetRequestContract(TargetUnderTest):
    """Tests of requests; `TargetContract` also tests answers."""

    def targets(self) -> Iterator[tuple[ApiTarget, str]]:
        """Yield a new target for each of its resources, and the resource."""
        for resource in self.new_target().resources:
            yield self.new_target(), resource

    # ---- tests

    def test_each_resource_has_a_valid_example(self) -> None:
        """The example has drafts of every resource, and records of two numbers differ."""
        for target, resource in self.targets():
            first, second = (self.example(target, resource, number, self._first_key(resource)) for number in (0, 1))
            assert first.payload != second.payload, f"{resource}: members 0 and 1 are the same"

    def test_equal_payloads_have_equal_requests(self) -> None:
        """A request depends on the record alone: not on the instance, the order of members, or earlier records."""
        for target, resource in self.targets():
            one, what = self.example(target, resource), self.operations(resource)[0]
            after = self.example(target, resource, 1, one.key).payload
            wanted = _write(one, what, after)
            _write(self.example(target, resource, 1), what, one.payload)
            assert _write(one, what, after) == wanted, f"{resource}: the same {what} is another request the second time"
            moved = replace(one, payload=dict(reversed(one.payload.items())))
            is_same = _write(moved, what, dict(reversed(after.items()))) == wanted
            assert is_same, f"{resource}: the order of members changes the request"
            other = _write(self.example(self.new_target(), resource), what, after)
            assert other == wanted, f"{resource}: a new instance of the target makes another request"

    def test_names_tell_records_apart(self) -> None:
        """The payload holds the whole external id. Two records have two external ids, and one that is too long is
        refused.
        """
        for target, resource in self.targets():
            one = self.example(target, resource)
            if one.name is None:
                continue
            held = found_at(one.payload, one.name_pointer)
            assert held == one.name, f"{resource}: the payload does not hold the external id at {one.name_pointer}"
            assert one.name_in_payload == one.name, f"{resource}: name_in does not find the external id in the payload"
            if self._has_keys_of_the_partner:
                keys = [(NAMESPACE, key_text(self.key(resource, number))) for number in range(3)]
            else:
                keys = [(NAMESPACE, "1"), (NAMESPACE, "2"), (NAMESPACE, "A"), (NAMESPACE, "a")]
                if "{namespace}" in target.resources[resource].name_form:
                    keys.append(("other", "1"))
                self._long_names(target, resource)
            names = {target.name_of(resource, *each) for each in keys}
            assert len(names) == len(keys), f"{resource}: different records have the same name"

    @property
    def _has_keys_of_the_partner(self) -> bool:
        """Whether keys are parts that the partner knows, such as an order and a number, and not any texts."""
        return type(self).key is not TargetUnderTest.key

    def _first_key(self, resource: str) -> str:
        return key_text(self.key(resource, 0))

    def _long_names(self, target: ApiTarget, resource: str) -> None:
        length = _longest_key(target, resource)
        assert length < _LONGEST, f"{resource}: check_key accepts a name of {_LONGEST} characters"
        first, second = (self.example(target, resource, key="x" * (length - 1) + last) for last in "ab")
        places = [found_at(each.payload, each.name_pointer) for each in (first, second)]
        assert places == [first.name, second.name], f"{resource}: the payload holds another name than name_of gives"
        assert places[0] != places[1], f"{resource}: a name is cut, so that two records have the same one"

    def test_requests_are_well_formed(self) -> None:
        """A path is a path, a body is JSON, and ids and external ids are in a request unchanged, encoded where
        needed.
        """
        for target, resource in self.targets():
            key = self._first_key(resource) if self._has_keys_of_the_partner else _ODD_KEY
            one, after = self.example(target, resource, key=key), self.example(target, resource, 1, key=key)
            operations = self.operations(resource)
            plain = one.requests(after.payload, _PLAIN_ID, operations)
            for what, request in one.requests(after.payload, _ODD_ID, operations).items():
                where = f"{resource}, {what}"
                _check_form(where, request)
                _check_path(where, request, plain[what])
                if what in {"update", "delete", "look_up by id"}:
                    assert any(_ODD_ID in text for text in texts_of(request)), f"{where}: does not contain the id"
                if what in {"create", "look_up by name"} and one.name and not self._has_keys_of_the_partner:
                    assert any(one.name in text for text in texts_of(request)), f"{where}: lacks the external id"
                if request.holds_payload:
                    wanted = after.payload if what == "update" else one.payload
                    is_payload = request.body == exact_json.dumps(wanted)
                    assert is_payload, f"{where}: holds_payload is set, and the body is not the payload"

    def test_numbers_are_exact(self) -> None:
        """A number of a payload that a request has keeps all its digits, also if it has 19 of them."""
        for target, resource in self.targets():
            for what in (each for each in self.operations(resource) if each != "delete"):
                counts = []
                for digits in (_SHORT, _DIGITS):
                    made = self._with_digits(target, resource, digits, what)
                    counts.append((made.body or b"").replace(b".", b"").count(digits.encode()))
                assert counts[0] <= counts[1], f"{resource}, {what}: a number loses digits, as in a float"

    def _with_digits(self, target: ApiTarget, resource: str, digits: str, what: str) -> Request:
        one = self.example(target, resource)
        payload = _with_numbers(one.payload, digits)
        return _write(replace(one, payload=payload) if what == "create" else one, what, payload)

    def test_an_update_says_what_changes(self) -> None:
        """Updates to different payloads have different requests."""
        for target, resource in self.targets():
            if "update" in self.operations(resource):
                key = self._first_key(resource)
                one, two, three = (self.example(target, resource, number, key) for number in range(3))
                made = [one.update_to(after.payload, _PLAIN_ID) for after in (two, three)]
                assert made[0] != made[1], f"{resource}: an update does not depend on what changes"

    def test_pings_and_look_ups_change_nothing(self) -> None:
        """Their methods are safe, or the author declares them `harmless`."""
        for target, resource in self.targets():
            one = self.example(target, resource)
            for what, request in one.requests(one.payload, _PLAIN_ID, self.operations(resource)).items():
                if what == "ping" or what.startswith("look_up"):
                    is_safe = request.method in _SAFE or _line(request) in self.harmless
                    assert is_safe, f"{resource}, {what}: {_line(request)} may change something; see harmless"

    def test_a_look_up_asks_for_the_name(self) -> None:
        """An endpoint that declares `look_up` looks up two external ids with two requests."""
        for target, resource in self.targets():
            if target.resources[resource].endpoint.look_up:
                one, two = (self.example(target, resource, number) for number in (0, 1))
                assert one.name is not None, f"{resource}: claims look_up, and has no name to look up"
                made = [target.look_up(resource, each.name, None) for each in (one, two)]
                assert made[0] != made[1], f"{resource}: a look-up does not depend on the name"

    def test_headers_are_as_declared(self) -> None:
        """The idempotency key and the version are in the headers that `EndpointProfile` declares."""
        for target, resource in self.targets():
            endpoint = target.resources[resource].endpoint
            headers = target.headers(resource, "key-1", '"7"')
            if endpoint.header is not None:
                header, without = endpoint.header, target.headers(resource, None, None)
                assert headers.get(header) == "key-1", f"{resource}: the header {header} lacks the key"
                assert header not in without, f"{resource}: a request without a key has the header {header}"
            if endpoint.conditional:
                versions = [value for name, value in headers.items() if name.lower() == "if-match"]
                assert versions == ['"7"'], f"{resource}: claims conditional, and sends no If-Match"

    def test_no_secret_is_in_a_request(self) -> None:
        """Credentials are sent by the API's `auth` and `headers`, so that the state does not keep them."""
        for target, resource in self.targets():
            with self.in_environment():
                one = self.example(target, resource)
                made = one.requests(one.payload, _PLAIN_ID, self.operations(resource))
                headers = target.headers(resource, "key-1", '"7"')
            for what, request in made.items():
                shown = "\n".join([request.method, request.path, (request.body or b"").decode(), *texts_of(request)])
                self.no_secret_in(f"{resource}, {what}: the request", shown)
            self.no_secret_in(f"{resource}: a header", "\n".join(headers.values()))


def _write(one: Example, what: str, after: dict[str, Any]) -> Request:
    """Return the request of an operation; of an update, that to the payload *after*."""
    return one.requests(after, _PLAIN_ID, (what,))[what]


def _longest_key(target: ApiTarget, resource: str) -> int:
    accepted, refused = 0, _LONGEST
    while refused - accepted > 1:
        middle = (accepted + refused) // 2
        try:
            target.check_key(resource, NAMESPACE, "x" * middle)
            accepted = middle
        except RecordError:
            refused = middle
    return accepted if accepted < _LONGEST - 1 else _LONGEST


def _check_form(where: str, request: Request) -> None:
    assert request.method in _METHODS, f"{where}: {request.method!r} is no method"
    is_path = request.path.startswith("/") and not request.path.startswith("//")
    assert is_path, f"{where}: the path does not begin with one /"
    is_plain = request.path.isascii() and request.path.isprintable() and not set(' "#<>\\^`{|}') & set(request.path)
    assert is_plain, f"{where}: the path has characters that must be percent-encoded"
    if request.body is not None:
        try:
            exact_json.loads(request.body)
        except ValueError as error:
            raise AssertionError(f"{where}: the body is not JSON: {error}") from None


def _check_path(where: str, request: Request, plain: Request) -> None:
    """Fail if an id with special characters changes the path to another one."""
    found, wanted = ([each.path.count(mark) for mark in "/?&="] for each in (request, plain))
    assert found == wanted, f"{where}: an id with / ? & or # leads to another path; encode it with quote(id, safe='')"


def _line(request: Request) -> str:
    return f"{request.method} {request.path.partition('?')[0]}"


def _with_numbers(value: Any, digits: str) -> Any:
    """Replace each number by one with the same digits. A number with decimals has four."""
    match value:
        case dict():
            return {name: _with_numbers(inner, digits) for name, inner in value.items()}
        case list():
            return [_with_numbers(inner, digits) for inner in value]
        case bool():
            return value
        case int():
            return int(digits)
        case Decimal():
            return Decimal(digits).scaleb(-4)
    return value
