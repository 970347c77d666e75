from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.unit.sandbox.raw import CUSTOMERS, INVOICES, ORDERS, PRODUCTS, ManualTime, Raw, assert_problem

from crossdock.errors import ConfigError
from crossdock.sandbox import Sandbox, SandboxSettings
from crossdock.sandbox.app import Profile
from crossdock.sandbox.rate_limit_headers import Dialect

BODY = '{"externalId":"c","name":"n"}'
COURTESIES = {
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
}


@pytest.mark.parametrize("profile", ["no-idempotency", "bare"])
def test_without_idempotency_a_resend_happens_again(tmp_path: Path, profile: Profile) -> None:
    """A key, however impossible, means nothing: the same request twice is two invoices, and other bytes are welcome."""
    with Sandbox(tmp_path, SandboxSettings(profile=profile)) as sandbox:
        raw = Raw(sandbox)
        body = raw.invoice()
        answers = [raw("POST", INVOICES, sent, idempotency_key="k") for sent in (body, body, body + " ")]
        answers += [raw("POST", INVOICES, body, idempotency_key="")]
        together = raw.together([raw.request("POST", INVOICES, body, idempotency_key="k") for _ in range(3)])
        assert [each.status_code for each in answers + together] == [201] * 7
        assert not any("idempotent-replayed" in each.headers for each in answers)
        effects = raw.effects("?resource=invoice")
        assert len({each["id"] for each in effects}) == 7
        assert {each["idempotencyKey"] for each in effects} == {None}


def test_without_idempotency_all_other_courtesies_stay(tmp_path: Path, clock: ManualTime) -> None:
    """Look-up, rate headers and problem documents are as ever."""
    with Sandbox(tmp_path, SandboxSettings(profile="no-idempotency"), clock) as sandbox:
        raw = Raw(sandbox)
        raw.make(CUSTOMERS, BODY)
        found = raw("GET", f"{CUSTOMERS}?externalId=c")
        assert [each["externalId"] for each in found.json()["data"]] == ["c"]
        assert found.headers["ratelimit"] == '"default";r=1998;t=1'
        assert assert_problem(raw("POST", CUSTOMERS, "{}"), 422)["errors"]


@pytest.fixture
def bare(tmp_path: Path, clock: ManualTime) -> Raw:
    settings = SandboxSettings(profile="bare", rate_headers="triple", rate_per_min=1, burst=20, max_body_bytes=200)
    return Raw(Sandbox(tmp_path, settings, clock))


Ask = Callable[[Raw], httpx.Response]
REFUSALS: list[tuple[int, Ask]] = [
    (400, lambda raw: raw("POST", CUSTOMERS, "{")),
    (400, lambda raw: raw("GET", f"{CUSTOMERS}?externalId=c")),
    (401, lambda raw: raw("GET", CUSTOMERS, authorization=None)),
    (403, lambda raw: raw("GET", CUSTOMERS, x_tenant_slug="x")),
    (404, lambda raw: raw("GET", f"{CUSTOMERS}/x")),
    (404, lambda raw: raw("GET", "/api/v1/x")),
    (405, lambda raw: raw("PUT", CUSTOMERS)),
    (413, lambda raw: raw("POST", CUSTOMERS, BODY.ljust(201))),
    (415, lambda raw: raw("POST", CUSTOMERS, BODY, content_type="text/plain")),
    (422, lambda raw: raw("POST", CUSTOMERS, "{}")),
    (429, lambda raw: [raw("GET", CUSTOMERS) for _ in range(21)][-1]),
]


@pytest.mark.parametrize(("status", "ask"), REFUSALS, ids=[f"{n}-{status}" for n, (status, _) in enumerate(REFUSALS)])
def test_a_bare_refusal_is_a_line_of_text(bare: Raw, status: int, ask: Ask) -> None:
    """No problem document, no pointer, no rate header, no Retry-After."""
    with bare.sandbox:
        answer = ask(bare)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-length"] == str(len(answer.content))
        assert answer.text.endswith("\n")
        assert answer.text.count("\n") == 1
        assert not any(mark in answer.text for mark in "{}#")
        assert COURTESIES.isdisjoint(answer.headers)


def test_a_bare_success_has_no_courtesies_either(bare: Raw) -> None:
    """What was asked for is done and answered, and nothing is told of the limit; the sandbox's own doors stay kind."""
    with bare.sandbox:
        made = bare("POST", CUSTOMERS, BODY)
        assert (made.status_code, made.json()["externalId"]) == (201, "c")
        listed = bare("GET", CUSTOMERS)
        assert (listed.status_code, len(listed.json()["data"])) == (200, 1)
        assert COURTESIES.isdisjoint({*made.headers, *listed.headers})
        assert_problem(bare("GET", "/_sandbox/effects?x=1"), 400)


def test_bare_faults_are_bare(bare: Raw) -> None:
    """The 503 of a fault tells neither when to come again, nor does a lie find a header to stand in."""
    with bare.sandbox:
        both = '{"name":"error_before","probability":1,"route":"POST"},{"name":"lying_headers","probability":1}'
        assert bare("POST", "/_sandbox/faults", f'{{"faults":[{both}]}}').status_code == 200
        refused = bare("POST", CUSTOMERS, BODY)
        assert (refused.status_code, refused.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert COURTESIES.isdisjoint({*refused.headers, *bare("GET", CUSTOMERS).headers})
        told = bare("GET", "/_sandbox/faults").json()["faults"]
        assert [(each["name"], each["struck"]) for each in told] == [("error_before", 1), ("lying_headers", 0)]


@pytest.mark.parametrize(
    ("dialect", "first", "refused"),
    [
        pytest.param(
            "draft10",
            {"ratelimit-policy": '"default";q=3;w=30', "ratelimit": '"default";r=2;t=10'},
            {"ratelimit-policy": '"default";q=3;w=30', "ratelimit": '"default";r=0;t=8', "retry-after": "8"},
        ),
        pytest.param(
            "draft07",
            {"ratelimit-policy": "3;w=30", "ratelimit": "limit=3, remaining=2, reset=10"},
            {"ratelimit-policy": "3;w=30", "ratelimit": "limit=3, remaining=0, reset=28", "retry-after": "8"},
        ),
        pytest.param(
            "triple",
            {"ratelimit-limit": "3", "ratelimit-remaining": "2", "ratelimit-reset": "10"},
            {"ratelimit-limit": "3", "ratelimit-remaining": "0", "ratelimit-reset": "28", "retry-after": "8"},
        ),
        pytest.param(
            "x-ratelimit",
            {"x-ratelimit-limit": "3", "x-ratelimit-remaining": "2", "x-ratelimit-reset": "1800000010"},
            {
                "x-ratelimit-limit": "3",
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset": "1800000030",
                "retry-after": "8",
            },
        ),
        pytest.param("none", {}, {}),
    ],
)
def test_a_dialect_is_spoken_exactly(
    tmp_path: Path, clock: ManualTime, dialect: Dialect, first: dict[str, str], refused: dict[str, str]
) -> None:
    """Six a minute, three at once: what is told after the first request, and two seconds later when none is left."""
    with Sandbox(tmp_path, SandboxSettings(rate_per_min=6, burst=3, rate_headers=dialect), clock) as sandbox:
        raw = Raw(sandbox)
        answers = [raw("GET", CUSTOMERS) for _ in range(3)]
        clock.now += 2
        answers.append(raw("GET", CUSTOMERS))
        assert [each.status_code for each in answers] == [200, 200, 200, 429]
        told = [{k: v for k, v in each.headers.items() if k in COURTESIES} for each in (answers[0], answers[-1])]
        assert told == [first, refused]


@pytest.mark.parametrize("dialect", ["draft07", "triple", "x-ratelimit"])
def test_headers_lie_in_every_dialect(tmp_path: Path, clock: ManualTime, dialect: Dialect) -> None:
    """A lie is told in the words of the dialect: three left, or none, after the first of three requests."""
    with Sandbox(tmp_path, SandboxSettings(burst=3, rate_headers=dialect), clock) as sandbox:
        raw = Raw(sandbox)
        raw("POST", "/_sandbox/faults", '{"faults":[{"name":"lying_headers","probability":1}]}')
        told = raw("GET", CUSTOMERS).headers
        left = told.get("ratelimit", "").partition("remaining=")[2].partition(",")[0]
        assert {left, told.get("ratelimit-remaining"), told.get("x-ratelimit-remaining")} & {"0", "3"}


def lines(product: str, count: int) -> str:
    return "[" + ",".join([f'{{"productId":"{product}","quantity":1,"unitPrice":1}}'] * count) + "]"


def test_items_are_limited(tmp_path: Path) -> None:
    """The last line allowed is accepted; one more is 422 with the list's pointer, by creation and by change."""
    with Sandbox(tmp_path, SandboxSettings(max_items=3)) as sandbox:
        raw = Raw(sandbox)
        raw.invoice()
        product = raw.make(PRODUCTS, '{"externalId":"q","sku":"s","name":"n"}')
        name = raw.make(INVOICES, raw.invoice(items=lines(product, 3)))
        for method, path, body in (
            ("POST", INVOICES, raw.invoice(items=lines(product, 4))),
            ("POST", ORDERS, raw.invoice(items=lines(product, 4))),
            ("PATCH", f"{INVOICES}/{name}", f'{{"items":{lines(product, 4)}}}'),
        ):
            problem = assert_problem(raw(method, path, body), 422)
            assert problem["errors"] == [{"pointer": "#/items", "detail": "must have at most 3 items"}]
        assert len(raw.effects("?resource=invoice")) == 1


def test_ten_thousand_items_are_the_default(raw: Raw) -> None:
    """An invoice of 10,000 lines is made, and one more line is one too many."""
    raw.invoice()
    product = raw.make(PRODUCTS, '{"externalId":"q","sku":"s","name":"n"}')
    assert raw("POST", INVOICES, raw.invoice(items=lines(product, 10_000))).status_code == 201
    assert_problem(raw("POST", INVOICES, raw.invoice(items=lines(product, 10_001))), 422)


@pytest.mark.parametrize("bad", [{"profile": "kind"}, {"rate_headers": "draft11"}, {"max_items": 0}])
def test_unknown_manners_are_refused(bad: dict[str, str]) -> None:
    """A setting that means nothing is named in the error."""
    with pytest.raises(ConfigError, match=next(iter(bad))):
        SandboxSettings(**bad)  # type: ignore[arg-type]  # wrong on purpose
