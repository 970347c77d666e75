"""``crossdock new``: projects that work as they are, and names that are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import CommandLine

TOKEN = "token-of-the-shop"
EVERY = "every test"
DOCUMENTS = Path(__file__).parents[1] / "unit" / "cli" / "openapi"
QUICK = "without acceptances"
ROOT = Path(__file__).parents[2]
FORKED = ("-p", "tests.forked_commands")  # commands of the acceptance are forks


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in *folder*, whose package counts as installed."""
    ours = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "true"}  # authors have none of those of our tests
    found = {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    environment = os.environ | found | {"ACME_SHOP_TOKEN": TOKEN, "COLUMNS": "80"} | ours
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def register(folder: Path) -> None:
    """Add what pip would write about the project's entry point."""
    facts = folder / "acme_shop-0.1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-shop\nVersion: 0.1.0\n", encoding="utf-8")
    (facts / "entry_points.txt").write_text(
        "[crossdock.connectors]\nacme_shop = acme_shop:CONNECTOR\n", encoding="utf-8"
    )


class _Shop(BaseHTTPRequestHandler):
    """Answers with one product."""

    def do_GET(self) -> None:
        is_known = self.headers["authorization"] == f"Bearer {TOKEN}"
        body = json.dumps({"products": [{"id": 1, "sku": "0017", "title": "Desk lamp", "price": "24.90"}]}).encode()
        self.send_response(200 if is_known else 401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def shop() -> Iterator[str]:
    """A shop on this machine; gives its base URL."""
    with HTTPServer(("127.0.0.1", 0), _Shop) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(tmp_path)


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [("http", QUICK), ("declarative-files", ""), ("files", EVERY), ("declarative", EVERY)],
    ids=["http", "declarative-files", "files", "declarative"],
)
def test_a_new_project_works_as_it_is(line: CommandLine, kind: str, left_out: str) -> None:
    """Its tests pass, and ``crossdock try`` reads its first product.

    Tests are run of an API in Python and of files by config. The slow acceptance is run of the latter;
    `tests.documentation.test_python` runs that of the former. Its summary says that it was not run.
    `tests.long.test_new_project` runs all, with commands that start as authors' do.
    """
    works_as_it_is(line, kind, left_out, *(() if left_out else FORKED))


def works_as_it_is(line: CommandLine, kind: str, left_out: str = "", *plugins: str) -> None:
    made = line.run("new", "acme-shop", "--kind", kind, "--json")
    assert made.code == 0, made.err
    folder = line.folder / "acme-shop"
    written = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert sorted(written) == made.json["files"]
    assert len((folder / "README.md").read_text(encoding="utf-8").splitlines()) <= 32
    register(folder) if not kind.startswith("declarative") else None
    if left_out != EVERY:
        chosen = () if left_out else ("--acceptance",)
        tests = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugins, *chosen)
        assert tests.returncode == 0, tests.stdout
        assert bool(left_out) == ("1 acceptance NOT RUN" in tests.stdout)
    config = folder / "crossdock.yaml"
    with shop() as base_url:
        text = config.read_text(encoding="utf-8").replace("https://api.example.com", base_url)
        config.write_text(text, encoding="utf-8")
        tried = python(folder, "-m", "crossdock", "try", "acme_shop.products", "-n", "1")
    assert tried.returncode == 0, tried.stderr
    assert "sku: 0017" in tried.stdout
    assert "unitPrice: 24.9" in tried.stdout
    assert TOKEN not in tried.stdout


@pytest.mark.parametrize(
    "features", ["--target", "--webhooks", "--graphql", "--target --webhooks --graphql"], ids=lambda text: text[2:]
)
def test_a_new_project_with_more_works_as_it_is(line: CommandLine, features: str) -> None:
    """mypy is strict and has no finding, and the tests pass, without the acceptance, which `tests.long` runs."""
    passes_its_tests(line, *features.split())


@pytest.mark.parametrize("document", sorted(DOCUMENTS.iterdir()), ids=lambda path: path.stem)
def test_a_project_of_a_document_works_as_it_is(line: CommandLine, document: Path) -> None:
    """What is proposed passes mypy and its own tests, with a target where the document describes one."""
    has_target = "post:" in document.read_text(encoding="utf-8").replace('"', "")
    passes_its_tests(line, "--openapi", str(document), *(["--target"] if has_target else []))


def passes_its_tests(line: CommandLine, *options: str, chosen: str = "not Acceptance") -> None:
    made = line.run("new", "acme-shop", *options)
    assert made.code == 0, made.err
    folder = line.folder / "acme-shop"
    checked = python(folder, "-m", "mypy", "--strict", "--config-file", os.devnull, ".")
    assert checked.returncode == 0, checked.stdout
    tests = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FORKED, "-k", chosen)
    assert tests.returncode == 0, tests.stdout


def test_nothing_is_overwritten(line: CommandLine) -> None:
    """A folder or file of the name is refused and left as it is, even if it is empty."""
    (line.folder / "acme-shop").mkdir()
    refused = line.run("new", "acme-shop")
    assert refused.code == 2
    assert "acme-shop: exists already" in refused.err
    assert list((line.folder / "acme-shop").iterdir()) == []


@pytest.mark.parametrize("name", ["Acme", "7up", "a b", "a--b", "../a", "class", "-a", "", "a" * 51, "\N{SNOWMAN}"])
def test_a_name_that_is_no_package_is_refused(line: CommandLine, name: str) -> None:
    """The name becomes a folder, a package and a `kind`."""
    assert line.run("new", "--", name).code == 2
    assert list(line.folder.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "crossdock", "pydantic"])
def test_a_name_that_would_hide_a_package_is_refused(line: CommandLine, name: str) -> None:
    """An import of that package would find the project instead."""
    refused = line.run("new", name)
    assert refused.code == 2
    assert "is installed already" in refused.err
