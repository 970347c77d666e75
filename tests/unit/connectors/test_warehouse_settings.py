"""What a config may say about the files of a warehouse, and that what it does not say changes no fingerprint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crossdock.config.project import project
from crossdock.errors import FindingsError

CONFIG = """\
platform: {base_url: "http://127.0.0.1:1", tenant: acme, auth: {kind: api_key, token: env:NONE}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: .
    streams:
      products:
        mode: append
        files: "out/PROD_*.csv"
        KEYS
        key: [SKU]
        resource: product
        map: {sku: SKU, name: NAME}
      bins:
        mode: MODE
        files: "out/PROD_*.csv"
        OTHERS
        key: [SKU]
        resource: warehouse_bin
        map: {code: SKU, warehouse: NAME}
"""


def load(folder: Path, keys: str, others: str = "", mode: str = "append") -> Any:
    path = folder / "c.yaml"
    path.write_text(CONFIG.replace("KEYS", keys).replace("OTHERS", others).replace("MODE", mode))
    return project.load(path)


@pytest.mark.parametrize(
    ("keys", "others", "mode", "says"),
    [
        ("ready: done", "", "append", "with {name} or {stem} once"),
        ('ready: "{name}"', "", "append", "with {name} or {stem} once"),
        ('ready: "{stem}.csv"', 'ready: "{stem}.csv"', "append", "must not be the name of the file itself"),
        ('ready: "out/{stem}"', 'ready: "out/{stem}"', "append", "must not be the name of the file itself"),
        ('ready: "../{name}.ok"', 'ready: "../{name}.ok"', "append", "ready must be below path"),
        ('ready: "{name}.ok"', "", "append", "give both the same ready"),
        ("order: any", "order: any", "snapshot", "streams.bins.order: of snapshots the newest one counts"),
        ("order: newest", "", "append", "must be 'modified' or 'any'"),
        ("order: {name: 'P_{text}.csv'}", "", "append", "needs a field that orders the files"),
        ("order: {name: ['P_{date:%m%d}.csv']}", "", "append", "is not a date with its year"),
        ("order: modified", "", "append", "give both the same order"),
        ("archive: out/", "archive: out", "append", "another folder than that of files"),
        ("archive: /", "", "append", "must be a folder"),
        ("archive: /done", "archive: /done", "append", "archive must be below path"),
        ("archive: done*/", "", "append", "has wildcards in its folder"),
        ("archive: done", "", "append", "give both the same archive"),
        ("archive: done", "archive: done", "snapshot", "with another format or mode"),
        ('manifest: {files: "M_*", name: F}', "", "append", "at least one of rows, bytes, sha256, md5"),
        ('manifest: {files: "M_*", name: F, row: C}', "", "append", "did you mean 'rows'"),
        ('manifest: {files: "*/M", name: F, rows: C}', "", "append", "has wildcards in its folder"),
        ('manifest: {files: "/M", name: F, rows: C}', "", "append", "manifest.files must be below path"),
        ("format: {skip_lines: some}", "", "append", "skip_lines: must be a whole number"),
        ("format: {skip_line: 1}", "", "append", "did you mean 'skip_lines'"),
        ("format: {encoding: cp-1252}", "", "append", "did you mean 'cp1252'"),
        ("format: {row_end: '&|\\n'}", "", "append", "in double quotes"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, keys: str, others: str, mode: str, says: str) -> None:
    """When the config is loaded, with the place and what to do."""
    with pytest.raises(FindingsError) as refused:
        load(tmp_path, keys, others, mode)
    assert says in str(refused.value)
    assert "c.yaml:" in str(refused.value)


def test_new_keys_change_no_version_where_they_are_not_used(tmp_path: Path) -> None:
    """What a state knows of a stream stays valid; how files arrive is no part of it either."""
    keys = ("order: modified", 'ready: "{name}.ok"', "archive: done", 'manifest: {files: "M_*", name: F, rows: C}')
    intake = "\n        ".join(keys)
    versions = set()
    for written in ("", intake):
        (connection,) = load(tmp_path, written, written).connections
        versions.add(connection.streams[0].mapping_version)
    assert versions == {"05b67b7ae22fec189b4e0b3f05e99187821b8f67827ee3087a0726cf65e80287"}
    (connection,) = load(tmp_path, 'format: {row_end: "~"}').connections
    assert connection.streams[0].mapping_version not in versions
