"""Folders with odd names, links, umasks: what commands write stands where it was asked for, for its owner only."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import Site, open_site

from crossdock.sandbox import SandboxServer
from crossdock.state import PinnedTenant, create_or_upgrade_state, parse_database_url

ODD = "a#b?c=1&mode=rwc%41[x]*é ü"
WATCHED = """
import json, os, stat, sys
from pathlib import Path
from crossdock.state import PinnedTenant, create_or_upgrade_state, parse_database_url

def mode(path):
    return oct(stat.S_IMODE(os.stat(path).st_mode)) if os.path.exists(path) else None

seen = []
sys.addaudithook(lambda event, facts: seen.append(mode(facts[0])) if event == "sqlite3.connect" else None)
os.umask(int(sys.argv[1], 8))
url = parse_database_url("sqlite:///state.db", Path(sys.argv[2]))
create_or_upgrade_state(url, PinnedTenant("http://127.0.0.1:9", "acme"))
print(json.dumps(seen))
"""


@pytest.fixture(params=["a", ODD])
def depot(
    request: pytest.FixtureRequest, tmp_path: Path, platform: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """A site, in a folder of this name, whose warehouse is a folder of it."""
    (tmp_path / request.param).mkdir()
    with open_site(tmp_path / request.param, platform, monkeypatch) as site:
        serve_folder(site)
        site.fill()
        yield site


def modes(folder: Path) -> dict[str, str]:
    """The mode of every file in *folder* and below, but for what the test itself has put there."""
    found = (path for path in folder.rglob("*") if path.is_file() and "served" not in path.parts)
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in found if path.name != "crossdock.yaml"}


@pytest.mark.nightly(but=["a"])
def test_a_folder_may_have_any_name(depot: Site, tmp_path: Path) -> None:
    """All commands work in a folder whose name has #, ?, % and brackets, and nothing is made outside of it."""
    depot.init()
    assert depot.run("plan", "--json").json["operations"] == {"create": 7}
    assert depot.run("plan", "-o", str(depot.folder / "tonight.plan")).code == 0
    assert depot.run("apply", str(depot.folder / "tonight.plan")).code == 0
    depot.assert_everything_once()
    assert depot.run("check").code == 0
    assert depot.run("runs", "--json").json[0]["status"] == "done"
    assert depot.run("show", "1", "-o", str(depot.folder / "report.html")).code == 0
    assert depot.run("state", "stats", "--json").code == 0
    assert depot.run("bindings", "export").out.count("\n") == 8
    (tmp_path / "shown.yaml").write_text(depot.run("config", "show").out)
    assert depot.run("-C", str(tmp_path / "shown.yaml"), "plan", "--json").json["operations"] == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([depot.folder.name, "shown.yaml"])
    assert {path.name.partition("-")[0] for path in depot.folder.iterdir()} == {
        "crossdock.yaml", "report.html", "served", "state.db", "state.db.keys", "state.db.lock", "state.db.spool",
        "tonight.plan",
    }  # fmt: skip


def test_what_is_written_is_for_its_owner_only(depot: Site) -> None:
    """Under a umask that forbids nothing, state, lock, key index, plan and report have mode 0600."""
    before = os.umask(0)
    try:
        depot.init()
        assert depot.run("plan", "-o", str(depot.folder / "tonight.plan")).code == 0
        assert depot.sync().code == 0
        assert depot.run("show", "1", "-o", str(depot.folder / "report.html")).code == 0
    finally:
        os.umask(before)
    found = modes(depot.folder)
    assert {"state.db", "state.db.lock", "tonight.plan", "report.html"} < set(found)
    assert sum(name.endswith(".arrow") for name in found) == 3
    assert set(found.values()) == {"0o600"}


@pytest.mark.nightly(but=["0"])
@pytest.mark.parametrize("umask", ["0", "777"])
def test_a_state_is_never_open_to_others(tmp_path: Path, umask: str) -> None:
    """When SQLite opens a new state it is there already, with mode 0600: others may read it at no moment."""
    command = [sys.executable, "-c", WATCHED, umask, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout) == ["0o600"]
    assert modes(tmp_path) == {"state.db": "0o600"}


def test_a_log_of_a_state_is_for_its_owner_only(tmp_path: Path) -> None:
    """The files that SQLite keeps beside a database in use have its mode; a shared bucket's too."""
    before = os.umask(0)
    try:
        for name in ("state.db", "bucket.db"):
            (tmp_path / f"link-to-{name}").symlink_to(name)
        create_or_upgrade_state(
            parse_database_url("sqlite:///link-to-state.db", tmp_path), PinnedTenant("http://127.0.0.1:9", "acme")
        )
        script = "import sys; exec(sys.stdin.read())"
        held = (
            "from pathlib import Path\nfrom crossdock.values.clock import SystemClock\n"
            "from crossdock.pacing.token_bucket import LimitEstimate\n"
            "from crossdock.state import PinnedTenant, SharedBucket, State, parse_database_url\n"
            f"folder = Path({str(tmp_path)!r})\n"
            "bucket = SharedBucket(parse_database_url('sqlite:///link-to-bucket.db', folder), SystemClock(), 'b',\n"
            "    lambda known: known or LimitEstimate().with_capped_rate(1.0, 'set').with_capped_burst(1, 'set'))\n"
            "url = parse_database_url('sqlite:///state.db', folder)\n"
            "state = State(url, PinnedTenant('http://127.0.0.1:9', 'acme'))\n"
            "with state.hold_run_lease('x'):\n"
            "    print({p.name: oct(p.stat().st_mode & 0o777) for p in folder.iterdir()})\n"
        )
        told = subprocess.run([sys.executable, "-c", script], input=held, capture_output=True, text=True, check=True)
    finally:
        os.umask(before)
    found = eval(told.stdout)
    assert {"state.db", "state.db-wal", "state.db-shm", "state.db.lock", "bucket.db", "bucket.db-wal"} <= set(found)
    assert set(found.values()) == {"0o600"}


def test_a_plan_is_not_written_through_a_link(depot: Site) -> None:
    """A link where a plan shall stand is refused, and so is a device; what it leads to stays as it was."""
    depot.init()
    victim, link = depot.folder / "victim", depot.folder / "tonight.plan"
    victim.write_text("theirs")
    link.symlink_to(victim)
    for path in (link, Path("/dev/null")):
        refused = depot.run("plan", "-o", str(path))
        assert refused.code == 2
        assert f"{path}: cannot be written: it is " in refused.err
    assert victim.read_text() == "theirs"
    assert link.is_symlink()
    link.unlink()
    (depot.folder / "old.plan").write_text("old")
    assert depot.run("plan", "-o", str(depot.folder / "old.plan")).code == 0
    assert not [path for path in depot.folder.iterdir() if path.name.endswith(".part")]


def test_a_lock_is_not_taken_through_a_link(depot: Site) -> None:
    """A link where the lock of a state shall stand is refused; the file behind it is not emptied."""
    depot.init()
    (depot.folder / "victim").write_text("theirs")
    (depot.folder / "state.db.lock").symlink_to("victim")
    refused = depot.run("sync")
    assert refused.code == 3
    assert "must be regular files" in refused.err
    assert (depot.folder / "victim").read_text() == "theirs"


def test_a_plan_is_a_small_regular_file(depot: Site) -> None:
    """A pipe without a writer, a device without end and a folder are refused as plans at once."""
    depot.init()
    os.mkfifo(depot.folder / "pipe")
    for path in (depot.folder / "pipe", Path("/dev/zero")):
        refused = depot.run("apply", str(path))
        assert refused.code == 2
        assert "the plan cannot be read: it is not a regular file" in refused.err


@pytest.mark.parametrize("kind", ["folder", "pipe", "no folder"])
def test_a_state_that_cannot_be_a_file(depot: Site, kind: str) -> None:
    """A folder, a pipe, or a file in the place of its folder: that is said, with exit 3."""
    if kind == "pipe":
        os.mkfifo(depot.folder / "state.db")
    elif kind == "folder":
        (depot.folder / "state.db").mkdir()
    else:
        depot.edit("sqlite:///state.db", "sqlite:///crossdock.yaml/state.db")
    refused = depot.run("init")
    assert refused.code == 3
    assert "is not a regular file" in refused.err or "must be regular files" in refused.err
