"""Texts that describe the profile of a column, made from its document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FINDINGS = {
    "outer_blanks": "with blanks around",
    "control": "with control characters",
    "damaged": "in a wrong encoding",
    "spreadsheet": "changed by a spreadsheet",
    "invisible": "with invisible characters",
    "not_nfc": "not normalized (NFC)",
    "number_out_of_range": "with too many digits",
    "date_out_of_range": "before 1900 or after 2100",
    "date_impossible": "with an impossible date",
}
"""The words for a number of cells, by `crossdock.migration.column_profile.Finding`."""


def percent_text(number: int, of: int) -> str:
    """Format a share: ``0 %`` and ``100 %`` mean none and all. A share of nothing is empty."""
    if not of:
        return ""
    if 0 < number * 200 < of:
        return "< 1 %"
    return "> 99 %" if number < of and number * 200 > of * 199 else f"{(200 * number + of) // (2 * of)} %"


def distinct_count_text(column: Mapping[str, Any]) -> str:
    return f"{'~' * column['distinct_is_estimate']}{column['distinct']:,}"


def length_text(column: Mapping[str, Any]) -> str:
    shortest, longest = column["shortest"], column["longest"]
    return f"{longest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"


def number_and_date_shares_text(column: Mapping[str, Any]) -> str:
    words = {"whole": "whole", "decimal": "decimal", "dates": "dates"}
    shares = {word: column[name] for name, word in words.items() if column[name]}
    return ", ".join(f"{percent_text(number, column['filled'])} {word}" for word, number in shares.items())


def findings_text(column: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{found['cells']:,} {FINDINGS[name]} ({', '.join(map(_place_and_value_text, found['examples']))})"
        for name, found in column["findings"].items()
    )


def _place_and_value_text(cell: Mapping[str, Any]) -> str:
    return f"{cell['at']} {cell['value']!r}" if "value" in cell else str(cell["at"])
