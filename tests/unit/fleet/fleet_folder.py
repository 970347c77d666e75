"""A folder of configs of a fleet, without a platform."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from crossdock.services.fleet.tenants_and_watched_configs import FleetBase, load_fleet_base


class FleetFolder:
    """A base file and tenants, each with a job that reads one host."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tenants, self.base_file = folder, folder / "tenants", folder / "base.yaml"
        self.tenants.mkdir()
        self.write_base()
        self._written = 0

    @property
    def base(self) -> FleetBase:
        return load_fleet_base(self.base_file)

    def write_base(self, **sections: Any) -> None:
        schedule = {"time_zone": "UTC", "at": "02:30"}
        common = {"platform": {"base_url": "http://127.0.0.1:9"}, "jobs": {"nightly": {"schedule": schedule}}}
        self.base_file.write_text(yaml.safe_dump(common | sections), encoding="utf-8")

    def write(self, name: str, key: str = "env:KEY", host: str = "ftp.example.com", **sections: Any) -> Path:
        """Write the config of a tenant; the time of its last change differs each time."""
        warehouse = {
            "kind": "sftp_warehouse",
            "host": host,
            "user": "export",
            "password": "env:PASSWORD",
            "host_key": "SHA256:" + 43 * "A",
            "streams": {
                "items": {"mode": "append", "files": "*.csv", "format": {"kind": "delimited"}, "key": ["SKU"],
                          "resource": "product", "map": {"sku": "SKU", "name": "SKU"}},
            },
        }  # fmt: skip
        config = {
            "platform": {"tenant": name, "auth": {"kind": "api_key", "token": key}},
            "state": f"postgresql://db.example.com/{name}",
            "connections": {"wms": warehouse},
        }
        path = self.tenants / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config | sections), encoding="utf-8")
        self._written += 1
        os.utime(path, ns=(self._written, self._written))
        return path
