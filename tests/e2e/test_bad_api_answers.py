"""APIs that answer badly in the middle of a list: the error, the exit code, and what goes on beside it."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests import installed_connector
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.bad_answers_vendor import CASES, SEARCH, SECRETS, Case, Vendor
from tests.e2e.canaries import Outputs
from tests.e2e.project_folder import balance, in_process
from tests.e2e.warehouse import ask
from tests.ended_commands import Done
from tests.servers import served

from crossdock.reading.sources import retried_requests
from crossdock.sandbox import SandboxServer
from crossdock.state import parse_database_url

ENVIRONMENT = {name: f"SHOP_{name.upper()}" for name in SECRETS}
AT_ONCE = [case for case in CASES if not case.retried]
GOOD = "good"
PRODUCTS = 6  # of a shop whose answers are good


@dataclass
class Shops:
    """A config with one connection for each case; if there are several, also a shop that refuses and a good one."""

    folder: Path
    vendor: Vendor
    platform: SandboxServer
    outputs: Outputs = field(default_factory=lambda: Outputs(dict(SECRETS)))

    @property
    def config(self) -> Path:
        return self.folder / "crossdock.yaml"

    def configure(self, cases: Sequence[Case]) -> None:
        settings = {name: f"env:{ENVIRONMENT[name]}" for name in ("token", "header", "parameter", "body")}
        connections: dict[str, dict[str, Any]] = {
            name: {"kind": "bad_answers_shop", "base_url": f"{self.vendor.url}/{name}", **settings}
            for name in [*(case.name for case in cases), *([SEARCH, GOOD] if len(cases) > 1 else [])]
        }
        for case in cases:
            connections[case.name] |= {"auth": case.auth, "most_bytes": case.most_bytes}
            if case.auth == "login":
                connections[case.name]["token"] = f"env:{ENVIRONMENT['password']}"
        auth = {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"}
        platform = {"base_url": self.platform.base_url, "tenant": "acme", "auth": auth}
        document = {"platform": platform, "state": "sqlite:///state.db", "connections": connections}
        self.config.write_text(yaml.safe_dump(document, sort_keys=False))

    def process(self, *arguments: str) -> Done:
        """Run a command in a process of its own."""
        command = [*CROSSDOCK, "-C", str(self.config), *arguments]
        return self._watched(" ".join(arguments), processes.finish(command, os.environ))

    def run(self, *arguments: str) -> Done:
        """Run a command in this process."""
        return self._watched(" ".join(arguments), in_process(self.config, *arguments, environment={}))

    def _watched(self, name: str, done: Done) -> Done:
        shown = done.stdout + done.stderr
        assert "Traceback" not in shown, shown
        assert done.exit_code != 70, shown
        self.outputs.keep(name, shown)
        assert self.outputs.leaks() == []
        return done

    def created(self) -> Counter[str]:
        """How often each external id was created on the platform."""
        found: Counter[str] = Counter()
        after = 0
        while True:
            answer = ask(urlsplit(self.platform.base_url).netloc, "GET", f"/_sandbox/effects?limit=10000&after={after}")
            page = json.loads(answer.body)["data"]
            if not page:
                return found
            found.update(e["body"]["externalId"] for e in page if e["operation"] == "create")
            after = int(page[-1]["seq"])


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The connector is installed, and the environment has its secrets."""
    folder = tmp_path_factory.mktemp("installed")
    found = installed_connector.installed(folder, "bad_answers_shop", "tests.e2e.bad_answers_shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        for name, value in found.items():
            patch.setenv(name, value)
        patch.setenv("COLUMNS", "80")
        for name, variable in ENVIRONMENT.items():
            patch.setenv(variable, SECRETS[name])
        yield


@pytest.fixture
def shops(tmp_path: Path, installed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shops]:
    with SandboxServer(tmp_path / "platform") as platform, served(Vendor()) as vendor:
        monkeypatch.setenv("CROSSDOCK_API_KEY", platform.sandbox.new_key("acme"))
        yield Shops(tmp_path, vendor, platform)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, installed: None) -> Iterator[Shops]:
    """An empty state and its servers, for tests that take a copy."""
    folder = tmp_path_factory.mktemp("prepared")
    with (
        SandboxServer(folder / "platform") as platform,
        served(Vendor()) as vendor,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("CROSSDOCK_API_KEY", platform.sandbox.new_key("acme"))
        made = Shops(folder, vendor, platform)
        made.configure(CASES[:1])
        assert made.run("init").exit_code == 0
        yield made


@pytest.fixture
def shop(prepared: Shops, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shops:
    """One shop, with an empty state that knows nothing of the other copies."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    shutil.copy2(prepared.folder / "state.db", tmp_path)
    return Shops(tmp_path, prepared.vendor, prepared.platform)


def stream_of(case: Case) -> str:
    return f"{case.name}.products"


def end_their_stream_alone(shops: Shops, cases: Sequence[Case]) -> None:
    """One check, plan and sync of all *cases*: an error names each one, and everything else is delivered."""
    shops.configure(cases)
    assert shops.run("init").exit_code == 0
    checked = shops.run("check", "--json")
    planned = shops.run("plan", "--json")
    synced = shops.process("sync", "--json")
    assert (checked.exit_code, planned.exit_code, synced.exit_code) == (3, 3, 3)
    balance(synced.document)
    refused = {stream_of(case): case for case in cases if case.code > 1}
    for errors in (planned.document["errors"], synced.document["errors"]):
        assert errors.pop(f"{SEARCH}.customers").startswith(
            f"{shops.vendor.url}/{SEARCH}/search: responded with HTTP 400"
        )
        assert errors.keys() == refused.keys()
        assert {name: said for name, said in errors.items() if refused[name].says not in said} == {}
    probed = {item["subject"]: item["ok"] for item in checked.document["findings"]}
    of_one_page = [case for case in cases if "page" not in case.name and "next" not in case.name]
    assert [case.name for case in of_one_page if probed[case.name] == (case.code > 1)] == []

    created = shops.created()
    customers = {f"{name}:{name}-1" for name in [*(case.name for case in cases), GOOD]}
    assert customers <= created.keys()
    assert sum(name.startswith(f"{GOOD}:") for name in created) == PRODUCTS + 1
    shops.outputs.keep_words("the state", parse_database_url("sqlite:///state.db", shops.folder))
    assert shops.outputs.leaks() == []
    shops.vendor.mended = True
    balance(shops.run("sync", "--json").document)
    created = shops.created()
    assert set(created.values()) == {1}
    for name in [*refused, f"{SEARCH}.products", f"{GOOD}.products"]:
        assert sum(each.startswith(f"{name.partition('.')[0]}:") for each in created) == PRODUCTS + 1


@pytest.mark.nightly
def test_bad_answers_end_their_stream_alone(shops: Shops) -> None:
    """An eighth of the cases, of every kind; `tests.long.test_bad_api_answers` takes all."""
    end_their_stream_alone(shops, AT_ONCE[::8])


@pytest.mark.nightly(
    but=[
        "html",
        "cut-json",
        "utf-16-undeclared",
        "latin-1-undeclared",
        "nan",
        "duplicate-members",
        "very-deep",
        "empty",
        "partial-content",
        "null",
        "error-in-200",
        "items-null",
        "items-object",
        "items-absent",
        "same-page",
        "next-on-other-host",
        "next-is-object",
        "expired-token",
        "renewed-login",
        "revoked-scope",
        "not-found",
        "other-host",
        "to-http",
        "redirect-nowhere",
        "gzip-bomb",
        "cut-body",
        "short-length",
        "no-answer",
        "no-http",
        "server-error",
        "no-key",
        "null-key",
        "long-key",
        "float-key",
        "missing-member",
        "odd-member",
        "infinite-price",
    ]
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bad_answer(shop: Shops, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that reads it ends with its exit code; one that helps no retry is requested once."""
    monkeypatch.setattr(retried_requests, "BASE_PAUSE_S", 0.001)
    shop.configure([case])
    tried = shop.run("try", stream_of(case), "-n", "50")
    requests = shop.vendor.read[case.name]
    assert requests == (retried_requests.ATTEMPTS if case.retried else 2 if case.auth == "login" else 1)
    assert tried.exit_code == case.code, tried
    synced = shop.run("sync", "--json", stream_of(case))
    assert synced.exit_code == case.code, synced
    balance(synced.document)
    if case.code > 1:
        assert case.says in synced.document["errors"][stream_of(case)]
    else:
        listed = json.loads(shop.run("records", "list", "--json").stdout)
        assert {each["why"].partition(":")[0] for each in listed} == ({case.says} if case.says else set())
