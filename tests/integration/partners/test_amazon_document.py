from __future__ import annotations

import re

import pytest
from tests.partners.amazon import INVENTORY, OUTBOUND
from tests.partners.amazon_access import LIMITS
from tests.partners.amazon_document import check_answer, check_request, operations
from tests.partners.amazon_site import OF_MARKETPLACE, ORDERS, order


def test_the_documents_are_the_judge() -> None:
    """The document's own example of an order is as it says if statuses are in upper case, and not otherwise."""
    [operation] = [one for one in operations() if one.name == "getFulfillmentOrder"]
    example = operation.described["responses"]["200"]["examples"]
    check_answer("GET", f"{ORDERS}/1", 200, example, upper=True)
    with pytest.raises(AssertionError, match=r"fulfillmentOrderStatus: \"PROCESSING\""):
        check_answer("GET", f"{ORDERS}/1", 200, example)


@pytest.mark.parametrize(
    ("path", "params", "wrong"),
    [
        (INVENTORY, {}, "granularityId: missing"),
        (INVENTORY, {**{name: [value] for name, value in OF_MARKETPLACE.items()}, "details": ["yes"]}, "details"),
        (f"{OUTBOUND}/tracking", {"packageNumber": ["1a"]}, "packageNumber"),
        (f"{OUTBOUND}/tracking", {"packageNumber": ["1"], "x": ["1"]}, "x: unknown parameter"),
        (f"{ORDERS}/{'x' * 41}", {}, "a key of 41 characters"),
    ],
)
def test_the_documents_refuse_parameters(path: str, params: dict[str, list[str]], wrong: str) -> None:
    """A parameter that is missing, unknown or of another type is wrong."""
    operations()
    with pytest.raises(AssertionError, match=wrong):
        check_request("GET", path, None, params)


def test_the_documents_refuse_unknown_members() -> None:
    """A member that the document does not know is wrong, in a request as in an answer."""
    operations()
    check_request("POST", ORDERS, order())
    with pytest.raises(AssertionError, match="sellerSKU"):
        check_request("POST", ORDERS, order(items=[{**order()["items"][0], "sellerSKU": "TEA"}]))
    with pytest.raises(AssertionError, match="order"):
        check_answer("POST", ORDERS, 200, {"order": "A-1"})


def test_the_limits_are_those_of_the_documents() -> None:
    """Rate and burst of each operation are those in the table of its description."""
    described = {one.name: one.described["description"] for one in operations()}
    for name, limit in LIMITS.items():
        assert re.findall(r"\| (\d+) \| (\d+) \|", described[name]) == [(str(limit.per_second), str(limit.burst))]
