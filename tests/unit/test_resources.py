"""The seven resources: what they take and what they refuse."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock.mapping.resource_types import RESOURCES
from crossdock.resources import InventoryLotDraft, Invoice, InvoiceDraft, LineDraft, OrderDraft, Product, Reference
from crossdock.values import exact_json

WEST, EAST = timezone(timedelta(hours=-5)), timezone(timedelta(hours=1))


def invoice(**changes: Any) -> dict[str, Any]:
    line = {"productId": "p", "quantity": 1, "unitPrice": Decimal("2.55")}
    return {"customerId": "c", "currency": "GBP", "items": [line]} | changes


def test_the_invoice_has_the_documented_fields_and_no_other() -> None:
    """What platform-spec section 2 lists is all that an invoice can carry."""
    schema = Invoice.model_json_schema(by_alias=True)
    assert set(schema["properties"]) == {"customerId", "currency", "items", "autoPostLedger"}
    assert set(schema["$defs"]["Line"]["properties"]) == {"productId", "quantity", "unitPrice"}
    assert schema["required"] == ["customerId", "currency", "items"]
    with pytest.raises(ValidationError, match="externalId"):
        Invoice.model_validate(invoice(externalId="x"))


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        pytest.param({"currency": "gbp"}, "currency", id="currency in lower case"),
        pytest.param({"currency": "XXZ"}, "currency", id="no such currency"),
        pytest.param({"items": []}, "items", id="no lines"),
        pytest.param({"customerId": ""}, "customerId", id="empty id"),
        pytest.param({"autoPostLedger": 1}, "autoPostLedger", id="a number for a truth value"),
        pytest.param({"currency": "JPY"}, "", id="decimals where the currency has none"),
    ],
)
def test_a_wrong_invoice_is_refused_with_its_place(changes: dict[str, Any], place: str) -> None:
    """Each finding says which member it is about."""
    with pytest.raises(ValidationError) as refused:
        Invoice.model_validate(invoice(**changes))
    assert place in {"/".join(map(str, error["loc"])) for error in refused.value.errors()}


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(2.5, id="float"),
        pytest.param(True, id="truth value"),
        pytest.param("2.5", id="text"),
        pytest.param(Decimal("NaN"), id="NaN"),
        pytest.param(Decimal("0.00001"), id="five decimals"),
        pytest.param(Decimal("1." + "0" * 40 + "1"), id="forty-one decimals"),
        pytest.param(Decimal("1E15"), id="sixteen digits"),
        pytest.param(Decimal("1E1000000"), id="a million digits"),
    ],
)
def test_a_number_that_is_not_exact_or_too_long_is_refused(number: object) -> None:
    """Money and quantities have at most 15 digits before and 4 after the point, and are never floats."""
    with pytest.raises(ValidationError, match="unitPrice"):
        Product.model_validate({"externalId": "x", "sku": "s", "name": "n", "unitPrice": number})


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**15 - 1), max_value=10**15 - 1))
def test_every_exact_number_is_kept(number: Decimal) -> None:
    """What fits is kept digit for digit."""
    product = Product.model_validate({"externalId": "x", "sku": "s", "name": "n", "unitPrice": number})
    assert product.payload()["unitPrice"] == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        pytest.param(Decimal("0E-400000000"), b"0", id="zeros after the point"),
        pytest.param(Decimal("0E400000000"), b"0", id="zeros before the point"),
        pytest.param(Decimal("-1.5" + "0" * 5000), b"-1.5", id="five thousand zeros"),
        pytest.param(Decimal("1.5E3"), b"1500", id="exponent"),
    ],
)
def test_zeros_that_say_nothing_are_left_out(number: Decimal, text: bytes) -> None:
    """A number that fits can be written, whatever zeros it came with; some would take gigabytes."""
    product = Product.model_validate({"externalId": "x", "sku": "s", "name": "n", "unitPrice": number})
    assert exact_json.dumps(product.payload()["unitPrice"]) == text


def test_a_draft_holds_references_and_the_wire_does_not() -> None:
    """A reference stays one in the payload of a draft; a wire model refuses it."""
    draft = InvoiceDraft.model_validate(invoice(customerId=Reference("customer", "17850")))
    assert draft.payload()["customerId"] == Reference("customer", "17850")
    with pytest.raises(ValidationError):
        Invoice.model_validate(invoice(customerId=Reference("customer", "17850")))


def test_parents_come_before_their_children() -> None:
    """The order of resources is the order of their references; all but the invoice carry our own name."""
    assert list(RESOURCES) == [
        "ledger_account", "customer", "product", "warehouse_bin", "inventory_lot", "order", "invoice",
    ]  # fmt: skip
    assert [name for name, kind in RESOURCES.items() if not kind.has_external_id] == ["invoice"]


def lot(**changes: Any) -> dict[str, Any]:
    return {"product_id": "p", "lot_number": "1", "quantity": 1} | changes


@pytest.mark.parametrize("exponent", [-999_999_999, -5, 5, 999_999_999])
def test_a_zero_is_a_zero(exponent: int) -> None:
    """Whatever its exponent, which written out would be as many digits."""
    made = InventoryLotDraft(**lot(quantity=Decimal((0, (0,), exponent)))).payload()
    assert str(made["quantity"]) == "0"


@pytest.mark.parametrize("placed", [datetime.max.replace(tzinfo=WEST), datetime.min.replace(tzinfo=EAST)])
def test_a_time_that_utc_has_not_is_refused(placed: datetime) -> None:
    """It could not be written, so it is no finding of the platform but of the draft."""
    with pytest.raises(ValidationError, match="years 1 to 9999") as refused:
        OrderDraft.model_validate(invoice() | {"placedAt": placed})
    assert refused.value.errors()[0]["loc"] == ("placedAt",)


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param(Reference("product", 17), id="a number"),  # type: ignore[arg-type]
        pytest.param(Reference("product", ""), id="no key"),
        pytest.param(Reference("product", "\ud800"), id="half a character"),
        pytest.param(Reference("product", ()), id="no parts"),
        pytest.param(Reference("product", ("a", "")), id="an empty part"),
        pytest.param(Reference("product", "1", "\0"), id="NUL in the namespace"),
        pytest.param(Reference("shop", "1"), id="no resource"),  # type: ignore[arg-type]
    ],
)
def test_a_reference_must_be_one(reference: Reference) -> None:
    """A key that no state could look up is a finding of the draft."""
    with pytest.raises(ValidationError):
        InventoryLotDraft(**lot(product_id=reference))


def test_a_draft_that_was_not_checked_is_checked() -> None:
    """`model_copy` and `model_construct` take anything, in a line as well; what is taken for a draft is checked."""
    line = LineDraft(product_id="p", quantity=Decimal(1), unit_price=Decimal(1)).model_copy(update={"quantity": 1.5})
    with pytest.raises(ValidationError):
        InvoiceDraft.model_validate(invoice() | {"items": [line]})
    made = InventoryLotDraft(**lot())
    assert InventoryLotDraft.model_validate(made) == made
    with pytest.raises(ValidationError):
        InventoryLotDraft.model_validate(made.model_copy(update={"status": 7}))
    with pytest.raises(ValidationError):
        InventoryLotDraft.model_validate(InventoryLotDraft.model_construct(**lot(status=7)))
