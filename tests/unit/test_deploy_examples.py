"""The examples of a fleet and of its deployment are complete, safe, and run."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.documentation.config_blocks import check_schema
from tests.documentation.fences import DOCS, ROOT
from tests.unit.test_docs import blocks

from crossdock.cli.main import main
from crossdock.cli.schedule import schedule
from crossdock.config.project import project
from crossdock.services.fleet import executor_kinds_by_entry_point
from crossdock.services.fleet.tenants_and_watched_configs import WatchedTenantConfigs, load_fleet_base
from crossdock.values.serving import AllowedHostNames

DEPLOY, FLEET = ROOT / "configs" / "deploy", ROOT / "configs" / "fleet"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")


def objects() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


OBJECTS = {(each["kind"], each["metadata"]["name"]): each for each in objects()}
PODS = {name: each["spec"]["template"] for (kind, name), each in OBJECTS.items() if kind == "Deployment"}
SCHEDULER = PODS["crossdock-scheduler"]["spec"]["containers"][0]


def broken_and_tenants(base: Path, tenants: Path) -> tuple[dict[str, str], set[str]]:
    files = WatchedTenantConfigs(str(tenants), load_fleet_base(base))
    files.load_changed_configs()
    return dict(files.config_errors), set(files.tenants)


def test_the_example_fleet_loads() -> None:
    """Both tenants can be used, each with its own state, key and exports, and sample files for every stream."""
    assert broken_and_tenants(FLEET / "base.yaml", FLEET / "tenants") == ({}, {"acme", "globex"})
    for tenant in (FLEET / "tenants").iterdir():
        (wms,) = project.load(FLEET / "base.yaml", tenant).connections
        settings = wms.settings.model_dump()
        assert settings["path"].name == tenant.stem
        assert all(list(settings["path"].glob(stream["files"])) for stream in settings["streams"].values())


@pytest.mark.parametrize(
    ("page", "tenant", "spool"),
    [("start_a_fleet", "acme", "/var/lib/crossdock/acme.spool"), ("second_tenant", "globex", "globex.db.spool")],
)
def test_the_fleets_of_the_guide_load(tmp_path: Path, page: str, tenant: str, spool: str) -> None:
    """The two files of a page, under the names in their first lines, are a fleet."""
    for text in blocks(DOCS / "how_to" / "fleet" / f"{page}.md", "yaml"):
        path = tmp_path / text.partition("\n")[0].removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert broken_and_tenants(tmp_path / "base.yaml", tmp_path / "tenants") == ({}, {tenant})
    loaded = project.load(tmp_path / "base.yaml", tmp_path / "tenants" / f"{tenant}.yaml")
    assert loaded.spool == tmp_path / spool


def test_the_executor_of_the_guide_carries_out_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Python example, registered as the page says, is what ``--executor`` finds, and it returns results."""
    page = DOCS / "how_to" / "fleet" / "executors.md"
    (code,), (toml,) = blocks(page, "python"), blocks(page, "toml")
    (name,) = re.findall(r"^# (\w+)\.py", code)
    (tmp_path / f"{name}.py").write_text(code.replace("os.nice", "abs"), encoding="utf-8")  # tests keep their priority
    monkeypatch.syspath_prepend(tmp_path)
    assert isinstance(importlib.import_module(name).QUIET, executor_kinds_by_entry_point.ExecutorKind)
    ((called, value),) = re.findall(r'^(\w+) = "(.*)"$', toml, re.MULTILINE)
    assert f'[project.entry-points."{executor_kinds_by_entry_point.GROUP}"]' in toml
    point = EntryPoint(called, value, executor_kinds_by_entry_point.GROUP)
    monkeypatch.setattr(
        executor_kinds_by_entry_point, "entry_points", lambda group: [*entry_points(group=group), point]
    )
    with executor_kinds_by_entry_point.parse_executor_option(called).open(2) as executor:
        assert [future.result() for future in [executor.submit(int, text) for text in "123"]] == [1, 2, 3]
    with pytest.raises(SystemExit) as ended:
        main(["schedule", "--fleet", str(tmp_path / "nowhere"), "--executor", called])
    assert ended.value.code == 2
    assert "there is no such folder or file" in capsys.readouterr().err


def test_the_image_runs_without_root_and_writes_one_folder() -> None:
    """Its user is a number, its home and temporary files are on the volume, and no bytecode is written."""
    user = re.findall(r"^USER (\S+)$", CONTAINERFILE, re.MULTILINE)
    (volume,) = re.findall(r"^VOLUME (\S+)$", CONTAINERFILE, re.MULTILINE)
    assert user == ["10001:10001"]
    variables = dict(re.findall(r"(\w+)=(\S+)", CONTAINERFILE.partition("ENV ")[2].partition("\nWORKDIR")[0]))
    assert variables["PYTHONDONTWRITEBYTECODE"] == "1"
    assert {variables["HOME"], variables["TMPDIR"]} == {volume}


def test_the_image_is_made_of_what_is_locked() -> None:
    """Base images have digests; what is downloaded has the hashes of the lock file, and nothing else is installed."""
    commands = re.findall(r"^(?:FROM|RUN) .*?[^\\]$", CONTAINERFILE, re.MULTILINE | re.DOTALL)
    images = {command.split()[1] for command in commands if command.startswith("FROM ")}
    assert [re.search(r":[0-9.]+-[a-z-]+@sha256:[0-9a-f]{64}$", image) is None for image in images] == [False]
    download, install = (command for command in commands if "pip " in command)
    assert "pip download --no-cache-dir --require-hashes --no-deps" in download
    assert "-r requirements.lock -d /locked" in download
    assert "install --no-cache-dir --no-index --find-links /locked" in install
    needed = {re.split("[^a-z-]", each)[0] for each in PROJECT["build-system"]["requires"]}
    lock = (ROOT / ".ci" / "requirements.lock").read_text("utf-8")
    assert needed <= {*re.findall("^([a-z-]+)==", lock, re.MULTILINE)}


def test_the_image_installs_extras_that_exist() -> None:
    """The default of the build argument names extras of the package."""
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", CONTAINERFILE, re.MULTILINE)
    assert {*extras.split(",")} < PROJECT["project"]["optional-dependencies"].keys()


def test_the_builder_gets_what_the_image_needs_and_nothing_else() -> None:
    """.dockerignore excludes all and admits what the Containerfile copies, so that no local secret is copied."""
    ignored, *admitted = [
        line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if not line.startswith("#")
    ]
    copied = [copy.split()[:-1] for copy in re.findall(r"^COPY (?!--)(.+)$", CONTAINERFILE, re.MULTILINE)]
    assert ignored == "*"
    assert {line.removeprefix("!") for line in admitted if line.startswith("!")} == {
        path for all_ in copied for path in all_
    }


def test_the_image_checks_its_health_without_other_programs() -> None:
    """HEALTHCHECK is a Python command that requests ``/healthz`` at the port that the image serves."""
    (check,) = re.findall(r"^HEALTHCHECK .*?CMD (\[.*?\])$", CONTAINERFILE, re.MULTILINE | re.DOTALL)
    python, option, code = json.loads(check)
    assert (python, option) == ("python", "-c")
    (port,) = re.findall(r"127\.0\.0\.1:(\d+)/healthz", code)
    (command,) = re.findall(r"^CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)
    assert json.loads(command)[-2:] == ["--health", port]
    compile(code, "HEALTHCHECK", "exec")


@pytest.mark.parametrize("manifest", OBJECTS.values(), ids=[f"{kind}-{name}" for kind, name in OBJECTS])
def test_kubernetes_accepts_each_manifest(manifest: dict[str, Any]) -> None:
    """By its published schemas, which know each key."""
    check_schema(manifest)


def test_a_key_that_kubernetes_does_not_know_is_found() -> None:
    """Kubernetes would ignore it, and with it the time zone of the jobs."""
    (text,) = blocks(DOCS / "how_to" / "deploy" / "kubernetes.md", "yaml")
    with pytest.raises(kubernetes_validate.ValidationError, match="timezone"):
        check_schema(yaml.safe_load(text.replace("timeZone:", "timezone:")))


@pytest.mark.parametrize("name", PODS)
def test_pods_have_no_privileges(name: str) -> None:
    """They run without root, capabilities and API token, read-only, with limits and a seccomp profile."""
    pod = PODS[name]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        expected = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["securityContext"] == expected
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        assert container["livenessProbe"]
        assert container["image"] == f"crossdock:{PROJECT['project']['version']}"
        writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
        assert writable == ["/var/lib/crossdock"]


def test_the_schedulers_use_options_that_exist() -> None:
    """There are two of them, with the arguments of the command, on the port and folders that the manifests mount."""
    assert OBJECTS["Deployment", "crossdock-scheduler"]["spec"]["replicas"] == 2
    before, command, *arguments = SCHEDULER["args"][1:]
    context = schedule.make_context("schedule", list(arguments), resilient_parsing=True)
    assert command == "schedule"
    (service,) = [each for each in OBJECTS.values() if each["kind"] == "Service"]
    address = f"dask=tcp://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert context.params["executor"] == address
    mounted = {mount["mountPath"] for mount in SCHEDULER["volumeMounts"]}
    assert {str(Path(before).parent), context.params["fleet"]} < mounted


@pytest.mark.parametrize(
    ("probe", "path"), [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
)
def test_probes_of_the_schedulers_are_accepted(probe: str, path: str) -> None:
    """The Host header that a probe sends is one that the health server answers to."""
    (port,) = SCHEDULER["ports"]
    assert SCHEDULER[probe]["httpGet"] == {"path": path, "port": port["name"]}
    assert SCHEDULER["args"][SCHEDULER["args"].index("--health") + 1] == f"0.0.0.0:{port['containerPort']}"
    headers = [(b"host", f"10.1.2.3:{port['containerPort']}".encode())]
    scope = {"type": "http", "server": ("10.1.2.3", port["containerPort"]), "headers": headers}
    assert AllowedHostNames([], "crossdock schedule").refusal_reason(scope) is None


def test_the_fleet_of_the_manifests_loads(tmp_path: Path) -> None:
    """The ConfigMaps hold a base file and tenants on PostgreSQL, whose working files are on the volume."""
    (tmp_path / "tenants").mkdir()
    for name, folder in (("crossdock-base", tmp_path), ("crossdock-tenants", tmp_path / "tenants")):
        for file, text in OBJECTS["ConfigMap", name]["data"].items():
            (folder / file).write_text(text, encoding="utf-8")
    base = load_fleet_base(tmp_path / "base.yaml")
    files = WatchedTenantConfigs(str(tmp_path / "tenants"), base, on_other_hosts=True)
    files.load_changed_configs()
    assert (files.config_errors, set(files.tenants)) == ({}, {"acme", "globex"})
    assert base.database.drivername != "sqlite"
    assert str(base.config.folder) == "/var/lib/crossdock"


def test_only_pods_of_crossdock_reach_the_dask_scheduler() -> None:
    """Each pod has a policy; that of the Dask scheduler admits schedulers and workers, to its one port."""
    policies = [each["spec"] for (kind, _), each in OBJECTS.items() if kind == "NetworkPolicy"]
    chosen = {each["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: each for each in policies}
    components = {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in PODS.values()}
    assert set(chosen) == components
    assert all(each["policyTypes"] == ["Ingress"] for each in policies)
    (rule,) = chosen["dask-scheduler"]["ingress"]
    admitted = [each["podSelector"]["matchLabels"] for each in rule["from"]]
    assert {each["app.kubernetes.io/component"] for each in admitted} == {"scheduler", "dask-worker"}
    assert {each["app.kubernetes.io/name"] for each in admitted} == {"crossdock"}
    assert [each["port"] for each in rule["ports"]] == ["dask"]
    (rule,) = chosen["scheduler"]["ingress"]
    assert [each["port"] for each in rule["ports"]] == [each["name"] for each in SCHEDULER["ports"]]


def test_the_dask_scheduler_has_no_secrets() -> None:
    """Only crossdock's schedulers and the workers need them."""
    having = {name for name, pod in PODS.items() if any("envFrom" in each for each in pod["spec"]["containers"])}
    assert having == {"crossdock-scheduler", "crossdock-dask-worker"}
    assert not any("value" in each and "PASSWORD" in each["name"] for each in SCHEDULER["env"])


def test_the_cron_job_of_the_guide_runs_what_was_due() -> None:
    """Its pod has the image and the rights of the fleet's scheduler, and mounts the config that its arguments name."""
    (text,) = blocks(DOCS / "how_to" / "deploy" / "kubernetes.md", "yaml")
    pod = yaml.safe_load(text)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {key: container[key] for key in ("image", "securityContext")} == {
        key: SCHEDULER[key] for key in ("image", "securityContext")
    }
    assert pod["securityContext"]["runAsNonRoot"] is True
    _, config, command, *arguments = container["args"]
    assert command == "schedule"
    assert schedule.make_context("schedule", arguments, resilient_parsing=True).params["once"] == "latest"
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounts == {str(Path(config).parent): True, "/var/lib/crossdock": False}


def test_units_run_commands_that_exist() -> None:
    """The systemd units of the guide start crossdock and Dask as a user that writes to its state folder only."""
    (unit,) = blocks(DOCS / "how_to" / "deploy" / "systemd.md", "ini")
    units = [unit, *(path.read_text(encoding="utf-8") for path in DEPLOY.glob("systemd/*.service"))]
    assert len(units) == 4
    for unit in units:
        command = re.search(r"^ExecStart=/opt/crossdock/bin/(\w+) (\S+) ", unit.replace("\\\n ", ""), re.MULTILINE)
        assert command
        assert command.group(1, 2) in {("crossdock", "-C"), ("dask", "worker"), ("dask", "scheduler")}
        assert {"User=crossdock", "ProtectSystem=strict", "NoNewPrivileges=yes"} <= set(unit.splitlines())
        if "EnvironmentFile" in unit:
            assert "StateDirectory=crossdock\n" in unit
