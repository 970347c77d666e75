"""The demo in real processes, checked by the files in its folder."""

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
from crossdock.cli.safe_terminal_console import PlainConsole
from crossdock.config.project import project
from crossdock.errors import InternalError
from crossdock.runs.run_report import Report
from crossdock.sandbox import SandboxServer
from crossdock.testing.demo import demo_folder_and_servers
from crossdock.values.run_states_and_tally import Tally

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
    """The folder of a finished demo, and its --json output."""
    cwd = tmp_path_factory.mktemp("newcomer")
    with start("demo", "--json", cwd=cwd) as process:
        output, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, errors) == (0, "")
    return cwd / "crossdock-demo", json.loads(output)


@pytest.fixture
def copy(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demo's folder for one test, whose state knows nothing of the other copies."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return Path(shutil.copytree(demo[0], tmp_path / "copy"))


# The expected result, computed from the exports alone.


def rows_of(folder: Path, stream: str, day: int) -> Rows:
    (path,) = folder.glob(f"warehouse/out/{stream.upper()}_2026110{day}.*")
    lines = path.read_text("cp1252").splitlines()
    if stream in {"items", "lots"}:
        assert lines.pop() == f"TRL|{len(lines) - 1}"
    return list(csv.DictReader(lines, delimiter="|" if path.suffix == ".txt" else ";"))


class Expected:
    """The tally of each day, by an independent implementation."""

    def __init__(self, folder: Path) -> None:
        self.accepted: dict[str, dict[str, Any]] = {stream: {} for stream in STREAMS}
        self.waiting: dict[str, Rows] = {}
        self.tallies = [{stream: self._tally(rows_of(folder, stream, n), stream) for stream in STREAMS} for n in (1, 2)]

    def _tally(self, rows: Rows, stream: str) -> dict[str, int]:
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
            counts[self._outcome(number, lines)] += 1
        return dict(counts)

    def _outcome(self, number: str, lines: Rows) -> str:
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
    """A stream of ``sync --json`` with the names of `Expected`, without zeros."""
    rows = {f"rows_{name}": number for name, number in stream["rows"].items() if name != "filtered"}
    filtered = {"filtered": sum(stream["rows"]["filtered"].values())}
    records = {name: number for name, number in stream["records"].items() if name != "delivered"}
    return {name: number for name, number in (rows | filtered | records).items() if number}


def test_both_runs_match_the_exports(demo: Demo) -> None:
    """The tallies of both runs equal those that a script without crossdock computes from the files."""
    folder, document = demo
    expected = Expected(folder)
    for run, tally in zip(document["runs"], expected.tallies, strict=True):
        assert run["balanced"]
        assert {name: counted(stream) for name, stream in run["streams"].items()} == {
            f"wms.{stream}": {name: number for name, number in counts.items() if number}
            for stream, counts in tally.items()
        }
    assert expected.tallies[0]["invoices"]["carried_on"] == expected.tallies[1]["invoices"]["rejected"] == 1


def test_every_record_had_one_effect_with_the_content_of_the_exports(demo: Demo) -> None:
    """The stored invoices are, as a multiset of bodies, those of the files; other records were created once."""
    folder, document = demo
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
    assert document["effects"] == Counter(effect["operation"] for effect in effects)


@pytest.mark.parametrize(
    ("change", "effects", "matches"),
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
def test_the_effects_check_can_fail(copy: Path, change: str, effects: int, matches: bool) -> None:
    """The check at the end compares each delivery: the right number of effects is not enough."""
    with closing(sqlite3.connect(copy / "sandbox" / "sandbox.sqlite3")) as stored, stored:
        stored.execute(change)
    tally = Tally()
    tally.count("read", effects)
    tally.count("created", effects)
    report = Report(1, "2026-11-02", tallies={"all": tally})
    with (
        SandboxServer(copy / "sandbox"),
        nullcontext() if matches else pytest.raises(InternalError, match="do not match"),
    ):
        assert demo_folder_and_servers.count_effects_or_raise_if_reports_differ(
            project.load(copy / "crossdock.yaml"), [report]
        ) == {
            "create": 387,
            "update": 8,
        }


def test_the_results_can_be_read_without_servers(demo: Demo, crossdock: Run) -> None:
    """Runs, one run and the records that were not delivered are read from the folder alone."""
    folder, document = demo
    listed = json.loads(crossdock("runs", "--json", cwd=folder).out)
    assert [run["streams"] for run in reversed(listed)] == [run["streams"] for run in document["runs"]]
    assert "the tally balances" in crossdock("show", "1", cwd=folder).out
    records = json.loads(crossdock("records", "list", "--json", cwd=folder).out)
    reasons = {(item["state"], item["key"]): item["why"] for item in records}
    assert reasons.keys() == {("rejected", "70030"), ("waiting", "70050")}
    assert reasons["rejected", "70030"].startswith("changed_after_delivery")
    assert reasons["waiting", "70050"] == "waits for customer wms:20041"


def test_secrets_are_for_their_owner(demo: Demo) -> None:
    """Secrets are in files that only their owner can read, and not in the config."""
    folder, _ = demo
    secrets = list((folder / "secrets").iterdir())
    assert len(secrets) == 2
    config = (folder / "crossdock.yaml").read_text()
    for secret in secrets:
        assert secret.stat().st_mode & 0o077 == 0
        assert secret.read_text() not in config


@pytest.mark.nightly
def test_the_output_fits_eighty_columns(tmp_path: Path, crossdock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output says what happened and what to do next; a second demo leaves the folder as it is."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")  # without colours
    monkeypatch.setattr(PlainConsole, "is_terminal", property(lambda console: not console.stderr))
    done = crossdock("demo", "--folder", "first look", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if len(line) > 80] == []
    for sentence in (
        "the tally balances",
        "exactly one for each delivered",
        "cd 'first look'",
        "70013 was exported again",
    ):
        assert sentence in done.out
    assert "DOES NOT" not in done.out
    again = crossdock("demo", "--folder", "first look", cwd=tmp_path)
    assert again.code == 2
    assert again.err.startswith("crossdock: first look: the folder is not empty")


def test_the_help_has_an_example(tmp_path: Path, crossdock: Run) -> None:
    """The help shows an example, and no file is created."""
    done = crossdock("demo", "--help", cwd=tmp_path)
    assert "Example:\n    crossdock demo\n" in done.out
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def background() -> Iterator[Background]:
    """Starts crossdock in the background; processes that still run at the end of the test are killed."""
    with ExitStack() as running:

        def run(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
            process = running.enter_context(start(*arguments, cwd=cwd))
            running.callback(process.kill)
            return process

        yield run


@pytest.mark.nightly
def test_an_earlier_demo_can_be_continued(copy: Path, background: Background, crossdock: Run) -> None:
    """Served again, plan and sync work: the third day is delivered, and another sync sends nothing."""
    config, before = copy / "crossdock.yaml", (copy / "crossdock.yaml").read_text()
    serving = background("demo", "--serve", "--json", "--folder", ".", cwd=copy)
    eventually(lambda: config.read_text() not in {before, ""} or serving.poll() is not None)
    for export in (copy / "day-3").iterdir():
        export.rename(copy / "warehouse" / "out" / export.name)
    assert "create wms.customers 20041" in crossdock("plan", cwd=copy).out
    done = crossdock("sync", "--json", cwd=copy)
    assert (done.code, done.err) == (1, ""), "an invoice is rejected"
    invoices = json.loads(done.out)["streams"]["wms.invoices"]["records"]
    assert (invoices["carried_over"], invoices["read"], invoices["created"]) == (1, 8, 9)
    assert json.loads(crossdock("sync", "--json", cwd=copy).out)["requests"] == 0
    serving.send_signal(signal.SIGINT)
    output, errors = serving.communicate(timeout=DEADLINE_S)
    assert (serving.returncode, errors) == (0, "")
    assert f"base_url: {json.loads(output)['base_url']} " in before


def test_a_taken_port_is_an_error(copy: Path, crossdock: Run) -> None:
    """If the address that the state is pinned to is taken, nothing starts and the config does not change."""
    config = (copy / "crossdock.yaml").read_text()
    port = re.search(r"base_url: http://127.0.0.1:(\d+)", config)
    assert port is not None
    with socket.create_server(("127.0.0.1", int(port[1]))):
        done = crossdock("demo", "--serve", "--folder", ".", cwd=copy)
    assert done.code == 2
    assert "the state is pinned to this address" in done.err
    assert (copy / "crossdock.yaml").read_text() == config


def test_a_folder_that_cannot_be_served_is_an_error(copy: Path, crossdock: Run) -> None:
    """A folder that is not a demo's is refused, and so is a config without the line for the warehouse's port."""
    elsewhere = crossdock("demo", "--serve", "--folder", "day-3", cwd=copy)
    assert (elsewhere.code, "not a demo folder" in elsewhere.err) == (2, True)
    config = copy / "crossdock.yaml"
    config.write_text(config.read_text().replace("    port: ", "    port:  # "))
    done = crossdock("demo", "--serve", "--folder", ".", cwd=copy)
    assert (done.code, "no line for the warehouse's port" in done.err) == (2, True)


@pytest.mark.nightly
def test_ctrl_c_stops_the_demo(tmp_path: Path, background: Background) -> None:
    """Interrupted, the demo exits with 130, without a result and without a traceback."""
    process = background("demo", "--json", cwd=tmp_path)
    eventually((tmp_path / "crossdock-demo" / "crossdock.db").exists)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, output) == (130, "")
    assert "Traceback" not in errors
