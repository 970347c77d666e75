"""The tenants of a fleet and what they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.fleet.fleet_folder import FleetFolder

from crossdock.config.project import project
from crossdock.errors import ConfigError, CrossdockError
from crossdock.services.fleet.tenants_and_watched_configs import digest_of_files, load_fleet_base, load_tenant


@pytest.fixture
def folder(tmp_path: Path) -> FleetFolder:
    return FleetFolder(tmp_path)


def test_a_tenant_is_its_file_on_top_of_the_base(folder: FleetFolder) -> None:
    """Its name is that of the file; jobs may come from the base file; no secret is read."""
    tenant = load_tenant(folder.write("acme"), folder.base)
    assert (tenant.name, list(tenant.jobs), tenant.is_local) == ("acme", ["nightly"], False)
    assert tenant.hosts == {"nightly": frozenset({"ftp.example.com:22"})}
    assert tenant.files == (folder.base_file, folder.tenants / "acme.yaml")
    assert tenant.spool == folder.folder / "acme.spool", "by the name of the database, beside the first file"


def test_the_working_files_of_all_tenants_may_be_elsewhere(folder: FleetFolder) -> None:
    """In the folder of the fleet, also when a tenant is synced by hand."""
    folder.write_base(fleet={"folder": "/var/lib/crossdock"})
    path = folder.write("acme")
    assert load_tenant(path, folder.base).spool == Path("/var/lib/crossdock/acme.spool")
    assert project.load(folder.base_file, path).spool == Path("/var/lib/crossdock/acme.spool")


def test_tenants_with_equal_references_share_a_credential(folder: FleetFolder) -> None:
    """The same variable, or the same file, for the same address."""
    one, other = (load_tenant(folder.write(name), folder.base).credential for name in ("a", "b"))
    assert one == other
    assert load_tenant(folder.write("c", key="env:OTHER"), folder.base).credential != one
    elsewhere = {"base_url": "http://127.0.0.1:8", "tenant": "d", "auth": {"kind": "api_key", "token": "env:KEY"}}
    assert load_tenant(folder.write("d", platform=elsewhere), folder.base).credential != one


def test_the_digest_covers_every_file(folder: FleetFolder) -> None:
    """A change of the base file changes each tenant."""
    path = folder.write("acme")
    before = load_tenant(path, folder.base)
    folder.write_base(retention="off")
    assert digest_of_files(before.files) != before.digest
    assert load_tenant(path, folder.base).digest == digest_of_files(before.files)


def test_a_base_without_a_fleet_has_its_defaults(folder: FleetFolder) -> None:
    """And none at all too; the database is beside the base file."""
    assert folder.base.config == load_fleet_base().config
    assert folder.base.database.database == str(folder.folder / "fleet.db")
    assert folder.base.notify is None


def test_findings_in_the_base_have_their_places(folder: FleetFolder) -> None:
    """Line and column of the base file."""
    folder.write_base(fleet={"at_once": 0})
    with pytest.raises(ConfigError) as refused:
        _ = folder.base
    assert f"{folder.base_file}:2:3: fleet.at_once: " in str(refused.value)
    folder.write_base(fleet={"per_hst": 2})
    with pytest.raises(ConfigError, match=r"fleet\.per_hst: unknown key; did you mean 'per_host'\?"):
        _ = folder.base


@pytest.mark.parametrize(
    ("name", "sections", "said"),
    [
        ("no_jobs", {}, "has no jobs"),
        ("a.b", {}, "a tenant cannot be called 'a.b'"),
        ("acme", {"connections": {}}, "connections: "),
    ],
)
def test_what_is_wrong_with_a_tenant_is_said_with_its_file(
    folder: FleetFolder, name: str, sections: dict[str, Any], said: str
) -> None:
    """As for any config."""
    if name == "no_jobs":
        folder.write_base(jobs={})
    path = folder.write(name, **sections)
    with pytest.raises(CrossdockError) as refused:
        load_tenant(path, folder.base)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_is_gone_has_no_digest(folder: FleetFolder) -> None:
    """The error names it."""
    with pytest.raises(ConfigError, match=r"gone\.yaml: the config file cannot be read: No such file"):
        digest_of_files([folder.tenants / "gone.yaml"])
