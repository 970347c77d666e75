from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.sandbox.raw import (
    CUSTOMERS,
    INVOICES,
    ORDERS,
    PRODUCTS,
    Raw,
    assert_problem,
)

from crossdock.sandbox import Sandbox, SandboxSettings


def lines(product: str, count: int) -> str:
    return "[" + ",".join([f'{{"productId":"{product}","quantity":1,"unitPrice":1}}'] * count) + "]"


def test_items_are_limited(tmp_path: Path) -> None:
    """The maximum is accepted; one more line is 422 with the pointer of the list, at creation and by a change."""
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
    """An invoice of 10,000 lines is created, and one of 10,001 is refused."""
    raw.invoice()
    product = raw.make(PRODUCTS, '{"externalId":"q","sku":"s","name":"n"}')
    assert raw("POST", INVOICES, raw.invoice(items=lines(product, 10_000))).status_code == 201
    assert_problem(raw("POST", INVOICES, raw.invoice(items=lines(product, 10_001))), 422)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"externalId":"c"', id="cut"),
        pytest.param(b'{"externalId":"c","name":"n","name":"m"}', id="repeated member"),
        pytest.param(b'{"externalId":"c","name":NaN}', id="NaN"),
        pytest.param(b'{"externalId":"c","name":Infinity}', id="Infinity"),
        pytest.param(b"[" * 50_000, id="too deep"),
        pytest.param(b'{"externalId":"c","name":"\\ud83d"}', id="half a surrogate pair"),
        pytest.param(b'{"externalId":"c","name":"\xff"}', id="not UTF-8"),
        pytest.param(b"externalId=c&name=n", id="a form"),
    ],
)
def test_malformed_json_is_400(raw: Raw, body: bytes) -> None:
    """A body that is not JSON, or is ambiguous, is 400 and has no effect."""
    assert_problem(raw("POST", CUSTOMERS, body), 400)
    assert raw.effects() == []


def test_ten_megabytes_are_refused(raw: Raw) -> None:
    """A body far beyond the limit is 413, whatever its content, and the next request is answered."""
    for filling in (b" ", b"[", b'"'):
        assert_problem(raw("POST", CUSTOMERS, filling * 10_000_000), 413)
    assert raw("GET", CUSTOMERS).status_code == 200
    assert raw.effects() == []


@pytest.mark.nightly
def test_an_invoice_of_a_hundred_thousand_lines_is_refused(tmp_path: Path) -> None:
    """413 for the long body, or 422 with the pointer of the lines if long bodies are allowed."""
    with Sandbox(tmp_path, SandboxSettings(max_body_bytes=1 << 24)) as roomy:
        raw = Raw(roomy)
        one = raw.invoice()
        start, line = one[: one.index("[") + 1], one[one.index("[") + 1 : one.index("]")]
        long = f"{start}{','.join([line] * 100_000)}]}}"
        problem = assert_problem(raw("POST", INVOICES, long), 422)
        assert [each["pointer"] for each in problem["errors"]] == ["#/items"]
        assert raw.effects("?resource=invoice") == []
    with Sandbox(tmp_path) as usual:
        assert_problem(Raw(usual)("POST", INVOICES, long), 413)
