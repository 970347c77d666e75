from __future__ import annotations

import json

from tests.unit.sandbox.raw import BINS, CUSTOMERS, Raw, assert_problem, exact

from crossdock.sandbox import Sandbox
from crossdock.sandbox.request_log import RequestLog


def test_requests_are_listed_and_counted(raw: Raw) -> None:
    """Every request to the API is logged with its status, refused and unknown ones too; those to /_sandbox are not."""
    raw("POST", CUSTOMERS, '{"externalId":"c","name":"n"}', idempotency_key="k")
    raw("GET", f"{CUSTOMERS}?limit=1")
    raw("GET", "/api/v1/x", authorization=None)
    raw("GET", "/_sandbox/health")
    log = exact(raw("GET", "/_sandbox/requests"))
    assert (log["total"], log["byStatus"]) == (3, {"200": 1, "201": 1, "401": 1})
    assert [(each["seq"], each["method"], each["path"], each["status"]) for each in log["data"]] == [
        (1, "POST", CUSTOMERS, 201),
        (2, "GET", CUSTOMERS, 200),
        (3, "GET", "/api/v1/x", 401),
    ]
    first = log["data"][0]
    assert (first["credential"], first["idempotencyKey"]) == (raw.key.split("_")[1], "k")
    assert first["requestId"] == raw.effects()[0]["requestId"]
    assert [each["seq"] for each in exact(raw("GET", "/_sandbox/requests?after=1&limit=1"))["data"]] == [2]


def test_the_request_log_is_bounded() -> None:
    """The latest are kept, all are counted, and sequence numbers never change."""
    log = RequestLog(kept=3)
    for number in range(5):
        log.add(200, path=str(number))
    latest = json.loads(bytes(log.answer_query({}).body))
    assert (latest["total"], [each["seq"] for each in latest["data"]]) == (5, [3, 4, 5])
    assert [each["seq"] for each in json.loads(bytes(log.answer_query({"after": "4"}).body))["data"]] == [5]
    assert json.loads(bytes(log.answer_query({"after": "9"}).body))["data"] == []


def test_requests_are_filtered(raw: Raw, sandbox: Sandbox) -> None:
    """By status, method, beginning of the path, credential and key; numbers and counts are those of all requests."""
    other = Raw(sandbox)
    raw("POST", CUSTOMERS, '{"externalId":"c","name":"n"}', idempotency_key='"k"')
    raw("POST", CUSTOMERS, "{}")
    other("GET", f"{CUSTOMERS}/x")
    other("GET", BINS)

    def seqs(query: str) -> list[int]:
        log = exact(raw("GET", f"/_sandbox/requests?{query}"))
        assert log["total"] == 4
        return [each["seq"] for each in log["data"]]

    assert seqs("status=422") == [2]
    assert seqs("method=GET") == [3, 4]
    assert seqs(f"path={CUSTOMERS}") == [1, 2, 3]
    assert seqs(f"path={CUSTOMERS}&after=1&limit=1") == [2]
    assert seqs(f"credential={raw.key.split('_')[1]}") == [1, 2]
    assert seqs("idempotencyKey=k") == [1]
    assert seqs("method=GET&status=200") == [4]
    for senseless in ("status=ok", "method=get", "path=api", "fault=none", "key=k"):
        assert_problem(raw("GET", f"/_sandbox/requests?{senseless}"), 400)
