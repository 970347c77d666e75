"""The audit log: each command of a person that changes something writes one row, with the change or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from sqlalchemy import create_engine, select
from tests.e2e.migrated_folder import MigratedFolder
from tests.e2e.test_bad_platform import NO_KEYS
from tests.e2e.test_removals import beyond, snapshots
from tests.e2e.warehouse import FORWARD, INVOICES, LOSE, Front, Result, Site

from crossdock.cli.main import cli
from crossdock.config.project import project
from crossdock.errors import StateError
from crossdock.sandbox import SandboxServer
from crossdock.state import AuditEntry, StateUrl
from crossdock.state.db.schema import VERSION, buckets, leases, metadata
from crossdock.state.tables.audit_log import AuditLog

JOB = """\
jobs:
  nightly: {streams: [wms], schedule: {time_zone: UTC, at: "00:00"}}
"""
OPEN = INVOICES.replace("2;C2;P1;1;", "2;C2;P1;x;") + "4;C9;P1;1;1.50;EUR\n"  # rejected, in doubt, and waiting
YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and the row that it writes. In one transaction with the change, unless it *lasts*."""

    command: str
    subject: str
    before: Any
    after: Any
    lasts: bool = False
    action: str = ""
    code: int = 0


def run(command: str, number: int, after: dict[str, Any], action: str = "", code: int = 0) -> Step:
    first = command.split(maxsplit=1)[0]
    return Step(command, f"run {number}", None, after, lasts=True, action=action or first, code=code)


STEPS = (
    Step("jobs pause nightly", "job nightly", "active", "paused"),
    Step("jobs resume nightly", "job nightly", "paused", "active"),
    Step(
        "records resolve wms.invoices 3 --not-delivered",
        "record wms.invoices 3",
        {"in_doubt": 1},
        {"not delivered": 1},
    ),
    Step("records reopen wms.invoices 3", "record wms.invoices 3", {"state": "pending"}, {"state": "in_doubt"}),
    Step(
        "records resolve wms.invoices 3 --delivered-as {id} --yes",
        "record wms.invoices 3",
        {"in_doubt": 1},
        {"delivered": 1, "id": "{id}"},
    ),
    run("sync wms.products", 2, {"command": "sync wms.products", "status": "done", "delivered": 0, "open": 0}),
    run("records replay wms.invoices 2", 3, {"status": "degraded", "open": 2}, "records replay", 1),
    Step("records drop wms.invoices 2", "record wms.invoices 2", {"rejected": 1}, {"dropped": 1}),
    Step("records drop wms.invoices --yes", "stream wms.invoices", {"waiting": 1}, {"dropped": 1}),
    run(f"schedule --once {YESTERDAY}", 4, {"job": "nightly", "business_date": YESTERDAY}, "schedule --once"),
    run("apply {plan}", 5, {"command": "apply: sync wms.customers", "delivered": 1}),
    run("apply --resume", 6, {"command": "apply --resume", "delivered": 0}, "apply --resume"),
    run("apply {undo}", 7, {"command": "apply: undo of run 5", "delivered": 1}),
    Step("bindings import {bindings}", "bindings", None, {"bound": 1}),
    Step("state compact", "state", {}, {}, lasts=True),
    Step("state purge", "state", {}, {}, lasts=True),
    Step("state restored", "state", None, {"restored": True, "unverified": 7}),
)
READING = (
    "plan", "runs", "show", "report", "records list", "records show wms.invoices 2", "records resolve wms.invoices 3",
    "trace 1", "check", "bindings export", "state stats", "state readmit", "state purge --dry-run", "jobs list",
    "config show",
    "undo 1", "reconcile", "approve", "audit", "records drop wms.invoices",
)  # fmt: skip

REFUSED = {
    "sync": "sync",
    "records replay": "records replay",
    "records drop wms.invoices 2": "records drop",
    "records resolve wms.invoices 3 --not-delivered": "records resolve",
    "records reopen wms.invoices 3": "records reopen",
    "approve wms.invoices 3": "approve",
    "apply --resume": "apply --resume",
    "apply --give-up": "apply --give-up",
    "state purge": "state purge",
    "state compact": "state compact",
    "state restored": "state restored",
    "state readmit wms.invoices": "state readmit",
    f"schedule --once {YESTERDAY}": "schedule --once",
}

ELSEWHERE = {  # where it is tried that they are logged: below, in test_listen.py and test_connect.py
    "init", "stop", "connect", "listen register", "listen remove",
    *(f"migrate {each}" for each in ("load", "go", "pause", "resume", "freeze", "reconcile", "sign-off")),
}  # fmt: skip
STATELESS = {  # they write files, serve, or only read
    "demo", "sandbox", "sandbox clients new", "sandbox clients list", "sandbox clients revoke", "sandbox keys new",
    "sandbox keys list", "sandbox keys revoke", "new", "try", "layout show", "layout guess", "layout write", "schema",
    "console", "explain", *(f"console account {each}" for each in ("add", "list", "role", "password", "remove")),
    "listen list", "migrate rehearse", "migrate status", "migrate undo", "migrate verify",
}  # fmt: skip


class Audited:
    """A site whose rows of the audit log are read beside the commands."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def rows(self) -> list[dict[str, Any]]:
        """Oldest first."""
        found: list[dict[str, Any]] = self.site.run("audit", "--limit", "999", "--json").json
        return found[::-1]

    def run(self, command: str) -> Result:
        return self.site.run(*command.split())

    def added(self, command: str, code: int = 0) -> list[dict[str, Any]]:
        before = len(self.rows())
        result = self.run(command)
        assert result.code == code, f"{command}: {result.err}{result.out}"
        return self.rows()[before:]

    def content(self) -> dict[str, Any]:
        """The rows of all tables but those of the lease and the allowance."""
        engine = create_engine(project.load(self.site.config).state_url)
        try:
            with engine.connect() as connection:
                tables = [table for table in metadata.sorted_tables if table not in {leases, buckets}]
                return {table.name: sorted(map(str, connection.execute(select(table)))) for table in tables}
        finally:
            engine.dispose()


@pytest.fixture
def audited(site: Site, front: Front, state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> Audited:
    """A site after a first sync, with an invoice that was rejected, one that waits and one in doubt."""
    monkeypatch.chdir(site.folder)  # where reports are written
    site.setenv("CROSSDOCK_PERSON", "Ann Lee")
    site.setenv("CROSSDOCK_ADDRESS", "10.0.0.7")
    site.setenv("CROSSDOCK_REASON", "told by Bob")
    site.edit(*NO_KEYS)
    site.edit("sqlite:///state.db", state_url.render_as_string(hide_password=False))
    site.config.write_text(site.config.read_text() + JOB)
    site.init()
    site.fill()
    site.export("INV_1.csv", OPEN)
    front.fate = lambda seen: LOSE if b'"quantity":100' in seen.body else FORWARD
    assert site.sync().code == 1
    front.fate = lambda _: FORWARD
    return Audited(site)


def test_each_change_is_one_row(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says who, from where, why, and what was before and after. A kill leaves neither the change nor its row."""
    site = audited.site
    rows = audited.rows()
    assert (rows[0]["action"], rows[0]["before"], rows[0]["after"]) == ("init", None, {"version": VERSION})
    assert (rows[1]["action"], rows[1]["subject"], rows[1]["after"]["open"]) == ("sync", "run 1", 3)
    (made,) = [each["id"] for each in site.effects("invoice") if each["body"]["items"][0]["quantity"] == 100]
    names = {"id": made} | {name: str(site.folder / name) for name in ("bindings", "plan", "undo")}
    for step in STEPS:
        _prepare(audited, step.command, names)
        command = step.command.format(**names)
        if not step.lasts:
            _assert_all_or_nothing(audited, command, monkeypatch)
        (row,) = audited.added(command, step.code)
        action = step.action or " ".join(command.split()[:2])
        assert (row["action"], row["subject"], row["outcome"]) == (action, step.subject, "done")
        assert step.lasts or row["before"] == step.before
        assert _part(row["after"], step.after) == _filled(step.after, names)
        who = {"person": "Ann Lee", "address": "10.0.0.7", "reason": "told by Bob", "error": ""}
        assert {name: row[name] for name in who} == who


def _filled(after: Any, names: dict[str, str]) -> Any:
    return after | {"id": names["id"]} if "id" in after else after


def _part(facts: Any, wanted: Any) -> Any:
    """The *facts* that are *wanted*."""
    return {name: facts[name] for name in wanted} if isinstance(wanted, dict) else facts


def _prepare(audited: Audited, command: str, names: dict[str, str]) -> None:
    site = audited.site
    match command.rsplit(maxsplit=1)[-1]:
        case "{bindings}":
            header = site.run("bindings", "export").out.splitlines()[0]
            Path(names["bindings"]).write_text(f"{header}\nplatform,product,wms,P9,prd_known\n")
        case "{plan}":
            site.export("CUST_2.csv", "CUSTNO;NAME\nC3;Star\n")
            assert site.run("plan", "wms.customers", "-o", names["plan"]).code == 0
        case "{undo}":
            assert site.run("undo", "5", "-o", names["undo"]).code == 0


def _assert_all_or_nothing(audited: Audited, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt *command* right after its row, before its transaction ends."""
    put, before = AuditLog.put, audited.content()

    def killed(log: AuditLog, entry: AuditEntry) -> None:
        put(log, entry)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AuditLog, "put", killed)
        assert audited.run(command).code == 130
    assert audited.content() == before


def test_every_command_is_tried_here_or_changes_no_state() -> None:
    """So that a new one that changes something is not forgotten."""
    logged = {step.action or " ".join(step.command.split()[:2]) for step in STEPS} | {*REFUSED.values()} | ELSEWHERE
    reading = {command.partition(" --")[0] for command in READING}
    for name in _commands(cli, click.Context(cli)):
        is_known = any(name == each or each.startswith(f"{name} -") for each in logged)
        assert is_known or name in STATELESS or any(f"{each} ".startswith(f"{name} ") for each in reading), name


def _commands(group: click.Group, context: click.Context, of: str = "") -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, context, f"{of}{name} ")
        else:
            yield f"{of}{name}"


def test_who_only_reads_writes_nothing(audited: Audited) -> None:
    """Nor does who has not confirmed, or uses a command incorrectly."""
    before = audited.rows()
    for command in READING:
        audited.run(command)
    for wrong in ("jobs pause daily", "sync wms.nothing", "records replay wms.invoices 77", "approve wms.nothing 3"):
        assert audited.run(wrong).code == 2
    assert audited.rows() == before


def test_a_refused_change_is_logged(audited: Audited) -> None:
    """As one row with the reason, and nothing is changed: here another process uses the state."""
    with project.load(audited.site.config).open_state_exclusively():
        for command, action in REFUSED.items():
            (row,) = audited.added(command, 3)
            assert (row["action"], row["outcome"]) == (action, "refused")
            assert "another run is using this state" in row["error"]


def test_who_stops_a_run_is_logged(audited: Audited) -> None:
    """With the run that was in progress; if there is none, as a refusal."""
    (refused,) = audited.added("stop", 2)
    assert (refused["subject"], refused["outcome"]) == ("run", "refused")
    with project.load(audited.site.config).open_state_exclusively() as state:
        with state.begin() as tx:
            run = tx.runs.start(business_date=YESTERDAY, at=datetime.now(UTC), job="nightly")
        (stopped,) = audited.added("stop")
    assert (stopped["subject"], stopped["before"], stopped["after"]) == (f"run {run}", "running", "asked to stop")


def test_limits_and_their_approval_are_logged(site: Site) -> None:
    """The run that stops at a limit, a wrong number, and the approval."""
    snapshots(site)
    audited = Audited(site)
    assert beyond(site).code == 4
    assert [(each["outcome"], "gone.at_most_percent" in each["error"]) for each in audited.rows()[-1:]] == [
        ("refused", True)
    ]
    (wrong,) = audited.added("approve wms.products 4", 2)
    assert (wrong["outcome"], "3 records, not 4" in wrong["error"]) == ("refused", True)
    (given,) = audited.added("approve wms.products 3")
    assert (given["subject"], given["before"]) == ("stream wms.products", {"approved": False})
    assert given["after"] == {"approved": True, "delete product of wms on the platform": 3}


def test_a_row_that_cannot_be_written_is_said(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal shows its reason and that the log lacks it; a change is not made without its row."""
    site.config.write_text(site.config.read_text() + JOB)
    site.init()
    audited, before = Audited(site), Audited(site).content()

    def fails(_log: AuditLog, _entry: AuditEntry) -> None:
        raise StateError("the disk is full")

    monkeypatch.setattr(AuditLog, "put", fails)
    assert "no undo has begun" in (said := audited.run("apply --give-up").err)
    assert "the audit log does not have this: the disk is full" in said
    assert audited.run("jobs pause nightly").code == 3
    assert audited.content() == before


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[MigratedFolder]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        yield MigratedFolder(tmp_path / "project", platform)


def test_decisions_of_a_migration_are_logged(migrated: MigratedFolder) -> None:
    """Each load is a row for each wave; the person is who ran the command, whoever is named by --by."""
    migrated.fill()
    migrated.load("--by", "Ann")
    commands = (
        "go lots", "go products --by Bob", "pause --by Bob", "resume", "sign-off --by Bob -o {}", "freeze --wait 1s",
        "reconcile", "sign-off --by Bob -o {}",
    )  # fmt: skip
    for command in commands:
        migrated.migrate(*command.format(migrated.folder / "signed.html").split())
    found = json.loads(migrated.run("audit", "--json", "--action", "migrate").stdout)
    rows = [(each["action"], each["subject"], each["outcome"]) for each in reversed(found)]
    assert rows == [
        *(("migrate load", f"run {number}", "done") for number in (1, 2, 3)),
        ("migrate go", "wave products", "done"),
        ("migrate pause", "migration acme", "done"),
        ("migrate resume", "migration acme", "done"),
        ("migrate sign-off", "migration acme", "refused"),
        ("migrate freeze", "migration acme", "done"),
        ("migrate reconcile", "migration acme", "done"),
        ("migrate sign-off", "migration acme", "done"),
    ]
    signed, reconciled, frozen, _, resumed, paused, went, *_ = found
    assert (paused["before"], paused["after"]) == ({"paused_by": None}, {"paused_by": "Bob"})
    assert (resumed["before"], resumed["after"]) == ({"paused_by": "Bob"}, {"paused_by": None})
    assert (went["after"]["by"], went["after"]["open"]) == ("Bob", {})
    assert (reconciled["after"], frozen["before"]) == ({"differences": 0}, None)
    assert (signed["before"], signed["after"]["signed_off_by"]) == ("open", "Bob")
