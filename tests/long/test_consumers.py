"""Consumers of the OpenAPI document: the long form, ``pytest tests/long -n 2``, some minutes."""

from __future__ import annotations

import copy
import shutil
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.consumers.generated_clients import csharp_client, go_client, npm_registry_answers, python_client
from tests.consumers.running import THROTTLING, check_program, run, schemathesis
from tests.servers import require

from crossdock.sandbox import SandboxServer, SandboxSettings, openapi_document

MANY_DIGITS = Decimal("123456789012300.6789")  # more than a binary float holds
# The generator's own template for the class that holds the connection; it is the same for every document.
_MYPY = "[mypy]\nstrict = True\n[mypy-platform_client.client]\nignore_errors = True\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", SandboxSettings(rate_per_min=10_000_000, burst=1_000_000)) as running:
        yield running


@pytest.fixture
def throttling_server(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "throttling", THROTTLING) as running:
        yield running


def test_schemathesis_finds_nothing(server: SandboxServer, tmp_path: Path) -> None:
    """All checks over the whole API: examples, every boundary of every schema, generated requests, sequences."""
    every = ("--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "100")
    output = schemathesis(server, tmp_path, *every)
    assert "No issues found" in output
    print(output[-2000:])


def test_a_generated_python_client_is_typed_and_creates_an_invoice(
    throttling_server: SandboxServer, tmp_path: Path
) -> None:
    """mypy --strict accepts the client and the program that uses it."""
    program = python_client(throttling_server, tmp_path)
    (tmp_path / "mypy.ini").write_text(_MYPY, encoding="utf-8")
    checked = ("-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", "platform_client", program.name)
    run([sys.executable, *checked], tmp_path)
    check_program([sys.executable, str(program)], throttling_server, tmp_path, Decimal("0.25"))


def test_a_generated_go_client_is_exact_and_creates_an_invoice(
    throttling_server: SandboxServer, tmp_path: Path
) -> None:
    """The generated module needs no other one, and with the type mapping of the documentation its amounts are exact."""
    _require_programs("go", "openapi-generator-cli")
    program = go_client(throttling_server, tmp_path)
    check_program([str(program)], throttling_server, tmp_path, MANY_DIGITS)


def test_a_generated_csharp_client_is_exact_and_creates_an_invoice(
    throttling_server: SandboxServer, tmp_path: Path
) -> None:
    """Its amounts are decimals, and an update sends only what is set."""
    _require_programs("mono", "mcs", "openapi-generator-cli")
    require(npm_registry_answers(), "access to the npm registry", optional_by="CROSSDOCK_NPM_OPTIONAL")
    program = csharp_client(throttling_server, tmp_path)
    check_program(["mono", str(program)], throttling_server, tmp_path, MANY_DIGITS)


def _require_programs(*names: str) -> None:
    if missing := [each for each in names if not shutil.which(each)]:
        pytest.skip(f"{' and '.join(missing)} not installed; CONTRIBUTING.md says where to get them")


WRONG_SCHEMAS = [
    pytest.param(lambda schemas: schemas["Product"]["properties"]["sku"].update(maxLength=101), "ST202", id="longer"),
    pytest.param(lambda schemas: schemas["Product"]["properties"]["sku"].update(maxLength=99), "ST201", id="shorter"),
    pytest.param(lambda schemas: schemas["Product"]["properties"]["sku"].pop("pattern"), "ST202", id="any character"),
    pytest.param(lambda schemas: schemas["Exact"].update(exclusiveMaximum=10**16), "ST202", id="sixteen digits"),
    pytest.param(lambda schemas: schemas["Exact"].pop("multipleOf"), "ST202", id="any decimals"),
    pytest.param(lambda schemas: schemas["Invoice"].pop("then"), "ST202", id="half a yen"),
    pytest.param(lambda schemas: schemas["Invoice"].update(additionalProperties=True), "ST202", id="unknown members"),
    pytest.param(lambda schemas: schemas["Invoice"]["required"].remove("currency"), "ST202", id="no currency"),
    pytest.param(
        lambda schemas: schemas["StoredInvoice"]["required"].append("number"), "ST108", id="a number required"
    ),
]


@pytest.mark.parametrize(("change", "found"), WRONG_SCHEMAS)
def test_schemathesis_finds_a_wrong_schema(
    server: SandboxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], found: str
) -> None:
    """A difference between the document and the sandbox is found, so finding nothing means something."""
    document = copy.deepcopy(openapi_document.build_openapi_document())
    change(document["components"]["schemas"])
    monkeypatch.setattr(openapi_document, "build_openapi_document", lambda: document)
    some = ("--include-operation-id", "createInvoice", "--include-operation-id", "createProduct")
    examples = ("--phases", "coverage,fuzzing", "--max-examples", "60", "--generation-deterministic")
    with pytest.raises(AssertionError, match=f"{found} "):
        schemathesis(server, tmp_path, *examples, *some)
