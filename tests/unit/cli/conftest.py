"""The command line run in this process, with an initialised state and no network."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.json_types import check_type

from crossdock.cli.main import main
from crossdock.config.project import project
from crossdock.state import State

CONFIG = """\
platform: {base_url: "http://127.0.0.1:9", tenant: acme, auth: {kind: api_key, token: env:CROSSDOCK_API_KEY}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: exports
    settle_s: 0
    streams:
      products:
        mode: append
        files: "*.csv"
        key: [SKU]
        resource: product
        map: {sku: SKU, name: NAME, unitPrice: {from: PRICE, as: decimal}}
"""


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    code: object
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class CommandLine:
    """``crossdock`` with the config in *folder*."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "c.yaml"

    def run(self, *arguments: str) -> Result:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(["-C", str(self.config), *arguments])
        check_type(arguments, out.getvalue())
        return Result(ended.value.code, out.getvalue(), err.getvalue())

    def state(self) -> State:
        return project.load(self.config).open_state()


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("CROSSDOCK_API_KEY", "key")
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "exports").mkdir()
    (tmp_path / "c.yaml").write_text(CONFIG, encoding="utf-8")
    made = CommandLine(tmp_path)
    assert made.run("init").code == 0
    return made
