"""Numbers on the command line that no database accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.cli.main import main

CONFIG = """
platform: {base_url: "http://127.0.0.1:9", tenant: acme, auth: {kind: api_key, token: env:KEY}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: out
    streams:
      products:
        mode: snapshot
        files: "*.txt"
        format: {kind: delimited, delimiter: "|"}
        key: [SKU]
        resource: product
        map: {sku: SKU, name: DESCR}
"""


@pytest.mark.parametrize(
    "command",
    ["show {}", "runs --limit {}", "records list --limit {}", "plan --limit {}", "jobs --limit {}",
     "approve wms.products {}", "trace out/a.txt:{}"],
)  # fmt: skip
@pytest.mark.parametrize("number", ["9" * 23, "9" * 5000], ids=["23 digits", "5,000 digits"])
def test_a_number_that_is_too_long_is_a_wrong_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, number: str
) -> None:
    """It is refused with exit 2 and a sentence, on any database, and never with a traceback."""
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    (tmp_path / "out").mkdir()
    for arguments in (["init"], command.format(number).split()):
        with pytest.raises(SystemExit) as ended:
            main(["-C", str(path), *arguments])
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
