"""Mappings that meet any text and raise any exception: what becomes of each record, in a plan and in a sync."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, example, given, seed, settings
from hypothesis import strategies as st
from sqlalchemy import Table, create_engine, select
from tests.chaos import raisers
from tests.chaos.books import Platform, empty
from tests.chaos.chance import chaos_seed
from tests.chaos.scripted import Scripted

from crossdock import Connector, Context, DeclaredStream, RawBatch, Record, Settings, Stream, StreamConfig
from crossdock.config.project import connections_and_bound_streams, project
from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError
from crossdock.mapping.stream_declaration import FailureLimits
from crossdock.printable import BLANKS
from crossdock.runs import dry_run, sync_and_replay
from crossdock.runs.plan_result import PlanListener, PlanResult
from crossdock.runs.planning import planner as planning
from crossdock.runs.run_report import Report
from crossdock.state import DeadLetter, PinnedTenant, RecordFilter, StateUrl, create_or_upgrade_state
from crossdock.state.db import schema
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.raw_rows_and_records import LINE, REASONS
from crossdock.values.record_keys import MAX_KEY_BYTES, key_text
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.webhooks import Webhooks

Row = dict[str, str | None]
Named = tuple[str, str]  # stream and key
Fates = dict[Named, str]
"""What becomes of each record: ``delivered``, ``waiting``, or the reason of its dead letter."""


class BenchSettings(Settings):
    """Nothing to set."""

    kind: Literal["bench"]


def batch(rows: Sequence[Row], source: str) -> RawBatch:
    frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
    lines = pl.int_range(2, 2 + len(rows), dtype=pl.UInt64)
    return RawBatch(source, frame.with_columns(lines.alias(LINE)), cursor="1")


@dataclass(slots=True)
class Bench:
    """A platform that takes everything, a state, and a connection with the streams of one example."""

    folder: Path
    url: StateUrl
    server: Scripted
    patch: pytest.MonkeyPatch
    platform: Platform = field(default_factory=lambda: Platform(keys=True))
    clock: ManualClock = field(default_factory=ManualClock)
    _project: Project | None = None

    def begin(
        self,
        streams: Sequence[Stream[Any]],
        overrides: str = "{}",
        webhooks: Webhooks[Any] | None = None,
        **facts: Any,
    ) -> None:
        """Start anew with *streams*, the *overrides* of a config, *webhooks*, and other *facts* of the connector."""
        empty(self.url)
        self.platform = Platform(keys=True)
        self.server.answer = self.platform.answer
        connector = Connector(
            "bench",
            "Bench",
            BenchSettings,
            lambda _settings: list(streams),
            **{"webhooks": lambda _settings: webhooks, **facts},
        )
        self.patch.setattr(connections_and_bound_streams, "load_connector", lambda _name: connector)
        path = self.folder / "c.yaml"
        path.write_text(
            f"platform: {{base_url: {self.server.base_url}, tenant: acme, auth: {{kind: api_key, token: env:KEY}}}}\n"
            f"state: {self.url.render_as_string(hide_password=False)}\n"
            f"connections: {{b: {{kind: bench, streams: {overrides}}}}}\n"
        )
        self._project = project.load(path)

    def plan(self) -> tuple[PlanResult, Fates]:
        fates: Fates = {}

        def refused(dead_letter: DeadLetter) -> None:
            if dead_letter.identity.key:  # a row without one is no record
                fates[dead_letter.identity.stream, dead_letter.identity.key] = dead_letter.code

        sink = PlanListener(
            operation=lambda o: fates.update({(o.identity.stream, o.record.key): "delivered"}),
            refused=refused,
            waiting=lambda record: fates.update({(record.identity.stream, record.identity.key): "waiting"}),
            resend=lambda _: None,
            in_doubt=lambda _: None,
            withheld=lambda _: None,
        )
        assert self._project is not None
        planned = dry_run.plan_sync(self._project, [], sink, clock=self.clock, progress=SilentProgress())
        assert all(each.__traceback__ is None for each in planned.errors.values()), "it keeps what was read"
        return planned, fates

    def sync(self) -> Report:
        assert self._project is not None
        return sync_and_replay.sync(self._project, [], **self._kept())

    def replay(self) -> Report:
        assert self._project is not None
        return sync_and_replay.replay(self._project, RecordFilter(), **self._kept())

    def _kept(self) -> dict[str, Any]:
        self.clock.advance(1)
        return {"clock": self.clock, "progress": SilentProgress(), "interrupt": threading.Event()}

    def fates(self) -> Fates:
        """What the state says; fails where a record is in two places."""
        engine = create_engine(self.url)
        found: list[tuple[Named, str]] = []
        streams = {stream.resource: name for name, stream in self._streams()}
        with engine.connect() as connection:
            live = connection.execute(select(schema.bindings.c.resource, schema.bindings.c.key))
            found += [((streams[row.resource], row.key), "delivered") for row in live]
            dead_letters = connection.execute(select(schema.dead_letters).where(schema.dead_letters.c.key != ""))
            found += [((row.stream, row.key), row.code) for row in dead_letters]
            found += [((row.stream, row.key), "waiting") for row in connection.execute(select(schema.waiting_records))]
        engine.dispose()
        assert len(dict(found)) == len(found), found
        return dict(found)

    def dead_letters(self) -> list[Any]:
        return self._rows(schema.dead_letters)

    def attempts(self) -> list[str]:
        """What was noted of attempts that did not deliver an operation."""
        return [row.message for row in self._rows(schema.attempts)]

    def _rows(self, table: Table) -> list[Any]:
        engine = create_engine(self.url)
        with engine.connect() as connection:
            rows = list(connection.execute(select(table)).all())
        engine.dispose()
        return rows

    def created(self) -> Counter[str]:
        """How often each record was created, by its name on the platform."""
        bodies = (body for operation, _, body in self.platform.effects if operation == "create")
        return Counter(body["externalId"] for body in bodies if "externalId" in body)

    def _streams(self) -> Iterator[tuple[str, Stream[Any]]]:
        assert self._project is not None
        for connection in self._project.connections:
            for stream in connection.streams:
                yield f"{connection.name}.{stream.name}", stream


@contextmanager
def open_bench(folder: Path, url: StateUrl) -> Iterator[Bench]:
    with Scripted(lambda _asked: None) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "k")
        create_or_upgrade_state(url, PinnedTenant(server.base_url, "acme"))
        yield Bench(folder, url, server, patch)


def fuzzed(test: Callable[..., None], examples: int) -> None:
    """Run a hypothesis test with so many examples and the seed of the chaos tests."""
    chosen = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seed(chaos_seed())(chosen(test))()


# ---- any text in any cell


_EMPTY = ["1900-01-01 00:00:00", "0000-00-00 00:00:00"]
_MAPS: dict[str, dict[str, Any]] = {
    "customers": {"resource": "customer", "map": {"name": "C", "currency": "CUR"}},
    "products": {
        "resource": "product",
        "map": {
            "sku": "SKU",
            "name": {"template": "{SKU} {C}"},
            "active": {"from": "ACT", "as": "boolean", "true_text": "Y", "false_text": "N"},
            "unitPrice": {"from": "PR", "as": "decimal"},
            "currency": "CUR",
        },
    },
    "lots": {
        "resource": "inventory_lot",
        "map": {
            "productId": {"const": "prd_1"},
            "lotNumber": {"template": "{SKU}/{N}"},
            "quantity": {"from": "N", "as": "integer"},
            "receivedOn": {"from": "DAY", "as": "date", "format": "%Y%m%d", "empty": ["00000000", "99991231"]},
            "expiresOn": {"from": "DAY", "as": "date", "format": "%Y%m%d", "empty": "00000000"},
        },
    },
    "orders": {
        "resource": "order",
        "group_by": ["K"],
        "map": {
            "customerId": {"ref": "customer", "key": "K"},
            "currency": "CUR",
            "placedAt": {"from": "AT", "as": "instant", "format": "%Y-%m-%d %H:%M:%S", "empty": _EMPTY},
            "status": "ACT",
            "shippingAddress": {"object": {"line1": "SKU", "city": "C", "country": "CO"}},
            "items": {
                "each": {
                    "productId": {"ref": "product", "key": ["K"]},
                    "quantity": {"from": "QTY", "as": "decimal", "decimal_mark": ","},
                    "unitPrice": {"from": "PR", "as": "decimal"},
                }
            },
        },
    },
}
_GOOD: dict[str, Sequence[str]] = {
    "K": (*map(str, range(80)), "a b", "ä|%"),
    "C": ("Ada", "Bob"),
    "CUR": ("EUR", "USD", ""),
    "SKU": ("0017", "X"),
    "ACT": ("Y", "N", ""),
    "PR": ("1.25", "0.0001", "-3"),
    "N": ("1", "007"),
    "DAY": ("20260701", "00000000", ""),
    "AT": ("2026-07-01 02:00:00", "2026-03-29 02:30:00"),
    "CO": ("DE", "FR"),
    "QTY": ("1", "2,5"),
}
NASTY: Sequence[str | None] = (
    None, "", " ", "\t", "\0", "a\0b", "\n", "=1+1", "NULL", "nan", "NaN", "sNaN", "Infinity", "-0", "+1",
    "1e400000000", "1E-400000000", "1" * 16, "9" * 5_000, "0" * 5_000, "1.", ".5", "1,5", "1_000", "١٢٣",
    "0001-01-01 00:00:00", "9999-12-31 23:59:59", "10000-01-01 00:00:00", "2026-02-30 00:00:00", "1900-01-01 00:00:00",
    "2026-03-29 02:30:00", "99991231", "00010101", "00000000", "20260230", "%", "%00", "|", "a|b", "..", "{SKU}",
    "\u202e", "\ufeff", "\U0001f600", "e\u0301", "EUR", "JPY", "XXX", "eur", "DE", "x" * 600, "ü" * 200, "yes", "Y",
)  # fmt: skip
_CELL = st.sampled_from(NASTY) | st.text(max_size=12) | st.text(alphabet="0123456789+-.,:eE ", max_size=20)
_ZONES = ("America/New_York", "Europe/Berlin", "Pacific/Apia", "Pacific/Kiritimati", "UTC")


def _rows(nasty: int) -> st.SearchStrategy[list[Row]]:
    """Rows of which about *nasty* of 100 cells may hold any text."""
    chance = st.integers(0, 99)
    cells = {
        name: st.tuples(chance, st.sampled_from(good), _CELL).map(lambda t: t[2] if t[0] < nasty else t[1])
        for name, good in _GOOD.items()
    }
    return st.lists(st.fixed_dictionaries(cells), min_size=20, max_size=60)


class _Cells(DeclaredStream[BenchSettings]):
    def __init__(self, name: str, rows: Sequence[Row], zone: str) -> None:
        facts = {"mode": "append", "key": ["K"], **_MAPS[name]}
        config = StreamConfig.model_validate(facts)
        if name == "orders":
            placed = facts["map"]["placedAt"] | {"timezone": zone}
            config = StreamConfig.model_validate(facts | {"map": facts["map"] | {"placedAt": placed}})
        super().__init__(name, config, {})
        self._rows = rows

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        if since is None:
            yield batch(self._rows, f"{self.name}.csv")


def any_text(folder: Path, url: StateUrl, *, examples: int) -> Counter[str]:
    """Any text in any cell: each record is delivered, waits or is a dead letter, as the plan said.

    Returns:
        How many records had each fate.
    """
    seen: Counter[str] = Counter()
    with open_bench(folder, url) as bench:

        @given(rows=st.integers(0, 30).flatmap(_rows), zone=st.sampled_from(_ZONES))
        def test(rows: list[Row], zone: str) -> None:
            bench.begin([_Cells(name, rows, zone) for name in _MAPS])
            planned, foreseen = bench.plan()
            report = bench.sync()
            fates = bench.fates()
            named = [(row["K"] or "").strip(BLANKS) for row in rows]
            keys = {key_text([key]) for key in named if 0 < len(key.encode()) <= MAX_KEY_BYTES}
            assert set(fates) == {(f"b.{name}", key) for name in _MAPS for key in keys}
            assert fates == foreseen
            assert set(fates.values()) <= {"delivered", "waiting", *REASONS}
            assert "mapping_failed" not in fates.values()
            assert (report.errors, planned.errors) == ({}, {})
            assert report.balanced
            assert all(tally.balanced for tally in planned.tallies.values())
            again = bench.sync()
            assert (again.counters.requests, again.errors, again.balanced) == (0, {}, True)
            assert bench.fates() == fates
            seen.update(fates.values())

        fuzzed(test, examples)
    print(f"\nany text on {url.drivername}: seed {chaos_seed()}, {seen}")
    return seen


def never_and_always(folder: Path, url: StateUrl) -> None:
    """Rows with dates that mean never or always: bad values, or no values where ``empty`` names them."""
    good: Row = {name: cells[0] for name, cells in _GOOD.items()}
    with open_bench(folder, url) as bench:
        for zone, at in (("America/New_York", "9999-12-31 23:59:59"), ("Europe/Berlin", "0001-01-01 00:00:00")):
            days: list[Row] = [{"K": "1", "DAY": "99991231"}, {"K": "2", "DAY": "00010101"}, {"K": "3", "AT": at}]
            bench.begin([_Cells(name, [good | row for row in days], zone) for name in ("lots", "orders")])
            for _ in range(2):
                planned, _ = bench.plan()
                report = bench.sync()
                assert (report.balanced, report.errors, planned.errors) == (True, {}, {})
                assert bench.fates()["b.orders", "3"] == "bad_value"
                assert {bench.fates()["b.lots", key] for key in "123"} == {"delivered"}
            sent = [body for _, _, body in bench.platform.effects if "lotNumber" in body]
            assert {body["externalId"]: (body.get("receivedOn"), body.get("expiresOn")) for body in sent} == {
                "b:1": (None, "9999-12-31"),
                "b:2": ("0001-01-01", "0001-01-01"),
                "b:3": ("2026-07-01", "2026-07-01"),
            }


# ---- mapping code that raises anything


class _Coded(Stream[BenchSettings]):
    name, resource, key = "orders", "order", ("K",)

    def __init__(self, fates: Sequence[str], limits: FailureLimits) -> None:
        self._rows: list[Row] = [
            {"K": str(number), "F": fate, "S": raisers.SECRET} for number, fate in enumerate(fates)
        ]
        self.mapping_failed, self.mended = limits, False

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        if since is None and self._rows:
            yield batch(self._rows, "orders.csv")

    def to_resource(self, record: Record) -> Any:
        return raisers.good(record) if self.mended else raisers.FATES[record.row["F"] or ""].make(record)


class _Invoices(Stream[BenchSettings]):
    """Another stream, which comes after the one that fails."""

    name, resource, key = "invoices", "invoice", ("K",)

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        if since is None:
            yield batch([{"K": "1"}, {"K": "2"}], "invoices.csv")

    def to_resource(self, record: Record) -> Any:
        line = {"productId": "prd_1", "quantity": 1, "unitPrice": 1}
        return {"customerId": "cus_1", "currency": "EUR", "items": [line]}


def _expected(fates: Sequence[str], limits: FailureLimits) -> tuple[Fates, bool]:
    """What becomes of the records, and whether the stream stops among them."""
    found: Fates = {}
    failed = 0
    for number, fate in enumerate(fates):
        found["b.orders", str(number)] = raisers.FATES[fate].becomes
        failed += raisers.FATES[fate].becomes == "mapping_failed"
        if raisers.FATES[fate].becomes == "mapping_failed" and (
            failed > limits.at_most and failed > len(fates) * limits.at_most_percent / 100
        ):
            return found, True
    return found, False


_FATE = st.sampled_from(sorted(raisers.FATES))
_SOME_FATES = st.lists(st.just("good") | _FATE, max_size=60) | st.lists(
    st.integers(0, 99).flatmap(lambda chance: _FATE if chance < 8 else st.just("good")), min_size=30, max_size=90
)
_LIMITS = st.builds(FailureLimits, at_most=st.sampled_from([0, 1, 5, 20]), at_most_percent=st.sampled_from([0, 5, 50]))


def any_exception(folder: Path, url: StateUrl, *, examples: int) -> Counter[str]:
    """Mapping code that raises anything at any record: each is delivered or a dead letter, or the stream stops in time.

    Returns:
        How often each fate of a record was met; ``stopped`` counts the streams that stopped.
    """
    seen: Counter[str] = Counter()
    with open_bench(folder, url) as bench:

        @given(
            fates=_SOME_FATES,
            limits=st.just(FailureLimits()) | _LIMITS,
            replayed=st.booleans(),
            at_once=st.sampled_from([3, 200]),
        )
        @example(fates=sorted(raisers.FATES), limits=FailureLimits(at_most=1_000), replayed=True, at_once=200)
        @example(fates=["good", *["KeyError"] * 30], limits=FailureLimits(), replayed=False, at_once=200)
        def test(fates: list[str], limits: FailureLimits, replayed: bool, at_once: int) -> None:
            stream = _Coded(fates, limits)
            bench.begin([stream, _Invoices()])
            expected, stops = _expected(fates, limits)
            with pytest.MonkeyPatch.context() as patch:
                defaults = {**(planning.Planner.__init__.__kwdefaults__ or {}), "at_once": at_once}
                patch.setattr(planning.Planner.__init__, "__kwdefaults__", defaults)
                planned, foreseen = bench.plan()
                report = bench.sync()
            found = bench.fates()
            expected |= {("b.invoices", "1"): "delivered", ("b.invoices", "2"): "delivered"}
            differing = {named for named in expected if not expected[named] == found.get(named) == foreseen.get(named)}
            assert not differing, [
                (named, fates[int(named[1])], found.get(named), foreseen.get(named)) for named in differing
            ]
            assert set(found) == set(foreseen) == set(expected)
            for said in (report.errors, planned.errors):
                assert set(said) == ({"b.orders"} if stops else set())
                assert all(error.exit_code == 4 for error in said.values())
            _is_clean(bench, [*report.errors.values(), *planned.errors.values()])
            assert report.balanced
            assert all(tally.balanced for tally in planned.tallies.values())
            assert report.exit_code == (4 if stops else 1 if any(fate != "delivered" for fate in found.values()) else 0)
            assert report.tallies["b.orders"].records["carried_on"] == len(fates) + 2 - len(expected)
            stream.mended = True
            if replayed:
                assert bench.replay().exit_code == 0
            else:
                stream.mapping_version = "2"
            last = bench.sync()
            assert (last.exit_code, last.errors) == (0, {})
            assert bench.created() == Counter(f"b:{number}" for number in range(len(fates)))
            assert set(bench.fates().values()) == {"delivered"}
            seen.update(fates)
            seen["stopped"] += stops

        fuzzed(test, examples)
    print(f"\nany exception on {url.drivername}: seed {chaos_seed()}, {seen}")
    return seen


def _is_clean(bench: Bench, errors: Sequence[CrossdockError]) -> None:
    """What is said of a failure names the author's file, and no value of the record."""
    said = [str(error) for error in errors]
    for dead_letter in bench.dead_letters():
        said.append(f"{dead_letter.message} {dead_letter.pointer}")
        assert dead_letter.code in REASONS
        assert dead_letter.raw, dead_letter.key
        if dead_letter.code == "mapping_failed":
            assert "line " in dead_letter.message
            file = "mappings.py" if dead_letter.message.startswith("to_resource returned") else "raisers.py"
            assert file in dead_letter.message, dead_letter.message
        assert len(dead_letter.message) <= 1_000
    for text in said:
        assert raisers.SECRET not in text
        assert text.replace("\n", "").isprintable(), repr(text)
