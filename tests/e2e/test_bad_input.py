"""Bad configs, files and records, end to end: what a user is told, what enters, and that nothing is lost."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.e2e.warehouse import CUSTOMERS, INVOICES, PASSWORD, PERSON, PRODUCTS, Site, expected

from crossdock.state import State

HEADER = "INVNO;CUSTNO;SKU;QTY;PRICE;CURRENCY\n"
SNAPSHOT = ("mode: append", "mode: snapshot", "products:")


# ---- the config


@dataclass(frozen=True)
class Slip:
    """A mistake in a config.

    Attributes:
        at: What the error must point to.
        says: What it must say; the first is the config path.
    """

    old: str
    new: str
    within: str
    at: str
    says: tuple[str, ...]


INVOICE_ITEMS = "quantity: {from: QTY, as: decimal}"
TWIN = """      clients:
        mode: append
        files: "out/CLI_*"
        key: [CUSTNO]
        resource: customer
        map: {name: NAME}
      customers:"""
SLIPS = {
    "unknown key": Slip("host:", "hots:", "wms:", "hots:", ("connections.wms.hots", "did you mean 'host'?")),
    "unknown section": Slip("state:", "stat:", "", "stat:", ("stat: unknown key", "did you mean 'state'?")),
    "duplicate key": Slip(
        "    user: export",
        "    user: export\n    user: other",
        "",
        "user: other",
        ("the key 'user' is repeated",),
    ),
    "literal password": Slip(
        "password: env:WMS_PASSWORD",
        f"password: {PASSWORD}",
        "",
        "password:",
        ("connections.wms.password", "env:NAME or file:PATH"),
    ),
    "literal token": Slip(
        "token: env:CROSSDOCK_API_KEY", f"token: {PASSWORD}", "", "token:", ("platform.auth", "env:NAME or file:PATH")
    ),
    "wrong type": Slip(
        "settle_s: 0", "settle_s: soon", "host_key", "settle_s:", ("connections.wms.settle_s", "number")
    ),
    "number for text": Slip(
        "tenant: ", "tenant: 17 # ", "", "tenant:", ("platform.tenant", "must be text", "quote numbers")
    ),
    "unknown map member": Slip(
        "name: NAME", "nmae: NAME", "", "nmae:", ("connections.wms.streams.customers.map.nmae", "did you mean 'name'?")
    ),
    "unknown member of a line": Slip(
        INVOICE_ITEMS, INVOICE_ITEMS.replace("quantity", "qty"), "each:", "qty:", (".map.items.each.qty", "unknown key")
    ),
    "unknown member of an object": Slip(
        "name: NAME",
        "name: NAME\n          billingAddress: {object: {line1: STREET, town: TOWN}}",
        "",
        "town:",
        ("billingAddress", "town", "unknown key"),
    ),
    "missing required member": Slip(
        "          currency: CURRENCY\n",
        "",
        "group_by:",
        "map:",
        ("connections.wms.streams.invoices.map", "lacks currency"),
    ),
    "unknown form": Slip(
        "currency: CURRENCY", "currency: {constant: EUR}", "", "constant:", (".map.currency", "did you mean 'const'?")
    ),
    "each of what is no list": Slip(
        "currency: CURRENCY", "currency: {each: {a: A}}", "", "currency:", ("currency", "each")
    ),
    "each without group_by": Slip(
        "        group_by: [INVNO]\n",
        "",
        "",
        "items:",
        ("streams.invoices.map.items", "needs group_by"),
    ),
    "unknown time zone": Slip(
        "currency: CURRENCY",
        "currency: {from: CURRENCY, as: instant, timezone: Europe/Berln}",
        "",
        "timezone:",
        ("timezone", "Europe/Berln"),
    ),
    "impossible date format": Slip(
        "currency: CURRENCY",
        'currency: {from: CURRENCY, as: date, format: "%Y-%Q"}',
        "",
        'format: "%Y',
        (".format", "%Q"),
    ),
    "empty folder": Slip('"out/INV_*"', '"*//INV_*"', "", 'files: "*/', (".files", "without a name")),
    "host key that is none": Slip(
        'host_key: "SHA256:', 'host_key: "MD5:', "", "host_key:", ("connections.wms.host_key", "SHA256")
    ),
    "unknown connector": Slip(
        "kind: sftp_warehouse",
        "kind: sftp_warehous",
        "",
        "kind: sftp_warehous",
        ("no connector is called 'sftp_warehous'", "did you mean 'sftp_warehouse'?"),
    ),
    "no connector kind": Slip("    kind: sftp_warehouse\n", "", "", "wms:", ("connections.wms", "kind")),
    "two writers": Slip(
        "      customers:",
        TWIN,
        "",
        "wms:",
        ("wms.customers and wms.clients both write customer in namespace 'wms'", "set namespace in one of the streams"),
    ),
    "yaml syntax": Slip("key: [CUSTNO]", "key: [CUSTNO", "", "", ("is not valid YAML",)),
    "tab": Slip("    user:", "\tuser:", "", "\tuser", ("is not valid YAML",)),
    "plain http": Slip(
        "base_url: ", "base_url: http://api.example.com # ", "", "base_url:", ("platform.base_url", "must be https")
    ),
}


@pytest.mark.parametrize("slip", [pytest.param(slip, id=name) for name, slip in SLIPS.items()])
def test_a_slip_in_the_config_is_told_with_its_place(site: Site, slip: Slip) -> None:
    """A mistake in the config ends with exit 2, its file, line, column, config path and what would be right."""
    site.edit(slip.old, slip.new, within=slip.within)
    result = site.run("sync")
    assert result.code == 2, result
    place = site.place(slip.at, within=slip.within) if slip.at else f"{site.config}:"
    if slip.at.startswith("wms"):
        place = place.rpartition(":")[0]  # what is missing has no column of its own
    assert place in result.err, result.err
    for words in slip.says:
        assert words in result.err
    assert result.out == ""
    assert not site.sftp.logins
    assert not site.effects()


def test_every_slip_is_told_at_once(site: Site) -> None:
    """Two mistakes of one section are told in one go."""
    site.edit("settle_s: 0", "settle_s: soon", within="host_key")
    site.edit("mode: append", "mode: sometimes")
    result = site.run("sync")
    assert result.code == 2
    assert site.place("settle_s:", within="host_key") in result.err
    assert site.place("mode:") in result.err


def test_no_config_file(site: Site) -> None:
    """A config that is not there is named, with the option that names one."""
    site.config.unlink()
    result = site.run("sync")
    assert result.code == 2
    assert f"{site.config}: there is no such config file" in result.err
    assert "-C" in result.err


def test_unknown_stream(site: Site) -> None:
    """A stream that is not configured is refused with the nearest name, before anything is reached."""
    site.init()
    result = site.run("sync", "wms.invoice")
    assert result.code == 2
    assert "'wms.invoice'; did you mean 'wms.invoices'?" in result.err
    assert not site.sftp.logins


def test_unknown_stream_leaves_no_run(site: Site) -> None:
    """A run that was refused for its arguments is not listed as one that goes on for ever."""
    site.init()
    site.run("sync", "wms.invoice")
    assert [run["status"] for run in site.run("runs", "--json").json] == []


# ---- secrets


@pytest.mark.nightly
def test_missing_password_variable(site: Site) -> None:
    """A secret's variable that is not set is named, and nothing is reached; once it is set, all goes through."""
    site.init()
    site.fill()
    site.setenv("WMS_PASSWORD", None)
    result = site.run("sync")
    assert result.code == 2
    assert "the environment variable WMS_PASSWORD is not set" in result.err
    assert not site.sftp.logins
    assert not site.effects()
    site.setenv("WMS_PASSWORD", PASSWORD)
    assert site.sync().code == 0
    site.assert_everything_once()


def test_missing_api_key_variable(site: Site) -> None:
    """A platform key that is not set ends the run with exit 2 instead of leaving it waiting for ever."""
    site.init()
    site.fill()
    site.setenv("CROSSDOCK_API_KEY", None)
    result = site.process("sync")
    assert result.code == 2
    assert "the environment variable CROSSDOCK_API_KEY is not set" in result.err
    site.setenv("CROSSDOCK_API_KEY", site.api_key)
    assert site.sync().code == 0
    site.assert_everything_once()


@pytest.mark.nightly(but=["nul"])
@pytest.mark.parametrize("tail", [pytest.param("\n", id="line end"), pytest.param("\x00", id="nul")])
def test_api_key_that_no_header_can_hold(site: Site, tail: str) -> None:
    """A key with a stray character in it is a wrong config, and is not quoted in the error."""
    site.init()
    site.fill()
    (site.folder / "key").write_bytes((site.api_key + f"{tail}x").encode())
    (site.folder / "key").chmod(0o600)
    site.edit("env:CROSSDOCK_API_KEY", "file:key")
    result = site.run("sync")
    assert result.code in {2, 3}
    assert not site.effects()
    site.edit("file:key", "env:CROSSDOCK_API_KEY")
    assert site.sync().code == 0
    site.assert_everything_once()


@pytest.mark.nightly(but=["readable by others"])
@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        pytest.param(
            lambda path: path.chmod(0o644), "others may read the secret file:password", id="readable by others"
        ),
        pytest.param(lambda path: path.unlink(), "the secret file:password cannot be read", id="missing"),
        pytest.param(lambda path: path.write_text("\n"), "the secret file is empty", id="empty"),
    ],
)
def test_secret_file(site: Site, prepare: Callable[[Path], object], says: str) -> None:
    """A secret file that is open to others, missing or empty is refused by its path; mended, all goes through."""
    secret = site.folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    site.init()
    site.fill()
    site.edit("env:WMS_PASSWORD", "file:password")
    prepare(secret)
    result = site.run("sync")
    assert result.code == 2
    assert f"{secret}: {says}" in result.err
    assert not site.sftp.logins
    assert not site.effects()
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    assert site.sync().code == 0
    site.assert_everything_once()


# ---- the state


@pytest.mark.parametrize("command", ["sync", "plan", "runs"])
def test_missing_state(site: Site, command: str) -> None:
    """Without a state nothing runs: exit 3, with its path and the word init, and none is made by the way."""
    site.fill()
    result = site.run(command)
    assert result.code == 3
    assert f"{site.folder / 'state.db'}: there is no state here" in result.err
    assert result.err.count("there is no state here") == 1
    assert "crossdock init" in result.err
    assert not (site.folder / "state.db").exists()
    assert not site.effects()


@pytest.mark.nightly(but=["tenant"])
@pytest.mark.parametrize("what", ["tenant", "platform"])
def test_state_of_another_tenant(site: Site, what: str) -> None:
    """A state made for another platform or tenant stops the run with exit 3 and names both."""
    site.init()
    site.fill()
    old, new = (site.tenant, "other") if what == "tenant" else (site.base_url, "https://api.example.com")
    site.edit(old, new)
    result = site.run("sync")
    assert result.code == 3
    assert f"tenant {site.tenant!r} of {site.base_url}" in result.err
    assert new in result.err
    assert not site.sftp.logins
    site.configure()
    assert site.sync().code == 0
    site.assert_everything_once()


def test_locked_state(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that somebody else writes into stops the run with exit 3 after a while, and loses nothing."""
    monkeypatch.setitem(State.__init__.__kwdefaults__ or {}, "waits_s", 0.2)
    site.init()
    site.fill()
    with closing(sqlite3.connect(site.folder / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        result = site.run("sync")
    assert result.code == 3
    assert f"{site.folder / 'state.db'}: " in result.err
    assert "database is locked" in result.err
    assert "another crossdock" in result.err
    assert site.sync().code == 0
    site.assert_everything_once()


# ---- the server with the files


def test_wrong_host_key(site: Site) -> None:
    """A server with another host key is refused before any login; both fingerprints are named."""
    site.init()
    site.fill()
    pinned = site.sftp.fingerprint
    site.sftp.replace_host_key()
    result = site.run("sync")
    assert result.code == 3
    assert "host key mismatch" in result.err
    assert site.sftp.fingerprint in result.err
    assert pinned in result.err
    assert not site.sftp.logins
    site.configure()
    assert site.sync().code == 0
    site.assert_everything_once()


def test_wrong_password(site: Site) -> None:
    """A login that is refused ends with exit 3 and names user, host and method, never the password."""
    site.init()
    site.fill()
    site.setenv("WMS_PASSWORD", "wrong-canary")
    site.secrets.append("wrong-canary")
    result = site.run("sync")
    assert result.code == 3
    assert f"export@127.0.0.1:{site.sftp.port}: login refused" in result.err
    assert "password of 'export'" in result.err
    assert not site.effects()
    site.setenv("WMS_PASSWORD", PASSWORD)
    assert site.sync().code == 0
    site.assert_everything_once()


def test_wrong_password_is_tried_once(site: Site) -> None:
    """A refused login is not tried again for each stream in one run: servers lock accounts for that."""
    site.init()
    site.setenv("WMS_PASSWORD", "wrong-canary")
    result = site.run("sync")
    assert len(site.sftp.logins) == 1
    assert result.err.count("login refused") == 1


def test_missing_folder(site: Site) -> None:
    """A remote folder that is not there is named, with the stream that wants it; the other streams go through."""
    site.init()
    site.fill()
    site.edit('"out/INV_*"', '"outt/INV_*"')
    result = site.run("sync")
    assert result.code == 2
    assert "wms.invoices: " in result.err
    assert "remote folder 'outt' does not exist" in result.err
    assert not site.effects("invoice")
    site.edit('"outt/INV_*"', '"out/INV_*"')
    assert site.sync().code == 0
    site.assert_everything_once()


# ---- files


@dataclass(frozen=True)
class BadFile:
    """An export of invoices that must not enter; *says* begins with the place."""

    content: bytes
    says: tuple[str, ...]
    name: str = "INV_1.csv"
    edit: tuple[str, str] = ("", "")
    good: str = INVOICES


TRAILER = (
    '{kind: delimited, delimiter: ";"}',
    '{kind: delimited, delimiter: ";", trailer: {prefix: "TRL;", count: 1}}',
)
BAD_FILES = {
    "wrong encoding": BadFile(
        INVOICES.encode() + b"4;C1;Schl\xfcssel;1;1;EUR\n", ("INV_1.csv:6:10: ", "not UTF-8", "such as cp1252")
    ),
    "missing column": BadFile(
        INVOICES.replace("SKU", "ARTICLE").encode(), ("INV_1.csv:1: ", "missing column 'SKU'", "ARTICLE")
    ),
    "unbalanced quote": BadFile(INVOICES.replace("2;C2;P1", '2;C2;"P1').encode(), ("INV_1.csv:4:6: ", "never closed")),
    "quote in the middle": BadFile(INVOICES.replace("2;C2;P1", '2;C2;P"1').encode(), ("INV_1.csv:4:7: ", "quote")),
    "short row": BadFile(
        INVOICES.replace("2;C2;P1;1;", "2;C2;P1;").encode(), ("INV_1.csv:4: ", "5 fields instead of 6")
    ),
    "long row": BadFile(INVOICES.replace("2;C2;P1;", "2;C2;P1;;").encode(), ("INV_1.csv:4: ", "7 fields instead of 6")),
    "blank line": BadFile((INVOICES + "\n").encode(), ("INV_1.csv:6: ", "blank")),
    "two headers": BadFile((INVOICES + HEADER).encode(), ("INV_1.csv:6: ", "header")),
    "same column twice": BadFile(
        INVOICES.replace("QTY", "SKU").encode(), ("INV_1.csv:1: ", "columns 3 and 4 have the same name")
    ),
    "nul": BadFile(INVOICES.replace("C2", "C\0").encode(), ("INV_1.csv:4:4: ", "U+0000")),
    "empty file": BadFile(b"", ("INV_1.csv: ", "empty")),
    "truncated gzip": BadFile(
        gzip.compress(INVOICES.encode())[:-9], ("INV_1.csv.gz: ", "ends before its end mark"), name="INV_1.csv.gz"
    ),
    "corrupt gzip": BadFile(
        gzip.compress(INVOICES.encode())[:-8] + bytes(8), ("INV_1.csv.gz: ", "corrupt"), name="INV_1.csv.gz"
    ),
    "wrong trailer count": BadFile(
        (INVOICES + "TRL;9;;;;\n").encode(),
        ("INV_1.csv:6: ", "counts 9, the file has 4"),
        edit=TRAILER,
        good=INVOICES + "TRL;4;;;;\n",
    ),
    "missing trailer": BadFile(
        INVOICES.encode(), ("INV_1.csv:5: ", "not the trailer"), edit=TRAILER, good=INVOICES + "TRL;4;;;;\n"
    ),
}


PLAIN_FILES = {name: bad for name, bad in BAD_FILES.items() if not bad.edit[0]}


def test_bad_files_never_enter(site: Site) -> None:
    """A damaged file is refused as a whole with exit 4 and its place, the others go on; mended it is delivered."""
    bad_files_never_enter(site, PLAIN_FILES)


@pytest.mark.nightly
def test_files_with_bad_trailers_never_enter(site: Site) -> None:
    """A file whose trailer is wrong is refused as a whole with exit 4 and its place; mended it is delivered."""
    bad_files_never_enter(site, {name: bad for name, bad in BAD_FILES.items() if bad.edit[0]})


def bad_files_never_enter(site: Site, files: Mapping[str, BadFile]) -> None:
    """One after another, in files of the same layout."""
    ((edit, good),) = {(bad.edit, bad.good) for bad in files.values()}
    if edit[0]:
        site.edit(*edit, within="invoices:")
    site.init()
    site.fill()
    (site.out / "INV_1.csv").unlink()
    for name, bad in files.items():
        path = site.export(bad.name, bad.content)
        result = site.sync()
        assert result.code == 4, (name, result)
        assert f"wms.invoices: {bad.says[0]}" in result.err, name
        for words in bad.says[1:]:
            assert words in result.err, name
        assert site.names("customer") == ["wms:C1", "wms:C2"]
        assert not site.effects("invoice"), name
        path.unlink()
    site.export("INV_1.csv", good)
    assert site.sync("wms.invoices").code == 0
    site.assert_everything_once()


def test_a_refused_file_leaves_no_copy(site: Site) -> None:
    """The copy of a file that was refused is gone at the latest when its mended form is through."""
    site.init()
    site.fill()
    site.export("INV_1.csv", BAD_FILES["short row"].content)
    assert site.sync().code == 4
    site.export("INV_1.csv", INVOICES)
    assert site.sync().code == 0
    assert site.spooled() == []


def test_a_good_file_beside_a_bad_one_waits(site: Site) -> None:
    """Where one file of a stream is refused none enters, and both do once it is mended."""
    site.init()
    site.fill()
    more = HEADER + "4;C1;P1;7;1.50;EUR\n"
    site.export("INV_2.csv", more.replace("7;", ""))
    assert site.sync().code == 4
    assert not site.effects("invoice")
    site.export("INV_2.csv", more)
    assert site.sync().code == 0
    site.assert_everything_once(INVOICES + more.removeprefix(HEADER))


def test_a_file_that_grows_while_it_is_read(site: Site) -> None:
    """A file that is written to while it is fetched is refused with exit 4, and taken in whole by the next sync."""
    site.init()
    site.fill()
    more = "4;C1;P1;7;1.50;EUR\n"

    def grow(path: Path) -> None:
        with path.open("a") as file:
            file.write(more)

    site.sftp.faults.while_read["out/INV_1.csv"] = grow
    result = site.sync()
    assert result.code == 4
    assert "file 'out/INV_1.csv' grew from" in result.err
    assert not site.effects("invoice")
    assert site.sync().code == 0
    site.assert_everything_once(INVOICES + more)


def test_a_file_that_ends_early(site: Site) -> None:
    """A file of which fewer bytes come than were announced is refused with exit 4."""
    site.init()
    site.fill()
    site.sftp.faults.end_early["out/INV_1.csv"] = len(HEADER) + 19
    result = site.sync()
    assert result.code == 4
    assert "file 'out/INV_1.csv' ended after" in result.err
    assert not site.effects("invoice")
    site.sftp.faults.end_early.clear()
    assert site.sync().code == 0
    site.assert_everything_once()


def test_a_file_that_nobody_may_read(site: Site) -> None:
    """A file without read permission ends with exit 3 and its name."""
    site.init()
    site.fill()
    site.sftp.faults.deny.add("out/INV_1.csv")
    result = site.sync()
    assert result.code == 3
    assert "permission denied while reading 'out/INV_1.csv'" in result.err
    site.sftp.faults.deny.clear()
    assert site.sync().code == 0
    site.assert_everything_once()


def test_unfinished_names_are_not_looked_at(site: Site) -> None:
    """Files under names that tools use while they upload are left alone until they have their own."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    suffixes = [".tmp", ".temp", ".part", ".partial", ".filepart", ".FILEPART", ".uploading", ".crdownload", "~"]
    parts = [site.export(f"CUST_2.csv{suffix}", "CUSTNO;NAME\nC3;half a na") for suffix in suffixes]
    assert site.sync("wms.customers").code == 0
    assert site.names("customer") == ["wms:C1", "wms:C2"]
    for part in parts:
        part.unlink()
    site.export("CUST_2.csv", "CUSTNO;NAME\nC3;half a name\n")
    assert site.sync("wms.customers").code == 0
    assert site.names("customer") == ["wms:C1", "wms:C2", "wms:C3"]


def test_a_header_without_rows_is_accepted(site: Site) -> None:
    """An append file with a valid header and no rows is a quiet day, not a fault."""
    site.init()
    site.export("CUST_1.csv", "CUSTNO;NAME\n")
    result = site.sync("wms.customers")
    assert result.code == 0
    assert result.rows("customers")["read"] == 0


# ---- snapshots


def test_an_empty_snapshot_is_refused(site: Site) -> None:
    """A snapshot without rows is no evidence that nothing is there: exit 4, and the next full one is taken."""
    site.edit(*SNAPSHOT[:2], within=SNAPSHOT[2])
    site.init()
    site.export("PROD_20260101.csv", "SKU;NAME;PRICE\n")
    result = site.sync("wms.products")
    assert result.code == 4
    assert "wms.products: PROD_20260101.csv: is a snapshot without rows" in result.err
    assert not site.effects()
    site.export("PROD_20260101.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    assert site.names("product") == ["wms:P1", "wms:P2"]


def test_a_stale_snapshot_is_refused(site: Site) -> None:
    """A snapshot older by its name than the newest one taken in is refused with both names; a fresh one is taken."""
    site.edit(*SNAPSHOT[:2], within=SNAPSHOT[2])
    site.init()
    new = site.export("PROD_20260105.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    new.unlink()
    old = site.export("PROD_20260104.csv", PRODUCTS.replace("1.50", "9.99"))
    result = site.sync("wms.products")
    assert result.code == 4
    assert "PROD_20260104.csv: is older than the snapshot 'PROD_20260105.csv' taken in before by its name" in result.err
    old.unlink()
    site.export("PROD_20260106.csv", PRODUCTS.replace("1.50", "1.75"))
    assert site.sync("wms.products").code == 0
    assert [e["operation"] for e in site.effects()] == ["create", "create", "update"]


def test_older_snapshots_beside_the_newest_are_left_alone(site: Site) -> None:
    """A server that keeps last night's snapshot beside tonight's is the usual case, on every run."""
    site.edit(*SNAPSHOT[:2], within=SNAPSHOT[2])
    site.init()
    site.export("PROD_20260104.csv", PRODUCTS.replace("1.50", "9.99"))
    site.export("PROD_20260105.csv", PRODUCTS)
    assert site.sync("wms.products").code == 0
    again = site.sync("wms.products")
    assert again.code == 0, again.err
    assert [e["operation"] for e in site.effects()] == ["create", "create"]


@pytest.mark.nightly
def test_a_snapshot_may_return_to_an_earlier_content(site: Site) -> None:
    """A newer snapshot whose bytes are those of an older one is read: a price that falls back is a change."""
    site.edit(*SNAPSHOT[:2], within=SNAPSHOT[2])
    site.init()
    for day, text in enumerate([PRODUCTS, PRODUCTS.replace("1.50", "1.75"), PRODUCTS], 1):
        site.export(f"PROD_2026010{day}.csv", text)
        assert site.sync("wms.products").code == 0
    prices = [effect["body"]["unitPrice"] for effect in site.effects() if effect["body"]["sku"] == "P1"]
    assert [str(price) for price in prices] == ["1.5", "1.75", "1.5"]


# ---- records


def dead_letter(site: Site, stream: str, key: str) -> dict[str, str]:
    """What is told of the one dead letter there is."""
    (found,) = site.listed("--state", "rejected")
    assert (found["stream"], found["key"]) == (f"wms.{stream}", key)
    return {name: str(value) for name, value in found.items()}


def mend(site: Site, text: str = INVOICES) -> None:
    """Write the invoices anew under another name, sync, and expect that nothing is left."""
    site.export("INV_1.csv", text)
    result = site.sync("wms.invoices")
    assert result.code == 0, result
    assert site.listed() == []
    site.assert_everything_once(text)


@dataclass(frozen=True)
class BadRecord:
    """An invoice gone wrong: its lines without its number, and what its dead letter says; *row* is the wrong one."""

    lines: tuple[str, ...]
    code: str
    pointer: str
    row: int = 0


LAST = "3;C1;P2;100;0.2475;EUR\n"
GOOD = "C2;P1;1;1.50;EUR"
BAD_RECORDS = {
    "quantity is no number": BadRecord(("C2;P1;one;1.50;EUR",), "bad_value", "QTY"),
    "decimal comma": BadRecord(("C2;P1;1;1,50;EUR",), "bad_value", "PRICE"),
    "five decimals": BadRecord(("C2;P1;1;1.50001;EUR",), "bad_value", "PRICE"),
    "sixteen digits": BadRecord(("C2;P1;1234567890123456;1.50;EUR",), "bad_value", "QTY"),
    "exponent": BadRecord(("C2;P1;1e3;1.50;EUR",), "bad_value", "QTY"),
    "not a number": BadRecord(("C2;P1;NaN;1.50;EUR",), "bad_value", "QTY"),
    "blank between digits": BadRecord(("C2;P1;1 0;1.50;EUR",), "bad_value", "QTY"),
    "second line": BadRecord((GOOD, "C2;P1;?;1.50;EUR"), "bad_value", "QTY", row=1),
    "no price": BadRecord(("C2;P1;1;;EUR",), "invalid_draft", "/items/0/unitPrice"),
    "no such currency": BadRecord(("C2;P1;1;1.50;XYZ",), "invalid_draft", "/currency"),
    "currency in small letters": BadRecord(("C2;P1;1;1.50;eur",), "invalid_draft", "/currency"),
    "no currency": BadRecord(("C2;P1;1;1.50;",), "invalid_draft", "/currency"),
    "no customer": BadRecord((";P1;1;1.50;EUR",), "invalid_draft", "/customerId"),
    "customers disagree": BadRecord((GOOD, "C1;P2;1;1.50;EUR"), "rows_disagree", "CUSTNO", row=1),
    "currencies disagree": BadRecord((GOOD, GOOD, "C2;P2;1;1.50;USD"), "rows_disagree", "CURRENCY", row=2),
}


def test_bad_records_are_dead_letters(site: Site) -> None:
    """Records that cannot be mapped are told with reason, place and column; the others go through, mended they do."""
    site.init()
    site.fill()
    lines: list[str] = []
    told: dict[str, tuple[str, str, str]] = {}
    for name, bad in BAD_RECORDS.items():
        at = f"INV_1.csv:{5 + len(lines) + bad.row}"
        lines += [f"{name};{line}\n" for line in bad.lines]
        told[quote(name)] = (bad.code, bad.pointer, at)
    good = INVOICES.removesuffix(LAST)
    site.export("INV_1.csv", good + "".join(lines) + LAST)
    result = site.sync()
    assert result.code == 1
    assert result.records("invoices") == {"read": 3 + len(told), "created": 3, "rejected": len(told)}
    found = site.listed("--state", "rejected")
    assert {item["key"]: (item["why"].partition(":")[0], item["pointer"], item["at"]) for item in found} == told
    site.assert_everything_once()
    mended = good + "".join(f"{name};C2;P1;1;1.50;EUR\n" for name in BAD_RECORDS) + LAST
    mend(site, mended)


def test_decimals_of_a_currency_without(site: Site) -> None:
    """A price with decimals in a currency that has none is pointed to, not the whole invoice."""
    site.init()
    site.fill()
    site.export("INV_1.csv", INVOICES.replace("2;C2;P1;1;1.50;EUR", "2;C2;P1;1;1.50;JPY"))
    assert site.sync().code == 1
    found = dead_letter(site, "invoices", "2")
    assert found["why"].startswith("invalid_draft: ")
    assert found["pointer"] == "/items/0/unitPrice"
    mend(site)


def test_digits_of_another_script(site: Site) -> None:
    """A number in digits other than 0 to 9 is no decimal."""
    site.init()
    site.export("PROD_1.csv", "SKU;NAME;PRICE\nP1;x;١٢\n")
    assert site.sync("wms.products").code == 1
    assert dead_letter(site, "products", "P1")["why"].startswith("bad_value: ")


@pytest.mark.nightly
def test_a_refused_record_that_comes_again_is_counted_and_not_sent(site: Site) -> None:
    """A dead letter that comes again unchanged in another file is rejected again, and the run does not look clean."""
    site.init()
    site.fill()
    bad = INVOICES.replace("2;C2;P1;1;", "2;C2;P1;one;")
    site.export("INV_1.csv", bad)
    site.sync()
    site.export("INV_2.csv", bad + "4;C1;P1;1;1;EUR\n")
    result = site.sync()
    assert result.code == 1
    assert result.records("invoices") == {"read": 4, "unchanged": 2, "created": 1, "rejected": 1}
    dead_letter(site, "invoices", "2")


@pytest.mark.nightly(but=["empty"])
@pytest.mark.parametrize("key", ["", '""'], ids=["empty", "quoted empty"])
def test_a_row_without_key(site: Site, key: str) -> None:
    """A row that names no record is a dead letter key_missing with its line; mended it goes through."""
    site.init()
    site.fill()
    site.export("INV_1.csv", INVOICES.replace("2;C2", f"{key};C2"))
    result = site.sync()
    assert result.code == 1
    assert result.rows("invoices")["rejected"] == 1
    assert result.records("invoices") == {"read": 2, "created": 2}
    found = dead_letter(site, "invoices", "")
    assert found["why"].startswith("key_missing: ")
    assert (found["pointer"], found["at"]) == ("INVNO", "INV_1.csv:4")
    site.export("INV_1.csv", INVOICES)
    assert site.sync().code == 0
    site.assert_everything_once()


@pytest.mark.nightly
def test_a_mended_row_without_key_leaves_the_list(site: Site) -> None:
    """A file that comes again under its name with the key filled in takes its dead letter away."""
    site.init()
    site.fill()
    site.export("INV_1.csv", INVOICES.replace("2;C2", ";C2"))
    site.sync()
    mend(site)


def test_an_unknown_product_makes_an_invoice_wait(site: Site) -> None:
    """An invoice of a product that is not there yet waits and says for what; with the product it goes, once."""
    site.init()
    site.fill()
    site.export("PROD_1.csv", PRODUCTS.replace("P2;Nut;0.25\n", ""))
    result = site.sync()
    assert result.code == 1
    assert result.records("invoices") == {"read": 3, "created": 1, "carried_on": 2}
    waiting = site.listed("--state", "waiting")
    assert [(w["key"], w["why"], w["at"]) for w in waiting] == [
        ("1", "waits for product wms:P2", "INV_1.csv:2"),
        ("3", "waits for product wms:P2", "INV_1.csv:5"),
    ]
    still = site.sync()
    assert still.code == 1
    assert still.records("invoices") == {"carried_over": 2, "carried_on": 2}
    site.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Nut;0.25\n")
    (site.out / "INV_1.csv").unlink()  # what waits needs its file no more
    result = site.sync()
    assert result.code == 0
    assert result.records("invoices") == {"carried_over": 2, "created": 2}
    assert site.listed() == []
    site.assert_everything_once()
    assert site.sync().code == 0
    site.assert_everything_once()


def test_a_waiting_record_is_replaced_by_its_newer_reading(site: Site) -> None:
    """A waiting invoice that is corrected waits no longer in its old form, and goes in the new one alone."""
    site.init()
    site.fill()
    site.export("INV_2.csv", HEADER + "4;C1;P3;1;1;EUR\n")
    assert site.sync().code == 1
    site.export("INV_3.csv", HEADER + "4;C1;P2;1;1;EUR\n")
    result = site.sync()
    assert result.code == 0
    assert result.records("invoices") == {"carried_over": 1, "read": 1, "replaced": 1, "created": 1}
    site.assert_everything_once(INVOICES + "4;C1;P2;1;1;EUR\n")


def test_a_delivered_invoice_is_written_once(site: Site) -> None:
    """A corrected line of a delivered invoice is never sent: it is a dead letter until the first content comes back."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    changed = INVOICES.replace("2;C2;P1;1;", "2;C2;P1;3;")
    for name, text in {"INV_2.csv": changed, "INV_3.csv": changed + "4;C1;P1;1;1;EUR\n"}.items():
        site.export(name, text)
        result = site.sync()
        assert result.code == 1
        assert result.records("invoices")["rejected"] == 1
        assert dead_letter(site, "invoices", "2")["why"].startswith("changed_after_delivery: ")
    everything = INVOICES + "4;C1;P1;1;1;EUR\n"
    site.assert_everything_once(everything)
    site.export("INV_4.csv", everything)
    result = site.sync()
    assert result.code == 0
    assert result.records("invoices") == {"read": 4, "unchanged": 4}
    assert site.listed() == []
    site.assert_everything_once(everything)


@pytest.mark.nightly
def test_lines_in_another_order_are_no_change(site: Site) -> None:
    """A delivered invoice whose lines come in another order is unchanged."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    first, *lines = INVOICES.splitlines(keepends=True)
    site.export("INV_2.csv", first + "".join(reversed(lines)))
    result = site.sync()
    assert result.code == 0
    assert result.records("invoices") == {"read": 3, "unchanged": 3}
    site.assert_everything_once()


# ---- keys


def test_the_last_of_a_key_wins(site: Site) -> None:
    """Where one key stands several times in a file the last row counts, and the others are counted as superseded."""
    site.init()
    site.export("PROD_1.csv", "SKU;NAME;PRICE\nP1;Old;1\nP2;Nut;2\nP1;Older;3\nP1;Bolt;4\n")
    result = site.sync("wms.products")
    assert result.code == 0
    assert result.rows("products") == {"read": 4, "filtered": {}, "superseded": 2, "rejected": 0, "in_records": 2}
    assert sorted(e["body"]["name"] for e in site.effects()) == ["Bolt", "Nut"]


@pytest.mark.nightly(but=["backwards"])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
def test_of_equally_new_rows_the_last_one_wins(site: Site, backwards: bool) -> None:
    """With order_by the newest row wins, wherever it stands, and between equally new ones that of the newer file."""
    site.edit("key: [SKU]", "key: [SKU]\n        order_by: [AT]")
    site.init()
    rows = ["P1;Bolt;1;2026-01-02\n", "P1;Screw;2;2026-01-02\n", "P1;Old;3;2026-01-01\n"]
    for number, row in enumerate(reversed(rows) if backwards else rows):
        site.export(f"PROD_{number}.csv", f"SKU;NAME;PRICE;AT\n{row}")
    result = site.sync("wms.products")
    assert result.code == 0
    assert result.rows("products")["superseded"] == 2
    (effect,) = site.effects()
    assert effect["body"]["name"] == ("Bolt" if backwards else "Screw")


ODD_KEYS = ["a:b", "a|b", "a%3Ab", "a b", "Ä/ß", "鍵", "🔑", "a+b", "a.b", "A", "a", "%", ":", "..", "0017", "17"]


def test_odd_keys_survive(site: Site) -> None:
    """Keys with colons, bars, percent signs, blanks and any script stay apart, and are found by who refers to them."""
    site.init()
    site.export("CUST_1.csv", "CUSTNO;NAME\n" + "".join(f"{key};{PERSON}\n" for key in ODD_KEYS))
    site.export("PROD_1.csv", "SKU;NAME;PRICE\n" + "".join(f"{key};x;1\n" for key in ODD_KEYS))
    invoices = HEADER + "".join(f"{key};{key};{key};{n};1.5;EUR\n" for n, key in enumerate(ODD_KEYS, 1))
    site.export("INV_1.csv", invoices)
    assert site.sync().code == 0
    assert len(set(site.names("product"))) == len(ODD_KEYS)
    assert sorted(e["body"]["sku"] for e in site.effects("product")) == sorted(ODD_KEYS)
    assert "wms:a%3Ab" in site.names("product")
    assert site.invoices() == expected(invoices)
    site.export("INV_2.csv", invoices + "new;a;a;1;1;EUR\n")
    result = site.sync()
    assert result.records("invoices") == {"read": len(ODD_KEYS) + 1, "unchanged": len(ODD_KEYS), "created": 1}


def test_parts_of_a_key_do_not_run_together(site: Site) -> None:
    """Keys of two columns stay apart, even where their parts hold what stands between them."""
    site.edit("key: [SKU]", "key: [SKU, NAME]")
    site.init()
    site.export("PROD_1.csv", "SKU;NAME;PRICE\na|b;c;1\na;b|c;2\na%7Cb;c;3\n")
    assert site.sync("wms.products").code == 0
    assert site.names("product") == ["wms:a%257Cb|c", "wms:a%7Cb|c", "wms:a|b%7Cc"]


def test_an_odd_key_can_be_shown_as_it_is_written(site: Site) -> None:
    """``records show`` takes a key as it stands in the file, which is what its user has before him."""
    site.init()
    site.export("PROD_1.csv", "SKU;NAME;PRICE\na b:c;x;?\n")
    assert site.sync("wms.products").code == 1
    assert site.run("records", "show", "wms.products", "a b:c").code == 0


# ---- what is shown


@pytest.mark.nightly(but=["text"])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_data_is_shown_on_request_alone(site: Site, form: list[str]) -> None:
    """``records list`` and ``show`` tell no data of a dead letter; ``show --raw`` does."""
    site.init()
    site.export("CUST_1.csv", f"CUSTNO;NAME\nC1;{PERSON}{'x' * 500}\n")
    assert site.sync("wms.customers").code == 1
    assert "invalid_draft" in site.run("records", "list", *form).out
    shown = site.run("records", "show", "wms.customers", "C1", *form)
    assert shown.code == 0
    assert "invalid_draft" in shown.out
    raw = site.run("records", "show", "wms.customers", "C1", "--raw", *form, raw=True)
    assert PERSON in raw.out


@pytest.mark.nightly
def test_data_of_a_waiting_record_is_shown_on_request_alone(site: Site) -> None:
    """``records show`` tells what a waiting record waits for, and its data only with --raw."""
    site.init()
    site.export("INV_1.csv", HEADER + "2;C1;P1;77777;1;EUR\n")
    assert site.sync("wms.invoices").code == 1
    shown = site.run("records", "show", "wms.invoices", "2")
    assert "customer wms:C1, product wms:P1" in shown.out
    assert "77777" not in shown.out
    assert "77777" in site.run("records", "show", "wms.invoices", "2", "--raw").out


def test_a_record_that_is_not_there_cannot_be_shown(site: Site) -> None:
    """Asking for a record that got through, or never came, is a wrong usage that names both parts."""
    site.init()
    result = site.run("records", "show", "wms.customers", "C9")
    assert result.code == 2
    assert "'C9' of stream 'wms.customers'" in result.err


def test_a_plan_keeps_personal_fields_to_itself(site: Site) -> None:
    """A plan says that a personal field changes, and not from what to what."""
    site.init()
    site.export("CUST_1.csv", CUSTOMERS)
    assert site.sync("wms.customers").code == 0
    site.export("CUST_2.csv", f"CUSTNO;NAME\nC1;{PERSON} Meise\n")
    result = site.run("plan", "wms.customers", "--json")
    assert result.code == 0
    (change,) = result.json["shown"]
    assert (change["do"], change["key"], list(change["changes"])) == ("update", "C1", ["name"])


@pytest.mark.nightly
def test_runs_show_why_they_ended(site: Site) -> None:
    """``crossdock show`` tells the place of what was refused, without data."""
    site.init()
    site.fill()
    site.export("INV_1.csv", BAD_FILES["short row"].content)
    site.sync()
    shown = site.run("show", "1")
    assert shown.code == 0
    assert "INV_1.csv:4: 5 fields instead of 6" in shown.out


def test_nothing_is_shown_of_an_unreadable_key(site: Site) -> None:
    """A private key that cannot be read is refused without a word of it."""
    key = site.folder / "key"
    key.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PASSWORD}\n-----END OPENSSH PRIVATE KEY-----\n")
    key.chmod(0o600)
    site.edit("password: env:WMS_PASSWORD", "private_key: file:key")
    site.init()
    result = site.run("sync")
    assert result.code == 2
    assert "private_key cannot be read" in result.err


def test_two_syncs_at_once(site: Site) -> None:
    """A sync that begins while another one works on the same state stops with exit 3, and the first one goes on."""
    site.init()
    site.fill()
    second: list[int] = []

    def start_another(_: Path) -> None:
        second.append(site.process("sync").code)

    site.sftp.faults.while_read["out/INV_1.csv"] = start_another
    assert site.sync().code == 0
    assert second == [3]
    site.assert_everything_once()
