"""States for the console's benchmark: many business dates, bindings, rejected records and tenants, written as rows."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from crossdock.config.project import project
from crossdock.runs.planning.references import key_hashes

CONFIG = """\
platform:
  base_url: {base_url}
  tenant: {tenant}
  rate: {{per_minute: 10000000, burst: 100000}}
  auth: {{kind: api_key, token: env:CROSSDOCK_API_KEY}}
state: sqlite:///state.db
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
jobs:
  nightly: {{streams: [wms.items], schedule: {{cron: "15 2 * * *", time_zone: Europe/Berlin}}}}
"""
CODES = ("bad_value", "missing_value", "rejected", "unknown_reference")
BATCH = 20_000


NOWHERE = "http://127.0.0.1:9"


def make(folder: Path, tenant: str, *, dates: int, bindings: int, rejected: int, base_url: str = NOWHERE) -> Path:
    """Make a config with a state of so many runs, delivered and rejected records; return the config's path."""
    folder.mkdir(parents=True)
    (folder / "out").mkdir()
    config = folder / "crossdock.yaml"
    config.write_text(CONFIG.format(tenant=tenant, base_url=base_url), encoding="utf-8")
    project.load(config).init()
    database = sqlite3.connect(folder / "state.db")
    with database:
        _insert(database, "runs", _runs(dates, rejected))
        _insert(database, "scheduled_runs", _scheduled(dates))
        database.execute("insert into jobs (name, since, paused) values ('nightly', ?, 0)", (_text(_night(dates)),))
        _insert(database, "bindings", _bindings(bindings, dates))
        _insert(database, "dead_letters", _dead_letters(rejected, bindings, dates))
    database.execute("pragma wal_checkpoint(truncate)")
    database.close()
    return config


def tenants(folder: Path, number: int) -> Path:
    """Make the folder of a fleet: *number* tenants of 30 nights, copies of one but for their names."""
    first = make(folder / "states" / "first", "t0", dates=30, bindings=200, rejected=3)
    place = folder / "tenants"
    place.mkdir()
    for each in range(number):
        state = folder / "states" / f"t{each}.db"
        shutil.copy(first.parent / "state.db", state)
        with sqlite3.connect(state) as database:
            database.execute("update crossdock_meta set value = ? where name = 'tenant'", (f"t{each}",))
        database.close()
        text = CONFIG.format(tenant=f"t{each}", base_url=NOWHERE).replace("sqlite:///state.db", f"sqlite:///{state}")
        (place / f"t{each}.yaml").write_text(text, encoding="utf-8")
    return place


def _insert(database: sqlite3.Connection, table: str, rows: Iterable[dict[str, Any]]) -> None:
    statement, some = "", list[dict[str, Any]]()
    for row in rows:
        statement = statement or f"insert into {table} ({', '.join(row)}) values ({', '.join(f':{n}' for n in row)})"
        some.append(row)
        if len(some) == BATCH:
            database.executemany(statement, some)
            some.clear()
    if some:
        database.executemany(statement, some)


def _night(before: int) -> datetime:
    """Return 02:15 in Berlin's winter, so many days before today."""
    today = datetime.combine(date.today(), datetime.min.time(), UTC)  # noqa: DTZ011  the day of this machine
    return today + timedelta(hours=1, minutes=15) - timedelta(days=before)


def _text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")


def _runs(dates: int, rejected: int) -> Iterator[dict[str, Any]]:
    for number in range(1, dates + 1):
        began = _night(dates - number)
        records = {"read": 1000, "unchanged": 900, "created": 50, "updated": 50, "rejected": 0, "delivered": 100}
        account = {
            "rows": {"read": 1000, "filtered": {}, "superseded": 0, "rejected": 0, "in_records": 1000},
            "records": records,
            "balanced": True,
            "open": {"rejected": rejected if number == dates else 0},
            "files": [{"name": f"ITEM_{number}.csv", "rows": 1000}],
            "input": "new",
        }
        steps = [["read wms.items", 0, 4000], ["compare", 4000, 1000], ["deliver", 5000, 55000]]
        timings = {"steps": steps, "samples": [[second * 1000, 2000 - second * 30] for second in range(60)], "apis": {}}
        yield {
            "id": number,
            "job": "nightly",
            "business_date": began.date().isoformat(),
            "started_at": _text(began),
            "finished_at": _text(began + timedelta(seconds=60)),
            "duration_ms": 60_000,
            "status": "degraded" if number == dates or number % 10 == 0 else "done",
            "requests": 100 + number % 17,
            "throttled": number % 3,
            "tally": json.dumps({"wms.items": account}),
            "timings": json.dumps(timings),
        }


def _scheduled(dates: int) -> Iterator[dict[str, Any]]:
    for number in range(1, dates + 1):
        due = _night(dates - number)
        yield {
            "job": "nightly",
            "due": _text(due),
            "business_date": due.date().isoformat(),
            "status": "degraded" if number == dates or number % 10 == 0 else "done",
            "attempts": 1,
            "run_id": number,
            "started_at": _text(due),
            "finished_at": _text(due + timedelta(seconds=60)),
        }


def _keyed(number: int, first: int = 0) -> Iterator[tuple[str, bytes]]:
    for start in range(first, first + number, BATCH):
        keys = [f"P{each:07}" for each in range(start, min(start + BATCH, first + number))]
        for key, digest in key_hashes(keys).items():
            yield key, digest.to_bytes(16, "big")


def _bindings(number: int, dates: int) -> Iterator[dict[str, Any]]:
    for place, (key, digest) in enumerate(_keyed(number)):
        yield {
            "target": "platform",
            "resource": "product",
            "namespace": "wms",
            "key_hash": digest,
            "key": key,
            "target_id": f"prd_{place:07}",
            "record_fp": digest,
            "step": "whole",
            "payload": json.dumps({"sku": key, "name": key, "unitPrice": "1.50", "currency": "EUR"}),
            "counter": 1,
            "run_id": 1 + place % dates,
            "updated_at": _text(_night(dates - 1 - place % dates)),
        }


def _dead_letters(number: int, first: int, dates: int) -> Iterator[dict[str, Any]]:
    for place, (key, digest) in enumerate(_keyed(number, first)):
        run = 1 + place % dates
        yield {
            "stream": "wms.items",
            "key_hash": digest,
            "key": key,
            "record_fp": digest,
            "source": f"ITEM_{run}.csv",
            "line": 2 + place % 1000,
            "raw": json.dumps({"SKU": key, "PRICE": "much"}),
            "step": "whole",
            "stage": "mapping",
            "code": CODES[place % len(CODES)],
            "pointer": "/PRICE",
            "message": "'much' is not a number",
            "status": "rejected",
            "attempts": 1,
            "first_run_id": run,
            "run_id": run,
            "refused_at": _text(_night(dates - run)),
        }
