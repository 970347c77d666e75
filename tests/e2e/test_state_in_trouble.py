"""A database that fails during a run: one sentence says what to do, and the next run does the rest, once."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.test_schedule_in_trouble import fill_up, small_disk
from tests.e2e.warehouse import CUSTOMERS, FORWARD, INVOICES, PRODUCTS, Fate, Front, Result, Seen, Site
from tests.servers import require
from tests.waiting import WITHIN_S

from crossdock.state import open_state
from crossdock.state.db import database_opening_and_errors as state_engine
from crossdock.state.db import run_lease
from crossdock.testing.postgres_server import PostgresServer

GOES_ON = "the run continues from what was delivered"
ALL_DAYS = "[mon, tue, wed, thu, fri, sat, sun]"
LIMIT = 400_000  # bytes of the largest file: more than an empty state, less than the log of a run
BAD = "P9;Plate;dear\n"  # is refused
SOME = INVOICES + "".join(f"{number};C1;P1;{number};1.50;EUR\n" for number in range(4, 44))
EARLY = "9999;C9;P1;1;1.50;EUR\n"  # waits for a customer who never comes


@pytest.fixture(autouse=True)
def _a_transient_failure_is_retried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As often as by users, whose runs pause before; no test here is about the pauses."""
    monkeypatch.setattr(open_state, "time", SimpleNamespace(sleep=lambda _: None))


@pytest.fixture(autouse=True)
def _nothing_else_is_said(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The library of the database logs nothing, which a process would show on stderr."""
    yield
    assert not [record for record in caplog.get_records("call") if record.name.startswith("sqlalchemy")]


def fill(site: Site, invoices: str = INVOICES) -> None:
    """What `Site.assert_everything_once` looks for, and beside it a record that is refused and one that waits."""
    site.edit("mode: append", "mode: snapshot", within="products:")
    site.export("CUST_1.csv", CUSTOMERS)
    site.export("PROD_1.csv", PRODUCTS + BAD)
    site.export("INV_1.csv", invoices + EARLY)


def assert_stopped(result: Result, reason: str, hint: str) -> None:
    """It ended with exit 3 and one error: where, what and what to do; nothing else stands on stderr."""
    assert result.code == 3, result.err
    first, *rest = result.err.splitlines()
    assert first.startswith("crossdock: ")
    assert f"the state cannot be used: {reason}" in first
    assert len(rest) == 1, result.err
    assert hint in rest[0]


def assert_ended(site: Site) -> None:
    """The run is not ``running`` any more, whether or not its end was recorded, and its partial tally is no defect."""
    found = site.run("runs", "--limit", "1", "--json").json
    if not found:  # its begin could not be written
        return
    (newest,) = found
    assert newest["status"] == "incomplete"
    (error,) = (each for each in newest["messages"] if each["level"] == "error")
    assert error["category"] == "state" or error["code"] == "unrecorded"
    for command in (("show",), ("runs",)):
        shown = site.run(*command).out
        assert "DOES NOT BALANCE" not in shown
        assert "running" not in shown


@contextmanager
def a_lease_later(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of the lease, at the time when one that was not released ends."""
    now = run_lease._shared_clock_time
    with monkeypatch.context() as patch:
        patch.setattr(
            run_lease, "_shared_clock_time", lambda connection: now(connection) + timedelta(seconds=run_lease.LEASE_S)
        )
        yield


def assert_goes_on(site: Site, invoices: str = INVOICES) -> None:
    """The next run does the rest, once, and what was refused or waits is counted."""
    done = site.sync()
    assert done.code == 1, done.err
    assert done.json["balanced"]
    site.assert_everything_once(invoices)
    again = site.sync()
    assert again.json["balanced"]
    assert again.json["requests"] == 0
    assert {dead_letter["state"] for dead_letter in site.listed()} == {"rejected", "waiting"}


# ---- PostgreSQL


@pytest.fixture
def beside(site: Site, postgres: PostgresServer) -> Iterator[Engine]:
    """The site's state is on PostgreSQL; this reaches it by connections that are not ours."""
    url = postgres.create_database()
    site.edit("sqlite:///state.db", url)
    site.init()
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


@contextmanager
def failing(beside: Engine, table: str, action: str, *, after: int = 0, times: int = 1_000_000) -> Iterator[None]:
    """Each write of a row into *table* ends in *action*, but for the first *after*, and those after *times* more."""
    strikes = f"nextval('strikes') BETWEEN {after + 1} AND {after + times}"
    body = f"BEGIN IF {strikes} THEN {action}; END IF; RETURN NEW; END"
    with beside.connect() as connection:
        connection.execute(text("CREATE SEQUENCE strikes"))
        connection.execute(text(f"CREATE FUNCTION strike() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"))
        connection.execute(
            text(f"CREATE TRIGGER strike BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION strike()")
        )
        yield
        connection.execute(text("DROP FUNCTION strike CASCADE"))


@pytest.mark.nightly(but=["intents-3-53100"])
@pytest.mark.postgres
@pytest.mark.parametrize(
    ("table", "after", "code", "hint"),
    [
        ("leases", 0, "53100", "free space on its disk"),
        ("leases", 8, "53100", "free space on its disk"),
        ("runs", 0, "53200", "out of memory"),
        ("runs", 1, "53100", "free space on its disk"),
        ("taken_files", 1, "53100", "free space on its disk"),
        ("intents", 3, "53100", "free space on its disk"),
        ("intents", 3, "57014", "statement_timeout"),
        ("bindings", 2, "58030", "check its disk"),
        ("key_stamps", 0, "42501", "grant its user the right"),
        ("dead_letters", 0, "55P03", "another session holds a lock"),
        ("waiting_records", 0, "25006", "the server is read-only"),
        ("snapshots", 0, "XX001", "restore a backup"),
        ("buckets", 1, "22012", "fix the cause"),
    ],
)
def test_a_server_that_refuses_to_write(
    site: Site, beside: Engine, table: str, after: int, code: str, hint: str
) -> None:
    """Whichever table it refuses and why, the run ends with one sentence, and after the cure all is there once."""
    fill(site)
    with failing(beside, table, f"RAISE EXCEPTION 'no can do' USING ERRCODE = '{code}'", after=after):
        assert_stopped(site.run("sync"), "no can do", hint)
    assert_goes_on(site)


@pytest.mark.nightly
@pytest.mark.postgres
@pytest.mark.parametrize("code", ["53300", "57P01"])
def test_a_server_that_is_short_of_something_for_long(site: Site, beside: Engine, code: str) -> None:
    """A transient failure is retried, and reported if it lasts."""
    fill(site)
    with failing(beside, "intents", f"RAISE EXCEPTION 'not now' USING ERRCODE = '{code}'", after=3):
        assert_stopped(site.run("sync"), "not now", "connections" if code == "53300" else "is running")
    assert_goes_on(site)


@pytest.mark.nightly
@pytest.mark.postgres
@pytest.mark.parametrize("table", ["leases", "taken_files", "intents", "bindings"])
def test_sessions_that_end_in_a_transaction(site: Site, beside: Engine, table: str) -> None:
    """A server that closes every session is reported in one sentence, and nothing is lost."""
    fill(site)
    with failing(beside, table, "PERFORM pg_terminate_backend(pg_backend_pid())", after=1):
        assert_stopped(site.run("sync"), "", GOES_ON)
    assert_goes_on(site)


@pytest.mark.nightly
@pytest.mark.postgres
def test_a_server_that_turns_into_a_standby(site: Site, beside: Engine) -> None:
    """Every command that writes says that the server takes no writes; one that looks works on."""
    fill(site)
    name = make_url(str(beside.url)).database
    with beside.connect() as connection:
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
        for command in (
            ("sync",),
            ("records", "replay"),
            ("records", "drop", "wms.products", "P9"),
            ("state", "purge"),
            ("state", "restored"),
        ):
            assert_stopped(site.run(*command), "cannot execute", "the server is read-only: name the primary server")
        assert site.run("runs").code == 0
        connection.execute(text(f"ALTER DATABASE {name} RESET default_transaction_read_only"))
    assert_goes_on(site)


@pytest.mark.nightly
@pytest.mark.postgres
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("table", ["scheduled_runs", "runs", "intents", "bindings"])
def test_a_scheduled_run_whose_state_fails_is_begun_again(site: Site, beside: Engine, table: str, cut: bool) -> None:
    """It fails with the same sentence, whether or not that could be written, and the next scheduler continues it."""
    fill(site)
    due = datetime.now(UTC) - timedelta(hours=1)
    schedule = f"{{time_zone: UTC, at: '{due:%H:%M}', days: {ALL_DAYS}}}"
    site.config.write_text(f"{site.config.read_text()}jobs:\n  nightly: {{schedule: {schedule}}}\n")
    once = "schedule", "--once", due.date().isoformat()
    cases = {
        True: ("PERFORM pg_terminate_backend(pg_backend_pid())", "", GOES_ON),
        False: ("RAISE EXCEPTION 'no can do' USING ERRCODE = '53100'", "no can do", "free space on its disk"),
    }
    action, text, hint = cases[cut]
    with failing(beside, table, action, after=1):
        assert_stopped(site.run(*once), text, hint)
    assert site.run(*once).code == 1
    (found,) = site.run("jobs", "list", "--json").json["nights"]
    assert (found["status"], found["attempts"]) == ("degraded", 2)
    assert_goes_on(site)


@pytest.mark.nightly
@pytest.mark.postgres
def test_a_server_whose_disk_is_full(site: Site) -> None:
    """A real full disk: every run says what to do until there is space, then the rest is done."""
    goes_on_after_a_full_disk(site, SOME)


def goes_on_after_a_full_disk(site: Site, invoices: str) -> None:
    """Fails unless runs that send *invoices* report a full disk under the server, and the last does the rest."""
    require(PostgresServer.available(), "PostgreSQL")
    with PostgresServer() as server, small_disk(server.place / "small", 32) as disk:
        shutil.chown(disk, **{name: server.switch[name] for name in ("user", "group") if server.switch})
        site.edit("sqlite:///state.db", _on_disk(server, disk))
        site.init()
        fill(site, invoices)
        filler = fill_up(disk)
        for run in (site.process, site.run, site.run):
            assert_stopped(run("sync"), "could not extend file", "free space on its disk")
        filler.unlink()
        assert_goes_on(site, invoices)


def _on_disk(server: PostgresServer, disk: Path) -> str:
    """The address of a new database whose tables are on *disk*."""
    url = server.create_database()
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE TABLESPACE small LOCATION '{disk}'"))
        connection.execute(text("CREATE DATABASE small TABLESPACE small"))
    engine.dispose()
    return make_url(url).set(database="small").render_as_string(hide_password=False)


# ---- SQLite


@contextmanager
def struck(table: str, after: int, strike: Callable[[sqlite3.Cursor], object]) -> Iterator[None]:
    """*strike* is done to the connection that is about to insert into *table*, after so many times."""
    left = after

    def before(_connection: Connection, cursor: Any, statement: str, *_: object) -> None:
        nonlocal left
        if f"INSERT INTO {table} " in statement:
            left -= 1
            if left < 0:
                strike(cursor)

    event.listen(Engine, "before_cursor_execute", before)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", before)


def no_room(cursor: sqlite3.Cursor) -> None:
    """What is on the disk is all that may ever be there."""
    cursor.execute("PRAGMA max_page_count = 1")


def no_writes(cursor: sqlite3.Cursor) -> None:
    cursor.execute("PRAGMA query_only = ON")


@pytest.mark.nightly(but=["intents-1-no_room"])
@pytest.mark.parametrize(
    ("table", "after", "strike", "reason", "hint"),
    [
        ("intents", 1, no_room, "database or disk is full", "free space on its disk"),
        ("bindings", 1, no_room, "database or disk is full", "free space on its disk"),
        ("runs", 0, no_writes, "attempt to write a readonly database", "writable for this user"),
        ("taken_files", 1, no_writes, "attempt to write a readonly database", "writable for this user"),
        ("intents", 1, no_writes, "attempt to write a readonly database", "writable for this user"),
        ("waiting_records", 0, no_writes, "attempt to write a readonly database", "writable for this user"),
    ],
)
def test_a_file_that_cannot_be_written(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    after: int,
    strike: Callable[[sqlite3.Cursor], object],
    reason: str,
    hint: str,
) -> None:
    """Without space or permission to write, the run ends with one sentence, and the next one does the rest."""
    site.init()
    fill(site, SOME)
    with struck(table, after, strike):
        assert_stopped(site.run("sync"), reason, hint)
    with a_lease_later(monkeypatch):  # this process has not ended, so the lease lasts
        assert_ended(site)
    assert_goes_on(site, SOME)


@pytest.mark.nightly
def test_a_disk_that_fails(site: Site) -> None:
    """A write that the system refuses, here since the file may not grow, ends the run with one sentence."""
    goes_on_after_a_failed_write(site, SOME)


def goes_on_after_a_failed_write(site: Site, invoices: str) -> None:
    """Fails unless a run that sends *invoices* reports a file that may not grow, and the next does the rest."""
    site.init()
    fill(site, invoices)
    command = [*CROSSDOCK, "-C", str(site.config), "sync"]
    out, err = site.folder / "out", site.folder / "err"
    process = processes.start(command, os.environ, out, err, {resource.RLIMIT_FSIZE: LIMIT})
    process.join(WITHIN_S)
    assert process.exitcode is not None
    assert_stopped(Result(process.exitcode, out.read_text(), err.read_text()), "disk I/O error", "check its disk")
    assert_ended(site)
    assert_goes_on(site, invoices)


@pytest.mark.nightly(but=["malformed"])
@pytest.mark.parametrize("at", [0, 4096], ids=["no database", "malformed"])
def test_a_damaged_file(site: Site, at: int) -> None:
    """The error says to restore a backup and declare it; the next run does the rest."""
    site.init()
    fill(site)
    state, backup = site.folder / "state.db", site.folder / "backup.db"
    with closing(sqlite3.connect(state)) as file, closing(sqlite3.connect(backup)) as copy:
        file.backup(copy)
    size = state.stat().st_size
    with state.open("r+b") as damaged:
        damaged.seek(at)
        damaged.write(b"\xee" * (size - at))
    said = "malformed" if at else "file is not a database"
    for command in ("sync", "runs"):
        result = site.run(command)
        assert said in result.err
        assert_stopped(result, "", "restore a backup, then run 'crossdock state restored'")
    for left in site.folder.glob("state.db-*"):
        left.unlink()
    backup.rename(state)
    assert site.run("state", "restored").code == 0
    done = site.sync("wms.customers", "wms.products")
    assert done.json["balanced"]
    assert site.names("customer") == ["wms:C1", "wms:C2"]
    assert site.names("product") == ["wms:P1", "wms:P2"]


def test_a_backup_beside_the_log_of_the_former_file(site: Site) -> None:
    """SQLite copies that log, which a killed run has left, into the backup: the error says what to remove."""
    site.init()
    fill(site)
    state, backup, log = site.folder / "state.db", site.folder / "backup.db", site.folder / "state.db-wal"
    with closing(sqlite3.connect(state)) as file, closing(sqlite3.connect(backup)) as copy:
        file.backup(copy)
    site.sync()
    site.export("INV_2.csv", INVOICES + "4;C1;P1;7;0.05;EUR\n")
    site.sync()
    site.export("INV_3.csv", INVOICES + "5;C1;P1;9;0.05;EUR\n")
    with closing(sqlite3.connect(state)) as reader:  # as long as it reads, the run leaves its log
        reader.execute("SELECT count(*) FROM bindings").fetchone()
        site.sync()
        left = log.read_bytes()
    for _ in range(2):
        shutil.copy2(backup, state)
        log.write_bytes(left)
        stopped = site.run("state", "restored")
        assert_stopped(
            stopped, "database disk image is malformed", "remove its files -wal and -shm, restore a backup, then"
        )
    for each in site.folder.glob("state.db-*"):
        if each.is_file():
            each.unlink()
    shutil.copy2(backup, state)
    assert site.run("state", "restored").code == 0
    assert site.sync().json["balanced"]
    assert len(site.effects("invoice")) == 5


@pytest.mark.nightly
def test_a_state_that_another_program_holds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error asks whether another process uses it; once that has ended, the run succeeds."""
    monkeypatch.setattr(state_engine, "BUSY_S", 0.05)
    site.init()
    fill(site)
    with closing(sqlite3.connect(site.folder / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert_stopped(site.run("sync"), "database is locked", "is another crossdock process using it?")
    assert_goes_on(site)


def test_a_lock_that_cannot_be_made(site: Site) -> None:
    """A failure of the lock file beside the database is reported the same way."""
    site.init()
    fill(site)
    lock = site.folder / "state.db.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    assert_stopped(site.run("sync"), "Is a directory", "check its disk")
    lock.rmdir()
    assert_goes_on(site)


def test_a_state_that_cannot_be_made(site: Site) -> None:
    """A folder that cannot be created is reported in one sentence."""
    site.edit("sqlite:///state.db", f"sqlite:///{site.config}/state.db")
    assert_stopped(site.run("init"), "", "")


def test_a_state_that_is_removed_during_a_run_is_no_success(site: Site, front: Front) -> None:
    """An open file takes all writes and is gone at the end: the run says so, instead of a balanced tally."""
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    file = site.folder / "state.db"

    def remove(seen: Seen) -> Fate:
        front.fate = lambda _: FORWARD
        with suppress(FileNotFoundError):  # another request came at the same time
            file.rename(file.with_name("removed.db"))
        return FORWARD

    front.fate = remove
    result = site.sync("wms.products")
    assert result.code == 3
    assert "the file was removed or replaced while it was in use" in result.err
