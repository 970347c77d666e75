"""The nights of one warehouse in a folder, and configs of crossdock for each: where it lies, and by OpenSSH."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.delta_processes import python, run

from crossdock.testing.openssh_server import OpenSshServer

STREAM = "wms.items"
COMPARED_SNAPSHOTS = ("first", "second", "same", "changed")  # only the last one differs in what counts
CONFIG = """\
platform:
  base_url: http://127.0.0.1:9
  tenant: bench
  auth: {{kind: api_key, token: env:BENCH_KEY}}
  rate: {{per_minute: 60000000, burst: 10000000}}
state: sqlite:///state/state.db
connections:
  wms:
{where}
    streams:
      items:
        files: {files}/ITEMS_*.txt
        format: {{kind: delimited, delimiter: "|", trailer: {{prefix: "TRL|", count: 1}}}}
        mode: snapshot
        key: [SKU]
        resource: product
        map:
          sku: SKU
          name: NAME
          description: DESCRIPTION
          unitOfMeasure: UNIT
          barcode: BARCODE
          unitPrice: {{from: PRICE, as: decimal}}
          currency: CURRENCY
          active: {{from: ACTIVE, as: boolean, true_text: "Y", false_text: "N"}}
"""
FOLDER = """\
    kind: folder_warehouse
    path: .
    settle_s: 0"""
SFTP = """\
    kind: sftp_warehouse
    host: {ssh.host}
    port: {ssh.port}
    user: {ssh.user}
    private_key: file:warehouse.key
    host_key: "{ssh.fingerprint}"
    settle_s: 0"""
FETCH = """
import sys
from pathlib import Path
from crossdock.sources import connect
from crossdock.config.project import project
from crossdock_connectors.sftp_warehouse.settings_streams_and_target import sftp_login
(connection,) = project.load(Path(sys.argv[1])).connections
with connect(sftp_login(connection.settings)) as store, open(sys.argv[3], "wb") as sink:
    store.fetch(store.stat(sys.argv[2]), sink)
"""


class Stage:
    """A new *folder*, inside of the one that *ssh* serves if there is such a server; all its configs share one state.

    Attributes:
        changed: How many rows the night of that name changes.
        state: The folder of the state.
    """

    def __init__(
        self,
        folder: Path,
        rows: int,
        scheduled_runs: Sequence[str] = COMPARED_SNAPSHOTS,
        *,
        ssh: OpenSshServer | None = None,
    ) -> None:
        self.folder, self.rows, self.changed, self.state = folder, rows, 0, folder / "state"
        self.state.mkdir(parents=True)
        for night in scheduled_runs:
            self._write(night)
            self.config(night).write_text(CONFIG.format(where=FOLDER, files=night))
            if ssh is not None:
                by_sftp = CONFIG.format(where=SFTP.format(ssh=ssh), files=f"{folder.name}/{night}")
                self.config(night, by_sftp=True).write_text(by_sftp)
        if ssh is not None:
            key = self.folder / "warehouse.key"
            key.touch(mode=0o600)
            key.write_text(ssh.client_key)
        run(self.crossdock(scheduled_runs[0], "init"))

    def kept_state(self) -> tuple[Path, Path]:
        """A copy of the state as it is now, and where it lies: what contestants begin with."""
        kept = self.folder / "state.kept"
        shutil.copytree(self.state, kept)
        return kept, self.state

    def _write(self, night: str) -> None:
        export = self.export(night)
        export.parent.mkdir()
        number, changes = COMPARED_SNAPSHOTS.index(night) + 1, ["--changes"] if night == "changed" else []
        done = run(python("-m", "tests.benchmarks.delta_files", export, self.rows, number, *changes))
        self.changed = int(done.told)

    def export(self, night: str) -> Path:
        return self.folder / night / f"ITEMS_202611{COMPARED_SNAPSHOTS.index(night) + 1:02}.txt"

    def config(self, night: str, *, by_sftp: bool = False) -> Path:
        return self.folder / f"{night}{'.sftp' if by_sftp else ''}.yaml"

    def crossdock(self, night: str, *arguments: str, by_sftp: bool = False) -> list[str]:
        """A command of crossdock, about a *night*."""
        return python("-m", "crossdock", "-C", self.config(night, by_sftp=by_sftp), *arguments)

    def load(self, *arguments: str) -> list[str]:
        """A sync of the first night, without a platform."""
        return python("-m", "tests.benchmarks.delta_load", *arguments, "-C", self.config("first"), "sync", "--json")

    def fetch(self, night: str) -> list[str]:
        """Nothing but the log-in and the fetch, by crossdock's own transport."""
        remote = self.export(night).relative_to(self.folder.parent)
        return python("-c", FETCH, self.config(night, by_sftp=True), remote, self.folder / "fetched")
