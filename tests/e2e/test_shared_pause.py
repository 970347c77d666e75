"""Files that may still grow: one pause for all streams of a run, and a real file that grows on each kind of store."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.warehouse import INVOICES, PRODUCTS, Site

from crossdock.testing.openssh_server import OpenSshServer
from crossdock.values.clock import SystemClock

FOLDER = """\
  depot:
    kind: folder_warehouse
    path: depot
    settle_s: 30
    sources:
      areas: {files: "AREAS_*"}
    streams:
      bins:
        mode: snapshot
        files: "BINS_*"
        key: [BIN]
        lookup: {areas: {source: areas, on: {AREA: AREA}}}
        resource: warehouse_bin
        map: {code: BIN, warehouse: {const: HAM1}, zone: areas.ZONE}
"""


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of at least a second that a command makes; none of them takes any time."""
    found: list[float] = []
    monkeypatch.setattr(SystemClock, "sleep", lambda _, seconds: found.append(seconds) if seconds >= 1 else None)
    return found


@pytest.fixture
def stores(site: Site) -> Site:
    """The site, whose files settle for 30 seconds, with a look-up in a folder beside its server."""
    site.edit("settle_s: 0\n", "settle_s: 30\n", within="host_key")
    site.config.write_text(site.config.read_text() + FOLDER)
    (site.folder / "depot").mkdir()
    (site.folder / "depot" / "BINS_1.csv").write_text("BIN,AREA\nA1,A\n")
    (site.folder / "depot" / "AREAS_1.csv").write_text("AREA,ZONE\nA,North\n")
    site.init()
    site.fill()
    return site


@pytest.mark.parametrize("command", ["plan", "sync", "try depot.bins"])
def test_a_command_pauses_once_for_all_streams(stores: Site, pauses: list[float], command: str) -> None:
    """However many streams, look-ups and connections have new files, a command waits once for all of them."""
    stores.run(*command.split(), raw=True)
    assert pauses == [30]


def test_without_new_files_there_is_no_pause(stores: Site, pauses: list[float]) -> None:
    """Of files that are known nothing is waited for, and one session for each stream is enough for new ones."""
    logins = len(stores.sftp.logins)
    assert stores.sync().code == 0
    assert len(stores.sftp.logins) - logins == 3
    assert len(stores.effects()) == 8
    pauses.clear()
    assert stores.sync().code == 0
    assert pauses == []


def test_files_that_grow_are_refused_in_one_pause(stores: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes in the shared pause is refused, whichever stream paused; the others are read."""
    pauses: list[float] = []

    def sleep(_: SystemClock, seconds: float) -> None:
        if seconds >= 1:
            pauses.append(seconds)
            for path in (stores.out / "PROD_1.csv", stores.out / "INV_1.csv", stores.folder / "depot" / "BINS_1.csv"):
                with path.open("a") as file:
                    file.write("\n")

    with monkeypatch.context() as patch:
        patch.setattr(SystemClock, "sleep", sleep)
        result = stores.sync()
    assert result.code == 4
    assert pauses == [30]
    assert result.err.count("is still being written") == 3
    assert [effect["resource"] for effect in stores.effects()] == ["customer", "customer"]


def test_a_file_that_changes_long_after_a_look_gets_a_pause(stores: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is replaced while other streams are read is looked at twice again, and then read."""
    pauses: list[float] = []
    now = SystemClock().monotonic

    def sleep(_: SystemClock, seconds: float) -> None:
        if seconds >= 1:
            pauses.append(seconds)
            if len(pauses) == 1:
                stores.export("INV_1.csv", INVOICES.replace("EUR", "USD"))
                monkeypatch.setattr(SystemClock, "monotonic", lambda _: now() + 3600)

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    assert stores.sync().code == 0
    assert pauses == [30, 30]
    assert {effect["body"]["currency"] for effect in stores.effects("invoice")} == {"USD"}


@contextmanager
def growing(path: Path, text: str) -> Iterator[threading.Event]:
    """Append to *path* again and again, then finish it with *text*."""
    done = threading.Event()

    def grow() -> None:
        while not done.wait(0.05):
            with path.open("a") as file:
                file.write("P9;Washer;0.10\n")
                os.fsync(file.fileno())

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        yield done
    finally:
        done.set()
        writer.join()
        path.write_text(text)


@pytest.mark.nightly(but=["folder"])
@pytest.mark.parametrize("kind", ["folder", "sftp"])
def test_a_file_that_really_grows_is_not_read(site: Site, kind: str, request: pytest.FixtureRequest) -> None:
    """While another process writes a file, a sync with a real pause refuses it; the next one reads it whole."""
    if kind == "folder":
        text = site.config.read_text()
        before = text[text.index("    kind: sftp_warehouse") : text.index("    settle_s: 0\n")]
        site.edit(before, "    kind: folder_warehouse\n    path: served\n")
    else:
        if not OpenSshServer.available():
            pytest.skip("needs OpenSSH")
        server = OpenSshServer(site.folder / "served")
        server.__enter__()
        request.addfinalizer(lambda: server.__exit__(None, None, None))
        site.edit(f"port: {site.sftp.port}", f"port: {server.port}")
        site.edit("user: export", f"user: {server.user}")
        site.edit("password: env:WMS_PASSWORD", "private_key: file:client.key")
        site.edit(site.sftp.fingerprint, server.fingerprint)
        key = site.folder / "client.key"
        key.write_text(server.client_key)
        key.chmod(0o600)
    site.edit("settle_s: 0\n", "settle_s: 1.1\n", within="connections:")
    site.init()
    path = site.export("PROD_1.csv", PRODUCTS)
    with growing(path, PRODUCTS):
        result = site.sync("wms.products")
    assert result.code == 4
    assert "PROD_1.csv: is still being written" in result.err
    assert site.effects() == []
    assert site.sync("wms.products").code == 0
    assert site.names("product") == ["wms:P1", "wms:P2"]
