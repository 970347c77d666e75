"""Records beside their drafts, as values that commands and pages show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crossdock.resources import Reference
from crossdock.runs.planning.target_ids_of_references import references_in
from crossdock.runs.stream_trial import TriedRecord
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import ELEMENT, JSON
from crossdock.values.texts_of_numbers_and_times import count_with_noun
from crossdock.writing.targets.payload_comparison import PERSONAL


def tried_record_document(tried: TriedRecord, personal: frozenset[str], *, raw: bool) -> dict[str, Any]:
    """Return a record beside its draft, or its problem. Without *raw*, values that may be personal are masked."""
    record, problem = tried.record, tried.problem
    members = None
    if tried.members is not None:
        members = {
            name: PERSONAL if name in personal else _references_as_text(value) for name, value in tried.members.items()
        }
    visible = {str(value) for _, value in leaf_values(members)}
    visible |= {part for reference in references_in(tried.members or {}) for part in reference.key_parts}
    visible |= set(record.key_parts)
    return {
        "key": record.key,
        "source": record.source,
        "lines": list(record.lines),
        "record": {
            name: value if raw else _masked_unless_shown_in_draft(value, visible)
            for name, value in _values_by_column(record.rows)
        },
        "draft": members,
        "problem": None
        if problem is None
        else {"code": problem.code, "message": problem.message, "pointer": problem.pointer, "line": problem.line},
    }


def _values_by_column(rows: tuple[dict[str, str | None], ...]) -> Iterator[tuple[str, Any]]:
    """Yield each value of a record with its column or JSON pointer; for several rows, also with the row's number."""
    for number, row in enumerate(rows, 1):
        prefix = f"{number}." if len(rows) > 1 else ""
        for name, cell in row.items():
            if name == JSON:
                yield from (
                    (f"{prefix}{pointer}", value) for pointer, value in leaf_values(exact_json.loads(cell or "{}"))
                )
            elif JSON not in row and name != ELEMENT:
                yield f"{prefix}{name}", cell


def leaf_values(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in *value* that contain no others, with their JSON pointers (RFC 6901)."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not members:
        yield pointer, value
        return
    for name, inner in members:
        yield from leaf_values(inner, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")


def _masked_unless_shown_in_draft(value: Any, visible: set[str]) -> Any:
    """Return *value* if it is empty or shown anyway, else its length: the personal values of a record are not known."""
    is_shown = value is None or value in ("", {}, []) or isinstance(value, bool) or str(value) in visible
    return value if is_shown else f"({count_with_noun(len(str(value)), 'character')})"


def _references_as_text(value: Any) -> Any:
    if isinstance(value, Reference):
        namespace = f"{value.namespace}:" if value.namespace else ""
        return f"{value.resource} {namespace}{'|'.join(value.key_parts)}"
    if isinstance(value, dict):
        return {name: _references_as_text(inner) for name, inner in value.items()}
    return [_references_as_text(inner) for inner in value] if isinstance(value, list) else value
