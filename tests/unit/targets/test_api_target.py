"""The target of a connection: what it derives from the endpoints that a connector declares."""

from __future__ import annotations

import pytest
from tests.unit.testing.target_connector import OrderTarget, orders

from crossdock.targets import EndpointProfile, Rule, Target
from crossdock.writing.targets.guarded_target import fault_of


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
    assert (endpoint.rule("create"), endpoint.rule("update")) == rules
    assert endpoint.rule("delete") == rules[1]


class WithoutDeletes(OrderTarget):
    delete = Target.delete


def test_a_method_that_a_resource_needs() -> None:
    """A resource with deletes needs the method `delete`, and one that is looked up first needs `create_from`."""
    needed = "it has no method delete, which its resource orders needs; see class WithoutDeletes, line"
    assert (fault_of(WithoutDeletes()) or "").startswith(needed)
    target = OrderTarget()
    assert fault_of(target) is None
    target.resources = orders(EndpointProfile(look_up=True, looks_up_first=frozenset({"create"})))
    assert "no method create_from" in (fault_of(target) or "")
