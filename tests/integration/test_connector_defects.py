"""Defects of a connector outside of its mapping: they end its own stream, are told by their place, and lose nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.chaos.mappings import Bench, BenchSettings, Row, batch, open_bench

from crossdock import Context, RawBatch, Record, RecordError, Stream
from crossdock.delta import changed_record_reading
from crossdock.mapping.stream_declaration import Filter, GoneLimits, OnGone
from crossdock.state import StateUrl, parse_database_url
from crossdock.values.raw_rows_and_records import LINE, Proof
from crossdock.writing.delivery.send_queue_and_threads import SenderThreads

SECRET = "erika@example.com"
ROWS: list[Row] = [{"K": str(number)} for number in range(6)]

Pull = Callable[[], Any]


class Products(Stream[BenchSettings]):
    """Three pages of two rows, until *pull* says otherwise."""

    name, resource, key = "products", "product", ("K",)

    def __init__(self, pull: Pull | None = None) -> None:
        self.broken = pull
        self.at_the_end: Pull | None = None

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Any:
        return self.broken() if self.broken else pages()

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {"sku": "x", "name": "x"}

    def finished(self, ctx: Context[BenchSettings]) -> None:
        if self.at_the_end:
            self.at_the_end()


class Invoices(Stream[BenchSettings]):
    """Another stream, which comes later."""

    name, resource, key = "invoices", "invoice", ("K",)

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        if since is None:
            yield batch([{"K": "1"}], "invoices.csv")

    def to_resource(self, record: Record) -> dict[str, Any]:
        line = {"productId": "prd_1", "quantity": 1, "unitPrice": 1}
        return {"customerId": "cus_1", "currency": "EUR", "items": [line]}


def pages() -> Iterator[RawBatch]:
    for number in range(3):
        yield batch(ROWS[2 * number : 2 * number + 2], f"page {number}")


def page(number: int = 0, **changes: Any) -> RawBatch:
    made = batch(ROWS[:2], f"page {number}")
    facts = {"source": made.source, "rows": made.rows, "cursor": made.cursor, **changes}
    return RawBatch(**facts)


def raises(error: BaseException) -> Any:
    raise error


def raises_later() -> Iterator[RawBatch]:
    yield page(0)
    yield page(1)
    raise KeyError(SECRET)


def deep() -> Any:
    return deep()


def frame(**columns: Any) -> pl.DataFrame:
    made = batch(ROWS[:2], "page").load()
    return made.with_columns(**columns)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with open_bench(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as opened:
        yield opened


@pytest.fixture
def each(tmp_path: Path, state_url: StateUrl) -> Iterator[Bench]:
    """The same, once on each database."""
    with open_bench(tmp_path, state_url) as opened:
        yield opened


def ends(bench: Bench, stream: Products) -> tuple[str, int]:
    """What a run says of *stream*, and its exit code; the other stream is delivered, and a plan says the same."""
    planned, _ = bench.plan()
    report = bench.sync()
    assert set(report.errors) == set(planned.errors) == {"b.products"}
    assert str(report.errors["b.products"]) == str(planned.errors["b.products"])
    assert report.balanced
    assert all(tally.balanced for tally in planned.tallies.values())
    assert report.tallies["b.invoices"].delivered == 1
    said = str(report.errors["b.products"])
    assert SECRET not in said
    return said, report.exit_code


def mended(bench: Bench, stream: Products) -> None:
    """Once it is mended everything is delivered, once."""
    stream.broken = stream.at_the_end = None
    report = bench.sync()
    assert (report.exit_code, report.errors, report.balanced) == (0, {}, True)
    assert bench.created() == Counter(f"b:{row['K']}" for row in ROWS)


@pytest.mark.nightly(but=["after two pages", "half a character in a cell"])
@pytest.mark.parametrize(
    ("pull", "told"),
    [
        pytest.param(lambda: raises(KeyError(SECRET)), "pull raised KeyError in line", id="at once"),
        pytest.param(lambda: raises(StopIteration(SECRET)), "pull raised StopIteration in line", id="the wrong end"),
        pytest.param(
            lambda: raises(RecordError("bad_value", SECRET)), "pull raised RecordError in line", id="no record"
        ),
        pytest.param(raises_later, "after page 1", id="after two pages"),
        pytest.param(deep, "pull raised RecursionError in line", id="without an end"),
        pytest.param(lambda: None, "pull raised TypeError in pull, line", id="nothing given"),
        pytest.param(
            lambda: [page(), {"K": SECRET}], "yielded a dict instead of a RawBatch after page 0", id="no batch"
        ),
        pytest.param(lambda: [page(source=17)], "source is not storable text", id="a number for a name"),
        pytest.param(lambda: [page(cursor=17)], "cursor is not storable text", id="a number for a cursor"),
        pytest.param(
            lambda: [RawBatch.json([{"K": 1.5}], source="page", key=["K"])],
            "pull raised TypeError in line",
            id="a float",
        ),
        pytest.param(
            lambda: [RawBatch.json([{"K": "\ud800"}], source="page", key=["K"])],
            "pull raised UnicodeEncodeError in line",
            id="half a character in a cell",
        ),
    ],
)
def test_a_pull_that_fails_ends_its_stream(bench: Bench, pull: Pull, told: str) -> None:
    """The message names stream, page, file and line, and not what the exception says; exit 3."""
    stream = Products(pull)
    bench.begin([stream, Invoices()])
    said, code = ends(bench, stream)
    assert code == 3
    assert told in said
    assert said.startswith("b.products: ")
    assert " raised " not in said or Path(__file__).name in said
    mended(bench, stream)


@pytest.mark.nightly(but=["floats", "no key"])
@pytest.mark.parametrize(
    ("rows", "told"),
    [
        pytest.param(lambda: frame(K=pl.Series([1, 2])), "column 'K' (Int64) must be text", id="numbers"),
        pytest.param(lambda: frame(V=pl.Series([1.5, 2.5])), "column 'V' (Float64) must be text", id="floats"),
        pytest.param(lambda: frame().drop(LINE), "missing column '_line'", id="no lines"),
        pytest.param(lambda: frame().cast({LINE: pl.String}), "missing column '_line' (UInt64)", id="lines as text"),
        pytest.param(lambda: frame().drop("K"), "missing column 'K'", id="no key"),
    ],
)
def test_rows_of_another_form_are_refused(bench: Bench, rows: Callable[[], pl.DataFrame], told: str) -> None:
    """Columns that hold no text, or no lines, are refused with the page's name; exit 4."""
    stream = Products(lambda: [page(rows=rows())])
    bench.begin([stream, Invoices()])
    said, code = ends(bench, stream)
    assert code == 4
    assert said.startswith("page 0")
    assert told in said
    mended(bench, stream)


def test_a_source_that_fails_when_it_is_read_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it gave before is delivered, the rest is carried on and read by the next run."""
    monkeypatch.setattr(changed_record_reading, "SMALL", 0)  # else so few rows are kept, and not read again
    whole = batch(ROWS, "page").load()

    def again(lines: Sequence[int] | None) -> Iterator[pl.DataFrame]:
        yield whole.filter(pl.col(LINE).is_in(lines or [])).head(4)
        raise OSError(SECRET)

    stream = Products(lambda: [RawBatch("page", whole, again=again)])
    bench.begin([stream, Invoices()])
    said, code = ends(bench, stream)
    assert code == 3
    assert "pull raised OSError in line" in said
    assert bench.created().total() == 4
    mended(bench, stream)


class Snapshot(Products):
    """A snapshot that archives what it does not list."""

    mode = "snapshot"
    on_gone: OnGone = "archive"
    skip = {"test": Filter(field="K", starts_with="T")}


def test_a_source_that_fails_when_filtered_rows_are_looked_at_again(bench: Bench) -> None:
    """Nothing of the snapshot is counted or removed, and the tally balances."""
    fewer = batch([*ROWS[:3], {"K": "T"}], "page").load()

    def again(lines: Sequence[int] | None) -> Iterator[pl.DataFrame]:
        raise OSError(SECRET)
        yield fewer

    stream = Snapshot()
    bench.begin([stream])
    assert bench.sync().exit_code == 0
    stream.broken = lambda: [RawBatch("page", fewer, again=again)]
    report = bench.sync()
    assert (report.exit_code, set(report.errors), report.balanced) == (3, {"b.products"}, True)
    mended(bench, stream)


def test_a_snapshot_whose_content_has_no_name(bench: Bench) -> None:
    """A defect of the snapshot's proof removes nothing, and ends nothing else; the next run archives what is gone."""
    fewer = batch(ROWS[:5], "page")

    def shown(content: Callable[[], str]) -> list[RawBatch]:
        return [RawBatch("page", fewer.rows, proof=Proof(content, counted=True))]

    stream = Snapshot(lambda: [RawBatch("page", batch(ROWS, "page").rows, proof=Proof(lambda: "a", counted=True))])
    stream.gone = GoneLimits(at_most_percent=100)
    bench.begin([stream, Invoices()])
    assert bench.sync().exit_code == 0
    stream.broken = lambda: shown(lambda: raises(KeyError(SECRET)))
    report = bench.sync()
    assert (report.exit_code, set(report.errors), report.balanced) == (3, {"b.products"}, True)
    assert "pull raised KeyError in line" in str(report.errors["b.products"])
    stream.broken = lambda: shown(lambda: "b")
    report = bench.sync()
    assert (report.exit_code, report.tallies["b.products"].records["updated"]) == (0, 1)


def test_an_error_at_the_end_of_a_stream_ends_nothing_else(bench: Bench) -> None:
    """What `finished` raises is told; all records are delivered, also those of other streams."""
    stream = Products()
    stream.at_the_end = lambda: raises(KeyError(SECRET))
    bench.begin([stream, Invoices()])
    report = bench.sync()
    assert (report.exit_code, report.balanced, report.tallies["b.products"].delivered) == (3, True, 6)
    assert "finished raised KeyError in line" in str(report.errors["b.products"])
    assert report.tallies["b.invoices"].delivered == 1
    mended(bench, stream)


@pytest.mark.parametrize("end", [KeyboardInterrupt, None])
def test_an_interruption_reaches_the_senders(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, end: type[BaseException] | None
) -> None:
    """They do not wait for the answers of requests in flight then, and do so at the end of any other run."""
    told: list[object] = []
    whole = SenderThreads.__exit__

    def ended(self: SenderThreads, kind: type[BaseException] | None, *more: object) -> None:
        told.append(kind)
        whole(self, kind, *more)

    monkeypatch.setattr(SenderThreads, "__exit__", ended)
    stream = Products()
    stream.at_the_end = (lambda: raises(end())) if end else None
    bench.begin([stream])
    with pytest.raises(end) if end else nullcontext():
        bench.sync()
    assert told == [end]


@pytest.mark.parametrize("key", ["a" * 1_000, "ü" * 500, "a" * 499, "\0" * 200])
def test_a_key_that_is_too_long_is_a_dead_letter(each: Bench, key: str) -> None:
    """An external id has an end; a key that makes it longer is refused before it is sent or looked up."""
    stream = Products(lambda: [batch([{"K": key}, {"K": "1"}], "page")])
    each.begin([stream])
    report = each.sync()
    assert (report.exit_code, report.balanced, report.counters.requests) == (1, True, 1)
    (dead_letter,) = each.dead_letters()
    assert (dead_letter.code, dead_letter.pointer) == ("invalid_draft", "/externalId")
    assert each.sync().counters.requests == 0


def test_a_key_that_is_on_no_wire_may_have_any_length(each: Bench) -> None:
    """An invoice carries no name of ours; the state keeps a key of a thousand characters, whatever they are."""

    class Long(Invoices):
        def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
            keys = [chr(33 + number % 90) * (number % 7 + 1) for number in range(246)]
            yield batch([{"K": "".join(keys)}, {"K": "\0"}], "page")

    each.begin([Long()])
    report = each.sync()
    assert (report.exit_code, report.balanced, report.tallies["b.invoices"].delivered) == (0, True, 2)
    assert each.sync().counters.requests == 0


def test_a_position_may_hold_any_text(each: Bench) -> None:
    """What ``order_by`` names is stored with the record, NUL and all else on both databases."""

    class Ordered(Products):
        order_by = ("AT",)

    rows: list[Row] = [{"K": str(n), "AT": at} for n, at in enumerate(["\0", "a\0b", "", None, "\U0001f600"])]
    each.begin([Ordered(lambda: [batch(rows, "page")])])
    report = each.sync()
    assert (report.exit_code, report.balanced, report.tallies["b.products"].delivered) == (0, True, 5)
    assert each.sync().counters.requests == 0
