from __future__ import annotations

import json

from tests.unit.sandbox.raw import BINS, CUSTOMERS, Raw, assert_problem, exact

from crossdock.sandbox import Sandbox
from crossdock.sandbox.read_requests import RequestLog


def test_effects_are_told_in_order_and_in_pages(raw: Raw) -> None:
    """after and limit walk through every effect once; resource picks one kind."""
    for number in range(3):
        raw.make(BINS, f'{{"externalId":"{number}","code":"c","warehouse":"w","capacity":0.{number}5}}')
        raw.make(CUSTOMERS, f'{{"externalId":"{number}","name":"n"}}')
    assert [each["seq"] for each in raw.effects()] == [1, 2, 3, 4, 5, 6]
    assert [each["seq"] for each in raw.effects("?after=2&limit=3")] == [3, 4, 5]
    assert [str(each["body"]["capacity"]) for each in raw.effects("?resource=warehouse_bin")] == [
        "0.05",
        "0.15",
        "0.25",
    ]
    for senseless in ("effects?limit=x", "effects?resource=invoices", "effects?since=1", "requests?resource=invoice"):
        assert_problem(raw("GET", f"/_sandbox/{senseless}"), 400)


def test_requests_are_listed_and_counted(raw: Raw) -> None:
    """Every request outside /_sandbox is noted with its status, the refused and the unknown too; the asking is not."""
    raw("POST", CUSTOMERS, '{"externalId":"c","name":"n"}', idempotency_key="k")
    raw("GET", f"{CUSTOMERS}?limit=1")
    raw("GET", "/api/v1/x", authorization=None)
    raw("GET", "/_sandbox/health")
    told = exact(raw("GET", "/_sandbox/requests"))
    assert (told["total"], told["byStatus"]) == (3, {"200": 1, "201": 1, "401": 1})
    assert [(each["seq"], each["method"], each["path"], each["status"]) for each in told["data"]] == [
        (1, "POST", CUSTOMERS, 201),
        (2, "GET", CUSTOMERS, 200),
        (3, "GET", "/api/v1/x", 401),
    ]
    first = told["data"][0]
    assert (first["credential"], first["idempotencyKey"]) == (raw.key.split("_")[1], "k")
    assert first["requestId"] == raw.effects()[0]["requestId"]
    assert [each["seq"] for each in exact(raw("GET", "/_sandbox/requests?after=1&limit=1"))["data"]] == [2]


def test_the_request_log_is_bounded() -> None:
    """The latest are kept, all are counted, and numbers never shift."""
    log = RequestLog(kept=3)
    for number in range(5):
        log.note(200, path=str(number))
    answer = log.answer({})
    assert b'"total": 5' in answer.body
    assert [each["seq"] for each in json.loads(bytes(answer.body))["data"]] == [3, 4, 5]
    assert bytes(log.answer({"after": "4"}).body).count(b'"seq"') == 1
    assert bytes(log.answer({"after": "9"}).body).count(b'"seq"') == 0


def test_one_more_key_can_be_made(raw: Raw, sandbox: Sandbox) -> None:
    """The new key works at once, and no credential is needed to get it."""
    made = raw("POST", "/_sandbox/keys", authorization=None)
    assert made.status_code == 201
    assert Raw(sandbox, key=made.json()["api_key"])("GET", CUSTOMERS).status_code == 200


def test_the_doors_open_for_this_machine_alone(sandbox: Sandbox) -> None:
    """From another address they are 403, whatever the credential."""
    stranger = Raw(sandbox, peer="192.0.2.7")
    for method, door in [("GET", "effects"), ("GET", "requests"), ("GET", "health"), ("POST", "keys")]:
        assert_problem(stranger(method, f"/_sandbox/{door}"), 403)
    assert stranger("GET", CUSTOMERS).status_code == 200


def test_effects_are_filtered(raw: Raw, sandbox: Sandbox) -> None:
    """By resource, operation, credential and key, all at once if asked, and in pages still."""
    other = Raw(sandbox)
    for number in range(2):
        path = raw("POST", CUSTOMERS, f'{{"externalId":"{number}","name":"n"}}', idempotency_key=f"k{number}")
        raw("PATCH", path.headers["location"], '{"name":"m"}')
    other.make(BINS, '{"externalId":"b","code":"c","warehouse":"w"}')

    def seqs(query: str) -> list[int]:
        return [each["seq"] for each in raw.effects(f"?{query}")]

    mine, theirs = raw.key.split("_")[1], other.key.split("_")[1]
    assert seqs("operation=update") == [2, 4]
    assert seqs(f"credential={theirs}") == [5]
    assert seqs("idempotencyKey=k1") == [3]
    assert seqs(f"credential={mine}&operation=create&resource=customer") == [1, 3]
    assert seqs(f"credential={mine}&operation=create&resource=customer&after=1&limit=1") == [3]
    assert seqs("operation=delete") == seqs("idempotencyKey=k1&operation=update") == []
    assert_problem(raw("GET", "/_sandbox/effects?operation=created"), 400)


def test_requests_are_filtered(raw: Raw, sandbox: Sandbox) -> None:
    """By status, method, beginning of the path, credential and key, with the numbers and counts of all."""
    other = Raw(sandbox)
    raw("POST", CUSTOMERS, '{"externalId":"c","name":"n"}', idempotency_key='"k"')
    raw("POST", CUSTOMERS, "{}")
    other("GET", f"{CUSTOMERS}/x")
    other("GET", BINS)

    def seqs(query: str) -> list[int]:
        told = exact(raw("GET", f"/_sandbox/requests?{query}"))
        assert told["total"] == 4
        return [each["seq"] for each in told["data"]]

    assert seqs("status=422") == [2]
    assert seqs("method=GET") == [3, 4]
    assert seqs(f"path={CUSTOMERS}") == [1, 2, 3]
    assert seqs(f"path={CUSTOMERS}&after=1&limit=1") == [2]
    assert seqs(f"credential={raw.key.split('_')[1]}") == [1, 2]
    assert seqs("idempotencyKey=k") == [1]
    assert seqs("method=GET&status=200") == [4]
    for senseless in ("status=ok", "method=get", "path=api", "fault=none", "key=k"):
        assert_problem(raw("GET", f"/_sandbox/requests?{senseless}"), 400)
