from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.sandbox.raw import ManualTime, Raw, assert_problem, exact
from tests.unit.sandbox.webhook_receiver import SUBSCRIPTIONS, Receiver, Webhooks

from crossdock.sandbox import Sandbox, webhook_subscriptions
from crossdock.sandbox.webhook_subscriptions import signed_headers

URL = "https://hooks.example.com/x"
INPUT = {"url": URL, "events": ["order.created"]}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def webhooks(raw: Raw) -> Webhooks:
    return Webhooks(raw)


def test_a_subscription_is_created_read_changed_and_deleted(raw: Raw) -> None:
    """With its defaults; the location of the response leads to it."""
    created = raw("POST", SUBSCRIPTIONS, json.dumps(INPUT))
    assert created.status_code == 201
    path, made = created.headers["location"], created.json()
    assert made.pop("secret").startswith("whsec_")
    assert path == f"{SUBSCRIPTIONS}/{made['id']}"
    at = "2027-01-15T08:00:00.000000Z"
    assert made == {**INPUT, "id": made["id"], "concurrency": 4, "status": "enabled", "createdAt": at, "updatedAt": at}
    assert exact(raw("GET", path)) == made
    changed = raw("PATCH", path, '{"concurrency":1,"status":"disabled"}', content_type="application/merge-patch+json")
    expected = {**made, "concurrency": 1, "status": "disabled", "disabledReason": "Disabled by a request."}
    assert exact(changed) == expected
    assert exact(raw("GET", SUBSCRIPTIONS)) == {"data": [expected], "nextCursor": None}
    assert raw("DELETE", path).status_code == 204
    assert_problem(raw("GET", path), 404)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"url": "http://169.254.169.254/"}, "#/url"),
        ({"url": 1}, "#/url"),
        ({"url": None}, "#/url"),
        ({"events": []}, "#/events"),
        ({"events": ["order.created", "order.created"]}, "#/events"),
        ({"events": ["order.deleted"]}, "#/events/0"),
        ({"concurrency": 0}, "#/concurrency"),
        ({"concurrency": 11}, "#/concurrency"),
        ({"concurrency": 1.5}, "#/concurrency"),
        ({"concurrency": "4"}, "#/concurrency"),
        ({"concurrency": True}, "#/concurrency"),
        ({"status": "gone"}, "#/status"),
        ({"secret": "whsec_mine"}, "#/secret"),
        ({"id": "whs_1"}, "#/id"),
    ],
)
def test_a_wrong_member_is_refused(raw: Raw, change: dict[str, object], pointer: str) -> None:
    """In a creation and in a change, with its place and without its value."""
    path = raw("POST", SUBSCRIPTIONS, json.dumps(INPUT)).headers["location"]
    for response in (
        raw("POST", SUBSCRIPTIONS, json.dumps({**INPUT, **change})),
        raw("PATCH", path, json.dumps(change)),
    ):
        problem = assert_problem(response, 422)
        assert [each["pointer"] for each in problem["errors"]] == [pointer]
        assert "169.254" not in response.text


@pytest.mark.parametrize("body", ["[]", "null", "1", '"x"'])
def test_a_body_that_is_no_object_is_refused(raw: Raw, body: str) -> None:
    """422 in a creation and in a change."""
    path = raw("POST", SUBSCRIPTIONS, json.dumps(INPUT)).headers["location"]
    assert_problem(raw("POST", SUBSCRIPTIONS, body), 422)
    assert_problem(raw("PATCH", path, body), 422)


def test_a_whole_number_may_have_a_point(raw: Raw) -> None:
    """2.0 is 2, as in JSON Schema."""
    assert raw("POST", SUBSCRIPTIONS, json.dumps({**INPUT, "concurrency": 2.0})).json()["concurrency"] == 2


def test_secrets_are_shown_once(raw: Raw, webhooks: Webhooks, receiver: Receiver) -> None:
    """Neither lists, single reads, changes nor deliveries show one; a replayed creation shows the one it showed."""
    first = raw("POST", SUBSCRIPTIONS, json.dumps({**INPUT, "url": receiver.url}), idempotency_key="k")
    again = raw("POST", SUBSCRIPTIONS, json.dumps({**INPUT, "url": receiver.url}), idempotency_key="k")
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    webhooks.order()
    webhooks.deliver()
    path = first.headers["location"]
    shown = [
        raw("GET", SUBSCRIPTIONS),
        raw("GET", path),
        raw("PATCH", path, "{}"),
        raw("GET", f"{path}/deliveries"),
        raw("GET", "/_sandbox/requests"),
        raw("GET", "/_sandbox/effects"),
    ]
    assert all("whsec" not in each.text for each in shown)


def test_two_secrets_are_live_for_a_day_after_a_rotation(
    webhooks: Webhooks, receiver: Receiver, clock: ManualTime
) -> None:
    """A delivery carries a signature of each, the new one first; a day later only that of the new one."""
    subscription = webhooks.subscribe(receiver.url)
    path = f"{SUBSCRIPTIONS}/{subscription['id']}/rotate-secret"
    old, new = subscription["secret"], webhooks.raw("POST", path).json()["secret"]
    assert webhooks.get(subscription)["previousSecretExpiresAt"] == "2027-01-16T08:00:00.000000Z"
    for wait_s, secrets in ((24 * 3600 - 1, [new, old]), (1, [new])):
        webhooks.advance(wait_s)
        webhooks.order()
        webhooks.deliver()
        received = receiver.received[-1]
        expected = signed_headers(received.id, int(clock.now), received.body, secrets)
        assert {name: received.headers[name] for name in expected} == expected
    assert "previousSecretExpiresAt" not in webhooks.get(subscription)


def test_webhooks_need_their_scope_and_that_of_their_events(sandbox: Sandbox) -> None:
    """webhooks:read reads, webhooks:write writes, and events are sent only to those who may read their resource."""
    reader = Raw(sandbox, key=sandbox.new_key("sandbox", "webhooks:read"))
    writer = Raw(sandbox, key=sandbox.new_key("sandbox", "webhooks:write", "orders:read"))
    assert_problem(reader("POST", SUBSCRIPTIONS, json.dumps(INPUT)), 403)
    path = writer("POST", SUBSCRIPTIONS, json.dumps(INPUT)).headers["location"]
    assert reader("GET", path).status_code == 200
    for method, below in (("PATCH", ""), ("DELETE", ""), ("POST", "/rotate-secret")):
        refused = reader(method, path + below, "{}")
        assert 'scope="webhooks:write"' in refused.headers["www-authenticate"]
    wider = writer("PATCH", path, '{"events":["order.created","invoice.approved"]}')
    assert_problem(wider, 403)
    assert 'scope="invoices:read"' in wider.headers["www-authenticate"]
    stranger = Raw(sandbox, key=sandbox.new_key("sandbox", "orders:write"))
    assert_problem(stranger("GET", SUBSCRIPTIONS), 403)


def test_a_narrowed_credential_uses_no_webhooks(sandbox: Sandbox) -> None:
    """Events are of all lots of a tenant, wherever they are; so are the deliveries that can be read."""
    wide = ("webhooks:write", "lots:read", "orders:read")
    path = Raw(sandbox, key=sandbox.new_key("sandbox", *wide))("POST", SUBSCRIPTIONS, json.dumps(INPUT)).headers[
        "location"
    ]
    for scope in ("bins:B1:read", "accounts:4000:write"):
        narrowed = Raw(sandbox, key=sandbox.new_key("sandbox", *wide, scope))
        assert_problem(narrowed("POST", SUBSCRIPTIONS, json.dumps(INPUT)), 403)
        assert_problem(narrowed("GET", f"{path}/deliveries"), 403)


def test_another_tenant_sees_no_subscription(raw: Raw, sandbox: Sandbox) -> None:
    """Its ids are unknown there, for every method and path."""
    path = raw("POST", SUBSCRIPTIONS, json.dumps(INPUT)).headers["location"]
    other = Raw(sandbox, key=sandbox.new_key("other"))
    for method, below in (
        *(("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/rotate-secret"), ("GET", "/deliveries")),
        *(("GET", "/deliveries/dlv_1"), ("POST", "/deliveries/dlv_1/redeliver")),
    ):
        body = None if method == "GET" else "{}"
        assert_problem(other(method, path + below, body, x_tenant_slug="other"), 404)
    assert raw("GET", path).status_code == 200


def test_a_tenant_has_a_limited_number_of_subscriptions(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """409 for one more, until another one is deleted."""
    monkeypatch.setattr(webhook_subscriptions, "MAX_SUBSCRIPTIONS", 2)
    paths = [raw("POST", SUBSCRIPTIONS, json.dumps(INPUT)).headers["location"] for _ in range(2)]
    assert_problem(raw("POST", SUBSCRIPTIONS, json.dumps(INPUT)), 409)
    assert raw("DELETE", paths[0]).status_code == 204
    assert raw("POST", SUBSCRIPTIONS, json.dumps(INPUT)).status_code == 201


def test_subscriptions_are_listed_in_pages(raw: Raw) -> None:
    """The newest first, each once; wrong parameters are refused."""
    ids = [raw("POST", SUBSCRIPTIONS, json.dumps(INPUT)).json()["id"] for _ in range(3)]
    found, cursor = [], ""
    while cursor is not None:
        page = raw("GET", f"{SUBSCRIPTIONS}?limit=2{cursor and f'&cursor={cursor}'}").json()
        found += [each["id"] for each in page["data"]]
        cursor = page["nextCursor"]
    assert found == ids[::-1]
    for query in ("limit=0", "cursor=x", "status=enabled"):
        assert_problem(raw("GET", f"{SUBSCRIPTIONS}?{query}"), 400)


def test_a_disabled_subscription_keeps_its_place(tmp_path: Path, webhooks: Webhooks, receiver: Receiver) -> None:
    """Events of the time in which it was disabled are sent once it is enabled."""
    subscription = webhooks.subscribe(receiver.url)
    webhooks.change(subscription, status="disabled")
    webhooks.order()
    webhooks.deliver()
    assert receiver.received == []
    webhooks.change(subscription, status="enabled")
    webhooks.deliver()
    assert len(receiver.received) == 1
