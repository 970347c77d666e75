"""The container image, built and run with podman as root: ``pytest tests/long/test_container.py -rsP``, six minutes.

The official Python image is the base if it can be pulled. Otherwise the same release of Debian with its own Python,
made by debootstrap, stands in for it. The test needs Debian's packages podman, runc and debootstrap; without them, or
without PyPI, it is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.distributions import PROJECT, ROOT
from tests.servers import require
from tests.waiting import eventually

CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
(BASE,) = {*re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
STAND_IN = "localhost/python"
RESTRICTED = (
    *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "none"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"),  # podman's defaults may exceed this machine's
)


@dataclass(frozen=True)
class Podman:
    """podman, with images and containers in *folder*."""

    folder: Path

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of its commands to its end."""
        place = "--root", str(self.folder / "images"), "--runroot", str(self.folder / "run")
        how = "--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--runtime", "runc"
        return subprocess.run(["podman", *place, *how, *arguments], check=False, capture_output=True, text=True)

    def output(self, *arguments: str) -> str:
        """What a command prints that ends with exit code 0."""
        done = self(*arguments)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def crossdock(self, *arguments: str, options: tuple[str, ...] = ()) -> str:
        """What the image prints, run once with few rights."""
        return self.output("run", "--rm", "--no-healthcheck", *RESTRICTED, *options, "localhost/crossdock", *arguments)

    def shell(self, script: str) -> str:
        """What a shell script prints in the image."""
        return self.crossdock("-c", script, options=("--entrypoint", "sh"))


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    missing = [each for each in ("podman", "runc", "debootstrap") if not shutil.which(each)]
    require(not missing and os.geteuid() == 0, "root, or one of podman, runc and debootstrap,")
    podman = Podman(tmp_path_factory.mktemp("podman"))
    try:
        build(podman)
        yield podman
    finally:
        podman("rm", "--all", "--force", "--volumes")
        podman("rmi", "--all", "--force")
        subprocess.run(["umount", "--quiet", str(podman.folder / "images" / "overlay")], check=False)


def build(podman: Podman) -> None:
    replaced: tuple[str, ...] = ()
    if podman("pull", "--quiet", BASE).returncode:
        make_stand_in(podman)
        replaced = ("--build-context", f"{BASE}=container-image://{STAND_IN}")
    certificates = ("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro") if Path(CERTIFICATES).exists() else ()
    how = ("--isolation", "chroot", "--network", "host", "--format", "docker", "--pull=never")
    done = podman("build", *how, *replaced, *certificates, "--tag", "localhost/crossdock", str(ROOT))
    require("Could not find a version" not in done.stderr, "PyPI", optional_by="CROSSDOCK_PYPI_OPTIONAL")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def make_stand_in(podman: Podman) -> None:
    """The release of Debian in the name of the base image, with its Python at the same names."""
    system = podman.folder / "system"
    (release,) = re.findall(r"-slim-(\w+)@", BASE)
    packages = "python3,python3-venv,python3-pip,ca-certificates"
    debootstrap = ["debootstrap", "--variant=minbase", f"--include={packages}", release, str(system)]
    # Its mounts are left in a namespace of its own.
    made = subprocess.run(["unshare", "--mount", *debootstrap], check=False, capture_output=True, text=True)
    require(made.returncode == 0, "both the base image and Debian's packages", optional_by="CROSSDOCK_DEBIAN_OPTIONAL")
    (system / "usr" / "local" / "bin" / "python").symlink_to("/usr/bin/python3")
    packed = podman.folder / "system.tar"
    subprocess.run(["tar", "--create", "--file", str(packed), "--directory", str(system), "."], check=True)
    podman.output("import", "--quiet", str(packed), STAND_IN)
    packed.unlink()
    shutil.rmtree(system)


def test_the_demo_passes_with_few_rights(podman: Podman) -> None:
    """Without root, capabilities, a network and a writable root filesystem."""
    assert podman.crossdock("--version") == f"crossdock, version {PROJECT['version']}\n"
    told = podman.crossdock("demo")
    assert "exactly one for each delivered" in " ".join(told.split())
    size = int(podman.output("image", "inspect", "--format", "{{.Size}}", "localhost/crossdock"))
    added = podman.shell("du --summarize --bytes /opt/crossdock").split()[0]
    print(f"image: {size / 1e6:.0f} MB, of them crossdock with its libraries: {int(added) / 1e6:.0f} MB")


def test_the_state_outlives_the_container(podman: Podman) -> None:
    """What one container wrote to the volume, another one reads."""
    volume = ("--volume", "kept:/var/lib/crossdock")
    podman.crossdock("demo", options=volume)
    told = podman.crossdock("-C", "crossdock-demo/crossdock.yaml", "runs", "--json", options=volume)
    assert told.count('"run"') >= 2


def test_only_the_volume_is_written_by_a_user_without_rights(podman: Podman) -> None:
    """As the user 10001; the environment has no pip, and the image no compiler."""
    script = "id -u; touch /x /opt/crossdock/x 2>/dev/null || touch /var/lib/crossdock/x && echo written"
    assert podman.shell(script).split() == ["10001", "written"]
    assert (
        podman.shell("for each in cc gcc make git; do command -v $each; done; ls /opt/crossdock/bin | grep pip; true")
        == ""
    )


def test_nothing_is_compiled_at_the_start(podman: Podman) -> None:
    """The bytecode in the image is used, although its layers round the times of files."""
    told = podman.shell("python -v -c 'import crossdock.cli.main, sqlalchemy' 2>&1")
    assert "site-packages/sqlalchemy/__pycache__" in told
    assert re.findall(r"code object from /opt/crossdock.*", told) == []


def test_a_fleet_is_healthy(podman: Podman, tmp_path: Path) -> None:
    """The image's own command schedules a fleet whose config is read-only, and its health check passes."""
    fleet = ROOT / "configs" / "fleet"
    (tmp_path / "base").mkdir()
    (tmp_path / "tenants").mkdir()
    base = (fleet / "base.yaml").read_text("utf-8").replace("sqlite:///", "sqlite:////var/lib/crossdock/")
    base = base.replace("\nfleet:\n", "\nfleet:\n  folder: /var/lib/crossdock\n")
    (tmp_path / "base" / "base.yaml").write_text(base, encoding="utf-8")
    tenant = (fleet / "tenants" / "acme.yaml").read_text("utf-8").replace("sqlite:///", "sqlite:////var/lib/crossdock/")
    (tmp_path / "tenants" / "acme.yaml").write_text(tenant, encoding="utf-8")
    given = (
        *("--env", "ACME_API_KEY=k", "--volume", "fleet:/var/lib/crossdock"),
        *(
            "--volume",
            f"{tmp_path / 'base'}:/etc/crossdock/base:ro",
            "--volume",
            f"{tmp_path / 'tenants'}:/etc/crossdock/tenants:ro",
        ),
    )
    config = "-C", "/etc/crossdock/base/base.yaml"
    podman.crossdock(*config, "init", "--fleet", "/etc/crossdock/tenants", options=given)
    podman.output("run", "--detach", "--name", "fleet", *RESTRICTED, *given, "localhost/crossdock")
    eventually(lambda: podman("healthcheck", "run", "fleet").returncode == 0, within_s=120)
    podman.output("stop", "--time", "60", "fleet")
    assert podman.output("inspect", "--format", "{{.State.ExitCode}}", "fleet") == "0\n"
