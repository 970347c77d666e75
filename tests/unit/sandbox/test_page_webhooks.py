from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.unit.sandbox.people import Person, assert_accessible
from tests.unit.sandbox.raw import Raw, exact
from tests.unit.sandbox.webhook_receiver import Receiver, Webhooks

from crossdock.sandbox import Sandbox

PAGE = "/page/webhooks/sandbox"
LIST = "/api/v1/webhooks/subscriptions"
SECRET = re.compile(r'id="secret"[^>]* value="(whsec_[^"]+)"')


@pytest.fixture
def person(sandbox: Sandbox) -> Person:
    return Person(sandbox)


@pytest.fixture
def webhooks(raw: Raw) -> Webhooks:
    return Webhooks(raw)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def test_a_subscription_is_created_and_its_secret_is_shown_once(person: Person, raw: Raw, receiver: Receiver) -> None:
    """The page lists what the API lists; the secret is on no later page."""
    made = person.send(PAGE, ("url", receiver.url), ("event", "order.created"), page=PAGE)
    assert made.status_code == 201
    found = SECRET.search(made.text)
    assert found
    (listed,) = exact(raw("GET", LIST))["data"]
    assert (listed["url"], listed["events"], listed["status"]) == (receiver.url, ["order.created"], "enabled")
    for path in (PAGE, "/page/webhooks", f"{PAGE}/{listed['id']}"):
        answer = person.get(path)
        assert receiver.url in answer.text
        assert found[1] not in answer.text
        assert_accessible(answer.text)
    assert_accessible(made.text)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ([("url", "http://127.0.0.1:9/"), ("event", "nothing")], "events"),
        ([("url", "http://127.0.0.1:9/")], "events"),
        ([("url", "http://10.0.0.1/"), ("event", "order.created")], "url"),
        ([("url", ""), ("event", "order.created")], "url"),
        ([("url", '"><script>'), ("event", "order.created")], "url"),
    ],
)
def test_an_invalid_subscription_is_refused(
    person: Person, raw: Raw, fields: list[tuple[str, str]], field: str
) -> None:
    """422 as in the API, with the error linked to its field, and nothing is created."""
    answer = person.send(PAGE, *fields, page=PAGE)
    assert answer.status_code == 422
    assert f'<a href="#{field}">' in answer.text
    assert f'id="{field}-error"' in answer.text
    assert_accessible(answer.text)
    assert exact(raw("GET", LIST))["data"] == []


def test_deliveries_and_attempts_are_shown_and_repeated(person: Person, webhooks: Webhooks, receiver: Receiver) -> None:
    """A failed attempt is shown with the answer; redelivering makes another one."""
    receiver.answer = lambda _: 500
    subscription = webhooks.subscribe(receiver.url)
    webhooks.order()
    webhooks.deliver()
    (delivery,) = webhooks.deliveries(subscription)
    above = f"{PAGE}/{subscription['id']}"
    shown = person.get(f"{above}/{delivery['id']}")
    assert 'data-name="Answer">500<' in shown.text
    receiver.answer = lambda _: 200
    again = person.send(f"{above}/{delivery['id']}/redeliver", page=above)
    assert "The event is sent again." in again.text
    webhooks.deliver()
    assert len(receiver.received) == 2
    assert len(set(receiver.ids)) == 1
    listed = person.get(above)
    assert 'data-name="Status">delivered<' in listed.text
    assert 'data-name="Attempts">2<' in listed.text
    for answer in (shown, again, listed):
        assert_accessible(answer.text)


def test_the_secret_is_rotated(person: Person, webhooks: Webhooks, receiver: Receiver) -> None:
    """A new one is shown once, and the page says how long the previous one is valid."""
    above = f"{PAGE}/{webhooks.subscribe(receiver.url)['id']}"
    rotated = person.send(f"{above}/rotate", page=above)
    found = SECRET.search(rotated.text)
    assert found
    assert "The previous secret is valid until" in rotated.text
    assert found[1] not in person.get(above).text
    assert_accessible(rotated.text)


def test_a_form_that_is_sent_twice_rotates_once(person: Person, webhooks: Webhooks, receiver: Receiver) -> None:
    """The second answer is 409 and shows no secret; without a token it is 403."""
    above = f"{PAGE}/{webhooks.subscribe(receiver.url)['id']}"
    token = ("csrf_token", person.token(f"{above}/rotate", above))
    answers = [
        person.post(f"{above}/rotate", token),
        person.post(f"{above}/rotate", token),
        person.post(f"{above}/rotate"),
    ]
    assert [each.status_code for each in answers] == [200, 409, 403]
    assert [bool(SECRET.search(each.text)) for each in answers] == [True, False, False]
    assert_accessible(answers[1].text)


def test_a_subscription_is_disabled_enabled_and_deleted(
    person: Person, webhooks: Webhooks, raw: Raw, receiver: Receiver
) -> None:
    """Each at once; a deleted one has no page."""
    subscription = webhooks.subscribe(receiver.url)
    above = f"{PAGE}/{subscription['id']}"
    assert "Disabled by a request." in person.send(f"{above}/disable", page=above).text
    assert webhooks.get(subscription)["status"] == "disabled"
    assert "was enabled" in person.send(f"{above}/enable", page=above).text
    assert webhooks.get(subscription)["status"] == "enabled"
    assert "were deleted" in person.send(f"{above}/delete", page=above).text
    assert exact(raw("GET", LIST))["data"] == []
    assert person.get(above).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        f"{PAGE}/whs_x",
        f"{PAGE}/whs_x/dlv_x",
        f"{PAGE}/a/b/c",
        f"{PAGE}/a/b/c/d",
        "/page/webhooks/a%20b",
        f"{PAGE}/..%2Fsubscriptions",
        "/page/webhooksx",
    ],
)
def test_other_paths_are_404(person: Person, path: str) -> None:
    """A page that says so, with a link back."""
    answer = person.get(path)
    assert answer.status_code == 404
    assert_accessible(answer.text)


def test_tenants_are_apart(sandbox: Sandbox, person: Person, webhooks: Webhooks, receiver: Receiver) -> None:
    """A subscription is on the page of its own tenant, and the page links to the others."""
    sandbox.new_key("acme")
    subscription = webhooks.subscribe(receiver.url)
    assert 'href="/page/webhooks/acme"' in person.get(PAGE).text
    assert receiver.url not in person.get("/page/webhooks/acme").text
    assert person.get(f"/page/webhooks/acme/{subscription['id']}").status_code == 404


def test_the_page_leaves_no_trace_in_the_logs(person: Person, raw: Raw) -> None:
    """What it does costs no rate limit and is no request of an application."""
    person.send(PAGE, ("url", "http://127.0.0.1:9/"), ("event", "order.created"), page=PAGE)
    assert exact(raw("GET", "/_sandbox/requests"))["total"] == 0
