"""Errors, rate limits, words and times of the fake 3PL with a plain API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.integration.partners.plain_3pl_account import Account, order_body
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.partners.plain_3pl_habits import Habits

from crossdock.pacing.answer_headers import retry_after_s
from crossdock.testing import ManualClock


def test_refusals_can_be_answers_of_200() -> None:
    """Only the body tells that nothing was done, with what the refusal tells besides; a wrong key is still 401."""
    account = Account(Habits(errors="in_200", repeated_reference=409))
    account.order()
    message = "duplicate_reference: acme has an order with the reference SO-1"
    assert account.send("POST", "/orders", order_body()) == (200, {"Success": False, "Errors": [message]})
    assert len(account.partner.effects) == 1
    account.warehouse.receive("acme", "0017", "L1", "A-01", 10)
    wanted = {"quantity": 1, "expected_quantity": 2}
    _, body = account.send("PUT", f"/stock/{account.listed('stock')[0]['id']}", wanted)
    assert (body["Success"], body["quantity"]) == (False, 10)
    assert account.send("GET", "/orders", api_key="another")[0] == 401


@pytest.mark.parametrize(
    ("habit", "wait_s"), [("429_seconds", 2.0), ("429_date", 2.0), ("429_float", 1.5), ("403_milliseconds", None)]
)
def test_too_many_requests(habit: Any, wait_s: float | None) -> None:
    """On the wire: how long to wait is in Retry-After in one of three forms, or only in the text of a 403."""
    clock = ManualClock(datetime(2026, 3, 1, 8, tzinfo=UTC))
    server = PartnerServer(Plain3pl(Habits(throttling=habit), clock=clock), faults={"throttled": 1.0})
    with serving(server):
        answer = httpx.get(f"{server.url}/v1/orders", headers={"Api-Key": API_KEY}, trust_env=False)
    assert retry_after_s(answer.headers) == wait_s
    told = (answer.status_code, answer.json()["message"])
    if wait_s is None:
        assert told == (403, "Too many requests, retry after 1500 milliseconds")
    else:
        assert told == (429, "Too many requests")


def test_a_403_for_too_many_requests_has_the_body_of_an_error() -> None:
    """Where errors are in the body, so is this one, and the status is 403 nevertheless."""
    answer = Plain3pl(Habits(throttling="403_milliseconds", errors="in_200")).throttled()
    text = "Too many requests, retry after 1500 milliseconds"
    assert (answer.status, answer.body) == (403, {"Success": False, "Errors": [text]})


def test_statuses_are_the_vendors_own_words() -> None:
    """Configured words, and on request one that nobody knows."""
    account = Account(Habits(statuses={"new": "Nouveau"}))
    order_id = account.order()
    assert account.get(f"/orders/{order_id}")["status"] == "Nouveau"
    account.warehouse.mark(order_id, "CleanSweeped")
    assert account.get(f"/orders/{order_id}")["status"] == "CleanSweeped"


def test_times_can_be_local_without_an_offset() -> None:
    """A time in a request is local as well, unless it has an offset."""
    account = Account(Habits(timezone="America/Chicago"))
    order_id = account.order()
    assert account.get(f"/orders/{order_id}")["updated_at"] == "2025-12-31T18:00:00"
    found = {
        since: len(account.listed("orders", updated_since=since))
        for since in ("2025-12-31T18:00:00", "2025-12-31T18:00:01", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")
    }
    assert list(found.values()) == [1, 0, 1, 0]


def test_the_hour_that_a_local_clock_repeats_is_told_once() -> None:
    """Two changes an hour apart have the same time, and are listed by id."""
    account = Account(Habits(timezone="Europe/Berlin"))
    first, second = account.order("SO-1"), account.order("SO-2")
    account.clock.advance((datetime(2026, 10, 25, 0, 30, tzinfo=UTC) - account.clock.now()).total_seconds())
    account.warehouse.mark(second, "Checked")
    account.clock.advance(3600)
    account.warehouse.mark(first, "Checked")
    listed = [(each["reference"], each["updated_at"]) for each in account.listed("orders")]
    assert listed == [("SO-1", "2026-10-25T02:30:00"), ("SO-2", "2026-10-25T02:30:00")]
