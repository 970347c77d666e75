"""SKUs that Amazon's inventory lists several times, such as under an own barcode and under the manufacturer's.

The rows of a SKU may be on any pages, so the list is written to a file of the run before its rows are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crossdock import Context
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.values import exact_json
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.threepl.amazon_mcf.settings import AmazonMcfSettings

OTHERS = "others"
"""The member of a row with the further rows of its SKU."""
Pages = Iterator[tuple[list[Any], str]]


def pages_with_one_row_per_sku(ctx: Context[AmazonMcfSettings], pages: Pages) -> Pages:
    """Yield the rows of *pages*; a SKU with several has one at the end.

    Raises:
        DoubtfulListError: After the last row, if *pages* did.
    """
    path = ctx.run.work / f"{ctx.connection}-inventory.jsonl"
    repeated, doubt = _store_and_find_repeated(pages, path)
    rows_by_sku: dict[str, dict[str, Any]] = {}
    address = ""
    with path.open("rb") as lines:
        for line in lines:
            page = exact_json.loads(line)
            address, once = page["address"], list[Any]()
            for item in page["items"]:
                sku = _sku_or_none(item)
                if sku is not None and hash(sku) in repeated:
                    rows_by_sku.setdefault(sku, {})[_row_key(item)] = item
                else:
                    once.append(item)
            yield once, address
    if rows_by_sku:
        yield [_join_rows_of_sku(rows) for rows in rows_by_sku.values()], address
    if doubt is not None:
        raise doubt


def _store_and_find_repeated(pages: Pages, path: Path) -> tuple[set[int], DoubtfulListError | None]:
    """Return the hashes of the SKUs with several rows, and why rows may be missing."""
    known, repeated = set[int](), set[int]()
    with path.open("wb") as file:
        try:
            for items, address in pages:
                for sku in filter(None, map(_sku_or_none, items)):
                    (repeated if hash(sku) in known else known).add(hash(sku))
                file.write(exact_json.dumps({"items": items, "address": address}) + b"\n")
        except DoubtfulListError as error:
            return repeated, error
    return repeated, None


def _sku_or_none(item: Any) -> str | None:
    sku = value_at_path_or_missing(item, "sellerSku")
    return sku if isinstance(sku, str) else None


def _row_key(item: Any) -> str:
    """Return what tells the rows of a SKU apart: a row that moved to another page while the list was read is one."""
    return f"{value_at_path_or_missing(item, 'fnSku')} {value_at_path_or_missing(item, 'condition')}"


def _join_rows_of_sku(rows: dict[str, Any]) -> Any:
    """Return the first row with the others, and without a barcode if they differ in it."""
    first, *others = [rows[key] for key in sorted(rows)]
    if not others:
        return first
    barcode = first.get("fnSku") if all(each.get("fnSku") == first.get("fnSku") for each in others) else None
    return {**first, "fnSku": barcode, OTHERS: others}
