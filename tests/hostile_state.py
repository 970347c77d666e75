"""A state with foreign texts in every place that a page shows, written as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import Table, create_engine, insert

from crossdock.config.project import project
from crossdock.console.started_commands import StartedCommands
from crossdock.delta.fingerprint import key_hashes
from crossdock.state.db import schema
from crossdock.values.safe_local_files import create_private_folder, replace_file_atomically

ROWS = 60  # of each list: more than one page of it
STREAM = "wms.items"
CODES = ("bad_value", "missing", "rejected", "changed_after_delivery")
STATUSES = ("in_doubt", "overdue", "pending", "handed_over", "delivered", "delivered")

Text = Callable[[], str]
"""Gives the text for the next place."""


def make(folder: Path, text: Text, state: str = "sqlite:///state.db") -> Path:
    """Make a config with its state; return the config's path."""
    (folder / "out").mkdir(parents=True)
    config = folder / "crossdock.yaml"
    config.write_text(yaml.safe_dump(_config(text) | {"state": state}, allow_unicode=True), encoding="utf-8")
    loaded = project.load(config)
    loaded.create_or_upgrade_state()
    rows = _Rows(text, datetime.now(UTC))
    engine = create_engine(loaded.state_url)
    with engine.begin() as connection:
        for table, found in rows.tables():
            connection.execute(insert(table), [_fitting(table, row) for row in found])
    engine.dispose()
    _commands(StartedCommands(loaded.folder_beside_spool("console"), loaded.pinned_tenant), text)
    return config


def _config(text: Text) -> dict[str, Any]:
    stream = {"mode": "append", "files": f"{_plain(text())}*.csv", "key": ["SKU"], "resource": "product"}
    mapped = {"sku": "SKU", "name": {"const": _plain(text())}, "unitPrice": {"from": _plain(text()), "as": "decimal"}}
    schedule = {"cron": "15 2 * * *", "time_zone": "UTC"}
    return {
        "platform": {"base_url": "http://127.0.0.1:9", "tenant": "acme", "auth": {"kind": "api_key", "token": "env:X"}},
        "connections": {
            "wms": {"kind": "folder_warehouse", "path": "out", "streams": {"items": stream | {"map": mapped}}}
        },
        "jobs": {"nightly": {"streams": [STREAM], "schedule": schedule}},
        "migration": {"name": "m", "waves": {"one": {"streams": [STREAM], "gate": {"rejected_at_most": 9}}}},
    }


def _plain(text: str) -> str:
    """Return what a config may have of *text*."""
    return "".join(each for each in text[:200] if each.isprintable() and each not in "\\*?[]{}$") or "x"


def _fitting(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """Cut off the texts that a column is too short for, as crossdock does."""
    lengths = {name: getattr(table.c[name].type, "length", None) for name in row}
    return {name: value[: lengths[name]] if isinstance(value, str) else value for name, value in row.items()}


class _Rows:
    def __init__(self, text: Text, now: datetime) -> None:
        self._text, self._now = text, now
        self._keys = [f"{text()}{number}"[-900:] for number in range(ROWS * 4)]

    def tables(self) -> Iterator[tuple[Table, Iterator[dict[str, Any]]]]:
        yield schema.runs, self._runs()
        yield schema.run_messages, self._messages()
        yield schema.scheduled_runs, self._scheduled()
        yield schema.jobs, self._jobs()
        yield schema.bindings, self._bindings()
        yield schema.batches, self._batches()
        yield schema.intents, self._intents()
        yield schema.attempts, self._attempts()
        yield schema.dead_letters, self._dead_letters()
        yield schema.waiting_records, self._waiting()
        yield schema.webhooks, self._webhooks()
        yield schema.hints, self._hints()
        yield schema.taken_files, self._files()
        yield schema.pending_removals, self._removals()
        yield schema.migrations, self._migrations()
        yield schema.migration_runs, iter([{"run_id": 1, "migration_id": 1, "wave": self._text(), "kind": "load"}])
        yield schema.wave_approvals, self._approvals()
        yield schema.audit_log, self._audit()

    def _at(self, number: int) -> datetime:
        return self._now - timedelta(hours=number, minutes=1)

    def _object(self) -> dict[str, Any]:
        return {"sku": self._text(), self._text(): self._text(), "name": [self._text()]}

    def _stream(self, number: int) -> str:
        return self._text() if number % 7 == 6 else STREAM

    def _runs(self) -> Iterator[dict[str, Any]]:
        terms = {"read": 3, "unchanged": 1, "created": 1, "updated": 1, "rejected": 0, "delivered": 2}
        for number in range(ROWS, 0, -1):
            began = self._at(number)
            account = {
                "rows": {"read": 3, "filtered": {self._text(): 0}, "superseded": 0, "rejected": 0, "in_records": 3},
                "records": terms,
                "balanced": True,
                "open": {"rejected": 2},
                "files": [{"name": self._text(), "rows": 3}, {"name": self._text(), "rows": None}],
                "input": "new",
            }
            usage = {"requests": 3, "throttled": 1, "pages": 2, "bytes": 9, "waited_s": 1.0}
            timings = {"steps": [[self._text(), 0, 400], [self._text(), 400, 600]], "samples": [[0, 9], [500, 3]]}
            yield {
                "id": ROWS + 1 - number,
                "job": (None, "nightly", self._text())[number % 3],
                "command": self._text(),
                "business_date": began.date().isoformat(),
                "started_at": began,
                "finished_at": began + timedelta(seconds=1),
                "duration_ms": 1000,
                "status": ("done", "degraded", "failed", "incomplete")[number % 4],
                "requests": 3,
                "throttled": 1,
                "tally": {STREAM: account, self._text(): account},
                "timings": timings | {"apis": {self._text(): usage} if number < 0 else {}},
            }

    def _messages(self) -> Iterator[dict[str, Any]]:
        for run in range(1, ROWS + 1):
            for number, level in enumerate(("error", "warning", "note")):
                texts = {name: self._text() for name in ("stream", "message", "place", "advice")}
                yield {"run_id": run, "number": number, "level": level, "code": "x", **texts}

    def _scheduled(self) -> Iterator[dict[str, Any]]:
        for number in range(9):
            ended = {"status": "failed", "attempts": 1, "note": self._text(), "finished_at": self._at(number)}
            for job in ("nightly", self._text()):
                due = self._at(24 * number)
                yield {"job": job, "due": due, "business_date": due.date().isoformat(), "started_at": due, **ended}

    def _jobs(self) -> Iterator[dict[str, Any]]:
        yield {"name": "nightly", "since": self._at(999), "paused": False}
        yield {"name": self._text(), "since": self._at(999), "paused": True}

    def _hashed(self, first: int, number: int) -> Iterator[tuple[int, str, int]]:
        keys = self._keys[first : first + number]
        hashes = key_hashes(keys)
        return ((place, key, hashes[key]) for place, key in enumerate(keys))

    def _bindings(self) -> Iterator[dict[str, Any]]:
        for place, key, digest in self._hashed(0, ROWS):
            yield {
                "target": "platform",
                "resource": "product",
                "namespace": "wms",
                "key_hash": digest,
                "key": key,
                "target_id": self._text(),
                "record_fp": digest,
                "step": "whole",
                "payload": self._object(),
                "etag": self._text(),
                "changed_at": self._text(),
                "counter": 1,
                "run_id": 1 + place,
                "updated_at": self._at(place),
            }

    def _batches(self) -> Iterator[dict[str, Any]]:
        for number in range(1, 4):
            texts = {name: self._text()[:900] for name in ("name", "destination", "receipt")}
            facts = {"target": "platform", "resource": "product", "number": number, "key": f"b{number}", "sha256": "ab"}
            times = {"created_at": self._at(9), "handed_over_at": self._at(9), "due_at": self._at(8)}
            yield {"run_id": 1, "records": 1, **facts, **times, **texts}

    def _record(self, key: str, digest: int, number: int) -> dict[str, Any]:
        return {
            "stream": self._stream(number),
            "key": key,
            "key_hash": digest,
            "record_fp": digest,
            "position": self._text(),
            "raw": {"columns": ["SKU", self._text()], "rows": [[self._text(), self._text()]], "lines": [number]},
            "source": self._text(),
            "line": number,
            "run_id": 1 + number % ROWS,
        }

    def _intents(self) -> Iterator[dict[str, Any]]:
        for number, key, digest in self._hashed(0, ROWS * 2):
            yield {
                **self._record(key, digest, number),
                "fence": 1,
                "target": "platform",
                "resource": "product",
                "namespace": "wms",
                "counter": 1,
                "operation": "update",
                "idempotency_key": f"k{number}",
                "method": "PATCH",
                "path": self._text(),
                "before": self._object(),
                "after": self._object(),
                "step": "whole",
                "status": STATUSES[number % len(STATUSES)],
                "attempts": 1,
                "created_at": self._at(number),
                "first_sent_at": self._at(number),
                "settled_at": self._at(number),
                "target_id": self._text(),
                "batch_id": 1 + number % 3,
                "place": number,
            }

    def _attempts(self) -> Iterator[dict[str, Any]]:
        for number in range(1, ROWS * 2 + 1):
            facts = {"ended_at": self._at(number), "outcome": "ambiguous", "http_status": 500}
            yield {"intent_id": number, "number": 1, "message": self._text(), **facts}

    def _dead_letters(self) -> Iterator[dict[str, Any]]:
        for number, key, digest in self._hashed(ROWS * 2, ROWS):
            yield {
                **self._record(key, digest, number),
                "step": "whole",
                "stage": "mapping",
                "code": CODES[number % len(CODES)],
                "pointer": self._text(),
                "message": self._text(),
                "mapped": self._object(),
                "status": "dropped" if number % 9 == 8 else "rejected",
                "attempts": 1,
                "first_run_id": 1 + number % ROWS,
                "refused_at": self._at(number),
            }

    def _waiting(self) -> Iterator[dict[str, Any]]:
        for number, key, digest in self._hashed(ROWS * 3, ROWS):
            parents = [{name: self._text() for name in ("resource", "namespace", "key")} for _ in range(1 + number % 3)]
            yield {
                **self._record(key, digest, number),
                "waits_for": parents,
                "since": self._at(number),
            }

    def _webhooks(self) -> Iterator[dict[str, Any]]:
        for number in range(ROWS):
            texts = {name: self._text() for name in ("connection", "topic", "problem")}
            yield {"delivery": f"{number}{self._text()}", "received_at": self._at(0), **texts}

    def _hints(self) -> Iterator[dict[str, Any]]:
        for number, key, digest in self._hashed(0, ROWS):
            times = dict.fromkeys(("first_at", "last_at", "due_at"), self._at(number))
            record = {"stream": self._stream(number), "key": key, "key_hash": digest}
            yield {**record, **times, "number": number, "attempts": number % 2, "error": self._text()}

    def _files(self) -> Iterator[dict[str, Any]]:
        for number in range(ROWS):
            times = dict.fromkeys(("modified_at", "accepted_at", "seen_at"), self._at(number))
            content = f"{number // 2:064x}"
            facts = {"content_hash": content, "version": f"v{number}", "size": 9, "stamp": "1", "status": "done"}
            yield {"stream": self._stream(number), "name": self._text(), **facts, **times}

    def _removals(self) -> Iterator[dict[str, Any]]:
        hashes = sorted(digest for _, _, digest in self._hashed(0, 30))
        keys = b"".join(each.to_bytes(16, "big") for each in hashes)
        for stream in (STREAM, self._text()):
            yield {"stream": stream, "what": self._text(), "keys": keys, "since": self._at(5)}

    def _migrations(self) -> Iterator[dict[str, Any]]:
        side = {"records": 2, "quantity": 21, "amounts": {self._text(): 31}}
        at = self._at(1).isoformat()
        reconciled = {
            "at": at,
            "compared": {self._text(): 2},
            "differences": [{"resource": self._text(), "class": "missing", "records": 1}],
            "totals": {
                self._text(): dict.fromkeys(("source", "state", "platform"), side) | {"differing": [self._text()]}
            },
            "kept": {self._text(): 1},
            "sources": {self._text(): "ab"},
        }
        yield {
            "name": self._text(),
            "started_at": self._at(9),
            "started_by": self._text(),
            "paused_at": self._at(2),
            "paused_by": self._text(),
            "freeze": {"at": at, "since": at, "waited_s": 600, "sources": {self._text(): "ab"}},
            "reconciliation": reconciled,
        }

    def _approvals(self) -> Iterator[dict[str, Any]]:
        for wave in ("one", self._text()):
            facts = {"migration_id": 1, "approved_at": self._at(3), "approved_by": self._text()}
            yield {"wave": wave, "open": {"rejected": 1, "waiting": 0, "in_doubt": 0, "overdue": 0}, **facts}

    def _audit(self) -> Iterator[dict[str, Any]]:
        kinds = ("run", "record", "stream", "job", "wave", "connection", "")
        for number in range(ROWS):
            texts = {name: self._text() for name in ("person", "address", "action", "reason", "error")}
            subject = f"{kinds[number % len(kinds)]} {self._text()} {self._text()}"
            facts = {"token": f"{number}", "at": self._at(number), "subject": subject, "outcome": "done"}
            yield {**facts, "before": self._object(), "after": self._text(), **texts}


def _commands(commands: StartedCommands, text: Text) -> None:
    """Write what was started, as `StartedCommands` keeps it."""
    folder = commands._folder
    for each in (folder.parent, folder):
        create_private_folder(each)
    for number in range(5):
        kept = folder / f"20990101T00000{number}-0000000{number}"
        kept.mkdir(mode=0o700)
        names = ("title", "person", "address", "reason")
        facts: dict[str, Any] = {name: text() for name in names} | {"started_at": "2099-01-01T00:00:00+00:00"}
        facts |= {"arguments": ["plan", text()], "about": [text()]}
        replace_file_atomically(kept / "command.json", json.dumps(facts).encode())
        replace_file_atomically(kept / "output", "\n".join(text() for _ in range(200)).encode(errors="replace"))
        replace_file_atomically(kept / "exit_code", b"0")
        replace_file_atomically(kept / "plan", b"{}")
