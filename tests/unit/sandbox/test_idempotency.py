from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.unit.sandbox.raw import CUSTOMERS, INVOICES, PRODUCTS, ManualTime, Raw, assert_problem

from crossdock.sandbox import Sandbox, SandboxSettings

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


def test_a_key_stands_for_one_request(raw: Raw) -> None:
    """Other bytes, another path or another method under a used key is 422 and has no effect."""
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
    """A 4xx that came from executing the request is its answer for good."""
    method = "PATCH" if path.endswith("x") else "POST"
    first, again = (raw(method, path, body, idempotency_key="k") for _ in range(2))
    assert_problem(first, status)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"


def test_a_refusal_stays_although_its_cause_is_gone(raw: Raw) -> None:
    """After 409 the key is used up; a new key gets a new decision."""
    path = raw("POST", CUSTOMERS, BODY).headers["location"]
    assert_problem(raw("POST", CUSTOMERS, BODY, idempotency_key="k"), 409)
    raw("DELETE", path)
    assert_problem(raw("POST", CUSTOMERS, BODY, idempotency_key="k"), 409)
    assert raw("POST", CUSTOMERS, BODY, idempotency_key="l").status_code == 201


def test_what_was_not_executed_uses_no_key_up(raw: Raw) -> None:
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
    """At 24 hours it still replays, a moment later it stands for a new request."""
    body = raw.invoice()
    first = raw("POST", INVOICES, body, idempotency_key="k")
    clock.now += DAY
    assert raw("POST", INVOICES, body, idempotency_key="k").content == first.content
    clock.now += 0.001
    assert raw("POST", INVOICES, body, idempotency_key="k").json()["id"] != first.json()["id"]


def test_a_second_request_while_the_first_runs_is_409(raw: Raw) -> None:
    """Of several at once under one key exactly one is executed, and the others are told to wait."""
    body = raw.invoice()
    answers = raw.together([raw.request("POST", INVOICES, body, idempotency_key="k") for _ in range(5)])
    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409, 409]
    assert raw("POST", INVOICES, body, idempotency_key="k").headers["idempotent-replayed"] == "true"
    assert len(raw.effects("?resource=invoice")) == 1


def test_answers_can_be_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While an answer is held, its effect has happened and its key counts as running; then it is given after all."""
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


def test_one_bad_request_of_a_group_spoils_no_other(raw: Raw) -> None:
    """Requests that share a commit are isolated: the good ones happen, the bad ones do not."""
    bodies = [raw.invoice(**({} if number % 3 else {"customerId": '"cus_0"'})) for number in range(30)]
    requests = [raw.request("POST", INVOICES, body, idempotency_key=f"k{n}") for n, body in enumerate(bodies)]
    assert [each.status_code for each in raw.together(requests)] == [201 if n % 3 else 422 for n in range(30)]
    assert [each["idempotencyKey"] for each in raw.effects("?resource=invoice")] == [
        f"k{n}" for n in range(30) if n % 3
    ]


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "a\tb", "\u00e9"])
def test_an_impossible_key_is_400(raw: Raw, key: str) -> None:
    """A key is 1 to 255 printable ASCII characters."""
    plain = raw.request("POST", CUSTOMERS, BODY)
    headers = [*plain.headers.raw, (b"idempotency-key", key.encode("latin-1"))]
    request = httpx.Request("POST", plain.url, content=BODY, headers=headers)
    assert_problem(raw.together([request])[0], 400)
    assert raw.effects() == []


def test_the_longest_key_is_accepted(raw: Raw) -> None:
    """255 characters, the quotes not counted."""
    assert raw("POST", CUSTOMERS, BODY, idempotency_key=f'"{"x" * 255}"').status_code == 201
