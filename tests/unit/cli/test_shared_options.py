"""Arguments that a shell may pass."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from decimal import Decimal
from pathlib import Path

import pytest

from crossdock.cli.main import main
from crossdock.values.texts_of_numbers_and_times import aligned_decimals


@pytest.mark.parametrize(
    "command",
    [
        "trace",
        "records show",
        "records show wms.p",
        "records replay wms.p",
        "records resolve wms.p",
        "records drop wms.p",
    ],
)
def test_an_argument_must_be_utf8(command: str) -> None:
    """A shell passes any bytes; what is not UTF-8 is refused with a sentence."""
    said = io.StringIO()
    with redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main([*command.split(), "\udce4", *(["x"] if command == "records show" else [])])
    assert ended.value.code == 2
    assert "is not UTF-8" in said.getvalue()


FIRST = """
platform: {base_url: "https://a.example.com", tenant: acme, auth: {kind: api_key, token: env:T}}
connections: {wms: {kind: folder_warehouse, path: x, streams: {a: {files: a, mode: append, key: [K], resource: customer,
  map: {name: N}}}}}
"""


def shown(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit):
        main([*arguments])
    return out.getvalue() + err.getvalue()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three config files with other tenants; the first is complete."""
    (tmp_path / "1.yaml").write_text(FIRST)
    (tmp_path / "2.yaml").write_text("platform: {tenant: second}")
    (tmp_path / "3.yaml").write_text("platform: {tenant: third}\nspool: there")
    return [str(tmp_path / f"{number}.yaml") for number in (1, 2, 3)]


def test_several_configs_are_merged_in_order(files: list[str], tmp_path: Path) -> None:
    """The last one wins, paths are relative to the first, and files after the command replace those before it."""
    first, second, third = files
    assert "tenant: second" in shown("-C", first, "-C", second, "config", "show")
    merged = shown("config", "show", "-C", first, "-C", second, "-C", third)
    assert "tenant: third" in merged
    assert f"spool: {tmp_path / 'there'}" in merged
    assert "tenant: acme" in shown("-C", first, "-C", second, "config", "show", "-C", first)


def test_the_variable_names_several_configs(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """CROSSDOCK_CONFIG separates files as PATH does."""
    monkeypatch.setenv("CROSSDOCK_CONFIG", os.pathsep.join(files))
    assert "tenant: third" in shown("config", "show")


@pytest.mark.parametrize(
    "command", ["check", "init", "plan", "sync", "runs", "show 1", "jobs list", "schedule", "state stats", "approve"]
)
def test_every_command_reads_all_configs(files: list[str], tmp_path: Path, command: str) -> None:
    """A mistake in the second file is found by each command, with its place."""
    (tmp_path / "2.yaml").write_text("platform:\n  tennant: x")
    said = shown(*command.split(), "-C", files[0], "-C", files[1])
    assert f"{files[1]}:2:3: platform.tennant: unknown key; did you mean 'tenant'?" in said


def test_numbers_beside_each_other_have_the_same_places() -> None:
    """Equal amounts look equal, whatever their zeros, and no digit is rounded away."""
    assert aligned_decimals([Decimal("63481.00"), Decimal("63481.0"), Decimal("1E+3")]) == [
        "63,481.00",
        "63,481.00",
        "1,000.00",
    ]
    assert aligned_decimals([Decimal(10**40 + 1), Decimal(0)]) == [f"{10**40 + 1:,}", "0"]


@pytest.mark.parametrize("command", ["runs", "show", "jobs list", "state stats", "approve", "bindings export"])
def test_a_mistake_in_a_stream_does_not_hide_the_state(tmp_path: Path, command: str) -> None:
    """What has happened can be read while the config is being corrected."""
    path = tmp_path / "crossdock.yaml"
    path.write_text(FIRST)
    shown("-C", str(path), "init")
    as_before = shown("-C", str(path), *command.split())
    path.write_text(FIRST.replace("streams:", "streems:"))
    assert shown("-C", str(path), *command.split()) == as_before
    assert "streems" in shown("-C", str(path), "plan")


@pytest.mark.parametrize(
    "command",
    [
        "report --month 0001-01",
        "report --month 9999-12",
        "records replay --since 0001-01-01",
        "audit --since 9999-12-31T23:59:59",
    ],
)
def test_a_date_must_be_of_a_usable_year(command: str) -> None:
    """Years in which one cannot reckon are refused, with those that can be used."""
    said = io.StringIO()
    with redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 2
    assert "in the years 1900 to 9998" in said.getvalue()
