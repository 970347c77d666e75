"""States for the console's benchmark: many business dates, bindings, open records and tenants, written as rows."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from crossdock.config.project import project
from crossdock.console.started_commands import StartedCommands
from crossdock.delta.fingerprint import key_hashes
from crossdock.values import exact_json
from crossdock.values.acting_person_and_process import Actor

CONFIG = """\
platform:
  base_url: {base_url}
  tenant: {tenant}
  rate: {{per_minute: 10000000, burst: 100000}}
  auth: {{kind: api_key, token: env:CROSSDOCK_API_KEY}}
state: {state}
retention: "off"
connections:
  wms:
    kind: folder_warehouse
    path: out
    streams:
      items:
        mode: append
        files: "ITEM_*.csv"
        format: {{kind: delimited, delimiter: ","}}
        key: [SKU]
        resource: product
        map: {{sku: SKU, name: SKU, unitPrice: {{from: PRICE, as: decimal}}, currency: {{const: EUR}}}}
      orders:
        mode: append
        files: "ORDER_*.csv"
        format: {{kind: delimited, delimiter: ","}}
        key: [ORDER]
        group_by: [ORDER]
        resource: invoice
        map:
          customerId: {{ref: customer, key: CUSTOMER}}
          currency: {{const: EUR}}
          items:
            each:
              productId: {{ref: product, key: SKU}}
              quantity: {{from: QTY, as: decimal}}
              unitPrice: {{from: PRICE, as: decimal}}
jobs:
  nightly: {{streams: [wms], schedule: {{cron: "15 2 * * *", time_zone: Europe/Berlin}}}}
  often: {{streams: [wms.items], schedule: {{every: 15m, time_zone: Europe/Berlin}}}}
migration: {{name: acme, waves: {{products: {{streams: [wms.items]}}, orders: {{streams: [wms.orders]}}}}}}
"""
CODES = ("bad_value", "missing_value", "rejected", "unknown_reference")
BATCH = 20_000
NOWHERE = "http://127.0.0.1:9"
SQLITE = "sqlite:///state.db"
ITEMS, ORDERS = "wms.items", "wms.orders"
FILES_A_NIGHT = 5
OPERATIONS_A_RUN = 5_000
OFTEN = 500_000  # the number of the first run of the job that runs often
LEAST = 250  # one half of the delivered operations, which is that of one run, has more than a page of 100

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Sizes:
    """The number of rows of each kind.

    Attributes:
        often: Runs a day of a second job, each with a file.
        unverified: Of the bindings, the last ones.
        delivered: Operations, of the last runs.
    """

    dates: int = 400
    often: int = 96
    bindings: int = 1_000_000
    rejected: int = 100_000
    dropped: int = 100_000
    unverified: int = 100_000
    waiting: int = 20_000
    in_doubt: int = 100_000
    overdue: int = 10_000
    pending: int = 10_000
    delivered: int = 200_000
    hints: int = 100_000
    webhooks: int = 10_000
    changes: int = 50_000

    def divided(self, by: int) -> Sizes:
        """Return smaller sizes, with as many runs, and no list so short that it has one page."""
        return Sizes(self.dates, self.often, *(max(LEAST, number // by) for number in list(vars(self).values())[2:]))


SMALL = Sizes(30, 0, 200, 3, *[0] * 10)


def make(folder: Path, tenant: str, sizes: Sizes, *, base_url: str = NOWHERE, state: str = SQLITE) -> Path:
    """Make a config with a state of this size; return the config's path."""
    folder.mkdir(parents=True)
    (folder / "out").mkdir()
    config = folder / "crossdock.yaml"
    config.write_text(CONFIG.format(tenant=tenant, base_url=base_url, state=state), encoding="utf-8")
    project.load(config).create_or_upgrade_state()
    _write(folder, state, {table: rows() for table, rows in _tables(sizes).items()})
    return config


def prepare_runs(config: Path, state: str) -> None:
    """Let the job begin again and again, and remove what its runs would deliver or ask for, and the migration."""
    text = re.sub("  often: .*\n", "", config.read_text(encoding="utf-8"))
    text = text.replace('cron: "15 2 * * *"', "every: 2s")
    config.write_text(text.replace("streams: [wms], ", "streams: [wms.items], "), encoding="utf-8")
    unsettled = "('in_doubt', 'overdue', 'pending')"
    now = _text(datetime.now(UTC))
    statements = [
        "delete from scheduled_runs where job = 'often'",
        f"update scheduled_runs set due = '{now}' where run_id = (select max(run_id) from scheduled_runs)",  # the last
        "delete from waiting_records",
        "delete from hints",
        f"delete from attempts where intent_id in (select id from intents where status in {unsettled})",
        f"delete from intents where status in {unsettled}",
        "update bindings set unverified = null where unverified",
        "delete from pending_removals",
        "delete from migration_runs",
        "delete from migrations",
    ]
    if state.startswith("sqlite"):
        with closing(sqlite3.connect(config.parent / "state.db")) as database, database:
            for statement in statements:
                database.execute(statement)
        return
    with _postgres(state) as server:
        for statement in statements:
            server.execute(statement.encode())


def tenants(folder: Path, number: int) -> Path:
    """Make the folder of a fleet: *number* tenants of 30 nights, copies of one but for their names."""
    first = make(folder / "states" / "first", "t0", SMALL)
    place = folder / "tenants"
    place.mkdir()
    for each in range(number):
        state = folder / "states" / f"t{each}.db"
        shutil.copy(first.parent / "state.db", state)
        with closing(sqlite3.connect(state)) as database, database:
            database.execute("update crossdock_meta set value = ? where name = 'tenant'", (f"t{each}",))
        text = CONFIG.format(tenant=f"t{each}", base_url=NOWHERE, state=f"sqlite:///{state}")
        (place / f"t{each}.yaml").write_text(text, encoding="utf-8")
    return place


def start_command(config: Path) -> str:
    """Start a command as from the page of an action, wait for its end, and return its id."""
    loaded = project.load(config)
    commands = StartedCommands(loaded.folder_beside_spool("console"), loaded.pinned_tenant)
    who, about, now = Actor("ada", "127.0.0.1", ""), ("runs",), datetime.now(UTC)
    started = commands.start(
        [config], ["runs"], about=about, last=commands.last_id_about(about), title="Runs", who=who, at=now
    )
    while (known := commands.get(started.id)) is None or known.is_running:
        time.sleep(0.05)
    return started.id


def night(before: int) -> datetime:
    """Return 02:15 in Berlin's winter, so many days before today."""
    today = datetime.combine(date.today(), datetime.min.time(), UTC)  # noqa: DTZ011  the day of this machine
    return today + timedelta(hours=1, minutes=15) - timedelta(days=before)


# ---- writing


def _write(folder: Path, state: str, tables: Mapping[str, Iterator[Row]]) -> None:
    if not state.startswith("sqlite"):
        with _postgres(state) as server:
            for table, rows in tables.items():
                _copy(server, table, rows)
            for table in ("runs", "intents", "batches", "migrations"):
                server.execute(f"select setval(pg_get_serial_sequence('{table}', 'id'), 1000000)".encode())
        with _postgres(state, autocommit=True) as server:
            server.execute("vacuum analyze")  # as the server does by itself after a while
        return
    with closing(sqlite3.connect(folder / "state.db")) as database:
        with database:
            for table, rows in tables.items():
                _insert(database, table, rows)
        database.execute("pragma wal_checkpoint(truncate)")


def _postgres(state: str, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    return psycopg.connect(make_url(state).set(drivername="postgresql").render_as_string(), autocommit=autocommit)


def _copy(server: psycopg.Connection[Any], table: str, rows: Iterator[Row]) -> None:
    if (first := next(rows, None)) is None:
        return
    names = sql.SQL(", ").join(map(sql.Identifier, first))
    with server.cursor() as cursor:
        statement = sql.SQL("copy {} ({}) from stdin").format(sql.Identifier(table), names)
        with cursor.copy(statement) as copy:
            copy.write_row(tuple(first.values()))
            for row in rows:
                copy.write_row(tuple(row.values()))


def _insert(database: sqlite3.Connection, table: str, rows: Iterable[Row]) -> None:
    statement, some = "", list[Row]()
    for row in rows:
        statement = statement or f"insert into {table} ({', '.join(row)}) values ({', '.join(f':{n}' for n in row)})"
        some.append(row)
        if len(some) == BATCH:
            database.executemany(statement, some)
            some.clear()
    if some:
        database.executemany(statement, some)


def _text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")


# ---- rows


def _tables(sizes: Sizes) -> dict[str, Callable[[], Iterator[Row]]]:
    """Return what makes the rows of each table, in an order in which each refers to earlier ones."""
    return {
        "runs": lambda: _runs(sizes),
        "run_messages": lambda: _messages(sizes),
        "scheduled_runs": lambda: _scheduled(sizes),
        "jobs": lambda: (
            {"name": name, "since": _text(night(sizes.dates)), "paused": False} for name in ("nightly", "often")
        ),
        "bindings": lambda: _bindings(sizes),
        "dead_letters": lambda: _dead_letters(sizes),
        "waiting_records": lambda: _waiting(sizes),
        "batches": lambda: _batches(sizes),
        "intents": lambda: _intents(sizes),
        "attempts": lambda: _attempts(sizes),
        "hints": lambda: _hints(sizes.hints),
        "webhooks": lambda: _webhooks(sizes.webhooks),
        "taken_files": lambda: _files(sizes),
        "pending_removals": lambda: iter([_held(sizes)] if sizes.delivered else []),
        "audit_log": lambda: _changes(sizes),
        "migrations": lambda: iter([_migration(sizes)] if sizes.delivered else []),
        "migration_runs": lambda: iter([_load(sizes)] if sizes.delivered else []),
    }


def _is_degraded(number: int, dates: int) -> bool:
    return number == dates or number % 10 == 0


def _runs(sizes: Sizes) -> Iterator[Row]:
    for number in range(1, sizes.dates + 1):
        is_last = number == sizes.dates
        status = "degraded" if _is_degraded(number, sizes.dates) else "done"
        names = [f"ITEM_{number}_{each}.csv" for each in range(FILES_A_NIGHT)]
        opened = {ITEMS: {"rejected": sizes.rejected * is_last}, ORDERS: {"waiting": sizes.waiting * is_last}}
        yield _run(number, "nightly", night(sizes.dates - number), status, names, opened)
    for run, at, name in _often(sizes):
        yield _run(run, "often", at, "done", [name], {ITEMS: {"rejected": 0}})


def _run(number: int, job: str, began: datetime, status: str, files: Sequence[str], opened: Mapping[str, Row]) -> Row:
    records = {"read": 1000, "unchanged": 900, "created": 50, "updated": 50, "rejected": 0, "delivered": 100}
    account = {
        "rows": {"read": 1000, "filtered": {}, "superseded": 0, "rejected": 0, "in_records": 1000},
        "records": records,
        "balanced": True,
        "files": [{"name": name, "rows": 200} for name in files],
        "input": "new",
    }
    steps = [["read wms.items", 0, 4000], ["compare", 4000, 1000], ["deliver", 5000, 55000]]
    timings = {"steps": steps, "samples": [[second * 1000, 2000 - second * 30] for second in range(60)], "apis": {}}
    return {
        "id": number,
        "job": job,
        "business_date": began.date().isoformat(),
        "started_at": _text(began),
        "finished_at": _text(began + timedelta(seconds=60)),
        "duration_ms": 60_000,
        "status": status,
        "requests": 100 + number % 17,
        "throttled": number % 3,
        "tally": json.dumps({stream: account | {"open": of_stream} for stream, of_stream in opened.items()}),
        "timings": json.dumps(timings),
    }


def _often(sizes: Sizes) -> Iterator[tuple[int, datetime, str]]:
    """Yield the run, the time and the file of each run of the second job, between those of the first one."""
    for number in range((sizes.dates - 1) * sizes.often):
        day, of_day = divmod(number, sizes.often)
        at = night(sizes.dates - 1 - day) + timedelta(minutes=5, days=of_day / sizes.often)
        yield OFTEN + number, at, f"OFTEN_{number}.csv"


def _messages(sizes: Sizes) -> Iterator[Row]:
    for number in range(10, sizes.dates + 1, 10):
        yield {
            "run_id": number,
            "number": 0,
            "level": "note",
            "stream": ITEMS,
            "message": f"ITEM_{number}_0.csv has 3 columns that no mapping uses",
        }


def _scheduled(sizes: Sizes) -> Iterator[Row]:
    for number in range(1, sizes.dates + 1):
        status = "degraded" if _is_degraded(number, sizes.dates) else "done"
        yield _scheduled_run(number, "nightly", night(sizes.dates - number), status)
    for run, at, _ in _often(sizes):
        yield _scheduled_run(run, "often", at, "done")


def _scheduled_run(run: int, job: str, due: datetime, status: str) -> Row:
    return {
        "job": job,
        "due": _text(due),
        "business_date": due.date().isoformat(),
        "status": status,
        "attempts": 1,
        "run_id": run,
        "started_at": _text(due),
        "finished_at": _text(due + timedelta(seconds=60)),
    }


def _keyed(number: int, first: int = 0, letter: str = "P") -> Iterator[tuple[int, str, bytes]]:
    for start in range(first, first + number, BATCH):
        keys = [f"{letter}{each:07}" for each in range(start, min(start + BATCH, first + number))]
        for place, (key, digest) in enumerate(key_hashes(keys).items()):
            yield start - first + place, key, digest.to_bytes(16, "big")


def _payload(key: str, price: str) -> str:
    return json.dumps({"sku": key, "name": key, "unitPrice": price, "currency": "EUR"})


def _bindings(sizes: Sizes) -> Iterator[Row]:
    scope = {"target": "platform", "resource": "product", "namespace": "wms"}
    for place, key, digest in _keyed(sizes.bindings):
        yield scope | {
            "key_hash": digest,
            "key": key,
            "target_id": f"prd_{place:07}",
            "record_fp": digest,
            "step": "whole",
            "payload": _payload(key, "1.50"),
            "counter": 1,
            "run_id": 1 + place % sizes.dates,
            "updated_at": _text(night(sizes.dates - 1 - place % sizes.dates)),
            "unverified": True if place >= sizes.bindings - sizes.unverified else None,
        }


def _record(key: str, digest: bytes, run: int, place: int) -> dict[str, Any]:
    return {
        "key_hash": digest,
        "key": key,
        "record_fp": digest,
        "source": f"ITEM_{run}_{place % FILES_A_NIGHT}.csv",
        "line": 2 + place % 1000,
        "raw": json.dumps({"columns": ["SKU", "PRICE"], "rows": [[key, "much"]], "lines": [2 + place % 1000]}),
        "step": "whole",
    }


def _dead_letters(sizes: Sizes) -> Iterator[Row]:
    for place, key, digest in _keyed(sizes.rejected + sizes.dropped, sizes.bindings):
        run = 1 + place % sizes.dates
        yield _record(key, digest, run, place) | {
            "stream": ITEMS,
            "stage": "mapping",
            "code": CODES[place % len(CODES)],
            "pointer": "/PRICE",
            "message": "'much' is not a number",
            "status": "rejected" if place < sizes.rejected else "dropped",
            "attempts": 1,
            "first_run_id": run,
            "run_id": run,
            "refused_at": _text(night(sizes.dates - run)),
        }


def _waiting(sizes: Sizes) -> Iterator[Row]:
    """Yield orders, four of which wait for each of the first products that were rejected, and all for one customer."""
    for place, key, digest in _keyed(sizes.waiting, letter="O"):
        run = 1 + place % sizes.dates
        record = _record(key, digest, run, place)
        del record["step"]
        customer = {"resource": "customer", "namespace": "wms", "key": "C1"}
        product = {"resource": "product", "namespace": "wms", "key": f"P{sizes.bindings + place // 4:07}"}
        yield record | {
            "stream": ORDERS,
            "waits_for": exact_json.dumps([customer, product]).decode(),  # compared as it is stored
            "run_id": run,
            "since": _text(night(sizes.dates - run)),
        }


_IN_A_BATCH = 100


def _batches(sizes: Sizes) -> Iterator[Row]:
    for number in range(1, 1 + -(-sizes.overdue // _IN_A_BATCH)):
        yield {
            "id": number,
            "run_id": sizes.dates,
            "target": "platform",
            "resource": "product",
            "number": number,
            "key": f"batch-{number}",
            "name": f"PRODUCTS_{number}.csv",
            "destination": "sftp://partner/in",
            "body": None,
            "sha256": f"{number:064}",
            "records": _IN_A_BATCH,
            "created_at": _text(night(1)),
            "handed_over_at": _text(night(1)),
            "due_at": _text(night(0)),
            "receipt": "",
        }


def _intents(sizes: Sizes) -> Iterator[Row]:
    """Yield what was delivered, half of it in the middle run and the last run's last, then the unsettled ones."""
    numbers, overdue = count(1), count()
    statuses = chain(
        repeat("delivered", sizes.delivered),
        repeat("in_doubt", sizes.in_doubt),
        repeat("overdue", sizes.overdue),
        repeat("pending", sizes.pending),
    )
    total = sizes.delivered + sizes.in_doubt + sizes.overdue + sizes.pending
    for (place, key, digest), status in zip(_keyed(total), statuses, strict=True):
        is_delivered = status == "delivered"
        back = (sizes.delivered - 1 - place) // OPERATIONS_A_RUN if is_delivered else 0
        run = max(1, sizes.dates // 2 if place < sizes.delivered // 2 else sizes.dates - back)
        at = _text(night(sizes.dates - run))
        batch, place_in_it = divmod(next(overdue), _IN_A_BATCH) if status == "overdue" else (None, None)
        yield _record(key, digest, run, place) | {
            "id": next(numbers),
            "run_id": run,
            "fence": run,
            "stream": ITEMS,
            "target": "platform",
            "resource": "product",
            "namespace": "wms",
            "operation": "update",
            "counter": 1,
            "idempotency_key": f"key-{place}",
            "method": "PUT",
            "path": f"/products/prd_{place:07}",
            "body": _payload(key, "1.50").encode(),
            "before": _payload(key, "1.40"),
            "after": None,
            "status": status,
            **({"raw": "{}"} if is_delivered else {}),
            "attempts": 0 if status == "pending" else 1,
            "created_at": at,
            "first_sent_at": None if status == "pending" else at,
            "settled_at": at if is_delivered else None,
            "http_status": 200 if is_delivered else None,
            "target_id": f"prd_{place:07}",
            "batch_id": None if batch is None else 1 + batch,
            "place": place_in_it,
        }


def _attempts(sizes: Sizes) -> Iterator[Row]:
    """Yield an attempt for each operation in doubt, and for each tenth that was delivered."""
    for place in range(sizes.delivered + sizes.in_doubt):
        is_delivered = place < sizes.delivered
        if is_delivered and place % 10:
            continue
        yield {
            "intent_id": 1 + place,
            "number": 1,
            "ended_at": _text(night(1)),
            "outcome": "rejected" if is_delivered else "ambiguous",
            "http_status": 429 if is_delivered else 504,
            "message": "throttled" if is_delivered else "the gateway did not answer in time",
        }


def _hints(number: int) -> Iterator[Row]:
    for place, key, digest in _keyed(number):
        at = _text(night(0) + timedelta(milliseconds=place))
        times = {"first_at": at, "last_at": at, "due_at": at}
        error = {"attempts": place % 2, "error": "the shop did not answer" if place % 2 else None}
        yield {"stream": ITEMS, "key_hash": digest, "key": key, "number": 1} | times | error


def _webhooks(number: int) -> Iterator[Row]:
    for place in range(number):
        yield {
            "connection": "wms",
            "delivery": f"delivery-{place}",
            "received_at": _text(night(0) - timedelta(seconds=place)),
            "topic": "items/update",
            "problem": "it names no record" if place % 100 == 0 else None,
        }


def _files(sizes: Sizes) -> Iterator[Row]:
    for number in range(1, sizes.dates + 1):
        for each in range(FILES_A_NIGHT):
            yield _file(number * FILES_A_NIGHT + each, f"ITEM_{number}_{each}.csv", night(sizes.dates - number))
    for run, at, name in _often(sizes):
        yield _file(run, name, at)


def _file(number: int, name: str, due: datetime) -> Row:
    at = _text(due + timedelta(seconds=1))
    return {
        "stream": ITEMS,
        "content_hash": f"{number:064x}",
        "version": "v1",
        "name": name,
        "size": 4_000,
        "modified_at": _text(due - timedelta(minutes=1)),
        "stamp": at[:19],
        "status": "done",
        "accepted_at": at,
    }


def _held(sizes: Sizes) -> Row:
    """Return removals of the first 1,000 bindings, which wait for a person."""
    keys = b"".join(digest for _, _, digest in _keyed(min(1_000, sizes.bindings)))
    what = "removals above the limit of 100 records"
    return {"stream": ITEMS, "what": what, "keys": keys, "since": _text(night(1))}


def _changes(sizes: Sizes) -> Iterator[Row]:
    for place in range(sizes.changes):
        yield {
            "token": f"change-{place}",
            "at": _text(night(0) - timedelta(minutes=sizes.changes - place)),
            "person": ("ada", "ben", "cleo")[place % 3],
            "address": "10.0.0.1",
            "action": ("records replay", "records drop", "jobs pause")[place % 3],
            "subject": f"record {ITEMS} P{place:07}",
            "reason": "",
            "before": json.dumps("rejected"),
            "after": json.dumps("dropped"),
            "outcome": "done",
            "error": "",
        }


def _migration(sizes: Sizes) -> Row:
    return {"id": 1, "name": "acme", "started_at": _text(night(sizes.dates - 1)), "started_by": "ada"}


def _load(sizes: Sizes) -> Row:
    return {"run_id": 1 if sizes.dates == 1 else 2, "migration_id": 1, "wave": "products", "kind": "load"}
