"""The demo as a newcomer runs it: real processes, judged by what they leave in the folder."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.waiting import eventually

from crossdock.cli.main import main
from crossdock.demo import effects_check
from crossdock.errors import InternalError
from crossdock.project import project
from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer
from crossdock.tally import Tally

DEADLINE_S = 60
STREAMS = ("customers", "items", "bins", "lots", "invoices")
Rows = list[dict[str, str]]
Demo = tuple[Path, dict[str, Any]]
Run = Callable[..., "Done"]
Background = Callable[..., subprocess.Popen[str]]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def crossdock(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process, in a folder."""

    def run(*arguments: str, cwd: Path) -> Done:
        monkeypatch.chdir(cwd)
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        return Done(int(ended.value.code or 0), *capsys.readouterr())

    return run


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "crossdock", *arguments]
    pipe, env = subprocess.PIPE, os.environ | {"COLUMNS": "80"}
    return subprocess.Popen(command, cwd=cwd, env=env, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The folder of a demo that has run, and what it printed with --json."""
    cwd = tmp_path_factory.mktemp("newcomer")
    with start("demo", "--json", cwd=cwd) as process:
        output, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, errors) == (0, "")
    return cwd / "crossdock-demo", json.loads(output)


@pytest.fixture
def copy(demo: Demo, tmp_path: Path) -> Path:
    """A demo's folder for one test alone."""
    return Path(shutil.copytree(demo[0], tmp_path / "copy"))


# What must come out, computed from the exports alone.


def rows_of(folder: Path, stream: str, night: int) -> Rows:
    (path,) = folder.glob(f"warehouse/out/{stream.upper()}_2026110{night}.*")
    lines = path.read_text("cp1252").splitlines()
    if stream in {"items", "lots"}:
        assert lines.pop() == f"TRL|{len(lines) - 1}"
    return list(csv.DictReader(lines, delimiter="|" if path.suffix == ".txt" else ";"))


class Expected:
    """The accounts of each night, by an implementation of its own."""

    def __init__(self, folder: Path) -> None:
        self.accepted: dict[str, dict[str, Any]] = {stream: {} for stream in STREAMS}
        self.waiting: dict[str, Rows] = {}
        self.scheduled_runs = [
            {stream: self._night(rows_of(folder, stream, n), stream) for stream in STREAMS} for n in (1, 2)
        ]

    def _night(self, rows: Rows, stream: str) -> dict[str, int]:
        counts = Counter(rows_read=len(rows))
        if stream == "invoices":
            return self._invoices(rows, counts)
        keys = {"customers": ["CUSTNO"], "items": ["SKU"], "bins": ["BIN"], "lots": ["LOTNO", "BIN"]}[stream]
        found: dict[str, Any] = {}
        for row in sorted(rows, key=lambda row: row.pop("CHANGED", "")):
            found["|".join(row[name] for name in keys)] = row
        counts.update(rows_superseded=len(rows) - len(found), rows_in_records=len(found), read=len(found))
        for key, row in found.items():
            before = self.accepted[stream].get(key)
            counts["created" if before is None else "unchanged" if before == row else "updated"] += 1
        self.accepted[stream] |= found
        return dict(counts)

    def _invoices(self, rows: Rows, counts: Counter[str]) -> dict[str, int]:
        read: dict[str, Rows] = {}
        for row in rows:
            if row["STATE"] == "CANCELLED":
                counts["filtered"] += 1
            else:
                counts["rows_in_records"] += 1
                read.setdefault(row["INVNO"], []).append(row)
        counts.update(read=len(read), carried_over=len(self.waiting))
        everything, self.waiting = self.waiting | read, {}
        for number, lines in everything.items():
            counts[self._fate(number, lines)] += 1
        return dict(counts)

    def _fate(self, number: str, lines: Rows) -> str:
        if not all(re.fullmatch(r"\d+,\d{2,4}", line["PRICE"]) for line in lines):
            return "rejected"
        known = self.accepted["customers"].keys() | self.accepted["items"].keys()
        if not {key for line in lines for key in (line["CUSTNO"], line["SKU"])} <= known:
            self.waiting[number] = lines
            return "carried_on"
        if number in self.accepted["invoices"]:
            return "unchanged" if self.accepted["invoices"][number] == lines else "rejected"
        self.accepted["invoices"][number] = lines
        return "created"


def counted(stream: dict[str, Any]) -> dict[str, int]:
    """A stream of ``sync --json`` in the words of `Expected`; zeros left out."""
    rows = {f"rows_{name}": number for name, number in stream["rows"].items() if name != "filtered"}
    filtered = {"filtered": sum(stream["rows"]["filtered"].values())}
    records = {name: number for name, number in stream["records"].items() if name != "delivered"}
    return {name: number for name, number in (rows | filtered | records).items() if number}


def test_both_nights_are_what_the_exports_say(demo: Demo) -> None:
    """The accounts of both runs equal those that a script without crossdock makes of the files."""
    folder, told = demo
    expected = Expected(folder)
    for run, night in zip(told["runs"], expected.scheduled_runs, strict=True):
        assert run["balanced"]
        assert {name: counted(stream) for name, stream in run["streams"].items()} == {
            f"wms.{stream}": {name: number for name, number in counts.items() if number}
            for stream, counts in night.items()
        }
    assert (
        expected.scheduled_runs[0]["invoices"]["carried_on"] == expected.scheduled_runs[1]["invoices"]["rejected"] == 1
    )


def test_every_record_had_one_effect_with_the_content_of_the_exports(demo: Demo) -> None:
    """The invoices that the sandbox stored are, as a multiset of bodies, those of the files; others were made once."""
    folder, told = demo
    with SandboxServer(folder / "sandbox") as server:
        pages = httpx.get(f"{server.base_url}/_sandbox/effects", params={"limit": "10000"}, trust_env=False)
    effects = json.loads(pages.content, parse_float=Decimal)["data"]
    names = {effect["id"]: effect["body"].get("externalId", "").removeprefix("wms:") for effect in effects}
    stored = Counter(
        (names[body["customerId"]], *((names[i["productId"]], i["quantity"], i["unitPrice"]) for i in body["items"]))
        for body in (effect["body"] for effect in effects if effect["resource"] == "invoice")
    )
    accepted = Expected(folder).accepted
    assert stored == Counter(
        (lines[0]["CUSTNO"], *((i["SKU"], int(i["QTY"]), Decimal(i["PRICE"].replace(",", "."))) for i in lines))
        for lines in accepted["invoices"].values()
    )
    created = Counter(effect["resource"] for effect in effects if effect["operation"] == "create")
    assert sorted(created.values()) == sorted(len(records) for records in accepted.values())
    assert told["effects"] == Counter(effect["operation"] for effect in effects)


@pytest.mark.parametrize(
    ("change", "effects", "proved"),
    [
        pytest.param("", 395, True, id="as it was"),
        pytest.param("DELETE FROM effects WHERE seq = 300", 394, False, id="a delivery without effect"),
        pytest.param(
            "INSERT INTO effects SELECT 999, at, tenant, credential, request_id, idempotency_key, resource, operation,"
            " id, body FROM effects WHERE seq = 300",
            396,
            False,
            id="one with two",
        ),
    ],
)
def test_the_proof_can_fail(copy: Path, change: str, effects: int, proved: bool) -> None:
    """The proof at the end judges each delivery: a right number of effects alone is not enough."""
    with closing(sqlite3.connect(copy / "sandbox" / "sandbox.sqlite3")) as seen, seen:
        seen.execute(change)
    tally = Tally()
    tally.count("read", effects)
    tally.count("created", effects)
    report = Report(1, "2026-11-02", tallies={"all": tally})
    with SandboxServer(copy / "sandbox"), nullcontext() if proved else pytest.raises(InternalError, match="saw"):
        assert effects_check.compare(project.load(copy / "crossdock.yaml"), [report]) == {"create": 387, "update": 8}


def test_the_folder_tells_its_story_without_servers(demo: Demo, crossdock: Run) -> None:
    """Runs, one run and the records that did not get through need only what lies in the folder."""
    folder, told = demo
    listed = json.loads(crossdock("runs", "--json", cwd=folder).out)
    assert [run["streams"] for run in reversed(listed)] == [run["streams"] for run in told["runs"]]
    assert "the tally balances" in crossdock("show", "1", cwd=folder).out
    records = json.loads(crossdock("records", "list", "--json", cwd=folder).out)
    reasons = {(item["state"], item["key"]): item["why"] for item in records}
    assert reasons.keys() == {("rejected", "70030"), ("waiting", "70050")}
    assert reasons["rejected", "70030"].startswith("changed_after_delivery")
    assert reasons["waiting", "70050"] == "waits for customer wms:20041"


def test_secrets_are_for_their_owner(demo: Demo) -> None:
    """Secrets lie in files that nobody else may read, and not in the config."""
    folder, _ = demo
    secrets = list((folder / "secrets").iterdir())
    assert len(secrets) == 2
    config = (folder / "crossdock.yaml").read_text()
    for secret in secrets:
        assert secret.stat().st_mode & 0o077 == 0
        assert secret.read_text() not in config


def test_a_newcomer_reads_it_on_eighty_columns(tmp_path: Path, crossdock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The story fits the terminal, says what happened and what to do now; a second demo leaves the folder alone."""
    monkeypatch.setenv("COLUMNS", "80")
    done = crossdock("demo", "--folder", "first look", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    for sentence in ("the tally balances", "none twice and none besides", "cd 'first look'", "70013 came again"):
        assert sentence in done.out
    assert "DOES NOT" not in done.out
    again = crossdock("demo", "--folder", "first look", cwd=tmp_path)
    assert again.code == 2
    assert again.err.startswith("crossdock: first look: the folder is not empty")


def test_the_help_has_an_example(tmp_path: Path, crossdock: Run) -> None:
    """The help shows the command as it is typed, and nothing is made."""
    done = crossdock("demo", "--help", cwd=tmp_path)
    assert "Example:\n    crossdock demo\n" in done.out
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def background() -> Iterator[Background]:
    """Starts crossdock and leaves it running; whatever still runs at the end is killed."""
    with ExitStack() as running:

        def run(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
            process = running.enter_context(start(*arguments, cwd=cwd))
            running.callback(process.kill)
            return process

        yield run


def test_the_demo_goes_on_in_its_folder(copy: Path, background: Background, crossdock: Run) -> None:
    """Served again, plan and sync work: the third night goes through, and a further sync sends nothing."""
    config, before = copy / "crossdock.yaml", (copy / "crossdock.yaml").read_text()
    serving = background("demo", "--serve", "--json", "--folder", ".", cwd=copy)
    eventually(lambda: config.read_text() not in {before, ""} or serving.poll() is not None)
    for export in (copy / "night-3").iterdir():
        export.rename(copy / "warehouse" / "out" / export.name)
    assert "create wms.customers 20041" in crossdock("plan", cwd=copy).out
    done = crossdock("sync", "--json", cwd=copy)
    assert (done.code, done.err) == (0, "")
    invoices = json.loads(done.out)["streams"]["wms.invoices"]["records"]
    assert (invoices["carried_over"], invoices["read"], invoices["created"]) == (1, 8, 9)
    assert json.loads(crossdock("sync", "--json", cwd=copy).out)["requests"] == 0
    serving.send_signal(signal.SIGINT)
    output, errors = serving.communicate(timeout=DEADLINE_S)
    assert (serving.returncode, errors) == (0, "")
    assert f"base_url: {json.loads(output)['base_url']} " in before


def test_a_taken_port_is_told(copy: Path, crossdock: Run) -> None:
    """Where the address that the state is pinned to is taken, nothing starts and the config stays as it was."""
    config = (copy / "crossdock.yaml").read_text()
    port = re.search(r"base_url: http://127.0.0.1:(\d+)", config)
    assert port is not None
    with socket.create_server(("127.0.0.1", int(port[1]))):
        done = crossdock("demo", "--serve", "--folder", ".", cwd=copy)
    assert done.code == 2
    assert "the state is pinned to this address" in done.err
    assert (copy / "crossdock.yaml").read_text() == config


def test_what_cannot_be_served_is_told(copy: Path, crossdock: Run) -> None:
    """Serving refuses a folder that is no demo's, and a config where it does not find what to write."""
    elsewhere = crossdock("demo", "--serve", "--folder", "night-3", cwd=copy)
    assert (elsewhere.code, "not a folder of the demo" in elsewhere.err) == (2, True)
    config = copy / "crossdock.yaml"
    config.write_text(config.read_text().replace("    port: ", "    port:  # "))
    done = crossdock("demo", "--serve", "--folder", ".", cwd=copy)
    assert (done.code, "where to write the warehouse's port" in done.err) == (2, True)


def test_ctrl_c_ends_it(tmp_path: Path, background: Background) -> None:
    """Interrupted on its way, the demo ends with 130, tells no result, and shows no traceback."""
    process = background("demo", "--json", cwd=tmp_path)
    eventually((tmp_path / "crossdock-demo" / "crossdock.db").exists)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, output) == (130, "")
    assert "Traceback" not in errors
