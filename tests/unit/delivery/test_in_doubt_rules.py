"""What may be done about an operation in doubt, and which refusals concern every record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.state.samples import intent
from tests.unit.targets.test_platform_access import profile_of

from crossdock.delivery.in_doubt_rules import concerns_all, rule_for
from crossdock.errors import RemoteError, UnauthorizedError
from crossdock.targets.outcomes import Outcome
from crossdock.targets.platform_target import PlatformTarget

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
    assert rule_for(one, TARGET, NOW) == rule


@pytest.mark.parametrize(
    ("status", "accepted", "error"),
    [
        pytest.param(401, {"product"}, UnauthorizedError, id="credential"),
        pytest.param(403, set(), UnauthorizedError, id="scope"),
        pytest.param(403, {"product"}, None, id="one forbidden record"),
        pytest.param(404, set(), RemoteError, id="path"),
        pytest.param(422, set(), None, id="one wrong record"),
    ],
)
def test_a_refusal_may_concern_every_record(status: int, accepted: set[str], error: type[RemoteError] | None) -> None:
    """A refused credential always does; a refused scope or path does until something of the resource was accepted."""
    found = concerns_all(intent(1), Outcome("rejected", "no", status), TARGET, accepted)
    assert type(found) is (error or type(None))
