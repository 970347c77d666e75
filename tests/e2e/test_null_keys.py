"""Rows whose key is a text that means "no value": they are rejected, or left out where that is declared."""

from __future__ import annotations

import pytest
from tests.e2e.warehouse import Site


@pytest.mark.parametrize(
    ("keys", "records", "code"),
    [
        ('columns: {SKU: {"null": "NULL"}}', {"read": 1, "created": 1}, 1),
        (
            'columns: {SKU: {"null": "NULL"}}\n        skip: {keyless: {field: SKU, empty: true}}',
            {"read": 1, "created": 1},
            0,
        ),
    ],
)
def test_a_null_text_is_no_key(site: Site, keys: str, records: dict[str, int], code: int) -> None:
    """Neither of the two rows becomes a record named NULL."""
    site.edit('files: "out/PROD_*"', f'files: "out/PROD_*"\n        {keys}')
    site.init()
    site.export("PROD_1.csv", "SKU;NAME;PRICE\nNULL;Bolt;1.50\nP1;Nut;1.50\nNULL;Washer;1.50\n")
    night = site.sync("wms.products")
    assert night.code == code
    assert night.records("products") == records
    assert site.names("product") == ["wms:P1"]
    rows = night.rows("products")
    assert rows["read"] == 3
    assert rows["rejected"] == (2 if code else 0)
