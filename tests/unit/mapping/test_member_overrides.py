"""Members of a draft that a config maps in place of those of the code."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crossdock import ProductDraft, Record
from crossdock.mapping.declarative import MemberOverrides

RECORD = Record("1", ({"price": "7", "empty": None},), "page", (1,))


@given(st.dictionaries(st.sampled_from(["sku", "name", "unit_price", "unitPrice", "barcode"]), st.text(), max_size=5))
def test_only_mapped_members_change(made: dict[str, str]) -> None:
    """Whatever members the code returns, and in whichever spelling."""
    others = {name: value for name, value in made.items() if name not in {"unit_price", "unitPrice"}}
    assert MemberOverrides({"unitPrice": "price"}).applied_to(made, RECORD) == {**others, "unitPrice": "7"}
    assert MemberOverrides({"unitPrice": "empty"}).applied_to(made, RECORD) == others


def test_a_draft_keeps_what_is_not_mapped() -> None:
    """Its defaults included."""
    draft = ProductDraft(sku="A", name="Lamp", unit_price=2)
    assert MemberOverrides({"unitPrice": "empty", "name": "price"}).applied_to(draft, RECORD) == {
        "sku": "A",
        "name": "7",
    }
