"""The retail sync as a user has it: a drop folder behind a real SFTP server, a real sandbox process, real commands."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self
from unittest import mock

import httpx
import pytest
import yaml
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.retail_truth import Holdings, canonical
from tests.ended_commands import Done
from tests.json_types import check_type
from tests.waiting import WITHIN_S, eventually

from crossdock.cli.main import main
from crossdock.testing.openssh_server import OpenSshServer
from crossdock.values import exact_json
from crossdock.values.run_states_and_tally import DELIVERED, OUT

ROOT = Path(__file__).resolve().parents[2]
DATA_VARIABLE = "CROSSDOCK_RETAIL_DATA"
DATA_BESIDE = ROOT.parent / "shared" / "data" / "retail"
LISTS = {
    "customer": "/api/v1/sales/customers",
    "product": "/api/v1/catalog/products",
    "invoice": "/api/v1/finance/invoices",
    "order": "/api/v1/sales/orders",
    "inventory_lot": "/api/v1/inventory/lots",
    "warehouse_bin": "/api/v1/warehouse/bins",
    "ledger_account": "/api/v1/finance/ledger-accounts",
}


def exports() -> list[Path]:
    """The daily exports by date; none where this machine does not have them."""
    folder = Path(os.environ.get(DATA_VARIABLE) or DATA_BESIDE)
    return sorted(folder.glob("*.csv.gz"))


@dataclass(frozen=True, slots=True)
class Limits:
    """A token bucket, given to both sides alike."""

    per_minute: int
    burst: int


UNPACED = Limits(600_000, 100_000)  # where pacing is not the subject, it must not take time


class SandboxProcess:
    """``crossdock sandbox`` over a folder, and a look at it with a key of our own, since buckets are per credential."""

    def __init__(self, data: Path, limits: Limits, *options: str) -> None:
        self._data, self._limits, self._options = data, limits, options

    def __enter__(self) -> Self:
        limits = ("--rate", str(self._limits.per_minute), "--burst", str(self._limits.burst))
        command = (*CROSSDOCK, "sandbox", "--data", str(self._data), *limits, *self._options)
        with ExitStack() as opened:
            told = Path(opened.enter_context(TemporaryDirectory()), "told")
            process = processes.start(command, os.environ, told)
            opened.callback(process.join)
            opened.callback(process.terminate)
            eventually(lambda: (told.exists() and "\n" in told.read_text()) or process.exitcode is not None)
            ready = json.loads(told.read_text())
            self.base_url, self.tenant, self.api_key = ready["base_url"], ready["tenant"], ready["api_key"]
            client = httpx.Client(base_url=self.base_url, trust_env=False, timeout=WITHIN_S)
            self._client = opened.enter_context(client)
            reader = client.post("/_sandbox/keys").json()["api_key"]
            client.headers.update({"authorization": f"Bearer {reader}", "x-tenant-slug": self.tenant})
            self._running = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """A document, its numbers exact."""
        answer = self._client.get(path, params={name: str(value) for name, value in query.items()})
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = json.loads(answer.text, parse_int=Decimal, parse_float=Decimal)
        return document

    def patch(self, path: str, body: dict[str, Any]) -> str:
        """Change a record; its new entity tag."""
        headers = {"content-type": "application/merge-patch+json"}
        answer = self._client.patch(path, content=exact_json.dumps(body), headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.headers["etag"]

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create a record; what the platform stored."""
        content = exact_json.dumps(body)
        answer = self._client.post(path, content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 201, answer.text
        document: dict[str, Any] = json.loads(answer.text, parse_int=Decimal, parse_float=Decimal)
        return document

    def delete(self, path: str) -> None:
        answer = self._client.delete(path)
        assert answer.is_success, answer.text

    def control(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post to the sandbox itself."""
        answer = self._client.post(f"/_sandbox/{path}", json=body)
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document

    def requests(self) -> int:
        """How many requests ever came in, whoever sent them."""
        return int(self.get("/_sandbox/requests", limit=1)["total"])

    def settle(self) -> None:
        """Wait until what had come in is answered, when whoever sent it is gone.

        Writes are done in the order they come in: when one of ours is answered and nothing was noted meanwhile, those
        before it are done.
        """

        def quiet() -> bool:
            before = self.requests()
            assert self._client.post("/_sandbox/keys").status_code == 201
            return self.requests() == before

        eventually(quiet)

    def request_log(self, after: int) -> list[dict[str, Any]]:
        """The requests after the first *after* ones."""
        listed: list[dict[str, Any]] = self.get("/_sandbox/requests", after=after, limit=10_000)["data"]
        return listed

    def by_status(self) -> dict[str, int]:
        return {status: int(number) for status, number in self.get("/_sandbox/requests", limit=1)["byStatus"].items()}

    def effects(self, after: int = 0) -> list[dict[str, Any]]:
        """The witness: what really happened after the first *after* effects, oldest first."""
        found: list[dict[str, Any]] = []
        while page := self.get("/_sandbox/effects", after=after, limit=10_000)["data"]:
            found += page
            after = int(page[-1]["seq"])
        return found

    def has_effects(self, number: int) -> bool:
        return bool(self.get("/_sandbox/effects", after=number - 1, limit=1)["data"])

    def stored(self, resource: str) -> Iterator[dict[str, Any]]:
        """All of one resource, page by page."""
        cursor: dict[str, str] = {}
        while True:
            page = self.get(LISTS[resource], limit=1000, **cursor)
            yield from page["data"]
            if page["nextCursor"] is None:
                return
            cursor = {"cursor": page["nextCursor"]}

    def holdings(self) -> Holdings:
        """Everything stored, with external ids in place of ids."""
        held = Holdings()
        names: dict[str, str] = {}
        for resource, bodies in (("customer", held.customers), ("product", held.products)):
            for body in self.stored(resource):
                names[body["id"]] = body["externalId"]
                bodies[own(body)] += 1
        for body in self.stored("invoice"):
            body["customerId"] = names[body["customerId"]]
            for item in body["items"]:
                item["productId"] = names[item["productId"]]
            held.add_invoice({name: value for name, value in body.items() if name not in GIVEN})
        return held


class Stage:
    """A folder with a config of its own; its files are served from *drop*."""

    def __init__(self, name: str, ssh: OpenSshServer, sandbox: SandboxProcess, folder: Path, limits: Limits) -> None:
        self.ssh, self.sandbox, self.folder = ssh, sandbox, folder
        self.drop = ssh.folder / name
        self.drop.mkdir()
        self.state, self.spool, self.config = folder / "retail.db", folder / "retail.db.spool", folder / "retail.yaml"
        key = folder / "retail.key"
        key.touch(mode=0o600)
        key.write_text(ssh.client_key)
        self.config.write_text(yaml.safe_dump(self._config(f"{name}/*.csv.gz", limits), sort_keys=False))

    def _config(self, files: str, limits: Limits) -> dict[str, Any]:
        config: dict[str, Any] = yaml.safe_load((ROOT / "configs" / "retail.yaml").read_text())
        config["platform"] |= {"base_url": self.sandbox.base_url, "tenant": self.sandbox.tenant}
        config["platform"]["rate"] = {"per_minute": limits.per_minute, "burst": limits.burst}
        login = {"port": self.ssh.port, "user": self.ssh.user, "host_key": self.ssh.fingerprint}
        config["connections"]["shop"] |= login | {"settle_s": 0}
        config["connections"]["shop"]["sources"]["sales"]["files"] = files
        return config

    def serve(self, files: Sequence[Path]) -> None:
        """Make *files* all that the SFTP server has."""
        for old in self.drop.iterdir():
            old.unlink()
        for file in files:
            shutil.copy2(file, self.drop)

    def command(self, *arguments: str) -> list[str]:
        """Arguments of Python, as `tests.chaos.processes` takes them."""
        return [*CROSSDOCK, "-C", str(self.config), *arguments]

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "CROSSDOCK_API_KEY": self.sandbox.api_key, **more}

    def run(self, *arguments: str) -> Done:
        """Run a command of crossdock to its end, in this process."""
        return in_process(self.config, *arguments, environment={"CROSSDOCK_API_KEY": self.sandbox.api_key})

    def init(self) -> None:
        done = self.run("init")
        assert done.exit_code == 0, done.stderr

    def sync(self) -> dict[str, Any]:
        """A sync that delivers everything; its report, after its accounts were added up once more."""
        done = self.run("sync", "--json")
        assert done.exit_code == 0, f"{done.stderr}{done.stdout}"
        balance(done.document)
        return done.document


GIVEN = ("id", "createdAt", "updatedAt", "status", "total")  # by the platform


def own(body: dict[str, Any]) -> str:
    """The canonical text of what we sent of *body*."""
    return canonical({name: value for name, value in body.items() if name not in GIVEN})


def in_process(config: Path, *arguments: str, environment: Mapping[str, str]) -> Done:
    """Run a command of crossdock in this process, with *environment* besides the variables of this process."""
    out, err = io.StringIO(), io.StringIO()
    patched, ends = mock.patch.dict(os.environ, environment), pytest.raises(SystemExit)
    with patched, redirect_stdout(out), redirect_stderr(err), ends as ended:
        main(["-C", str(config), *arguments])
    assert isinstance(ended.value.code, int)
    check_type(arguments, out.getvalue())
    return Done(ended.value.code, out.getvalue(), err.getvalue())


def finish(command: Sequence[str], environment: dict[str, str]) -> Done:
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    return Done(ended.returncode, ended.stdout, ended.stderr)


def balance(report: dict[str, Any]) -> None:
    """Add up both accounts of every stream, without believing the report's own word for it."""
    assert report["balanced"]
    for stream in report["streams"].values():
        rows, records = stream["rows"], stream["records"]
        left = sum(rows["filtered"].values()) + rows["superseded"] + rows["rejected"] + rows["in_records"]
        assert rows["read"] == left, rows
        settled = {*OUT, "delivered"} - {*DELIVERED}
        assert sum(records[term] for term in ("carried_over", "read", "gone")) == sum(records[t] for t in settled), (
            records
        )
        assert records["delivered"] == records["created"] + records["updated"] + records["deleted"], records
