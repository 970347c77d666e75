from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from tests.unit.sandbox.raw import CUSTOMERS, INVOICES, PRODUCTS, Raw, assert_problem, exact

from crossdock.sandbox import Fault, FaultSet, Sandbox, SandboxSettings

FAULTS = "/_sandbox/faults"


def switch(raw: Raw, *faults: dict[str, object], seed: int = 0) -> None:
    """Activate these faults and no others."""
    assert raw("POST", FAULTS, json.dumps({"faults": faults, "seed": seed})).status_code == 200


def always(raw: Raw, name: str, **more: object) -> None:
    switch(raw, {"name": name, "probability": 1, **more})


def counts(raw: Raw) -> list[tuple[str, int, int]]:
    return [(each["name"], each["met"], each["struck"]) for each in raw("GET", FAULTS).json()["faults"]]


def create(raw: Raw, name: object, key: str | None = None) -> httpx.Response:
    return raw("POST", CUSTOMERS, f'{{"externalId":"{name}","name":"n"}}', idempotency_key=key)


@contextmanager
def broken(raw: Raw) -> Iterator[None]:
    """The connection is broken: without a transport the sandbox raises. The integration tests use sockets."""
    with pytest.raises(ConnectionAbortedError):
        yield
    raw("DELETE", FAULTS)


@pytest.mark.parametrize(("name", "effects"), [("reset_before", 0), ("lost_answer", 1), ("cut_body", 1)])
def test_a_connection_breaks_before_or_after_the_effect(raw: Raw, name: str, effects: int) -> None:
    """Before it nothing has happened, after it everything; a resend with the same key leaves one effect."""
    always(raw, name)
    with broken(raw):
        create(raw, "c", "k")
    assert len(raw.effects()) == effects
    again = create(raw, "c", "k")
    assert (again.status_code, again.headers.get("idempotent-replayed")) == (201, "true" if effects else None)
    assert len(raw.effects()) == 1


def test_error_before_changes_nothing(raw: Raw) -> None:
    """503 with Retry-After, no effect, and no token taken."""
    always(raw, "error_before")
    answer = create(raw, "c")
    assert_problem(answer, 503)
    assert answer.headers["retry-after"] == "1"
    assert "ratelimit" not in answer.headers
    assert raw.effects() == []


def test_throttle_sends_no_headers(raw: Raw) -> None:
    """429 without a body, a rate header, Retry-After or any other header of the sandbox."""
    always(raw, "throttle")
    answer = create(raw, "c")
    assert (answer.status_code, answer.content, dict(answer.headers)) == (429, b"", {"content-length": "0"})
    assert raw.effects() == []


def test_expire_token_is_401(raw: Raw) -> None:
    """401 with the challenge of RFC 6750, and no effect."""
    always(raw, "expire_token")
    answer = create(raw, "c")
    assert_problem(answer, 401)
    assert answer.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    assert raw.effects() == []


def test_error_after_commit_hides_an_effect(raw: Raw) -> None:
    """500 although the effect happened; a resend with the same key commits nothing and gets the real response."""
    always(raw, "error_after_commit")
    assert_problem(create(raw, "c", "k"), 500)
    assert len(raw.effects()) == 1
    again = create(raw, "c", "k")
    assert (again.status_code, again.headers["idempotent-replayed"]) == (201, "true")
    assert_problem(raw("POST", CUSTOMERS, "{}"), 422)
    assert raw("GET", CUSTOMERS).status_code == 200
    assert counts(raw) == [("error_after_commit", 1, 1)]


def test_slow_delays_the_response_and_not_the_effect(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """The effect has happened before the delay, which has the configured length."""
    waited: list[tuple[float, int]] = []

    async def wait(seconds: float) -> None:
        waited.append((seconds, raw.sandbox._reader.execute("SELECT count(*) FROM effects").fetchone()[0]))

    monkeypatch.setattr(asyncio, "sleep", wait)
    always(raw, "slow", ms=250)
    assert create(raw, "c").status_code == 201
    assert waited == [(0.25, 1)]


def test_lying_headers_show_a_full_or_an_empty_bucket(raw: Raw) -> None:
    """Depending on the seed the headers show a full or an empty bucket, and never the real one."""
    always(raw, "lying_headers")
    seen = [raw("GET", CUSTOMERS).headers["ratelimit"] for _ in range(20)]
    assert set(seen) == {'"default";r=2000;t=1', '"default";r=0;t=3600'}
    raw("DELETE", FAULTS)
    assert raw("GET", CUSTOMERS).headers["ratelimit"] == '"default";r=1979;t=1'


def pattern(folder: Path, seed: int) -> str:
    faults = (Fault(name="error_before", probability=0.4), Fault(name="throttle", probability=0.2))
    with Sandbox(folder, SandboxSettings(faults=FaultSet(faults=faults, seed=seed))) as sandbox:
        raw = Raw(sandbox)
        return "".join(str(raw("GET", CUSTOMERS).status_code)[0:3:2] for _ in range(40))


def test_equal_seeds_strike_the_same_requests(tmp_path: Path) -> None:
    """Faults of the settings strike the same requests in sandboxes with the same seed, and others with another seed."""
    first = pattern(tmp_path / "a", 7)
    assert set(first[::2]) == {"2", "4", "5"}
    assert pattern(tmp_path / "b", 7) == first
    assert pattern(tmp_path / "c", 8) != first


def test_a_fault_draws_once_for_each_request(raw: Raw) -> None:
    """A fault draws once for each request that it applies to: the seed determines which it strikes."""
    switch(raw, {"name": "error_before", "probability": 0.1, "route": "GET"}, seed=3)
    answers = raw.together([raw.request("GET", CUSTOMERS) for _ in range(500)])
    draw = Random("3 error_before GET")
    expected = sum(draw.random() < 0.1 for _ in range(500))
    assert sum(each.status_code == 503 for each in answers) == expected > 40
    assert counts(raw) == [("error_before", 500, expected)]


@pytest.mark.parametrize(
    ("route", "struck"),
    [
        ("", "POST customers, GET customers, POST products"),
        ("POST", "POST customers, POST products"),
        ("customer", "POST customers, GET customers"),
        ("POST customer", "POST customers"),
        ("/api/v1/catalog", "POST products"),
        (f"GET {CUSTOMERS}", "GET customers"),
        ("warehouse_bin", ""),
    ],
)
def test_a_route_restricts_a_fault(raw: Raw, route: str, struck: str) -> None:
    """By method, resource, beginning of a path, or method and one of these."""
    always(raw, "error_before", route=route)
    for method, path in (("POST", CUSTOMERS), ("GET", CUSTOMERS), ("POST", PRODUCTS)):
        status = raw(method, path, None if method == "GET" else "{}").status_code
        assert (status == 503) == (f"{method} {path.rpartition('/')[2]}" in struck)
    wanted = len(struck.split(", ")) if struck else 0
    assert counts(raw) == [("error_before", wanted, wanted)]


def test_struck_faults_are_counted_and_logged(raw: Raw) -> None:
    """Of several faults only those that struck are counted as such, and the request log names them."""
    switch(
        raw,
        {"name": "reset_before", "probability": 1, "route": "GET"},
        {"name": "lost_answer", "probability": 1},
        {"name": "lying_headers", "probability": 1},
        {"name": "error_after_commit", "probability": 1},
    )
    for method in ("GET", "POST"):
        with pytest.raises(ConnectionAbortedError):
            raw(method, CUSTOMERS, "{}" if method == "POST" else None)
    assert counts(raw) == [
        ("reset_before", 1, 1),
        ("lost_answer", 1, 1),
        ("lying_headers", 1, 1),
        ("error_after_commit", 0, 0),
    ]
    log = exact(raw("GET", "/_sandbox/requests"))
    assert [(each["status"], each["faults"]) for each in log["data"]] == [
        (0, ["reset_before"]),
        (422, ["lying_headers", "lost_answer"]),
    ]
    assert log["byStatus"] == {"0": 1, "422": 1}
    lost = exact(raw("GET", "/_sandbox/requests?fault=lost_answer"))["data"]
    assert [each["seq"] for each in lost] == [2]
    assert_problem(raw("GET", "/_sandbox/requests?fault=lost"), 400)


def test_a_set_is_replaced_and_cleared(raw: Raw) -> None:
    """POST replaces the set and resets the counts, DELETE clears it, GET shows it; own endpoints get no faults."""
    assert raw("GET", FAULTS).json() == {"seed": 0, "faults": []}
    always(raw, "error_before")
    assert_problem(create(raw, "c"), 503)
    switch(raw, {"name": "slow", "probability": 0.5, "route": "invoice", "ms": 20}, seed=9)
    fault = {"name": "slow", "probability": 0.5, "route": "invoice", "ms": 20, "met": 0, "struck": 0}
    assert raw("GET", FAULTS).json() == {"seed": 9, "faults": [fault]}
    assert raw("DELETE", FAULTS).json() == {"seed": 0, "faults": []}
    assert create(raw, "c").status_code == 201
    refused = raw("PATCH", FAULTS, "{}")
    assert_problem(refused, 405)
    assert refused.headers["allow"] == "GET, POST, DELETE"


@pytest.mark.parametrize(
    ("fault", "pointer"),
    [
        ({"name": "lost", "probability": 1}, "#/faults/0/name"),
        ({"name": "slow"}, "#/faults/0/probability"),
        ({"name": "slow", "probability": 1.1}, "#/faults/0/probability"),
        ({"name": "slow", "probability": "1"}, "#/faults/0/probability"),
        ({"name": "slow", "probability": 1, "ms": -1}, "#/faults/0/ms"),
        ({"name": "slow", "probability": 1, "route": "invoices"}, "#/faults/0/route"),
        ({"name": "slow", "probability": 1, "route": "post invoice"}, "#/faults/0/route"),
        ({"name": "slow", "probability": 1, "rate": 1}, "#/faults/0/rate"),
    ],
)
def test_an_invalid_set_is_refused(raw: Raw, fault: dict[str, Any], pointer: str) -> None:
    """422 points at the invalid member, and the active set stays."""
    always(raw, "error_before")
    problem = assert_problem(raw("POST", FAULTS, json.dumps({"faults": [fault]})), 422)
    assert [each["pointer"] for each in problem["errors"]] == [pointer]
    assert_problem(raw("POST", FAULTS, "{"), 400)
    assert [name for name, *_ in counts(raw)] == ["error_before"]


def test_an_invoice_lost_twice_is_created_once(raw: Raw) -> None:
    """lost_answer strikes resends too, and with one key there is one effect."""
    body = raw.invoice()
    always(raw, "lost_answer", route="POST invoice")
    for _ in range(2):
        with pytest.raises(ConnectionAbortedError):
            raw("POST", INVOICES, body, idempotency_key="k")
    assert len(raw.effects("?resource=invoice")) == 1
