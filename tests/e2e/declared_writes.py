"""Records in a folder that an API takes one by one or in batches, as a config declares it, run by commands."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.project_folder import in_process
from tests.ended_commands import Done
from tests.partners.partner_server import PartnerAnswer, PartnerRequest, PartnerServer, serving

Answering = Callable[[PartnerRequest], PartnerAnswer | None]


class _Api(PartnerServer):
    def __init__(self, answer: Answering) -> None:
        super().__init__(None)  # type: ignore[arg-type]  # it answers by itself
        self._answer, self._one_by_one = answer, threading.Lock()

    def respond(self, request: PartnerRequest) -> PartnerAnswer | None:
        with self._one_by_one:
            self.requests.append((request, "none"))
            return self._answer(request)


class WrittenFolder:
    """Records in a folder that go to the connection ``vendor``, and a config in *folder*.

    Args:
        columns: The first line of a file.

    Attributes:
        out: The folder of the records.
    """

    def __init__(self, folder: Path, columns: str) -> None:
        self.config, self.out, self._columns, self._files = folder / "crossdock.yaml", folder / "out", columns, 0
        self.out.mkdir(parents=True)

    def write_config(self, vendor: dict[str, Any], stream: dict[str, Any]) -> None:
        records = {"files": "*.csv", "mode": "append", "to": "vendor.records", "key": ["ID"]} | stream
        folder = {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": {"records": records}}
        platform = {"base_url": "http://127.0.0.1:9", "tenant": "t", "auth": {"kind": "api_key", "token": "env:TOKEN"}}
        whole = {
            "platform": platform,
            "state": "sqlite:///state.db",
            "connections": {"wms": folder, "vendor": vendor},
        }
        self.config.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")

    def export(self, *rows: str) -> None:
        """Write records, each a row of the columns."""
        self._files += 1
        text = "\n".join([self._columns, *rows]) + "\n"
        (self.out / f"{self._files:04}.csv").write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> Done:
        return in_process(self.config, *arguments, environment={"TOKEN": "t"})

    def sync(self, exit_code: int = 0) -> Done:
        done = self.run("sync")
        assert done.exit_code == exit_code, done.stdout + done.stderr
        return done

    def listed(self, state: str) -> dict[str, str]:
        """The records in this state, by key, with what is said of each."""
        found = json.loads(self.run("records", "list", "--state", state, "--json").stdout)
        return {each["key"]: each["why"] for each in found}


class DeclaredWrites(WrittenFolder):
    """Records, each ``ID,NAME``, and the API that they go to.

    Args:
        resource: What the config declares of the API, besides the members of a record: ``name`` and its name, ``ref``.
        target: Keys of the section ``target`` besides.
        stream: Keys of the stream in place of the usual ones.

    Attributes:
        requests: What arrived, oldest first.
    """

    def __init__(
        self,
        folder: Path,
        api: PartnerServer,
        resource: dict[str, Any],
        target: dict[str, Any],
        stream: dict[str, Any],
    ) -> None:
        super().__init__(folder, "ID,NAME")
        self._api, self._stream = api, {"map": {"title": "NAME"}} | stream
        self.configure(resource, **target)
        assert self.run("init").exit_code == 0

    @property
    def requests(self) -> Sequence[PartnerRequest]:
        return [request for request, _ in self._api.requests]

    def configure(self, resource: dict[str, Any], **target: Any) -> None:
        members = {"members": {"title": {"type": "text", "required": True}}, "name": "ref"}
        retry = {"attempts": 3, "base_s": 0.01, "cap_s": 0.02, "give_up_after_s": 0.5}
        section = {"settle_s": 0, "retry": retry} | target
        vendor = {
            "kind": "http_json",
            "base_url": self._api.url,
            "auth": {"kind": "bearer", "token": "env:TOKEN"},
            "rate": {"per_minute": 600_000, "burst": 1_000},
            "target": section | {"resources": {"records": members | resource}},
        }
        self.write_config(vendor, self._stream)


@contextmanager
def declared_writes(
    folder: Path, answer: Answering, resource: dict[str, Any], *, stream: dict[str, Any] | None = None, **target: Any
) -> Iterator[DeclaredWrites]:
    """A project whose records go to an API that answers as *answer* says."""
    with serving(_Api(answer)) as api:
        yield DeclaredWrites(folder, api, resource, target, stream or {})
