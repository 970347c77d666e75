"""The page of what one run has delivered."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.responses import Response

from crossdock.console.page_request_context import PageError, PageRequest, parse_whole_number_or_none
from crossdock.console.page_tables import Cell, Link, table
from crossdock.console.run_pages import run_of_address
from crossdock.state.queries.run_details_and_deliveries import DeliveredOperationFacts
from crossdock.values.texts_of_numbers_and_times import instant_text

_LISTED = 100
_NUMBERS = ("stream", "operation", "records")
_COLUMNS = ("key", "stream", "operation", "confirmed", "target", "id at the target", "read from")


def show_delivered_records(visit: PageRequest) -> Response:
    """Show the operations of a run that a target has confirmed, all or those of a stream or kind, page by page."""
    after = parse_whole_number_or_none(visit.parameter("after") or "0")
    if after is None:
        raise PageError(404, "There is no such place in the list.", "The list begins at the address without 'after'.")
    stream, operation = visit.parameter("stream") or None, visit.parameter("operation") or None
    with visit.read_transaction() as tx:
        run = run_of_address(visit, tx)
        numbers = tx.delivered_history.delivered_counts_by_stream_and_operation([run.id])
        found = tx.delivered_history.delivered_operations_of_run(
            run.id, stream=stream, operation=operation, after=after, limit=_LISTED + 1
        )
    chosen = {"stream": stream, "operation": operation}
    page, more = found[:_LISTED], len(found) > _LISTED
    return visit.render_page(
        "delivered.html",
        f"Delivered by run {run.id}",
        run=run,
        run_address=visit.link("runs", run.id),
        total=f"{sum(each for _, _, each in numbers):,}",
        counted=f"{sum(each['records']['delivered'] for each in (run.tally or {}).values()):,}",
        numbers=table(_NUMBERS, (_count_row(visit, run.id, *each) for each in numbers), kind="numbers"),
        chosen=" ".join(filter(None, (operation, stream))),
        all=visit.link("runs", run.id, "delivered"),
        records=table(_COLUMNS, (_row(visit, each) for each in page)),
        following=visit.link("runs", run.id, "delivered", **chosen, after=page[-1].id) if more else "",
    )


def _count_row(visit: PageRequest, run: int, stream: str, operation: str, number: int) -> Iterator[Cell]:
    yield stream
    yield operation
    yield Link(f"{number:,}", visit.link("runs", run, "delivered", stream=stream, operation=operation))


def _row(visit: PageRequest, each: DeliveredOperationFacts) -> Iterator[Cell]:
    yield Link(each.key, visit.link("record", stream=each.stream, key=each.key))
    yield each.stream
    yield each.operation
    yield instant_text(each.at)
    yield each.target
    yield each.target_id or ""
    yield f"{each.source}:{each.line}"
