"""A rehearsal as one document, which ``--json`` prints and the terminal and the page show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import structs

from crossdock.values.run_messages import error_documents
from crossdock.values.texts_of_numbers_and_times import count_with_noun
from crossdock.values.times_as_json_text import time_text

if TYPE_CHECKING:
    from crossdock.migration import column_profile
    from crossdock.migration.planned_creates_already_on_platform import Match
    from crossdock.migration.planned_outcome_counts import PlanCounts, Rejected, StreamCounts
    from crossdock.migration.rehearsal_dry_run_of_waves import RehearsalResult, WaveForecast
    from crossdock.migration.source_profile import SourceProfile

_MOST_EXAMPLES = 5


def rehearsal_document(rehearsed: RehearsalResult, *, raw: bool) -> dict[str, Any]:
    """Make the document. It has values of records only if *raw*."""
    planned, waves = rehearsed.planned, rehearsed.waves
    order = [name for wave in waves for name in planned.tallies if name in wave.wave.streams]
    return {
        "migration": rehearsed.name,
        "tenant": rehearsed.pin.tenant,
        "began_at": time_text(rehearsed.began),
        "ends_at": _optional_time_text(waves[-1].ends),
        "requests": sum(wave.requests for wave in waves),
        "waves": [_wave_document(wave) for wave in waves],
        "streams": {name: _stream_document(rehearsed, name, raw=raw) for name in order},
        "forecast": structs.asdict(planned.forecast),
        "other_forecasts": {name: structs.asdict(forecast) for name, forecast in planned.other_forecasts.items()},
        "warnings": list(_rehearsal_warnings(rehearsed)),
        "errors": {name: str(error) for name, error in planned.errors.items()},
        "messages": error_documents(planned.errors),
    }


def _optional_time_text(at: datetime | None) -> str | None:
    return None if at is None else time_text(at)


def _wave_document(forecast: WaveForecast) -> dict[str, Any]:
    begins, ends = forecast.begins, forecast.ends
    return {
        "name": forecast.wave.name,
        "streams": sorted(forecast.wave.streams),
        "requests": forecast.requests,
        "begins_at": _optional_time_text(begins),
        "ends_at": _optional_time_text(ends),
        "seconds": None if begins is None or ends is None else (ends - begins).total_seconds(),
    }


def _stream_document(rehearsed: RehearsalResult, name: str, *, raw: bool) -> dict[str, Any]:
    planned, decisions = rehearsed.planned, rehearsed.outcome_counts
    found, profile, there = decisions.streams[name], rehearsed.profiles.get(name), rehearsed.already_there
    repeated = planned.repeated_keys.get(name)
    named, matched = (there.with_same_external_id.get(name), there.matched.get(name)) if there else (None, None)
    return planned.tallies[name].as_json() | {
        "wave": next(wave.wave.name for wave in rehearsed.waves if name in wave.wave.streams),
        "rejected_by_reason": {code: _rejected_document(each) for code, each in _rejections_most_frequent_first(found)},
        "rejected_before": planned.rejected_before.get(name, 0),
        "repeated_keys": repeated.number if repeated else 0,
        "repeated_examples": [{"key": each.key, "at": list(each.places)} for each in repeated.examples]
        if repeated
        else [],
        "unresolved": [_unresolved_references_document(decisions, found, *scope) for scope in sorted(found.missing)],
        "waiting": found.waiting,
        "in_doubt": found.in_doubt,
        "on_hold": found.withheld,
        "already_there": named and named.number,
        "already_there_examples": [_match_document(each) for each in named.examples] if named else [],
        "matched": matched and {name: getattr(matched.counts, name) for name in ("one", "several", "none")},
        "take_over_examples": [_match_document(each) for each in matched.taken_over] if matched else [],
        "ambiguous_examples": [_match_document(each) for each in matched.ambiguous] if matched else [],
        "conflicts": None
        if there is None or name not in there.conflicts
        else _conflicts_document(there.conflicts[name]),
        "profile": None if profile is None else _profile_document(profile, raw=raw),
        "joined_profiles": {
            part: _profile_document(found, raw=raw) for part, found in rehearsed.joined_profiles.get(name, {}).items()
        },
    }


def _match_document(found: Match) -> dict[str, Any]:
    return {"key": found.key, "id": found.target_id} | ({"message": found.why} if found.why else {})


def _conflicts_document(keys: Sequence[str]) -> dict[str, Any]:
    return {"records": len(keys), "examples": list(keys[:_MOST_EXAMPLES])}


def _rejections_most_frequent_first(found: StreamCounts) -> list[tuple[str, Rejected]]:
    return sorted(found.rejected.items(), key=lambda each: (-each[1].records, each[0]))


def _rejected_document(found: Rejected) -> dict[str, Any]:
    examples = [
        {"key": each.key, "at": f"{each.source}:{each.line}", "pointer": each.pointer, "message": each.message}
        for each in found.examples
    ]
    return {"records": found.records, "examples": examples}


def _unresolved_references_document(
    planned_counts: PlanCounts, found: StreamCounts, resource: str, namespace: str
) -> dict[str, Any]:
    missing = found.missing[resource, namespace]
    why = {key: planned_counts.missing_parent_reason((resource, namespace, key)) for key in missing}
    first = sorted(missing.items(), key=lambda each: (-each[1], each[0]))[:_MOST_EXAMPLES]
    return {
        "resource": resource,
        "namespace": namespace,
        "references": missing.total(),
        "records": len(missing),
        "why": dict(sorted(Counter(why.values()).items())),
        "examples": [{"key": key, "references": number, "why": why[key]} for key, number in first],
    }


def _profile_document(profile: SourceProfile, *, raw: bool) -> dict[str, Any]:
    columns = [{"name": name} | _column_document(column, raw=raw) for name, column in profile.columns.items()]
    return {"rows": profile.rows, "has_more_columns": profile.has_more, "columns": columns}


def _column_document(column: column_profile.ColumnProfile, *, raw: bool) -> dict[str, Any]:
    findings = {
        name: {"cells": found.cells, "examples": [_cell_place_and_value(each, raw=raw) for each in found.examples]}
        for name, found in column.findings.items()
    }
    values = {"smallest": column.smallest, "largest": column.largest} if raw else {}
    return {
        "filled": column.filled,
        "distinct": column.distinct.estimate,
        "distinct_is_estimate": column.distinct.exceeds_exact_limit,
        "whole": column.whole,
        "decimal": column.decimal,
        "dates": column.dates,
        "shortest": column.shortest,
        "longest": column.longest,
        "lengths": {str(length): number for length, number in sorted(column.lengths.items())},
        "findings": findings,
        **values,
    }


def _cell_place_and_value(cell: column_profile.Cell, *, raw: bool) -> dict[str, Any]:
    return {"at": f"{cell.source}:{cell.line}"} | ({"value": cell.value} if raw else {})


def _rehearsal_warnings(rehearsed: RehearsalResult) -> list[str]:
    wave_of = {name: each.wave.name for each in rehearsed.waves for name in each.wave.streams}
    found = [
        f"{count_with_noun(number, 'record')} of {name} in wave {wave_of[name]} would wait for the later wave {later}:"
        " change the order of the waves"
        for name, decisions in rehearsed.outcome_counts.streams.items()
        for later, number in decisions.refers_to_later.items()
    ]
    found += _possible_take_over_warnings(rehearsed)
    return found + [f"{name} is in no wave, and was not rehearsed" for name in rehearsed.left_out]


def _possible_take_over_warnings(rehearsed: RehearsalResult) -> Iterator[str]:
    """Yield streams of which the platform may have records that would be taken over, unless that was read."""
    if rehearsed.already_there is not None:
        return
    for name, member in rehearsed.adoption_members.items():
        tally = rehearsed.planned.tallies.get(name)
        if tally is not None and (created := tally.records["created"]):
            yield (
                f"{name}: of {count_with_noun(created, 'create')}, some may take over a record of the platform with "
                "the same"
                f" {member}: rehearse with --against-platform to see which ones"
            )
