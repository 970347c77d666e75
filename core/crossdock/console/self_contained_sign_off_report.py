"""The sign-off report of a migration as a self-contained HTML page, with the report itself as JSON in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from crossdock.console import page_rendering
from crossdock.console.page_tables import Cell, Table, table
from crossdock.migration.sign_off_report import counts_of_exceptions_to_accept
from crossdock.printable import printable_json
from crossdock.values import exact_json
from crossdock.values.texts_of_numbers_and_times import aligned_decimals, count_with_noun, instant_text

Report = Mapping[str, Any]
_SIDES = ("source", "state", "platform")
_TERMS = ("read", "created", "updated", "deleted", "unchanged", "suppressed", "rejected", "dropped")
_WAVES = ("wave", "records", "delivered", "open", "gate", "streams")
_TOTALS = ("resource", "of", *_SIDES)
_DIFFERENCES = ("resource", "difference", "records")
_REASONS = ("stream", "reason", "records", "places")
_RUNS = ("run", "kind", "wave", "started", "ended", "status", "requests")
_TALLY = ("stream", "run", *_TERMS)
_SOURCES = ("stream", "SHA-256 of its records and their mapping", "as frozen")
_FILES = ("stream", "file", "bytes", "SHA-256", "imported")
_PLACES = 5  # shown of each reason; the JSON has more


def render_sign_off_report(report: Report) -> str:
    """Return the page of the document that `sign_off_report` makes, without the end that
    `page_rendering.append_checksum_line` adds.
    """
    facts, reconciled = report["migration"], report["reconciliation"]
    number = sum(counts_of_exceptions_to_accept(report["exceptions"]).values())
    return page_rendering.render(
        "sign_off.html",
        title=f"{facts['name']}: signed off",
        migration=facts,
        crossdock=report["crossdock"],
        accepted=f"{count_with_noun(number, 'exception')}, accepted by {facts['signed_off_by']}: " if number else "",
        facts=_facts(report),
        has_exceptions=any(report["exceptions"].values()),
        exceptions=list(_exception_tables(report)),
        reconciled=reconciled and _formatted_time(reconciled["at"]),
        compared=reconciled and count_with_noun(sum(reconciled["compared"].values()), "record"),
        totals=reconciled and source_state_platform_totals_table(reconciled["totals"]),
        waves=table(_WAVES, map(_wave_row, report["waves"])),
        approvals=list(_approval_sentences(report["waves"])),
        frozen={name: _formatted_time(report["freeze"][name]) for name in ("at", "since")},
        sources=table(_SOURCES, _stream_digest_rows(report)),
        files=table(_FILES, map(_file_row, report["files"])),
        runs=table(_RUNS, map(_run_row, report["runs"])),
        tallies=table(_TALLY, _tally_rows(report["runs"])),
        document=_embeddable_json(report),
    )


def _embeddable_json(report: Report) -> str:
    """Return canonical JSON on one line, in which nothing can end the element or control a terminal."""
    return printable_json(exact_json.dumps(dict(report)).decode()).replace("<", "\\u003c")


def _facts(report: Report) -> dict[str, str]:
    facts = report["migration"]
    return {
        "begun": instant_text(facts["started_at"]),
        "begun by": facts["started_by"],
        "signed off": instant_text(facts["signed_off_at"]),
        "signed off by": facts["signed_off_by"],
        "runs": f"{len(report['runs']):,}",
        "requests": f"{sum(run['requests'] for run in report['runs']):,}",
        "records delivered": f"{sum(wave['delivered'] for wave in report['waves']):,}",
    }


def _exception_tables(report: Report) -> Iterator[tuple[str, Table]]:
    found = report["exceptions"]
    differences = ((each["resource"], each["class"], each["records"]) for each in found["differences"])
    yield "Differences that remain", table(_DIFFERENCES, differences)
    yield "Rejected", table(_REASONS, map(_exception_reason_row, found["rejected"]))
    yield "Dropped by an operator", table(_REASONS, map(_exception_reason_row, found["dropped"]))
    waiting = ((each["stream"], each["for"], each["records"]) for each in found["waiting"])
    yield "Waiting for others", table(("stream", "for", "records"), waiting)
    yield "No file was read", table(("stream",), ((name,) for name in found["without_file"]))
    yield "No longer in the source, and kept", table(("stream", "records"), found["kept"].items())
    yield "Not readable at the source any more", table(("stream", "records"), found["unavailable"].items())
    already = report["already_there"].items()
    yield "Already on the platform, nothing was written", table(("stream", "operations"), already)


def _exception_reason_row(each: Report) -> tuple[str, str, int, str]:
    shown = each["places"][:_PLACES]
    more = f", and {each['records'] - len(shown):,} more" if shown and each["records"] > len(shown) else ""
    return each["stream"], each["code"], each["records"], ", ".join(shown) + more


def source_state_platform_totals_table(totals: Mapping[str, Report]) -> Table:
    """Return the records, quantities and amounts of source, state and platform."""
    return table(_TOTALS, _total_rows_of_each_resource(totals), kind="numbers")


def _total_rows_of_each_resource(totals: Mapping[str, Report]) -> Iterator[tuple[str, ...]]:
    for resource, sides in totals.items():
        yield from _total_rows(resource, sides)


def _total_rows(resource: str, sides: Report) -> Iterator[tuple[str, ...]]:
    each = [sides[side] for side in _SIDES]
    yield resource, "records", *(f"{side['records']:,}" for side in each)
    if any(side["quantity"] for side in each):
        yield resource, "quantity", *aligned_decimals(Decimal(side["quantity"]) for side in each)
    for currency in sorted({name for side in each for name in side["amounts"]}):
        yield resource, currency, *aligned_decimals(Decimal(side["amounts"].get(currency, 0)) for side in each)


def _approval_sentences(waves: Sequence[Report]) -> Iterator[tuple[str, str]]:
    for each in waves:
        if (approval := each["approval"]) is not None:
            when = instant_text(approval["at"])
            counts = (f"{number:,} {name.replace('_', ' ')}" for name, number in approval["open"].items() if number)
            who = f"{each['wave']}: {approval['by']} let the migration go on, {when}; open then: "
            yield who, f"{', '.join(counts) or 'nothing'}."


def _wave_row(wave: Report) -> tuple[str | int, ...]:
    gate = wave["gate"]
    number = sum(wave["open"].values())
    return (
        wave["wave"],
        wave["records"],
        wave["delivered"],
        number,
        _gate_text(gate["state"]),
        ", ".join(wave["streams"]),
    )


def _gate_text(state: str) -> str:
    return "passed" if state == "open" else state


def _stream_digest_rows(report: Report) -> Iterator[tuple[str, ...]]:
    frozen, reconciled = report["freeze"]["sources"], (report["reconciliation"] or {"sources": {}})["sources"]
    for name, digest in sorted(report["sources"].items()):
        yield name, reconciled.get(name, "not compared"), "yes" if frozen.get(name) == digest else "no"


def _file_row(file: Report) -> tuple[Cell, ...]:
    return file["stream"], file["name"], file["size"], file["sha256"], instant_text(file["imported_at"])


def _run_row(run: Report) -> tuple[Cell, ...]:
    ended = instant_text(run["ended_at"]) if run["ended_at"] else ""
    times = (instant_text(run["started_at"]), ended)
    return f"{run['run']}", run["kind"], run["wave"] or "", *times, run["status"], run["requests"]


def _tally_rows(runs: Sequence[Report]) -> Iterator[tuple[Cell, ...]]:
    for run in runs:
        for name, tally in run["streams"].items():
            if any(tally["records"].values()):
                yield name, f"{run['run']}", *(tally["records"][term] for term in _TERMS)


def _formatted_time(text: str) -> str:
    return instant_text(datetime.fromisoformat(text))
