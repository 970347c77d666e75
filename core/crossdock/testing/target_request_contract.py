"""Tests of the requests that a target makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest import SkipTest

from crossdock.errors import RecordError
from crossdock.targets import ApiTarget, ConnectorTarget, Request
from crossdock.testing.connector_under_test import shown_method_name
from crossdock.testing.expected_values_and_example_gaps import first_mismatch, gaps_of_drafts
from crossdock.testing.graphql_selection import GraphQLRequest, leaf_values_with_paths
from crossdock.testing.target_under_test import NAMESPACE, Example, TargetUnderTest, texts_in_request
from crossdock.values import exact_json
from crossdock.values.json_paths import value_at_path_or_missing, value_at_pointer_or_missing
from crossdock.values.record_keys import key_parts_of, key_text
from crossdock.writing.targets.target_code_guard import author_target_without_guard

_SAFE = {"GET", "HEAD", "OPTIONS"}  # RFC 9110 section 9.2.1
_METHODS = _SAFE | {"POST", "PUT", "PATCH", "DELETE"}
_ODD_ID, _PLAIN_ID = "a/b c?d#e%2F&f=g", "7"
_ODD_KEY = "k%2F1%26x%3Dy"  # keys are percent-encoded
_LONGEST = 20_000  # characters of a key, more than any API takes
_DIGITS = "1234567890123456789"  # as many as a number may have; a float has 17
_SHORT, _DECIMALS = "4321", 4


class TargetRequestContract(TargetUnderTest):
    """Tests of requests; `TargetContract` also tests answers."""

    def targets(self) -> Iterator[tuple[ConnectorTarget, str]]:
        """Yield a new target for each of its resources, and the resource."""
        for resource in self.new_target().resources:
            yield self.new_target(), resource

    first_test = "test_each_resource_has_a_valid_example"

    def check_example(self) -> None:
        for target, resource in self.targets():
            self.example(target, resource)

    # ---- tests

    def test_each_resource_has_a_valid_example(self) -> None:
        """The example has drafts of every resource, and records of two numbers differ."""
        for target, resource in self.targets():
            first, second = (self.example(target, resource, number, self._first_key(resource)) for number in (0, 1))
            assert first.payload != second.payload, (
                f"{type(self).__name__}.members: those of {resource} 0 and 1 are the same; give each number others"
            )

    def test_requests_are_as_expected(self) -> None:
        """Requests are those that `expects` states. No other test knows what the API means by a member."""
        lacking, unknown = [], {*self.expects}
        for target, resource in self.targets():
            one = self.example(target, resource, key=self._first_key(resource))
            after = self.example(target, resource, 1, key=one.key).payload
            made = one.requests(after, one.target_id, self.operations(resource))
            for operation, request in made.items():
                if (resource, operation) in self.expects:
                    unknown.discard((resource, operation))
                    wrong = _request_mismatch(request, *self.expects[resource, operation])
                    assert not wrong, f"{one.method(operation)}: {wrong}"
                elif operation in self.operations(resource):
                    lacking.append(f"({resource!r}, {operation!r})")
            stated = [each for each in unknown if each[0] == resource]
            hint = f"state one of {', '.join(map(repr, made))}"
            assert not stated, f"expects states {stated[0]!r}, and {resource} has no such request; {hint}"
        assert not unknown, f"expects states {next(iter(unknown))!r}, and the target has no such resource"
        if lacking:
            raise SkipTest(
                f"expects states no request for {', '.join(lacking)}: an amount that is rounded or divided, a member "
                "with another meaning or a wrong path is not found; state them as the vendor documents them, such as "
                f'expects = {{{lacking[0]}: ("POST", "/v1/orders", {{"price": Decimal("24.95")}})}}'
            )

    def test_the_example_can_show_bugs(self) -> None:
        """Names what no test can find with this example; it never fails."""
        found = []
        for target, resource in self.targets():
            payloads = [self.example(target, resource, number, self._first_key(resource)).payload for number in (0, 1)]
            found += [f"{resource}: {gap}" for gap in gaps_of_drafts(payloads)]
            operations, kind = {*self.operations(resource)}, target.resources[resource]
            declared = {"create": kind.creates, "update": not kind.write_once, "delete": kind.deletes}
            unsent = sorted((kind.shown or frozenset()) - {name for each in payloads for name in each})
            found += [
                f"{resource}: no record has the member {each}, which TargetResource.shown names" for each in unsent
            ]
            made = {each for each in declared if _is_implemented(target, each)}
            if kind.endpoint.has_key("create") and not self.ambiguous:
                found.append(
                    f"{resource}: ambiguous states no answer: what the API says while an earlier request with the same "
                    "idempotency key is in progress, often a 409, may be taken for a refusal"
                )
            found += [
                f"{resource}: {shown_method_name(author_target_without_guard(target), each)} is never tested, since "
                + ("operations of the test leaves it out" if declared[each] else "the resource does not declare it")
                for each in sorted(made - operations)
                if declared[each] or len(target.resources) == 1
            ]
        if found:
            raise SkipTest(f"the example cannot show everything: {'; '.join(found)}")

    def test_equal_payloads_have_equal_requests(self) -> None:
        """A request depends on the record alone: not on the instance, the order of members, or earlier records."""
        for target, resource in self.targets():
            one, what = self.example(target, resource), self.operations(resource)[0]
            after = self.example(target, resource, 1, one.key).payload
            wanted = _request_of_operation(one, what, after)
            _request_of_operation(self.example(target, resource, 1), what, one.payload)
            method, hint = one.method(what), "use nothing but the arguments"
            is_same = _request_of_operation(one, what, after) == wanted
            assert is_same, f"{method}: the same record is another request the second time; {hint}"
            moved = replace(one, payload=dict(reversed(one.payload.items())))
            is_same = _request_of_operation(moved, what, dict(reversed(after.items()))) == wanted
            assert is_same, f"{method}: the order of members changes the request; use Request.json"
            other = _request_of_operation(self.example(self.new_target(), resource), what, after)
            assert other == wanted, f"{method}: a new instance of the target makes another request; {hint}"

    def test_names_tell_records_apart(self) -> None:
        """The payload holds the whole external id. Two records have two external ids, and one that is too long is
        refused.
        """
        for target, resource in self.targets():
            one = self.example(target, resource)
            if one.name is None:
                continue
            payload, name_of = (
                shown_method_name(author_target_without_guard(target), "payload"),
                shown_method_name(author_target_without_guard(target), "name_of"),
            )
            if (kind := target.resources[resource]).name_member is not None:
                if kind.divided_name is None:
                    held = value_at_pointer_or_missing(one.payload, one.name_pointer)
                    text = f"{payload}, {resource}: does not hold the external id at {one.name_pointer}"
                    assert held == one.name, text
                is_found = one.name_in_payload == one.name
                assert is_found, f"{one.method('name_in')}: does not find the external id in the payload"
            if self._uses_record_keys_of_partner:
                keys = [(NAMESPACE, key_text(self.key(resource, number))) for number in range(3)]
            else:
                keys = [(NAMESPACE, "1"), (NAMESPACE, "2"), (NAMESPACE, "A"), (NAMESPACE, "a")]
                if "{namespace}" in target.resources[resource].name_form:
                    keys.append(("other", "1"))
                self._assert_long_names_not_cut(target, resource)
            names = {target.name_of(resource, *each) for each in keys}
            hint = "use the namespace and the key, whole and as they are"
            assert len(names) == len(keys), f"{name_of}, {resource}: different records have the same name; {hint}"

    def _first_key(self, resource: str) -> str:
        return key_text(self.key(resource, 0))

    def _assert_long_names_not_cut(self, target: ConnectorTarget, resource: str) -> None:
        length = _longest_key_length(target, resource)
        check_key, payload = (
            shown_method_name(author_target_without_guard(target), "check_key"),
            shown_method_name(author_target_without_guard(target), "payload"),
        )
        assert length < _LONGEST, f"{check_key}, {resource}: accepts a name of {_LONGEST} characters; set name_limit"
        first, second = (self.example(target, resource, key="x" * (length - 1) + last) for last in "ab")
        places = [each.name_in_payload for each in (first, second)]
        is_whole = places == [first.name, second.name]
        assert is_whole, f"{payload}, {resource}: the payload holds another name than name_of gives; cut nothing"
        assert places[0] != places[1], f"{payload}, {resource}: a name is cut, so that two records have the same one"

    def test_requests_are_well_formed(self) -> None:
        """A path is a path, a body is JSON, and ids and external ids are in a request unchanged, encoded where
        needed.
        """
        for target, resource in self.targets():
            key = self._first_key(resource) if self._uses_record_keys_of_partner else _ODD_KEY
            one, after = self.example(target, resource, key=key), self.example(target, resource, 1, key=key)
            operations = self.operations(resource)
            plain = one.requests(after.payload, _PLAIN_ID, operations)
            for what, request in one.requests(after.payload, _ODD_ID, operations).items():
                where = one.method(what)
                _assert_request_well_formed(where, request)
                _assert_id_keeps_path(where, request, plain[what])
                by_name = what == "update" and self.replaces(resource) and one.is_named_in(request, whole=True)
                if what in {"update", "delete", "look_up by id"} and not by_name:
                    assert any(_ODD_ID in text for text in texts_in_request(request)), (
                        f"{where}: does not contain the id of the record, so that it may concern another one; put "
                        "target_id into the path, the query or the body"
                    )
                if what in {"create", "look_up by name"} and one.name and not self._uses_record_keys_of_partner:
                    is_named = one.is_named_in(request, whole=what == "create")
                    assert is_named, f"{where}: lacks the external id; send it whole, and encoded in a path or query"
                if request.holds_payload:
                    wanted = after.payload if what == "update" else one.payload
                    is_payload = request.body == exact_json.dumps(wanted)
                    assert is_payload, f"{where}: holds_payload is set, and the body is not the payload; leave it out"

    def test_numbers_are_exact(self) -> None:
        """A number of a payload that a request has keeps the decimals that it has in the example, and all its digits,
        also if it has 19 of them.
        """
        for target, resource in self.targets():
            one = self.example(target, resource)
            for what in (each for each in self.operations(resource) if each != "delete"):
                try:
                    whole, own, short, long = (
                        self._count_numbers_shown(one, what, digits, decimals)
                        for digits, decimals in ((_SHORT, 0), (_SHORT, None), (_SHORT, _DECIMALS), (_DIGITS, _DECIMALS))
                    )
                except RecordError:
                    continue  # a member that cannot be changed is a dead letter
                hint = "send numbers as Decimal, as Request.json does, and round nothing"
                assert whole <= own, f"{one.method(what)}: a number is rounded to fewer decimals than it has; {hint}"
                assert short <= long, f"{one.method(what)}: a number loses digits, as in a float; {hint}"

    def _count_numbers_shown(self, one: Example, what: str, digits: str, decimals: int | None) -> int:
        """Return how many numbers a request has, if all of its payload have these digits.

        Args:
            decimals: How many of the digits are decimals in numbers with decimals; None for as many as each has.
        """
        payload = _with_replaced_numbers(one.payload, digits, decimals)
        request = _request_of_operation(replace(one, payload=payload) if what == "create" else one, what, payload)
        return (request.body or b"").replace(b".", b"").count(digits.encode())

    def test_an_update_says_what_changes(self) -> None:
        """Updates to different payloads have different requests."""
        for target, resource in self.targets():
            if "update" in self.operations(resource):
                key = self._first_key(resource)
                one, two, three = (self.example(target, resource, number, key) for number in range(3))
                made = [one.update_to(after.payload, _PLAIN_ID) for after in (two, three)]
                hint = "send update.changes or update.after, and not update.before"
                assert made[0] != made[1], f"{one.method('update')}: does not depend on what changes; {hint}"

    def test_pings_and_look_ups_change_nothing(self) -> None:
        """Their methods are safe, or the author declares them `harmless`."""
        for target, resource in self.targets():
            one = self.example(target, resource)
            for what, request in one.requests(one.payload, _PLAIN_ID, self.operations(resource)).items():
                if what == "ping" or what.startswith("look_up"):
                    is_safe = request.method in _SAFE or _method_and_path(request) in self.harmless
                    hint = "if it does not, name it in harmless"
                    assert is_safe, f"{one.method(what)}: {_method_and_path(request)} may change something; {hint}"

    def test_a_look_up_asks_for_the_name(self) -> None:
        """An endpoint that declares `look_up` looks up two external ids with two requests. Records with the same
        parent, such as two parcels of an order, may be looked up by the parent alone. A GraphQL query has the external
        id in its variables, asks by the member that has it, and selects what its answer is compared with.
        """
        for target, resource in self.targets():
            if target.resources[resource].endpoint.look_up:
                one, two = (self.example(target, resource, number) for number in (0, 1))
                where, hint = one.method("look_up"), "set name_member of the resource, or leave look_up out"
                assert one.name is not None, f"{where}: claims look_up, and has no name to look up; {hint}"
                made = [target.look_up(resource, each.name, None) for each in (one, two)]
                parents = {*key_parts_of(one.key)} & {*key_parts_of(two.key)}
                is_of_parent = any(parent in text for parent in parents for text in texts_in_request(made[0]))
                hint = "ask for records of this name, or of its parent, alone"
                assert made[0] != made[1] or is_of_parent, f"{where}: does not depend on the name; {hint}"
                if not self._uses_record_keys_of_partner:  # such as an order and a number, which a query has apart
                    _assert_graphql_query_by_name(one, f"{where} by name", made[0])
            one = self.example(target, resource)
            if {*self.operations(resource)} - {"create"}:
                request, place = target.look_up(resource, None, one.target_id), target.resources[resource].shape.found
                _assert_look_up_selects_ids(one, f"{one.method('look_up')} by id", request, place)

    def test_keys_and_versions_are_sent_as_declared(self) -> None:
        """The idempotency key and the version are where `EndpointProfile` declares them."""
        for target, resource in self.targets():
            endpoint = target.resources[resource].endpoint
            headers, where = (
                target.headers(resource, "key-1", '"7"'),
                f"{shown_method_name(author_target_without_guard(target), 'headers')}, {resource}",
            )
            if endpoint.header is not None:
                header, without = endpoint.header, target.headers(resource, None, None)
                assert headers.get(header) == "key-1", (
                    f"{where}: the header {header} lacks the key; call super().headers"
                )
                assert header not in without, f"{where}: a request without a key has the header {header}"
            if endpoint.conditional:
                versions = [value for name, value in headers.items() if name.lower() == "if-match"]
                assert versions == ['"7"'], f"{where}: claims conditional, and sends no If-Match; call super().headers"
            if endpoint.key_member is not None:
                self._assert_key_in_bodies(self.example(target, resource), endpoint.key_member)

    def _assert_key_in_bodies(self, one: Example, member: str) -> None:
        operations = [each for each in self.operations(one.resource) if each != "delete"]
        for operation, request in one.requests(one.payload, one.target_id, operations).items():
            if operation not in operations:
                continue  # a ping or a look-up
            made = one.target.with_key(one.resource, request, "key-1")
            is_sent = value_at_path_or_missing(exact_json.loads(made.body or b"null"), member) == "key-1"
            assert is_sent, f"{one.method('with_key')}, {operation}: {member} lacks the key; call super().with_key"

    def test_no_secret_is_in_a_request(self) -> None:
        """Credentials are sent by the API's `auth` and `headers`, so that the state does not keep them."""
        for target, resource in self.targets():
            with self.in_environment():
                one = self.example(target, resource)
                made = one.requests(one.payload, _PLAIN_ID, self.operations(resource))
                headers = target.headers(resource, "key-1", '"7"')
            for what, request in made.items():
                shown = "\n".join(
                    [request.method, request.path, (request.body or b"").decode(), *texts_in_request(request)]
                )
                self.no_secret_in(f"{one.method(what)}: the request", shown)
            self.no_secret_in(
                f"{shown_method_name(author_target_without_guard(target), 'headers')}, {resource}: a header",
                "\n".join(headers.values()),
            )


def _assert_graphql_query_by_name(one: Example, where: str, request: Request) -> None:
    """Fail if a GraphQL query cannot find the record of this external id, or its answer cannot be told from others."""
    asked, kind = GraphQLRequest.parse_body(request.body), one.target.resources[one.resource]
    if asked is None or one.name is None:
        return
    is_inside = one.name not in asked.query and any(
        isinstance(value, str) and one.name in value for _, value in leaf_values_with_paths(dict(asked.variables))
    )
    assert is_inside, f"{where}: the query has no variable with the external id; send it as one, never in the query"
    found = [(path, value) for path, value in asked.arguments() if isinstance(value, str) and one.name in value]
    known = {_letters_and_digits(kind.name_pointer), _letters_and_digits(kind.look_up_filter or kind.name_pointer)}
    by_name = any(
        known & {*map(_letters_and_digits, path)}
        or any(each in _letters_and_digits(value.replace(one.name or "", "")) for each in known)
        for path, value in found
    )
    names = ", ".join(".".join(path) for path, _ in found) or "no argument"
    assert by_name, (
        f"{where}: the query asks by {names}, and the external id is in {kind.name_member}: it would find no record, "
        f"or another one; ask by {kind.name_member}, or set look_up_filter of the resource to the argument for it"
    )
    _assert_look_up_selects_ids(
        one, where, request, kind.shape.found if kind.shape.finds_one else kind.shape.listed or ""
    )


def _assert_look_up_selects_ids(one: Example, where: str, request: Request, place: str) -> None:
    """Fail if a GraphQL query does not select the id and the external id of the record at *place* in its answer.

    Code of the author may find the record elsewhere.
    """
    asked, kind = GraphQLRequest.parse_body(request.body), one.target.resources[one.resource]
    is_own_code = type(author_target_without_guard(one.target)).found is not ApiTarget.found
    if asked is None or (is_own_code and not asked.selects(place)):
        return
    names = [kind.shape.id, *(f"/{name}" for name in kind.name_members)]
    lacking = [f"{place}{name}" for name in names if name and not asked.selects(f"{place}{name}")]
    assert not lacking, (
        f"{where}: its answer cannot be told from that of another record: the query lacks {', '.join(lacking)}; "
        "ask for it, or correct the RecordShape"
    )


def _letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _request_of_operation(one: Example, what: str, after: dict[str, Any]) -> Request:
    """Return the request of an operation; of an update, that to the payload *after*."""
    return one.requests(after, _PLAIN_ID, (what,))[what]


def _longest_key_length(target: ConnectorTarget, resource: str) -> int:
    accepted, refused = 0, _LONGEST
    while refused - accepted > 1:
        middle = (accepted + refused) // 2
        try:
            target.check_key(resource, NAMESPACE, "x" * middle)
            accepted = middle
        except RecordError:
            refused = middle
    return accepted if accepted < _LONGEST - 1 else _LONGEST


def _assert_request_well_formed(where: str, request: Request) -> None:
    assert request.method in _METHODS, f"{where}: {request.method!r} is not a method"
    is_path = request.path.startswith("/") and not request.path.startswith("//")
    assert is_path, f"{where}: the path does not begin with one /"
    is_plain = request.path.isascii() and request.path.isprintable() and not set(' "#<>\\^`{|}') & set(request.path)
    assert is_plain, f"{where}: the path has characters that must be percent-encoded"
    if request.body is not None:
        try:
            exact_json.loads(request.body)
        except ValueError as error:
            raise AssertionError(f"{where}: the body is not JSON: {error}") from None


def _assert_id_keeps_path(where: str, request: Request, plain: Request) -> None:
    """Fail if an id with special characters changes the path to another one."""
    found, wanted = ([each.path.count(mark) for mark in "/?&="] for each in (request, plain))
    assert found == wanted, f"{where}: an id with / ? & or # leads to another path; encode it with quote(id, safe='')"


def _method_and_path(request: Request) -> str:
    return f"{request.method} {request.path.partition('?')[0]}"


def _with_replaced_numbers(value: Any, digits: str, decimals: int | None) -> Any:
    """Replace each number by one with these digits. Whole numbers stay whole."""
    match value:
        case dict():
            return {name: _with_replaced_numbers(inner, digits, decimals) for name, inner in value.items()}
        case list():
            return [_with_replaced_numbers(inner, digits, decimals) for inner in value]
        case bool():
            return value
        case int():
            return int(digits)
        case Decimal():
            own = max(0, -int(value.as_tuple().exponent))
            return Decimal(digits).scaleb(-(own if decimals is None else decimals))
    return value


def _request_mismatch(request: Request, method: str, path: str, body: Any) -> str:
    """Return how *request* differs from what is stated of it; empty if it does not."""
    found = request.method, request.path
    if found != (method, path):
        return f"the request is {' '.join(found)}, and expects states {method} {path}"
    if body is None:
        return "" if not request.body else "the request has a body, and expects states none"
    return first_mismatch(body, None if request.body is None else exact_json.loads(request.body))


def _is_implemented(target: ConnectorTarget, operation: str) -> bool:
    """Return whether the author wrote the method of *operation*."""
    names = ("create", "create_from") if operation == "create" else (operation,)
    return any(
        getattr(type(author_target_without_guard(target)), name) is not getattr(ConnectorTarget, name) for name in names
    )
