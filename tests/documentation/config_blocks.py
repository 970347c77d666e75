"""What the YAML of the pages is, and how each kind is tried."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from pydantic import TypeAdapter
from tests.documentation.fences import ROOT, Fence, fences, fences_of
from tests.documentation.options import check_options

from crossdock.config.project import connections_and_bound_streams, project
from crossdock.config.project.project import ConfigFile
from crossdock.connector import Connector
from crossdock.console.sign_in.openid_provider import OpenIdSettings
from crossdock.mapping.declarative import Form
from crossdock.services.fleet.tenants_and_watched_configs import WatchedTenantConfigs, load_fleet_base
from crossdock.values import exact_json, yaml_reader
from crossdock.writing.files.content_kinds import FileContentConfig
from crossdock_connectors.http_json.target_settings import BulkJob, JobResourceConfig
from crossdock_connectors.warehouse.settings_and_streams import WarehouseStreamConfig
from crossdock_connectors.warehouse.target_settings import FileResourceConfig

Try = Callable[[Any, Fence, Path], None]
KUBERNETES = "1.27", kubernetes_validate.latest_version()  # the first with time zones of CronJobs, and the newest
_WORKLOADS = {"CronJob": ("jobTemplate", "spec", "template"), "Deployment": ("template",), "Job": ("template",)}


def data_of(fence: Fence) -> Any:
    """What a block says, strictly parsed: no key twice, and no value that YAML misreads."""
    if yaml.safe_load(fence.text) is None:
        return {}
    return yaml_reader.parse_yaml_mapping(fence.text, fence.place, {}).data


@cache
def whole_config() -> dict[str, Any]:
    """The first complete example of the pages on configuring, whose sections the other examples replace."""
    return next(
        data
        for data in map(data_of, fences("yaml"))
        if isinstance(data, dict) and {"platform", "state", "retention", "connections"} <= data.keys()
    )


def files_of_pages() -> dict[str, str]:
    """The Python files and copybooks that configs of the pages name."""
    return {each.title: each.text for each in fences("python", "cobol") if each.title}


@cache
def _keys(model: Any) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items())


@cache
def _sections() -> frozenset[str]:
    return _keys(ConfigFile)


def kind_of(fence: Fence) -> str | None:
    """The first kind of `ASSET_MEDIA_TYPES` that a block is; None if it is none."""
    data = data_of(fence)
    return next((name for name, (is_one, _) in KINDS.items() if is_one(data, fence)), None)


# ---- how each kind is tried


def _load(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    for name, text in files_of_pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "c.yaml").write_bytes(exact_json.dumps({**whole_config(), **data}))
    with _connectors_of_the_pages(folder, fence.page):
        assert project.load(folder / "c.yaml").connections


@cache
def _installed(group: str) -> EntryPoints:
    return entry_points(group=group)


@contextmanager
def _connectors_of_the_pages(folder: Path, page: Path) -> Iterator[None]:
    """Let ``shop`` be the kind of the connector in the README, and install what *page* registers."""
    (code,) = [each.text for each in fences_of(ROOT / "README.md") if each.language == "python"]
    (folder / "readme_shop.py").write_text(code, encoding="utf-8")
    points = [EntryPoint("shop", "readme_shop:CONNECTOR", Connector.group)]
    for each in fences_of(page):
        if each.language == "toml":
            registered = tomllib.loads(each.text)["project"]["entry-points"].get(Connector.group, {})
            points += [EntryPoint(name, value, Connector.group) for name, value in registered.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setattr(
            connections_and_bound_streams, "entry_points", lambda group: EntryPoints([*_installed(group), *points])
        )
        yield


def _load_fleet(data: Any, fence: Fence, folder: Path) -> None:
    for each in fences_of(fence.page):
        if each.title == "base.yaml" or each.title.startswith("tenants/"):
            path = folder / each.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(each.text, encoding="utf-8")
    found = WatchedTenantConfigs(str(folder / "tenants"), load_fleet_base(folder / "base.yaml"))
    found.load_changed_configs()
    assert found.tenants
    assert not found.config_errors, found.config_errors


def _load_stream(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    stream = {
        "files": "ITEM_*.csv",
        "mode": "append",
        "key": ["SKU"],
        "resource": "product",
        "map": {"sku": "SKU", "name": "NAME"},
    }
    _load_stream_by_name({"records": {**stream, **data}}, fence, folder)


def _load_stream_by_name(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    if any("to" in stream for stream in data.values()):  # the target is another connection
        for stream in data.values():
            TypeAdapter(WarehouseStreamConfig).validate_python(stream)
    else:
        _load({"connections": {"wms": {"kind": "folder_warehouse", "path": "exports", "streams": data}}}, fence, folder)


def _load_stream_of_an_api(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    shop = {"kind": "http_json", "base_url": "https://shop.example/api", "pagination": {"kind": "link_header"}}
    _load({"connections": {"shop": {**shop, "streams": data}}}, fence, folder)


def _load_resource_of_an_api(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    shop = {"kind": "http_json", "base_url": "https://shop.example/api", "target": {"resources": data}}
    _load({"connections": {"shop": shop}}, fence, folder)


def _load_members(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    for form in data.values():
        TypeAdapter(Form).validate_python(form)


def _load_content(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    TypeAdapter[Any](FileContentConfig).validate_python(data)


def _load_resource(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    for resource in data.values():
        model: Any = JobResourceConfig if "job" in resource else FileResourceConfig
        model.model_validate(resource)


def _load_job_parts(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    for name, value in data.items():
        field: Any = BulkJob.model_fields[name].annotation
        TypeAdapter(field).validate_python(tuple(value) if isinstance(value, list) else value)


def _load_provider(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    OpenIdSettings.model_validate_json(exact_json.dumps(data))


def _check_command(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    program, *words = data["command"]
    assert program == "crossdock"
    check_options(words)


def _check_manifest(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    """Kubernetes accepts it, each volume is mounted, and crossdock's arguments are known."""
    check_schema(data)
    inner = data["spec"]
    for name in _WORKLOADS[data["kind"]]:
        inner = inner[name]
    for container in inner["spec"]["containers"]:
        mounted = {each["name"] for each in container.get("volumeMounts", ())}
        assert mounted == {each["name"] for each in inner["spec"].get("volumes", ())}
        check_options(container["args"])


def check_schema(manifest: dict[str, Any]) -> None:
    """Compare *manifest* with the OpenAPI schemas of Kubernetes, which know each key.

    Raises:
        kubernetes_validate.ValidationError: If it does not fit.
    """
    for version in KUBERNETES:
        kubernetes_validate.validate(manifest, version, strict=True)


def _check_compose(data: dict[str, Any], fence: Fence, folder: Path) -> None:
    """The structure of a Compose file, and the arguments of crossdock."""
    assert data.keys() <= {"name", "services", "volumes", "networks", "secrets", "configs"}
    for service in data["services"].values():
        assert {"image", "build"} & service.keys()
        if "crossdock" in str(service.get("image", "")) and "command" in service:
            command = service["command"]
            check_options(command if isinstance(command, list) else command.split())


def _is_map(data: Any) -> bool:
    return isinstance(data, dict) and bool(data)


KINDS: dict[str, tuple[Callable[[Any, Fence], bool], Try]] = {
    "comment only": (lambda data, _: not data, lambda *_: None),
    "fleet": (lambda data, fence: fence.title == "base.yaml" or fence.title.startswith("tenants/"), _load_fleet),
    "file of Dagster, which tests/long/test_orchestrators.py uses": (
        lambda data, _: _is_map(data) and data.keys() == {"python_logs"},
        lambda *_: None,
    ),
    "Kubernetes manifest": (lambda data, _: _is_map(data) and "apiVersion" in data, _check_manifest),
    "Compose file": (lambda data, _: _is_map(data) and "services" in data, _check_compose),
    "command of a container": (lambda data, _: _is_map(data) and data.keys() == {"command"}, _check_command),
    "OpenID Connect provider": (lambda data, _: _is_map(data) and "issuer" in data, _load_provider),
    "config": (
        lambda data, _: _is_map(data) and all(key in _sections() or key.startswith("x-") for key in data),
        _load,
    ),
    "content of files": (
        lambda data, _: (
            _is_map(data) and "kind" in data and not isinstance(data["kind"], dict) and "streams" not in data
        ),
        _load_content,
    ),
    "part of a stream": (lambda data, _: _is_map(data) and data.keys() <= _keys(WarehouseStreamConfig), _load_stream),
    "parts of a bulk job": (lambda data, _: _is_map(data) and data.keys() <= _keys(BulkJob), _load_job_parts),
    "stream": (
        lambda data, _: _is_map(data) and all(_is_map(each) and "files" in each for each in data.values()),
        _load_stream_by_name,
    ),
    "stream of an API": (
        lambda data, _: (
            _is_map(data) and all(_is_map(each) and "path" in each and "map" in each for each in data.values())
        ),
        _load_stream_of_an_api,
    ),
    "resource of a target": (
        lambda data, _: _is_map(data) and all(_is_map(each) and "content" in each for each in data.values()),
        _load_resource,
    ),
    "resource of an API": (
        lambda data, _: _is_map(data) and all(_is_map(each) and "members" in each for each in data.values()),
        _load_resource_of_an_api,
    ),
    "members of a map": (lambda data, _: _is_map(data), _load_members),
}
