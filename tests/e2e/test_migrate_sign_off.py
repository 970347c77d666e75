"""``crossdock migrate sign-off`` and ``verify``: a migration ends with a report that shows every later change."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from threading import Event

import pytest
from tests.e2e.migrated_folder import STREAMS, MigratedFolder
from tests.report_page import Page

from crossdock.config.project import project
from crossdock.migration.freeze_check import verify_and_store_source_freeze
from crossdock.sandbox import SandboxServer
from crossdock.state.tables.system_migrations import Migrations
from crossdock.values.clock import SystemClock

CANARY = "Kanari"  # begins every name and key of a customer here


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[MigratedFolder]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        yield MigratedFolder(tmp_path / "project", platform)


class Ready:
    """A migration that is loaded, frozen and reconciled, and where its report is written."""

    def __init__(self, migrated: MigratedFolder) -> None:
        self.migrated, self.report = migrated, migrated.folder / "signed.html"

    def freeze(self) -> None:
        verify_and_store_source_freeze(
            project.load(self.migrated.config), timedelta(), clock=SystemClock(), interrupt=Event()
        )

    def reconcile(self, exit_code: int = 0) -> None:
        done = self.migrated.migrate("reconcile")
        assert done.exit_code == exit_code, done.stderr

    def sign(self, *arguments: str, exit_code: int = 0) -> str:
        """What it printed."""
        done = self.migrated.migrate("sign-off", "--by", "Bob", "-o", str(self.report), *arguments)
        assert done.exit_code == exit_code, f"{done.exit_code}: {done.stderr}{done.stdout}"
        assert self.report.exists() == (exit_code == 0)
        return done.stdout + done.stderr

    def verify(self, exit_code: int = 0) -> str:
        done = self.migrated.migrate("verify", str(self.report))
        assert done.exit_code == exit_code, f"{done.exit_code}: {done.stderr}{done.stdout}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def reconciled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MigratedFolder]:
    """A migration that can be signed off, to be copied: neither sign-off nor verify writes to the platform."""
    folder = tmp_path_factory.mktemp("reconciled")
    with SandboxServer(folder / "sandbox") as platform:
        migrated = MigratedFolder(folder / "project", platform)
        migrated.fill()
        migrated.load("--by", "Ann")
        made = Ready(migrated)
        made.freeze()
        made.reconcile()
        yield migrated


@pytest.fixture
def ready(reconciled: MigratedFolder, tmp_path: Path) -> Iterator[Ready]:
    before = len(reconciled.effects())
    yield Ready(reconciled.copied(tmp_path / "project"))
    assert len(reconciled.effects()) == before


def test_a_report_is_signed_and_checked(ready: Ready) -> None:
    """The hash is printed, in the state, on the last line, and that which other programs compute."""
    printed = ready.sign()
    digest = printed.split()[-1]
    content = ready.report.read_bytes()
    assert sha256(b"".join(content.splitlines(keepends=True)[:-1])).hexdigest() == digest
    shell = subprocess.run(
        "sed '$d' signed.html | sha256sum; grep -c '^{' signed.html",
        shell=True,
        cwd=ready.report.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout.split() == [digest, "-", "1"]
    status = ready.migrated.status()["migration"]
    assert (status["report_sha256"], status["signed_off_by"]) == (digest, "Bob")
    assert "unchanged; acme was signed off" in ready.verify()
    assert ready.report.stat().st_mode & 0o777 == 0o600


def test_what_the_report_says(ready: Ready) -> None:
    """The JSON in the page and its tables tell the same: people, runs, totals, and hashes of the files' bytes."""
    ready.sign()
    text = ready.report.read_text(encoding="utf-8")
    (line,) = [each for each in text.splitlines() if each.startswith("{")]
    report = json.loads(line)
    assert (report["migration"]["started_by"], report["migration"]["signed_off_by"]) == ("Ann", "Bob")
    assert sum(run["requests"] for run in report["runs"]) == len(ready.migrated.effects()) == 12
    assert {file["name"]: file["sha256"] for file in report["files"]} == {
        path.name: sha256(path.read_bytes()).hexdigest() for path in (ready.migrated.folder / "out").iterdir()
    }
    shown = Page(text)
    assert ["invoice", "EUR", "31.5", "31.5", "31.5"] in shown.under("resource", "of")
    assert ["invoice", "quantity", "21", "21", "21"] in shown.under("resource", "of")
    assert ["invoice", "records", "6", "6", "6"] in shown.under("resource", "of")
    assert [cells[:4] for cells in shown.under("wave", "records")] == [
        ["customers", "3", "3", "0"],
        ["products", "3", "3", "0"],
        ["invoices", "6", "6", "0"],
    ]
    assert [cells[-1] for cells in shown.under("stream", "SHA-256 of its records and their mapping")] == ["yes"] * 3
    assert "Exceptions\nNone." in shown.text


def _in_the_middle(content: bytes) -> bytes:
    assert b">31.5<" in content
    return content.replace(b">31.5<", b">31.6<", 1)


def _sealed_again(content: bytes) -> bytes:
    above, last = b"".join(_in_the_middle(content).splitlines(keepends=True)[:-1]), content.splitlines()[-1]
    was = last.partition(b"<code>")[2][:64]
    return above + last.replace(was, sha256(above).hexdigest().encode()) + b"\n"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(_in_the_middle, "the last line does not name the SHA-256", id="a digit"),
        pytest.param(lambda content: content[:-20], "the last line does not name the SHA-256", id="cut off"),
        pytest.param(_sealed_again, "not signed off in this state", id="sealed again"),
    ],
)
def test_a_changed_report_is_found(ready: Ready, change: Callable[[bytes], bytes], says: str) -> None:
    """Exit 4; without a config, a report that was sealed again is compared by its hash alone."""
    ready.sign()
    changed = change(ready.report.read_bytes())
    ready.report.write_bytes(changed)
    assert says in ready.verify(exit_code=4)


def test_both_commands_print_json(ready: Ready) -> None:
    """Who signed and when, the reason of nothing, and the hash, the same from both."""
    done = ready.migrated.migrate("sign-off", "--by", "Bob", "-o", str(ready.report), "--json")
    assert done.exit_code == 0, done.stderr
    assert (done.document["name"], done.document["accepted_exceptions"]) == ("acme", None)
    checked = ready.migrated.migrate("verify", str(ready.report), "--json").document
    assert checked == {name: done.document[name] for name in ("name", "signed_off_at", "signed_off_by", "sha256")}


def test_a_check_without_config(ready: Ready, tmp_path: Path) -> None:
    """The hash is shown, to be compared with the archive's."""
    digest = ready.sign().split()[-1]
    ready.migrated.config.unlink()
    assert digest in ready.verify()
    ready.report.unlink()
    assert "cannot be read" in ready.verify(exit_code=2)


def test_it_is_signed_once(ready: Ready) -> None:
    """A second time who signed is named; no file is replaced, and none is left by a refusal."""
    ready.sign()
    done = ready.migrated.migrate("sign-off", "-o", str(ready.report))
    assert (done.exit_code, "a report replaces none" in done.stderr) == (2, True)
    ready.report.unlink()
    assert "acme: already signed off" in ready.sign(exit_code=4)
    for command in (("pause",), ("resume",), ("go", "products"), ("freeze", "--wait", "1s")):
        done = ready.migrated.migrate(*command)
        assert (done.exit_code, "by Bob" in done.stderr, "load --again" in done.stderr) == (4, True, True)
        assert "no migration has begun" not in done.stderr


@pytest.mark.nightly
def test_each_missing_fact_is_named(migrated: MigratedFolder) -> None:
    """From nothing to a signature, with what to do in each step."""
    ready = Ready(migrated)
    assert "no migration has begun" in ready.sign(exit_code=4)
    migrated.fill()
    migrated.load("--until", "products")
    said = ready.sign(exit_code=4)
    assert "wave 3 of 3: invoices: not begun\n  crossdock migrate load" in said
    assert "a load would still send 6 requests" in said
    assert "no freeze check has passed" in said
    assert "not reconciled since the last load" in said
    migrated.load()
    ready.freeze()
    ready.reconcile()
    migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP9;Late;1\n")
    said = ready.sign(exit_code=4)
    assert "sources changed since the freeze check of" in said
    assert "a load would still send 1 request" in said
    done = migrated.run("sync")  # which is no part of the migration
    assert done.exit_code == 0
    assert "operations since the reconciliation" in ready.sign(exit_code=4)
    ready.freeze()
    ready.reconcile()
    assert migrated.migrate("pause", "--by", "Cy").exit_code == 0
    assert "it is paused by Cy" in ready.sign(exit_code=4)
    assert migrated.migrate("resume").exit_code == 0
    ready.sign()


def test_exceptions_are_accepted_with_a_reason(migrated: MigratedFolder) -> None:
    """Without one they are counted and refused; with one the report has it, and no name or key of a record."""
    migrated.waves(customers={"rejected_at_most": 1}, invoices={"rejected_at_most": 9})
    migrated.fill()
    migrated.write("CUST1.csv", f"NO;NAME\n{CANARY}0;{CANARY} Vogel\n{CANARY}1;\n")
    migrated.write("INV1.csv", f"NO;CUST;SKU;QTY;PRICE\n1;{CANARY}0;P0;2;1.50\n2;{CANARY}1;P1;1;1.50\n")
    migrated.load(exit_code=1)
    ready = Ready(migrated)
    ready.freeze()
    ready.reconcile(exit_code=1)
    said = ready.sign(exit_code=4)
    assert "exceptions: 1 rejected, 1 waiting" in said
    assert "--accept-exceptions REASON" in said
    assert migrated.migrate("sign-off", "-o", str(ready.report), "--accept-exceptions", " ").exit_code == 2
    ready.sign("--accept-exceptions", "the shop closes <b>these</b> by hand")
    text = ready.report.read_text(encoding="utf-8")
    assert CANARY not in text
    shown = Page(text)
    assert "2 exceptions, accepted by Bob: the shop closes <b>these</b> by hand" in shown.text
    assert shown.under("stream", "reason") == [["wms.customers", "invalid_draft", "1", "CUST1.csv:3"]]
    (line,) = [each for each in text.splitlines() if each.startswith("{")]
    exceptions = json.loads(line)["exceptions"]
    listed = migrated.run("records", "list", "--all", "--json").document
    assert sum(each["records"] for each in exceptions["differences"]) == len(listed) == 2
    assert ["wms.invoices", "customer", "1"] in shown.under("stream", "for")
    assert "b" not in shown.tags
    ready.verify()


def test_a_stream_without_a_file_is_an_exception(migrated: MigratedFolder) -> None:
    """A person who let its wave go on still accepts with a reason that nothing of it was moved."""
    migrated.fill()
    (migrated.folder / "out" / "INV1.csv").unlink()
    assert migrated.migrate("load").exit_code == 4
    assert migrated.migrate("go", "invoices").exit_code == 0
    ready = Ready(migrated)
    ready.freeze()
    ready.reconcile()
    assert "exceptions: 1 without a file" in ready.sign(exit_code=4)
    ready.sign("--accept-exceptions", "there are no invoices")
    assert ["wms.invoices"] in Page(ready.report.read_text(encoding="utf-8")).under("stream")


def test_records_whose_files_were_moved_are_listed(migrated: MigratedFolder) -> None:
    """The report says of how many records only the state and the platform were compared."""
    migrated.fill()
    migrated.load()
    (migrated.folder / "out" / "INV1.csv").unlink()
    ready = Ready(migrated)
    ready.freeze()
    ready.reconcile()
    ready.sign()
    shown = Page(ready.report.read_text(encoding="utf-8")).under("stream", "records")
    assert ["wms.invoices", "6"] in shown


def test_what_cannot_be_reconciled_is_not_demanded(migrated: MigratedFolder) -> None:
    """A migration whose streams all write to another target ends with a report that says so."""
    content = {"kind": "delimited", "rows": [{"columns": {"code": "{code}", "name": "{name}"}}]}
    resource = {"name": "code", "members": {"name": "text"}, "folder": "partner", "file": "customers_{number:5}.csv"}
    to_partner = {key: value for key, value in STREAMS["customers"].items() if key != "resource"}
    streams = {"customers": to_partner | {"to": "wms.customers"}}
    wms = {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": streams,
           "target": {"resources": {"customers": resource | {"content": content}}}}  # fmt: skip
    waves = {"customers": {"streams": ["wms.customers"]}}
    migrated.configure(connections={"wms": wms}, migration={"name": "acme", "waves": waves})
    (migrated.folder / "out" / "partner").mkdir()
    migrated.fill()
    migrated.load()
    ready = Ready(migrated)
    ready.freeze()
    ready.sign()
    assert "Not reconciled: no stream writes a resource of the platform" in Page(ready.report.read_text()).text
    ready.verify()


def test_a_crash_between_the_file_and_the_state(ready: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is called not signed off, and the migration is signed off under another name of the file."""

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Migrations, "sign_off", crash)
        done = ready.migrated.migrate("sign-off", "-o", str(ready.report))
    assert done.exit_code == 130
    assert "not signed off in this state" in ready.verify(exit_code=4)
    assert ready.migrated.status()["migration"]["signed_off_at"] is None
    ready.report = ready.report.with_name("second.html")
    ready.sign()
    ready.verify()


@pytest.mark.nightly
def test_a_purge_may_remove_the_history_after_it(migrated: MigratedFolder) -> None:
    """Files that are no longer listed are kept until the sign-off."""
    migrated.fill()
    first = migrated.folder / "out" / "PROD1.csv"
    os.utime(first, (1_000_000_000, 1_000_000_000))  # the times of files are compared in whole seconds
    migrated.load("--by", "Ann")
    migrated.write("PROD2.csv", "SKU;NAME;PRICE\nP9;Late;1\n")
    migrated.load()
    ready = Ready(migrated)
    ready.freeze()
    ready.reconcile()
    before = migrated.run("state", "purge", "--older-than", "0h", "--json").document
    ready.sign()
    after = migrated.run("state", "purge", "--older-than", "0h", "--json").document
    assert (before["files_removed"], after["files_removed"]) == (0, 1)
