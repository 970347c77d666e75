"""What the next run does with operations that earlier runs left, and what the state holds afterwards."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PIN
from tests.unit.state.samples import AT, SCOPE, binding, intent

from crossdock.platform.platform_config import Profile
from crossdock.runs.dry_run import UnsettledOperations, expected_delivery_of_unsettled
from crossdock.state import Scope
from crossdock.targets import Target
from crossdock.writing.targets.platform_target import PlatformTarget

INVOICE = Scope("platform", "invoice", "wms")
SENT: dict[str, Any] = {"first_sent_at": AT, "attempts": 1}


def targets(**changes: Any) -> dict[str, Target]:
    """The platform, with *changes* of its settings."""
    auth = {"kind": "api_key", "token": "env:NOBODY"}
    facts = {"base_url": PIN.base_url, "tenant": PIN.tenant, "auth": auth, **changes}
    return {"platform": PlatformTarget(Profile.model_validate(facts, context={"folder": Path()}))}


@pytest.mark.parametrize(
    ("facts", "changes", "restored", "place"),
    [
        pytest.param({}, {}, False, "sent_first", id="not sent yet"),
        pytest.param(SENT, {}, False, "sent_first", id="sent, with an idempotency key"),
        pytest.param(SENT | {"scope": INVOICE}, {"after_ambiguous": "park"}, False, "in_doubt", id="sent, parked"),
        pytest.param({"scope": INVOICE}, {}, False, "held", id="an unsent invoice"),
        pytest.param({"scope": INVOICE}, {}, True, "sent_first", id="an unsent invoice of a restored state"),
        pytest.param({}, {"lookup": {"enabled": False}}, False, "held", id="unsent, without look-ups"),
        pytest.param({"operation": "update", "target_id": "p"}, {}, True, "sent_first", id="an update"),
    ],
)
def test_where_an_operation_goes(facts: dict[str, Any], changes: dict[str, Any], place: str, *, restored: bool) -> None:
    """It is sent first, held back or left in doubt, as a run that resumes it decides."""
    left = UnsettledOperations.grouped_by_treatment(
        [intent(1, **facts)],
        targets(**changes),
        AT + timedelta(minutes=1),
        streams={"wms.products"},
        state_restored=restored,
    )
    found = {name for name in ("sent_first", "held", "in_doubt") if getattr(left, name)}
    assert found == {place}


def test_what_is_held_for_no_stream_of_the_run_is_sent_first() -> None:
    """Only a stream that is read could show that the state is an old one."""
    left = UnsettledOperations.grouped_by_treatment(
        [intent(1, scope=INVOICE)], targets(), AT, streams={"wms.other"}, state_restored=False
    )
    assert (len(left.sent_first), left.held) == (1, [])


def test_a_delivery_leaves_a_binding_with_its_payload() -> None:
    """A create has a placeholder for its id; a delete leaves none; a first step has no fingerprint and still waits."""
    created = expected_delivery_of_unsettled(intent(1))
    assert created.binding == binding(1, target_id="<product wms:K1>", fingerprint=5, payload={"name": "é"}, counter=1)
    first_step = expected_delivery_of_unsettled(intent(1, step="open"))
    assert first_step.binding is not None
    assert (first_step.binding.fingerprint, first_step.is_whole) == (None, False)
    deleted = expected_delivery_of_unsettled(intent(1, operation="delete", step="remove", target_id="prd_1"))
    assert (deleted.binding, deleted.scope, deleted.key_hash) == (None, SCOPE, 1)
