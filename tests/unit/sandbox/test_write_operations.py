from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sandbox.raw import (
    ACCOUNTS,
    BINS,
    CUSTOMERS,
    INVOICES,
    LOTS,
    ORDERS,
    PRODUCTS,
    ManualTime,
    Raw,
    assert_problem,
    exact,
)

from crossdock.sandbox import Sandbox, SandboxSettings


def test_documented_invoice_is_created(raw: Raw) -> None:
    """The documented request is answered 201 with Location, ETag and the stored invoice, and has one effect."""
    sent = raw.invoice(autoPostLedger="true", price="123456789012345.6789", quantity="3")
    answer = raw("POST", INVOICES, sent, idempotency_key="k-1")
    assert answer.status_code == 201
    stored = exact(answer)
    assert answer.headers["location"] == f"{INVOICES}/{stored['id']}"
    assert answer.headers["etag"].startswith('"')
    assert stored["createdAt"] == stored["updatedAt"] == "2027-01-15T08:00:00.000000Z"
    assert (stored["status"], stored["total"]) == ("draft", Decimal("370370367037037.0367"))
    assert {
        **json.loads(sent, parse_float=Decimal),
        **{k: stored[k] for k in ("id", "createdAt", "updatedAt", "status", "total")},
    } == stored
    assert b'"unitPrice":123456789012345.6789' in answer.content

    again = raw("GET", f"{INVOICES}/{stored['id']}")
    assert (again.content, again.headers["etag"]) == (answer.content, answer.headers["etag"])
    effect = raw.effects("?resource=invoice")[0]
    assert effect == {
        "seq": 3,
        "at": stored["createdAt"],
        "tenant": "sandbox",
        "credential": raw.key.split("_")[1],
        "requestId": answer.headers["x-request-id"],
        "idempotencyKey": "k-1",
        "resource": "invoice",
        "operation": "create",
        "id": stored["id"],
        "body": stored,
    }


def test_all_resources_follow_the_same_rules(raw: Raw) -> None:
    """Each can be created with its references, read, looked up, changed and deleted."""
    customer = raw.make(
        CUSTOMERS,
        '{"externalId":"a","name":"n","billingAddress":{"line1":"l","city":"c","postalCode":"p","country":"DE"}}',
    )
    product = raw.make(PRODUCTS, '{"externalId":"a","sku":"s","name":"n","unitPrice":1.25,"currency":"EUR"}')
    place = raw.make(BINS, '{"externalId":"a","code":"A-01","warehouse":"W","capacity":10}')
    parent = raw.make(ACCOUNTS, '{"externalId":"p","code":"4","name":"n","type":"revenue"}')
    lines = f'[{{"productId":"{product}","quantity":1,"unitPrice":1}}]'
    made = {
        CUSTOMERS: customer,
        PRODUCTS: product,
        BINS: place,
        ACCOUNTS: raw.make(
            ACCOUNTS, f'{{"externalId":"a","code":"40","name":"n","type":"revenue","parentId":"{parent}"}}'
        ),
        LOTS: raw.make(
            LOTS,
            f'{{"externalId":"a","productId":"{product}","lotNumber":"0017","binId":"{place}","quantity":0.5,"expiresOn":"2027-02-28"}}',
        ),
        ORDERS: raw.make(
            ORDERS,
            f'{{"externalId":"a","customerId":"{customer}","currency":"EUR","placedAt":"2027-01-01T00:00:00+01:00","items":{lines}}}',
        ),
    }
    for path, name in made.items():
        found = exact(raw("GET", f"{path}?externalId=a"))
        assert [each["id"] for each in found["data"]] == [name]
        assert raw("PATCH", f"{path}/{name}", '{"externalId":"b"}').status_code == 200
        assert exact(raw("GET", f"{path}?externalId=a"))["data"] == []
    for path, name in reversed(made.items()):
        assert raw("DELETE", f"{path}/{name}").status_code == 204
        assert_problem(raw("GET", f"{path}/{name}"), 404)
        assert_problem(raw("DELETE", f"{path}/{name}"), 404)
    assert [each["operation"] for each in raw.effects()] == ["create"] * 7 + ["update"] * 6 + ["delete"] * 6


def test_the_models_default_is_stored_and_null_is_not(raw: Raw) -> None:
    """A product is active by default, and a null member is not stored."""
    body = exact(raw("POST", PRODUCTS, '{"externalId":"p","sku":"s","name":"n","description":null}'))
    assert body["active"] is True
    assert "description" not in body


def test_patch_merges_and_checks_the_whole(raw: Raw, clock: ManualTime) -> None:
    """Null removes, objects are merged, lists are replaced, and the result must be valid as a whole."""
    address = '{"line1":"l","line2":"x","city":"c","postalCode":"p","country":"DE"}'
    name = raw.make(CUSTOMERS, f'{{"externalId":"c","name":"n","phone":"1","billingAddress":{address}}}')
    clock.now += 60
    patch = '{"phone":null,"email":"a@b","billingAddress":{"line2":null,"city":"d"}}'
    changed = raw("PATCH", f"{CUSTOMERS}/{name}", patch, content_type="application/merge-patch+json")
    body = exact(changed)
    assert (changed.status_code, "phone" in body, body["email"]) == (200, False, "a@b")
    assert body["billingAddress"] == {"line1": "l", "city": "d", "postalCode": "p", "country": "DE"}
    assert (body["createdAt"], body["updatedAt"]) == ("2027-01-15T08:00:00.000000Z", "2027-01-15T08:01:00.000000Z")
    for bad, pointer in [
        ('{"name":null}', "#/name"),
        ('{"nickname":null}', "#/nickname"),
        ('{"billingAddress":{"street":null}}', "#/billingAddress/street"),
        ('{"id":"x"}', "#/id"),
        ('{"billingAddress":{"city":null}}', "#/billingAddress/city"),
        ('["a"]', "#"),
        ("7", "#"),
    ]:
        problem = assert_problem(raw("PATCH", f"{CUSTOMERS}/{name}", bad), 422)
        assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert exact(raw("GET", f"{CUSTOMERS}/{name}")) == body == raw.effects()[-1]["body"]


def test_equal_invoices_are_two_invoices(raw: Raw) -> None:
    """Nothing on the wire distinguishes two equal invoices, so both are created."""
    body = raw.invoice()
    assert raw.make(INVOICES, body) != raw.make(INVOICES, body)


def test_zero_with_a_huge_exponent_is_zero(raw: Raw) -> None:
    """It is stored as 0, without the zeros of its exponent."""
    answer = raw("POST", INVOICES, raw.invoice(quantity="0E999999999", price="0.0E-999999999"))
    assert b'"quantity":0,"unitPrice":0}' in answer.content


integers = st.integers(-(10**15) + 1, 10**15 - 1)


quantities = st.builds(lambda whole, part: Decimal(whole) + Decimal(part).scaleb(-4), integers, st.integers(0, 9999))


forms = st.sampled_from(["{:f}", "{:E}", "{:e}"])


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(quantity=quantities, price=quantities, form=forms)
def test_decimals_come_back_exact(raw: Raw, quantity: Decimal, price: Decimal, form: str) -> None:
    """Any quantity and price within the limits is returned, stored and logged exactly, in plain digits."""
    answer = raw("POST", INVOICES, raw.invoice(quantity=form.format(quantity), price=form.format(price)))
    assert answer.status_code == 201, answer.text
    stored = exact(answer)
    for body in (
        stored,
        exact(raw("GET", f"{INVOICES}/{stored['id']}")),
        raw.effects("?resource=invoice&limit=10000")[-1]["body"],
    ):
        line = body["items"][0]
        assert (Decimal(line["quantity"]), Decimal(line["unitPrice"])) == (quantity, price)
    assert b"E" not in answer.content.split(b'"quantity":')[1].split(b"}")[0]


BODY = '{"externalId":"c","name":"n"}'


DAY = 24 * 3600


def test_the_first_answer_is_replayed_byte_for_byte(raw: Raw) -> None:
    """The same key with the same bytes has one effect and one answer, also after the resource has changed."""
    first = raw("POST", CUSTOMERS, BODY, idempotency_key="k")
    raw("PATCH", first.headers["location"], '{"name":"m"}')
    again = raw("POST", CUSTOMERS, BODY, idempotency_key='"k"')
    assert (again.status_code, again.content) == (201, first.content)
    assert {each: again.headers[each] for each in ("location", "etag", "content-type")} == {
        each: first.headers[each] for each in ("location", "etag", "content-type")
    }
    assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
    assert [each["idempotencyKey"] for each in raw.effects()] == ["k", None]


def test_a_key_belongs_to_one_request(raw: Raw) -> None:
    """Other bytes, another path or another method with a used key is 422 and has no effect."""
    made = raw("POST", CUSTOMERS, BODY, idempotency_key="k")
    assert_problem(raw("POST", CUSTOMERS, BODY + " ", idempotency_key="k"), 422)
    assert_problem(raw("POST", PRODUCTS, BODY, idempotency_key="k"), 422)
    assert_problem(raw("DELETE", made.headers["location"], idempotency_key="k"), 422)
    assert len(raw.effects()) == 1


def test_changes_and_deletions_are_replayed_too(raw: Raw) -> None:
    """A repeated deletion is answered 204 again, where a new one would be 404."""
    path = raw("POST", CUSTOMERS, BODY).headers["location"]
    assert [raw("PATCH", path, '{"name":"m"}', idempotency_key="p").status_code for _ in range(2)] == [200, 200]
    assert [raw("DELETE", path, idempotency_key="d").status_code for _ in range(2)] == [204, 204]
    assert [each["operation"] for each in raw.effects()] == ["create", "update", "delete"]


@pytest.mark.parametrize(
    ("path", "body", "status"), [(CUSTOMERS, "{", 400), (CUSTOMERS, "{}", 422), (f"{CUSTOMERS}/x", "{}", 404)]
)
def test_a_refusal_is_replayed(raw: Raw, path: str, body: str, status: int) -> None:
    """A 4xx from executing the request is replayed."""
    method = "PATCH" if path.endswith("x") else "POST"
    first, again = (raw(method, path, body, idempotency_key="k") for _ in range(2))
    assert_problem(first, status)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"


def test_a_refusal_is_replayed_after_its_cause_is_gone(raw: Raw) -> None:
    """After 409 the key replays it; a new key gets a new decision."""
    path = raw("POST", CUSTOMERS, BODY).headers["location"]
    assert_problem(raw("POST", CUSTOMERS, BODY, idempotency_key="k"), 409)
    raw("DELETE", path)
    assert_problem(raw("POST", CUSTOMERS, BODY, idempotency_key="k"), 409)
    assert raw("POST", CUSTOMERS, BODY, idempotency_key="l").status_code == 201


def test_a_request_that_is_not_executed_does_not_use_its_key(raw: Raw) -> None:
    """After 401, 403 and 415 the same key still works."""
    assert_problem(raw("POST", CUSTOMERS, BODY, idempotency_key="k", authorization=None), 401)
    assert_problem(raw("POST", CUSTOMERS, BODY, idempotency_key="k", x_tenant_slug="x"), 403)
    assert_problem(raw("POST", CUSTOMERS, BODY, idempotency_key="k", content_type=None), 415)
    assert "idempotent-replayed" not in raw("POST", CUSTOMERS, BODY, idempotency_key="k").headers


def test_keys_belong_to_their_credential(raw: Raw, sandbox: Sandbox) -> None:
    """Two credentials may use the same key for two requests."""
    for each in (raw, Raw(sandbox)):
        assert each("POST", INVOICES, raw.invoice(), idempotency_key="k").headers.get("idempotent-replayed") is None
    assert len(raw.effects("?resource=invoice")) == 2


def test_a_key_is_kept_for_a_day(raw: Raw, clock: ManualTime) -> None:
    """After 24 hours it still replays, a moment later the same key is a new request."""
    body = raw.invoice()
    first = raw("POST", INVOICES, body, idempotency_key="k")
    clock.now += DAY
    assert raw("POST", INVOICES, body, idempotency_key="k").content == first.content
    clock.now += 0.001
    assert raw("POST", INVOICES, body, idempotency_key="k").json()["id"] != first.json()["id"]


def test_a_second_request_while_the_first_runs_is_409(raw: Raw) -> None:
    """Of several concurrent requests with one key exactly one is executed, and the others are 409."""
    body = raw.invoice()
    answers = raw.together([raw.request("POST", INVOICES, body, idempotency_key="k") for _ in range(5)])
    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409, 409]
    assert raw("POST", INVOICES, body, idempotency_key="k").headers["idempotent-replayed"] == "true"
    assert len(raw.effects("?resource=invoice")) == 1


def test_responses_can_be_delayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """During the delay the effect has happened and the key is in progress; then the response is sent."""
    held: list[float] = []
    release, pause = asyncio.Event(), asyncio.sleep

    async def hold(seconds: float) -> None:
        held.append(seconds)
        await release.wait()

    async def send_twice(raw: Raw) -> list[int]:
        sent = []
        for number in (1, 2):
            request = raw.request("POST", CUSTOMERS, BODY, idempotency_key="k")
            sent.append(asyncio.create_task(raw.send(request)))
            while len(held) < number:
                await pause(0)
        assert [each.done() for each in sent] == [False, False]
        release.set()
        return [(await each).status_code for each in sent]

    monkeypatch.setattr(asyncio, "sleep", hold)
    with Sandbox(tmp_path, SandboxSettings(delay_s=7)) as slow:
        raw = Raw(slow)
        assert asyncio.run(asyncio.wait_for(send_twice(raw), 30)) == [201, 409]
        assert held == [7, 7]
        assert raw("POST", CUSTOMERS, BODY, idempotency_key="k").headers["idempotent-replayed"] == "true"
        assert len(raw.effects()) == 1


def test_requests_of_one_commit_are_isolated(raw: Raw) -> None:
    """Of the requests that share a commit, the valid ones happen and the invalid ones do not."""
    bodies = [raw.invoice(**({} if number % 3 else {"customerId": '"cus_0"'})) for number in range(30)]
    requests = [raw.request("POST", INVOICES, body, idempotency_key=f"k{n}") for n, body in enumerate(bodies)]
    assert [each.status_code for each in raw.together(requests)] == [201 if n % 3 else 422 for n in range(30)]
    assert [each["idempotencyKey"] for each in raw.effects("?resource=invoice")] == [
        f"k{n}" for n in range(30) if n % 3
    ]


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "a\tb", "\u00e9"])
def test_an_invalid_key_is_400(raw: Raw, key: str) -> None:
    """A key is 1 to 255 printable ASCII characters."""
    plain = raw.request("POST", CUSTOMERS, BODY)
    headers = [*plain.headers.raw, (b"idempotency-key", key.encode("latin-1"))]
    request = httpx.Request("POST", plain.url, content=BODY, headers=headers)
    assert_problem(raw.together([request])[0], 400)
    assert raw.effects() == []


def test_the_longest_key_is_accepted(raw: Raw) -> None:
    """255 characters, the quotes not counted."""
    assert raw("POST", CUSTOMERS, BODY, idempotency_key=f'"{"x" * 255}"').status_code == 201
