from __future__ import annotations

from tests.unit.sandbox.raw import BINS, CUSTOMERS, Raw, assert_problem

from crossdock.sandbox import Sandbox


def test_effects_are_listed_in_order_and_in_pages(raw: Raw) -> None:
    """after and limit page through every effect once; resource selects one type."""
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


def test_effects_are_filtered(raw: Raw, sandbox: Sandbox) -> None:
    """By resource, operation, credential and key, in any combination, and with paging."""
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
