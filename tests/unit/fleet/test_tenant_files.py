"""The config files of a fleet, watched."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.fleet.fleet_folder import FleetFolder

from crossdock.errors import ConfigError
from crossdock.services.fleet.tenants_and_watched_configs import TenantChanges, WatchedTenantConfigs, find_config_files
from crossdock_connectors.sftp_warehouse.settings_streams_and_target import SftpServerSettings


@pytest.fixture
def folder(tmp_path: Path) -> FleetFolder:
    made = FleetFolder(tmp_path)
    for name in ("acme", "bolt"):
        made.write(name)
    return made


def files(folder: FleetFolder, *, on_other_hosts: bool = False) -> WatchedTenantConfigs:
    return WatchedTenantConfigs(str(folder.tenants), folder.base, on_other_hosts=on_other_hosts)


def settled(watched: WatchedTenantConfigs) -> TenantChanges:
    """What two scans have found, of which the first sees that a file has changed."""
    assert not watched.load_changed_configs()
    return watched.load_changed_configs()


def names(changes: TenantChanges) -> tuple[list[str], list[str], list[str]]:
    return [each.name for each in changes.loaded], sorted(changes.removed), sorted(changes.broken)


def test_the_first_scan_loads_all_and_the_next_nothing(folder: FleetFolder) -> None:
    """Files that are not configs are left alone."""
    (folder.tenants / "README.md").write_text("no config")
    (folder.tenants / ".hidden.yaml").write_text("[")
    watched = files(folder)
    assert names(watched.load_changed_configs()) == (["acme", "bolt"], [], [])
    assert not watched.load_changed_configs()
    assert sorted(watched.tenants) == ["acme", "bolt"]


def test_a_new_a_changed_and_a_removed_file_are_noticed(folder: FleetFolder) -> None:
    """The others are not loaded again."""
    watched = files(folder)
    watched.load_changed_configs()
    folder.write("acme", retention="off")
    folder.write("cask")
    assert names(settled(watched)) == (["acme", "cask"], [], [])
    (folder.tenants / "bolt.yaml").unlink()
    assert names(watched.load_changed_configs()) == ([], ["bolt"], [])
    assert sorted(watched.tenants) == ["acme", "cask"]


def test_a_folder_that_has_become_empty_removes_no_tenant(folder: FleetFolder) -> None:
    """Its disk may not be mounted any more: they go on with what was read before, until files are there again."""
    watched = files(folder)
    watched.load_changed_configs()
    folder.tenants.rename(folder.folder / "elsewhere")
    folder.tenants.mkdir()
    with pytest.raises(ConfigError, match="no config of a tenant is there any more"):
        watched.load_changed_configs()
    assert sorted(watched.tenants) == ["acme", "bolt"]
    folder.write("bolt")
    assert names(watched.load_changed_configs())[1] == ["acme"]


def test_a_file_that_is_being_written_is_left_until_it_stays_the_same(folder: FleetFolder) -> None:
    """Half of a file is not a config."""
    watched = files(folder)
    watched.load_changed_configs()
    for _ in range(3):
        path = folder.write("acme", retention="off")
        path.write_text(path.read_text()[:40])
        assert not watched.load_changed_configs()
    folder.write("acme", retention="off")
    assert names(settled(watched)) == (["acme"], [], [])


def test_a_broken_config_stops_its_tenant_only_and_is_reported_once(folder: FleetFolder) -> None:
    """Until it is mended."""
    watched = files(folder)
    watched.load_changed_configs()
    folder.write("acme", retention="sometimes")
    changes = settled(watched)
    assert names(changes) == ([], ["acme"], ["acme"])
    assert "retention: must be a number of days" in changes.broken["acme"]
    assert not watched.load_changed_configs()
    assert (sorted(watched.tenants), sorted(watched.config_errors)) == (["bolt"], ["acme"])
    folder.write("acme")
    assert names(settled(watched)) == (["acme"], [], [])
    assert not watched.config_errors


def test_a_link_that_cannot_be_followed_is_an_error_of_its_tenant_only(folder: FleetFolder) -> None:
    """The others stay; a link to a file that is not there is no config."""
    watched = files(folder)
    watched.load_changed_configs()
    (folder.tenants / "gone.yaml").symlink_to(folder.tenants / "nowhere.yaml")
    (folder.tenants / "zinc.yaml").symlink_to("n" * 300)
    changes = settled(watched)
    assert names(changes) == ([], [], ["zinc"])
    assert "the config file cannot be read: File name too long" in changes.broken["zinc"]
    assert sorted(watched.tenants) == ["acme", "bolt"]


@pytest.mark.parametrize("pattern", ["*/*.yaml", "*/zinc.yaml"])
def test_a_folder_of_a_tenant_that_cannot_be_read_is_an_error_of_this_tenant_only(
    folder: FleetFolder, pattern: str
) -> None:
    """It is not left out, as if it had no config."""
    (folder.folder / "zinc").symlink_to("n" * 300)  # root could read any folder
    watched = WatchedTenantConfigs(str(folder.folder / pattern), folder.base)
    found = watched.load_changed_configs()
    if pattern == "*/*.yaml":
        assert names(found)[0] == ["acme", "bolt"]
    assert "the config file cannot be read: File name too long" in found.broken["zinc"]


@pytest.mark.parametrize("pattern", ["{}", "{}/*.yaml"], ids=["folder", "pattern"])
def test_a_folder_that_cannot_be_read_is_an_error_of_the_fleet(folder: FleetFolder, pattern: str) -> None:
    """It does not look like a folder without configs, which would remove all tenants."""
    with pytest.raises(ConfigError) as failed:
        find_config_files(pattern.format(folder.folder / ("n" * 300)))
    assert failed.value.exit_code == 2


def test_a_change_of_the_base_is_a_change_of_all(folder: FleetFolder) -> None:
    """Whether or not their own files have changed."""
    watched = files(folder)
    watched.load_changed_configs()
    folder.write_base(retention="30d")
    assert names(settled(watched)) == (["acme", "bolt"], [], [])


def test_all_can_be_loaded_again(folder: FleetFolder) -> None:
    """An equal config is not a change."""
    watched = files(folder)
    watched.load_changed_configs()
    assert not watched.load_changed_configs(reload=True)


@pytest.mark.parametrize(
    ("sections", "what"),
    [
        ({"state": "postgresql://db.example.com/acme", "spool": "other"}, "state"),
        ({"spool": "acme.spool"}, "spool"),
    ],
)
def test_two_tenants_with_one_state_or_spool_are_refused(
    folder: FleetFolder, sections: dict[str, str], what: str
) -> None:
    """The second in the order of the paths, until the first is gone."""
    folder.write("bolt", **sections)
    watched = files(folder)
    assert names(watched.load_changed_configs()) == (["acme"], [], ["bolt"])
    assert f"acme.yaml has the same {what}" in watched.config_errors["bolt"]
    (folder.tenants / "acme.yaml").unlink()
    assert names(watched.load_changed_configs()) == (["bolt"], ["acme"], [])


def test_two_files_with_one_name_are_refused(folder: FleetFolder) -> None:
    """In whatever folders they are."""
    (folder.tenants / "more").mkdir()
    again = folder.write("acme", state="postgresql://db.example.com/other", spool="other")
    again.rename(folder.tenants / "more" / "acme.yaml")
    folder.write("acme")
    watched = WatchedTenantConfigs(str(folder.tenants / "**" / "*.yaml"), folder.base)
    assert names(watched.load_changed_configs())[2] == ["acme"]
    assert "has the same name" in watched.config_errors["acme"]


def test_a_state_in_a_file_is_refused_for_runs_on_other_hosts(folder: FleetFolder) -> None:
    """And welcome on this one."""
    folder.write("acme", state="sqlite:///acme.db")
    assert names(files(folder).load_changed_configs()) == (["acme", "bolt"], [], [])
    watched = files(folder, on_other_hosts=True)
    assert names(watched.load_changed_configs()) == (["bolt"], [], ["acme"])
    assert "is a file of one host, and its runs may be on other hosts" in watched.config_errors["acme"]


def test_what_a_pattern_finds(folder: FleetFolder) -> None:
    """A folder, a file, or what matches; a path to nothing is refused."""
    both = [folder.tenants / "acme.yaml", folder.tenants / "bolt.yaml"]
    assert find_config_files(str(folder.tenants)) == find_config_files(str(folder.tenants / "*.yaml")) == both
    assert find_config_files(str(folder.tenants / "acme.yaml")) == both[:1]
    assert find_config_files(str(folder.tenants / "x*.yaml")) == []
    with pytest.raises(ConfigError, match="there is no such folder or file"):
        find_config_files(str(folder.folder / "nowhere"))


def test_the_base_is_no_tenant(folder: FleetFolder) -> None:
    """Even if the pattern finds it."""
    watched = WatchedTenantConfigs(str(folder.folder / "**" / "*.yaml"), folder.base)
    assert names(watched.load_changed_configs()) == (["acme", "bolt"], [], [])


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        ({"ftp.example.com": "ftp"}, "wms: source_host raised KeyError in line "),
        ({"ftp.example.com": "ftp", "odd.example.com": 7}, "wms: source_host returned int instead of a text"),
    ],
)
def test_settings_that_do_not_tell_their_host_stop_their_tenant_only(
    folder: FleetFolder, monkeypatch: pytest.MonkeyPatch, hosts: dict[str, object], told: str
) -> None:
    """The code of a connector says which hosts a tenant reads; the other tenants are run."""
    monkeypatch.setattr(SftpServerSettings, "source_host", property(lambda own: hosts[own.host]))
    folder.write("acme", host="odd.example.com")
    watched = files(folder)
    assert names(watched.load_changed_configs()) == (["bolt"], [], ["acme"])
    assert told in watched.config_errors["acme"]
