"""Streams of warehouses in a folder and on an SFTP server pass the contract of streams and the acceptance of syncs."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.testing.acceptance import SyncAcceptance
from crossdock.testing.connector_under_test import ConnectorUnderTest
from crossdock.testing.contract import StreamContract
from crossdock.testing.sftp_server import SftpServer

STREAMS = {
    "products": {
        "mode": "snapshot",
        "files": "ITEM_*.txt",
        "format": {"kind": "delimited", "delimiter": "|", "trailer": {"prefix": "TRL", "count": 1}},
        "key": ["SKU"],
        "skip": {"test_data": {"field": "SKU", "starts_with": "TEST"}},
        "resource": "product",
        "map": {"sku": "SKU", "name": "NAME", "unitPrice": {"from": "PRICE", "as": "decimal"}, "currency": "CURRENCY"},
    },
    "customers": {
        "mode": "append",
        "files": "CUSTOMERS_*.csv",
        "key": ["NO"],
        "order_by": ["CHANGED"],
        "resource": "customer",
        "map": {"name": "NAME", "email": "EMAIL"},
    },
}
FILES = {
    "ITEM_20261119.txt": "SKU|NAME|PRICE|CURRENCY\n0017|Lamp|24.90|EUR\n0018|Shelf|59.50|EUR\nTEST1|x|1|EUR\nTRL|3\n",
    "CUSTOMERS_20261118.csv": "NO,NAME,EMAIL,CHANGED\n1,Ada,ada@example.com,2026-11-17\n2,Bo,,2026-11-17\n",
    "CUSTOMERS_20261119.csv": "NO,NAME,EMAIL,CHANGED\n2,Bob,bo@example.com,2026-11-18\n3,Cy,,2026-11-19\n",
}
LONG_AGO = 1_300_000_000


def export(folder: Path) -> None:
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
        os.utime(folder / name, (LONG_AGO, LONG_AGO))


class _InFolder(ConnectorUnderTest):
    connector = load_connector("folder_warehouse")
    settings = {"path": "exports", "streams": STREAMS}

    def prepare(self, folder: Path) -> None:
        export(folder / "exports")


@cache
def server() -> SftpServer:
    """One for each process: the settings name its port."""
    folder = Path(tempfile.mkdtemp(prefix="crossdock-sftp-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    export(folder / "exports")
    started = SftpServer(folder / "exports").__enter__()
    atexit.register(started.close)
    return started


class _OnServer(ConnectorUnderTest):
    connector = load_connector("sftp_warehouse")

    @property
    def environment(self) -> dict[str, str]:  # type: ignore[override]  # the server makes its password
        return {"WMS_PASSWORD": server().password}

    @property
    def settings(self) -> dict[str, Any]:  # type: ignore[override]  # the port is known when the server runs
        place = {"host": server().host, "port": server().port, "user": server().user}
        named = {"password": "env:WMS_PASSWORD", "host_key": server().fingerprint}
        return {**place, **named, "streams": STREAMS}


class TestFolderProducts(_InFolder, StreamContract):
    """Everything in one file."""

    stream = "products"


class TestFolderCustomers(_InFolder, StreamContract):
    """Changes, each in one file."""

    stream = "customers"


class TestSftpProducts(_OnServer, StreamContract):
    """Everything in one file."""

    stream = "products"


class TestSftpCustomers(_OnServer, StreamContract):
    """Changes, each in one file."""

    stream = "customers"


@pytest.mark.usefixtures("commands_are_forked")
class TestFolder(_InFolder, SyncAcceptance):
    """Both streams."""


@pytest.mark.usefixtures("commands_are_forked")
class TestSftp(_OnServer, SyncAcceptance):
    """Both streams."""
