"""The sync of a warehouse whose files are in a folder: two nights, a file that grows, a plan that is silent."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.e2e.socket_guard_runs import contents, tree
from tests.e2e.warehouse import INVOICES, Site, ask, expected

from crossdock.config.project import project
from crossdock.delta.fingerprint import key_hashes
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.state import Scope
from crossdock.values.clock import SystemClock

GUARD = Path(__file__).with_name("guard.py")
MORE = "4;C1;P1;7;1.50;EUR\n"


@pytest.fixture
def depot(site: Site) -> Site:
    """The site, whose config names the folder with its files in place of the server before it."""
    serve_folder(site)
    site.init()
    return site


def serve_folder(site: Site) -> None:
    server = re.search(r"kind: sftp_warehouse\n.*?(?=    settle_s:)", site.config.read_text(), re.DOTALL)
    assert server
    site.edit(server[0], "kind: folder_warehouse\n    path: served\n")


def requests(site: Site) -> int:
    """How many requests ever came to the platform, whoever sent them."""
    answer = ask(urlsplit(site.platform.base_url).netloc, "GET", "/_sandbox/requests?limit=1")
    return int(json.loads(answer.body)["total"])


def test_two_nights(depot: Site) -> None:
    """The first night brings everything once; the second, with the same rows and some more, just what is new."""
    depot.fill()
    assert depot.sync().code == 0
    depot.assert_everything_once()

    header, *lines = INVOICES.splitlines(keepends=True)
    depot.export("INV_2.csv", "".join((header, *lines[3:], *lines[:3], MORE)))
    depot.export("PROD_2.csv", "SKU;NAME;PRICE\nP2;Nut;0.30\nP1;Bolt;1.50\n")
    before = len(depot.effects())
    night = depot.sync()

    assert night.code == 0, night.err
    assert night.records("invoices") == {"read": 4, "unchanged": 3, "created": 1}
    assert night.records("products") == {"read": 2, "unchanged": 1, "updated": 1}
    assert [effect["operation"] for effect in depot.effects()[before:]] == ["update", "create"]
    assert depot.invoices() == expected(INVOICES + MORE)
    assert depot.spooled() == []
    assert not depot.sftp.logins


def test_the_key_index_keeps_the_order_of_the_exports(depot: Site) -> None:
    """However a snapshot lists its records, from the second night on they are found in that order, new ones too."""
    depot.edit('mode: append\n        files: "out/PROD_*"', 'mode: snapshot\n        files: "out/PROD_*"')
    header = "SKU;NAME;PRICE\n"
    for night, skus in enumerate(("CABD", "DCAB", "DECAFB"), 1):
        depot.export(f"PROD_{night}.csv", header + "".join(f"{sku};Part {sku};1.50\n" for sku in skus))
        assert depot.sync("wms.products").code == 0
        with closing(project.load(depot.config).open_state(read_only=True)) as state:
            known = state.key_index_frame_of_scope(Scope("platform", "product", "wms"))
        hashes = key_hashes(list(skus))
        assert night == 1 or known[KEY_HASH].to_list() == [hashes[sku] for sku in skus]


def test_a_warehouse_that_moves_from_a_server_into_a_folder(site: Site) -> None:
    """What came by SFTP is known in a copy of the exports: not even read again. What is new is taken from there."""
    site.init()
    site.fill()
    assert site.sync().code == 0
    assert len(site.sftp.logins) > 0
    serve_folder(site)
    logins = len(site.sftp.logins)

    night = site.sync()
    assert night.code == 0, night.err
    assert [night.records(stream) for stream in ("customers", "products", "invoices")] == [{}, {}, {}]
    site.export("INV_2.csv", INVOICES.splitlines(keepends=True)[0] + MORE)
    assert site.sync().records("invoices") == {"read": 1, "created": 1}
    site.assert_everything_once(INVOICES + MORE)
    assert len(site.sftp.logins) == logins


@pytest.mark.nightly(but=["0"])
@pytest.mark.parametrize("clock", [0, -120, -86_400, 86_400])
def test_a_file_that_still_grows_is_refused(depot: Site, monkeypatch: pytest.MonkeyPatch, clock: int) -> None:
    """A file that is longer at the second look ends with exit 4, whatever its server's clock says."""
    depot.fill()
    path, now = depot.out / "INV_1.csv", int(time.time()) + clock
    os.utime(path, (now, now))
    growing = [MORE]

    def grow(*_: object) -> None:
        if growing:
            with path.open("a") as file:
                file.write(growing.pop())
            os.utime(path, (now + 1, now + 1))

    assert depot.sync("wms.customers", "wms.products").code == 0
    monkeypatch.setattr(SystemClock, "sleep", grow)
    result = depot.sync()
    assert result.code == 4
    assert "out/INV_1.csv: is still being written" in result.err
    assert not depot.effects("invoice")
    assert depot.sync().code == 0
    depot.assert_everything_once(INVOICES + MORE)


def test_a_folder_that_is_away_costs_one_night(depot: Site) -> None:
    """An unmounted share ends with exit 2, its path and what to do; once it is there, all goes through."""
    depot.fill()
    (depot.folder / "served").rename(depot.folder / "away")
    result = depot.sync()
    assert result.code == 2
    assert f"{depot.folder / 'served'}: there is no such folder" in result.err
    assert "mount the share" in result.err
    assert not depot.effects()
    (depot.folder / "away").rename(depot.folder / "served")
    assert depot.sync().code == 0
    depot.assert_everything_once()


def test_a_plan_is_silent(depot: Site, tmp_path: Path) -> None:
    """A plan opens no connection at all, and leaves the platform, the state, the folder and the disk as they were."""
    depot.fill()
    temporary, notes = tmp_path / "temporary", tmp_path / "notes"
    temporary.mkdir()

    def surroundings() -> dict[str, Any]:
        state = contents(depot.folder / "state.db")
        return {"requests": requests(depot), "state": state, "served": tree(depot.folder / "served")}

    before = surroundings()
    done = subprocess.run(
        [sys.executable, "-P", GUARD, "0", notes, "-C", depot.config, "plan", "--detailed-exitcode", "--json"],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 10, done.stderr
    assert json.loads(done.stdout)["operations"] == {"create": 7}
    assert notes.read_text() == ""
    assert surroundings() == before
    assert list(temporary.iterdir()) == []
    assert depot.spooled() == []
