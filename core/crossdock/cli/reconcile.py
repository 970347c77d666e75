"""``crossdock reconcile``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    MOST,
    absolute_path,
    common_options,
    help_example,
    print_sentences,
    raise_if_not_writable,
)
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import error_documents
from crossdock.values.texts_of_numbers_and_times import aligned_decimals, count_with_noun, json_time_text

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.platform_and_state_comparison import Difference, DifferenceClass
    from crossdock.runs.reconciliation.reconciliation_result import Reconciliation

_SHOWN = 50
_FEW = 5  # totals that differ
CLASSES = ("missing", "duplicate", "diverged", "extra", "stale", "in doubt", "waiting", "rejected")
_SIDES = ("source", "state", "platform")


def reconcile_options(command: Any) -> Any:
    options = (
        click.option(
            "-o",
            "--out",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Save a repair of what is found for 'crossdock apply'.",
        ),
        click.option(
            "--sample",
            type=click.IntRange(1, MOST),
            metavar="N",
            help="Look up only N records of each resource, one request each.",
        ),
        click.option("--seed", type=click.IntRange(0, MOST), help="Of --sample: chooses other records."),
        click.option(
            "--remove-extra",
            is_flag=True,
            help="Let the repair delete what only the platform has under an external id of ours, unless referred to.",
        ),
        click.option(
            "--limit",
            type=click.IntRange(0, MOST),
            default=_SHOWN,
            show_default=True,
            help="Differences to show of each class.",
        ),
        click.option(
            "--class",
            "only",
            type=click.Choice(CLASSES),
            help="Show only the differences of this class; all are compared and counted.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return common_options(command)


@click.command(
    epilog=help_example(
        "crossdock reconcile",
        "crossdock reconcile wms -o reconcile_and_repair.plan",
        "crossdock reconcile --sample 3000",
    )
)
@click.argument("streams", nargs=-1, metavar="[CONNECTION[.STREAM]]...")
@reconcile_options
def reconcile(streams: tuple[str, ...], config: Path, **options: Any) -> int:
    """Compare the sources, the state and the platform, member by member.

    Reads the sources from their beginning, and all records of the platform; changes nothing. Differences are in
    classes: missing (the platform does not have it), extra (the source or the state does not), stale (the source has
    changed since), diverged (the platform holds something else than it accepted), duplicate, waiting, in doubt,
    rejected.

    Exit codes: 0 no differences; 1 differences; 2 wrong usage or config; 3 a source, the platform or the state cannot
    be read.
    """
    loaded = load_project(config)
    found, _ = reconcile_print_and_save(loaded, loaded.selected_streams(streams), **options)
    return found.exit_code


def reconcile_print_and_save(
    loaded: Project,
    names: set[str],
    *,
    out: Path | None,
    sample: int | None,
    seed: int | None,
    remove_extra: bool,
    limit: int,
    only: DifferenceClass | None,
    as_json: bool,
    for_migration: bool = False,
) -> tuple[Reconciliation, dict[str, Any]]:
    """Reconcile, print the findings, save a repair, and for a migration store the result in the state."""
    from crossdock.runs.reconciliation import reconcile_and_repair
    from crossdock.runs.reconciliation.reconciliation_result import Sample
    from crossdock.runs.session_shared_by_runs import open_session
    from crossdock.state import AuditEntry

    _raise_if_options_conflict(out, sample, seed, remove_extra=remove_extra)
    place = absolute_path(out)
    chosen = None if sample is None else Sample(sample, seed or 0)
    with (
        open_session(loaded, SystemClock(), attempt=None) as session,
        terminal_output.show_progress(wanted=not as_json) as progress,
    ):
        found, plan = reconcile_and_repair.reconcile_and_hash_repair(
            session, names, progress, sample=chosen, remove_extra=remove_extra
        )
        document = _document_with_shown_differences(found, found.first_differences_of_each_class(limit, only))
        if for_migration and chosen is None and not found.errors:
            with session.state.begin() as tx:
                current = tx.migrations.current()
                if current is not None:
                    tx.migrations.store_reconciliation(current.id, _result_document(found))
                    after = {"differences": sum(found.counts_by_resource_and_class.values())}
                    subject, at = f"migration {current.name}", SystemClock().now()
                    tx.audit_log.put(AuditEntry.new_by_current_actor("migrate reconcile", subject, at=at, after=after))
    terminal_output.print_errors(found.errors)
    if as_json:
        terminal_output.print_json(document)
    else:
        _print_reconciliation(found, found.first_differences_of_each_class(limit, only), only)
    if place is not None and not found.errors:
        reconcile_and_repair.raise_if_sample_or_too_many_to_repair(found)
        plan.save(place)
        if not as_json:
            print_sentences(f"saved; repair with: crossdock apply {out}")
    return found, document


def _raise_if_options_conflict(out: Path | None, sample: int | None, seed: int | None, *, remove_extra: bool) -> None:
    if sample is not None and out is not None:
        raise ConfigError("a sample cannot be repaired", hint="reconcile without --sample", code="options_conflict")
    if sample is None and seed is not None:
        raise ConfigError(
            "--seed chooses the records of a sample",
            hint="add --sample N, or leave --seed out",
            code="options_conflict",
        )
    if remove_extra and out is None:
        hint = "add -o PLAN, and apply it with 'crossdock apply PLAN'"
        raise ConfigError("--remove-extra is part of a repair, which is not saved", hint=hint, code="options_conflict")
    raise_if_not_writable(out)


def _result_document(found: Reconciliation) -> dict[str, Any]:

    return {
        "at": json_time_text(found.at),
        "compared": dict(found.compared),
        "differences": [
            {"resource": resource, "class": name, "records": number}
            for (resource, name), number in sorted(found.counts_by_resource_and_class.items())
        ],
        "totals": _totals_document(found),
        "kept": {name: number for name, number in found.kept.items() if number},
        "unavailable": dict(found.unavailable),
        "sources": found.sources,
    }


def _document_with_shown_differences(found: Reconciliation, shown: Sequence[Difference]) -> dict[str, Any]:
    from crossdock.runs.reconciliation.reconciliation_result import CONFIDENCE, highest_differing_share

    document = _result_document(found) | {
        "requests": found.requests,
        "repair": {"operations": dict(found.operations), "corrections": len(found.corrections)},
        "shown": [
            {
                "class": each.difference,
                "resource": each.scope.resource,
                "namespace": each.scope.namespace,
                "key": each.key,
                "at": each.place or None,
                "id": each.target_id,
                "members": list(each.members),
                "remark": each.remark,
            }
            for each in shown
        ],
        "errors": {name: str(error) for name, error in found.errors.items()},
        "messages": error_documents(found.errors),
    }
    if found.sample is not None:
        document["sample"] = {
            resource: {
                "compared": number,
                "of": found.known[resource],
                "differing_at_most": round(highest_differing_share(number, found.count_differing_records(resource)), 6),
                "confidence": CONFIDENCE,
            }
            for resource, number in found.compared.items()
            if number
        }
    return document


def _totals_document(found: Reconciliation) -> dict[str, Any]:
    return {
        resource: {side: totals.as_json() for side, totals in zip(_SIDES, sides, strict=True)}
        | {"differing": [each._asdict() for each in found.differing_totals.get(resource, ())[:_SHOWN]]}
        for resource, sides in found.totals.items()
    }


def _print_reconciliation(found: Reconciliation, shown: Sequence[Difference], only: DifferenceClass | None) -> None:
    console = terminal_output.output_console()
    if shown:
        rows = [
            (each.difference, each.scope.resource, _external_id_or_place(each), _what_differs(each)) for each in shown
        ]
        console.print(terminal_output.make_fitting_table("differences", ("class", "resource", "record", "what"), rows))
    hidden = Counter[str](each.difference for each in found.sorted_differences())
    hidden.subtract(each.difference for each in shown)
    for name in CLASSES:
        if hidden[name] and only in {None, name}:
            console.print(f"and {hidden[name]:,} more {name} (--limit)")
    if found.sorted_differences():
        console.print()
    totals = terminal_output.make_fitting_table(
        "control totals", ("resource", "of", *_SIDES), list(_total_rows(found)), numbers=_SIDES
    )
    console.print(totals)
    console.print()
    for line in _summary_lines(found):
        console.print(line, soft_wrap=True)


def _external_id_or_place(each: Difference) -> str:
    """Return the external id; the platform's id if only the platform has it; the place for a row without a key."""
    if each.place:
        return each.place
    return f"{each.scope.namespace}:{each.key}" if each.scope.namespace else each.key


def _what_differs(each: Difference) -> str:
    members = ", ".join(each.members)
    return "; ".join(part for part in (members, each.remark) if part)


def _total_rows(found: Reconciliation) -> Iterator[tuple[str, ...]]:
    for resource, sides in found.totals.items():
        yield resource, "records", *(f"{each.records:,}" for each in sides)
        if any(each.quantities for each in sides):
            yield "", "quantity", *aligned_decimals(each.quantity for each in sides)
        for currency in sorted({currency for each in sides for currency in each.amounts_by_currency}):
            yield "", currency, *aligned_decimals(each.amounts_by_currency.get(currency, Decimal()) for each in sides)


def _summary_lines(found: Reconciliation) -> Iterator[str]:
    from crossdock.runs.reconciliation.reconciliation_result import CONFIDENCE, highest_differing_share

    for resource, differing in found.differing_totals.items():
        for each in differing[:_FEW]:
            amounts = " and ".join(aligned_decimals((each.source, each.platform)))
            of = f"amount of customer {each.name} in {each.currency}"
            of = of if each.currency is not None else f"quantity of product {each.name}"
            yield f"{resource}: the {of} differs in the source and on the platform: {amounts}"
        if len(differing) > _FEW:
            yield f"{resource}: {count_with_noun(len(differing) - _FEW, 'other total')} differ, see --json"
    for name, number in found.kept.items():
        if number:
            yield f"{name}: {count_with_noun(number, 'record')} no longer in the source and kept (on_gone: nothing)"
    for name, number in found.unavailable.items():
        yield (
            f"{name}: the source of {count_with_noun(number, 'record')} cannot be read any more; compared with the "
            "state only"
        )
    nouns = {resource: resource.replace("_", " ") for resource, _ in found.counts_by_resource_and_class}
    counts = ", ".join(
        f"{count_with_noun(number, nouns[resource])} {name}"
        for (resource, name), number in sorted(found.counts_by_resource_and_class.items())
    )
    compared, requests = (
        count_with_noun(sum(found.compared.values()), "record"),
        count_with_noun(found.requests, "request"),
    )
    yield f"compared {compared} with {requests}: {counts or 'no differences'}"
    if found.sample is not None:
        for resource, number in found.compared.items():
            if number:
                share = highest_differing_share(number, found.count_differing_records(resource))
                yield (
                    f"{resource}: {number:,} of {found.known[resource]:,} sampled; with a confidence of "
                    f"{CONFIDENCE:.0%}, at most {share:.2%} differ. What only the platform has is not looked for"
                )
