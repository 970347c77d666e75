"""A warehouse in a folder: its config, what ``check`` finds, and what it has in common with one on SFTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from crossdock.config.project import project
from crossdock.config.project.config_schema import config_schema
from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.connector import Context, Finding
from crossdock.errors import ConfigError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress

CONFIG = """\
platform: {base_url: "http://127.0.0.1:9", tenant: acme, auth: {kind: api_key, token: env:CROSSDOCK_API_KEY}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: exports
    sources:
      sales:
        files: "SALES_*.csv"
    streams:
      products:
        mode: snapshot
        files: "out/ITEM_*.txt"
        format: {kind: delimited, delimiter: "|", encoding: cp1252, trailer: {prefix: TRL, count: 1}}
        key: [SKU]
        skip: {test_data: {field: SKU, starts_with: "TEST"}}
        resource: product
        map: {sku: SKU, name: DESCR, unitPrice: {from: PRICE, as: decimal}, currency: {const: EUR}}
      customers:
        source: sales
        mode: append
        key: [CUSTNO]
        resource: customer
        map: {name: NAME}
"""
SERVER = """kind: sftp_warehouse
    host: wms.example.com
    user: export
    password: env:WMS_PASSWORD
    host_key: "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\""""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def edit(config: Path, old: str, new: str) -> None:
    text = config.read_text(encoding="utf-8")
    assert old in text
    config.write_text(text.replace(old, new, 1), encoding="utf-8")


def versions(config: Path) -> dict[str, str]:
    (connection,) = project.load(config).connections
    return {stream.name: stream.version for stream in connection.streams}


# ---- the config


def test_expectations_and_limits_keep_the_version(config: Path) -> None:
    """Keys that do not change what a row becomes leave the stream's version as it is, so nothing is read again."""
    before = versions(config)
    keys = (
        'mode: snapshot\n        expect: {by: "05:00"}\n        changes: {at_most: 5}\n        fewer_rows_percent: 50'
    )
    edit(config, "mode: snapshot", keys)
    edit(config, 'files: "SALES_*.csv"', 'files: "SALES_*.csv"\n        required: true')
    assert versions(config) == before


@dataclass(frozen=True)
class Slip:
    """A mistake, the place that the error points to, and what it says."""

    old: str
    new: str
    at: str
    says: tuple[str, ...]


OUT, SALES = '"out/ITEM_*.txt"', '"SALES_*.csv"'
OUTSIDE = "files must be below path, and written relative to it"
SLIPS = {
    "no path": Slip("    path: exports\n", "", ":4:3", ("connections.wms.path", "is missing")),
    "unknown key": Slip("path:", "paht:", ":6:5", ("connections.wms.paht", "did you mean 'path'?")),
    "a server's key": Slip(
        "path: exports", "path: exports\n    host: wms", ":7:5", ("connections.wms.host", "unknown key")
    ),
    "no path but a number": Slip("path: exports", "path: 17", ":6:5", ("connections.wms.path",)),
    "nobody's home": Slip("path: exports", "path: ~nobody-here/x", ":6:5", ("connections.wms.path", "an unknown user")),
    "unknown kind": Slip("folder_warehouse", "folder_warehous", ":5:5", ("did you mean 'folder_warehouse'?",)),
    "a word for a number": Slip(
        "path: exports", "path: exports\n    settle_s: soon", ":7:5", ("connections.wms.settle_s",)
    ),
    "parent": Slip(OUT, '"../out/ITEM_*"', ":11:7", ("connections.wms.streams.products", OUTSIDE)),
    "parent in the middle": Slip(OUT, '"out/../../ITEM_*"', ":11:7", ("connections.wms.streams.products", OUTSIDE)),
    "absolute": Slip(OUT, '"/out/ITEM_*"', ":11:7", ("connections.wms.streams.products", OUTSIDE)),
    "parent of a source": Slip(SALES, '"../SALES_*"', ":8:7", ("connections.wms.sources.sales", OUTSIDE)),
    "empty folder": Slip(OUT, '"*//ITEM_*"', ":13:9", ("connections.wms.streams.products.files", "without a name")),
    "no such source": Slip(
        "source: sales", "source: sails", ":4:3", ("streams.customers.source: there is no source 'sails'",)
    ),
    "both": Slip("source: sales", "source: sales\n        files: x", ":19:7", ("give either source or files",)),
}


@pytest.mark.parametrize("slip", [pytest.param(slip, id=name) for name, slip in SLIPS.items()])
def test_a_slip_in_the_config_is_reported_with_its_place(config: Path, slip: Slip) -> None:
    """File, line, column and config path stand in the error, and what would be right."""
    edit(config, slip.old, slip.new)
    with pytest.raises(ConfigError) as wrong:
        project.load(config)
    assert f"{config}{slip.at}: " in str(wrong.value)
    for words in slip.says:
        assert words in str(wrong.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("exports", "{folder}/exports"),
        ("../exports", "{folder}/../exports"),
        ("/srv/exports", "/srv/exports"),
        ("~/exports", "{home}/exports"),
    ],
)
def test_the_path_is_relative_to_the_config(
    config: Path, monkeypatch: pytest.MonkeyPatch, written: str, meant: str
) -> None:
    """Wherever the command is started; ``~`` is the home of who starts it. Loading looks for nothing."""
    monkeypatch.setenv("HOME", "/home/export")
    edit(config, "path: exports", f"path: {written}")
    (connection,) = project.load(config).connections
    expected = meant.format(folder=config.parent, home="/home/export")
    assert connection.settings.model_dump()["path"] == Path(expected)


def test_editors_know_the_config(config: Path) -> None:
    """Its JSON Schema takes the config, and refuses a folder without a path."""
    validator = jsonschema_rs.Draft202012Validator(
        config_schema({"folder_warehouse": load_connector("folder_warehouse").settings})
    )
    document = yaml.safe_load(config.read_text(encoding="utf-8"))
    validator.validate(document)
    del document["connections"]["wms"]["path"]
    assert not validator.is_valid(document)


def test_streams_are_the_same_wherever_their_files_are(config: Path) -> None:
    """Whoever moves from a server to a copy of its exports reads no file again; nor does who upgrades."""
    found = versions(config)
    assert found["products"] == "1cf81a1a1c9a7218995e7ddfc88cd032"  # as in all versions of crossdock so far
    edit(config, "kind: folder_warehouse\n    path: exports", SERVER)
    assert versions(config) == found


# ---- check


def check(config: Path) -> list[Finding]:
    (connection,) = project.load(config).connections
    run = SourceContext(SystemClock(), SilentProgress(), EmptyIntakeLog(), config.parent, config.parent, config.parent)
    assert connection.connector.check is not None
    return list(connection.connector.check(Context(connection.settings, connection.name, run)))


def test_check_counts_the_files_of_every_pattern(config: Path) -> None:
    """The folder is named, and each pattern with its files and bytes; one without files fails, unless they may lack."""
    exports = config.parent / "exports"
    (exports / "out").mkdir(parents=True)
    for number in range(2):
        (exports / "out" / f"ITEM_{number}.txt").write_text("x" * 600)
    assert check(config) == [
        Finding(ok=True, text=f"the folder {exports} is there"),
        Finding(ok=True, text="out/ITEM_*.txt: 2 files, 1,200 bytes"),
        Finding(ok=False, text="SALES_*.csv: 0 files, 0 bytes", code="file_missing"),
    ]
    edit(config, 'SALES_*.csv"', 'SALES_*.csv"\n        required: false')
    assert check(config)[-1] == Finding(ok=True, text="SALES_*.csv: 0 files, 0 bytes")


def test_check_tells_of_a_missing_folder(config: Path) -> None:
    """A folder of a pattern that is missing spoils that pattern alone; without the whole folder there is nothing."""
    with pytest.raises(ConfigError, match="there is no such folder") as missing:
        check(config)
    assert missing.value.where == str(config.parent / "exports")
    (config.parent / "exports").mkdir()
    (config.parent / "exports" / "SALES_1.csv").write_text("x")
    assert check(config)[1:] == [
        Finding(
            ok=False,
            text="out/ITEM_*.txt: folder 'out' does not exist",
            code="folder_missing",
            category="config",
        ),
        Finding(ok=True, text="SALES_*.csv: 1 file, 1 bytes"),
    ]


# ---- what it does not need


PLAN = """
import json, sys
import crossdock.cli.main
try:
    crossdock.cli.main.main(["-C", sys.argv[1], "plan", "--json"])
except SystemExit as ended:
    code = ended.code
heavy = ("paramiko", "cryptography", "nacl", "bcrypt", "httpcore", "httpx", "jinja2")
before = [name for name in heavy if name in sys.modules]
import crossdock.sources
crossdock.sources.connect
print(json.dumps({"code": code, "loaded": before, "then": "paramiko" in sys.modules}))
"""


def test_a_plan_over_a_folder_loads_no_ssh_or_http(config: Path) -> None:
    """They cost a tenth of a plan's time, and folders do not need them."""
    (config.parent / "exports" / "out").mkdir(parents=True)
    export = config.parent / "exports" / "SALES_1.csv"
    export.write_text("CUSTNO,NAME\nC1,A\n")
    os.utime(export, (1_700_000_000, 1_700_000_000))
    project.load(config).create_or_upgrade_state()
    command = [sys.executable, "-c", PLAN, str(config)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    plan, _, loaded = output.rstrip().rpartition("\n")
    assert json.loads(plan)["operations"] == {"create": 1}
    assert json.loads(loaded) == {"code": 0, "loaded": [], "then": True}
