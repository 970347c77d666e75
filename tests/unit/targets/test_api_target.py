"""The target of a connection: what it derives from the endpoints that a connector declares."""

from __future__ import annotations

import pytest
from tests.unit.testing.target_connector import OrderTarget

from crossdock.resources import ResourceModel
from crossdock.targets import EndpointProfile, Rule, TargetResource


@pytest.mark.parametrize(
    ("endpoint", "rules"),
    [
        pytest.param(EndpointProfile(idempotent=True, header="key"), ("resend", "resend"), id="idempotency keys"),
        pytest.param(EndpointProfile(idempotent=True), ("resend", "verify"), id="unique names"),
        pytest.param(EndpointProfile(look_up=True), ("verify", "verify"), id="look-up"),
        pytest.param(EndpointProfile(), ("park", "verify"), id="neither"),
    ],
)
def test_the_rule_after_an_ambiguous_answer(endpoint: EndpointProfile, rules: tuple[Rule, Rule]) -> None:
    """A name that the target accepts once makes the repeat of a create harmless, and that of nothing else."""
    target = OrderTarget()
    target.resources = {"orders": TargetResource("orders", ResourceModel, endpoint=endpoint)}
    found = target.rule("orders", "create"), target.rule("orders", "update")
    assert found == rules
    assert target.rule("orders", "delete") == rules[1]
