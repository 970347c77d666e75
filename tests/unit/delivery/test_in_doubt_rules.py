"""What may be done about an operation in doubt, and which refusals concern every record."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.state.samples import intent
from tests.unit.targets.test_platform_access import profile_of

from crossdock.errors import RemoteError, UnauthorizedError
from crossdock.writing.delivery.in_doubt_and_refusal_rules import (
    error_if_refusal_concerns_all_records,
    has_record_mostly_other_content,
    is_number_of_conflicts_too_high,
    is_record_made_by_others,
    rejected_outcome_of_taken_name,
    rule_for_sent_intent,
    state_forgot_records_error,
)
from crossdock.writing.targets.answer_outcomes import Outcome
from crossdock.writing.targets.platform_target import PlatformTarget

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = PlatformTarget(profile_of("https://platform.example"))


@pytest.mark.parametrize(
    ("resource", "attempts", "age", "rule"),
    [
        pytest.param("product", 1, timedelta(hours=1), "resend", id="the key is young"),
        pytest.param("product", 1, timedelta(hours=25), "verify", id="the key has expired"),
        pytest.param("product", 0, timedelta(hours=1), "verify", id="never sent under this key"),
        pytest.param("invoice", 1, timedelta(hours=25), "park", id="no look-up"),
        pytest.param("invoice", 1, timedelta(hours=-1), "park", id="sent in the future"),
    ],
)
def test_the_rule_depends_on_the_age_of_the_key(resource: str, attempts: int, age: timedelta, rule: str) -> None:
    """An expired key does not protect an operation: it is looked up, or parked without a look-up."""
    one = intent(1, resource=resource, attempts=attempts, first_sent_at=NOW - age)
    assert rule_for_sent_intent(one, TARGET, NOW) == rule


@pytest.mark.parametrize(
    ("status", "accepted", "error"),
    [
        pytest.param(401, {"product"}, UnauthorizedError, id="credential"),
        pytest.param(403, set(), UnauthorizedError, id="scope"),
        pytest.param(403, {"product"}, None, id="one forbidden record"),
        pytest.param(404, set(), RemoteError, id="path"),
        pytest.param(422, set(), None, id="one wrong record"),
        pytest.param(301, {"product"}, RemoteError, id="a create that is redirected"),
        pytest.param(303, set(), None, id="what may have been carried out"),
    ],
)
def test_a_refusal_may_concern_every_record(status: int, accepted: set[str], error: type[RemoteError] | None) -> None:
    """A refused credential always does; a refused scope or path does until something of the resource was accepted."""
    found = error_if_refusal_concerns_all_records(intent(1), Outcome("rejected", "no", status), TARGET, accepted)
    assert type(found) is (error or type(None))


@pytest.mark.parametrize(("accepted", "concerns_all"), [(set(), True), ({"product"}, False)])
@pytest.mark.parametrize("operation", ["update", "delete"])
def test_a_redirected_change_concerns_all_until_another_is_accepted(
    operation: str, accepted: set[str], *, concerns_all: bool
) -> None:
    """After that, it may be that of one record, such as one that was joined with another."""
    told = Outcome("rejected", "redirects to https://new.example/products/7", 308)
    found = error_if_refusal_concerns_all_records(intent(1, operation=operation), told, TARGET, accepted)
    assert (found is not None) is concerns_all
    assert found is None or (found.code, found.message) == (
        "redirect_refused",
        "redirects to https://new.example/products/7 (HTTP 308)",
    )
    assert found is None or "write the new address in platform.base_url" in (found.hint or "")


@pytest.mark.parametrize(
    ("held", "member", "expected"),
    [
        pytest.param({"sku": "A", "name": "Lamp", "active": True}, None, False, id="the same"),
        pytest.param({"sku": "A", "name": "Bulb", "active": True}, None, False, id="changed at its source since"),
        pytest.param({"sku": "X", "name": "Bulb", "active": True}, None, True, id="another one"),
        pytest.param({}, None, True, id="nothing in common"),
        pytest.param(
            {"sku": "X", "name": "Lamp", "active": True}, "sku", True, id="another one by the stream's member"
        ),
        pytest.param({"sku": "A", "name": "Bulb", "active": False}, "sku", False, id="the same by the stream's member"),
        pytest.param({"sku": "A", "name": "Lamp", "active": True}, "barcode", False, id="no value of that member"),
    ],
)
def test_a_record_under_our_name_may_be_of_others(held: dict[str, Any], member: str | None, *, expected: bool) -> None:
    """Our own have most of what we would send."""
    body = b'{"externalId":"wms:K1","sku":"A","name":"Lamp","active":true}'
    assert is_record_made_by_others(intent(1, body=body), {"externalId": "wms:K1", **held}, TARGET, member) is expected


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(None, True, id="all members count"),
        pytest.param({"sku"}, False, id="one member, which is the same"),
        pytest.param({"name"}, True, id="one member, which differs"),
        pytest.param(set(), False, id="nothing can be compared"),
    ],
)
def test_only_members_that_a_look_up_shows_are_compared(shown: set[str] | None, *, expected: bool) -> None:
    """What it shows in another form, or not at all, says nothing about whose record it is."""
    body = b'{"externalId":"wms:K1","sku":"A","name":"Lamp","active":true}'
    held = {"externalId": "wms:K1", "sku": "A", "name": {"en": "Lamp"}, "active": {"is": "yes"}}
    target = PlatformTarget(profile_of("https://platform.example"))
    kind = target.resources["product"]
    target.resources = {"product": replace(kind, shown=None if shown is None else frozenset(shown))}
    made = intent(1, resource="product", body=body)
    assert is_record_made_by_others(made, held, target, None) is expected
    assert has_record_mostly_other_content(made, held, target) is expected


@pytest.mark.parametrize(
    ("others", "accepted", "expected"), [(10, 0, False), (11, 0, True), (11, 109, True), (11, 110, False)]
)
def test_many_records_of_others_show_a_lost_state(others: int, accepted: int, *, expected: bool) -> None:
    """A few never do, and more only if they are many of all."""
    assert is_number_of_conflicts_too_high(others, accepted) is expected


def test_the_refusal_names_the_record_of_others() -> None:
    """With its id, if the target has told it."""
    refused = rejected_outcome_of_taken_name(intent(1), Outcome("found", target_id="prd_7"), TARGET)
    assert (refused.reason, refused.pointer) == ("conflict", "/externalId")
    assert "another record under this name, prd_7, which" in refused.message


@pytest.mark.parametrize("matches", [False, True])
def test_the_error_about_a_forgetful_state_says_what_to_do(*, matches: bool) -> None:
    """It fits what the stream takes over already."""
    error = state_forgot_records_error(intent(1), TARGET, matches=matches)
    assert error.code == "record_exists"
    assert ("replace 'adopt: {by: ...}' by" in (error.hint or "")) is matches
    assert "crossdock records drop wms.products K1" in (error.hint or "")
    many = state_forgot_records_error(intent(1), TARGET, matches=matches, others=11)
    assert "already has 11 records" in many.message
    assert "--reason conflict" in (many.hint or "")
