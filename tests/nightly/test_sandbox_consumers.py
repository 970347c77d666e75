"""Consumers of the OpenAPI document: the short form; the long one is in ``tests/long``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tests.consumers.generated_clients import NODE, npm_registry_answers, python_client, typescript_client
from tests.consumers.running import THROTTLING, check_program, schemathesis
from tests.servers import require

from crossdock.sandbox import SandboxServer, SandboxSettings


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "sandbox", SandboxSettings(rate_per_min=10_000_000, burst=1_000_000)) as running:
        yield running


@pytest.fixture
def throttling_server(tmp_path: Path) -> Iterator[SandboxServer]:
    with SandboxServer(tmp_path / "throttling", THROTTLING) as running:
        yield running


def test_schemathesis_finds_nothing_in_a_few_requests(server: SandboxServer, tmp_path: Path) -> None:
    """All checks over all operations: the examples, and a few sequences of generated requests."""
    few = ("--phases", "examples,stateful", "--max-examples", "2", "--generation-deterministic")
    assert "No issues found" in schemathesis(server, tmp_path, *few)


def test_schemathesis_finds_nothing_at_the_edges_of_an_invoice(server: SandboxServer, tmp_path: Path) -> None:
    """All checks at each boundary of the documented request, inside and outside."""
    edges = ("--phases", "coverage", "--include-operation-id", "createInvoice")
    assert "No issues found" in schemathesis(server, tmp_path, *edges)


def test_a_generated_python_client_creates_an_invoice(throttling_server: SandboxServer, tmp_path: Path) -> None:
    """The generator has no warnings, and its client creates, reads, lists, approves, updates and is throttled."""
    program = python_client(throttling_server, tmp_path)
    check_program([sys.executable, str(program)], throttling_server, tmp_path, Decimal("0.25"))


def test_a_generated_typescript_client_is_typed_and_creates_an_invoice(
    throttling_server: SandboxServer, tmp_path: Path
) -> None:
    """tsc finds nothing but a misspelt member, and the client creates, lists, approves, updates and is throttled."""
    require(npm_registry_answers(), "access to the npm registry", optional_by="CROSSDOCK_NPM_OPTIONAL")
    program = typescript_client(throttling_server, tmp_path)
    check_program([*NODE, str(program)], throttling_server, tmp_path, Decimal("0.25"))
