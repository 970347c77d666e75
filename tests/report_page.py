"""Reads a report with the standard library's HTML parser, and makes runs to report on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from crossdock.state import (
    DeadLetter,
    PinnedTenant,
    RecordIdentity,
    RunRecord,
    RunResult,
    State,
    Transaction,
    WaitingRecord,
    create_or_upgrade_state,
    parse_database_url,
)
from crossdock.values.run_progress_and_messages import RunMessage
from crossdock.values.run_states_and_tally import Tally

PIN = PinnedTenant("http://127.0.0.1:9", "acme")
AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script></style><img src=/evil.png onerror=\"alert('2')\">&amp;]]>--><b>{{x}}{0}"
HIDDEN, HIDDEN_SHOWN = "A\x00\x1b[31m\u202egpj\u2066\u200b\x85", r"A\x00\x1b[31m\u202egpj\u2066\u200b\x85"


class Page(HTMLParser):
    """A parsed page; its tags must be closed in order.

    Attributes:
        tags: All that occur.
        names: All names of attributes.
        tables: Each a list of lines, the first one the head; cells as text.
        summaries: Of the lists, in their order.
        text: All text outside the style.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.tables: list[list[list[str]]] = []
        self.summaries: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")
        elif tag == "summary":
            self.summaries.append("")
        if tag not in {"meta", "br", "input", "link"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += data
        elif "summary" in self._open:
            self.summaries[-1] += data

    def under(self, *head: str) -> list[list[str]]:
        """The lines of all tables whose head begins with *head*."""
        return [line for table in self.tables if table[0][: len(head)] == list(head) for line in table[1:]]


@contextmanager
def sqlite_state(folder: Path) -> Iterator[State]:
    url = parse_database_url("sqlite:///state.db", folder)
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as state:
        yield state


def _changed(facts: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """*facts* with *changes*, some of which may be of the identity."""
    identity = {name: changes.pop(name) for name in RecordIdentity._fields if name in changes}
    return facts | {"identity": facts["identity"]._replace(**identity)} | changes


def dead_letter(number: int, **changes: Any) -> DeadLetter:
    facts: dict[str, Any] = {
        "identity": RecordIdentity("wms.invoices", f"K{number}", number, number, None, "f.csv", number),
        "stage": "mapping",
        "code": "bad_value",
        "pointer": "PRICE",
        "message": "is no number",
        "raw": {"columns": ["A"], "rows": [["secret-canary"]], "lines": [2]},
        "mapped": {"name": "secret-canary"},
    }
    return DeadLetter(**_changed(facts, changes))


def waiting(number: int, **changes: Any) -> WaitingRecord:
    facts: dict[str, Any] = {
        "identity": RecordIdentity("wms.invoices", f"W{number}", number, number, None, "f.csv", number),
        "waits_for": [{"resource": "customer", "namespace": "wms", "key": f"C{number}"}],
        "raw": {"columns": ["A"], "rows": [["secret-canary"]], "lines": [2]},
    }
    return WaitingRecord(**_changed(facts, changes))


def start(tx: Transaction, *, days: int = 0) -> int:
    """A run that began *days* after the first one."""
    return tx.runs.start(business_date="2026-03-29", at=AT + timedelta(days=days))


def finish(
    tx: Transaction, run_id: int, *, error: str | None = None, timings: dict[str, Any] | None = None, **terms: int
) -> RunRecord:
    """Finish a run of one stream after an hour; *terms* are of its records, and as many are read."""
    left = tx.open_record_counts.by_stream(["wms.invoices"])["wms.invoices"]
    tally = Tally(rows_read=sum(terms.values()), rows_in_records=sum(terms.values()))
    tally.count("read", sum(terms.values()))
    for term, number in terms.items():
        tally.count(term, number)  # type: ignore[arg-type]  # names of terms
    started = tx.runs.get(run_id)
    assert started is not None
    tx.runs.finish(
        run_id,
        RunResult(
            "incomplete" if error else "degraded" if left.total else "done",
            requests=1234,
            throttled=5,
            tally={"wms.invoices": tally.as_json() | {"open": left.as_json()}},
            messages=[RunMessage("error", "", error)] if error else [],
            duration_ms=3_600_000,
            timings=timings,
        ),
        at=started.started_at + timedelta(hours=1),
    )
    found = tx.runs.get(run_id)
    assert found is not None
    return found


def multiplied(database: Path, number: int) -> None:
    """Add *number* dead letters with three reasons, copied by the database from the existing one."""
    with closing(sqlite3.connect(database)) as connection, connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(dead_letters)")]
        made = {
            "key_hash": "CAST(printf('%016d', n) AS BLOB)",
            "key": "'M' || n",
            "line": "n",
            "code": "CASE n % 3 WHEN 0 THEN 'bad_value' WHEN 1 THEN 'conflict' ELSE 'rejected' END",
        }
        connection.execute(
            f"WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {number})"
            f" INSERT INTO dead_letters ({', '.join(names)})"
            f" SELECT {', '.join(made.get(name, name) for name in names)} FROM numbers, dead_letters"
        )
