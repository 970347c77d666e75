"""The audit of the lock file, by the real pip-audit, against a service of known vulnerabilities on this machine."""

from __future__ import annotations

import json
import os
import re
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.servers import require, served

AUDIT = Path(__file__).parents[2] / ".ci" / "audit.py"
KNOWN = {
    "id": "PYSEC-2099-1",
    "summary": "bad\nthing",
    "affected": [
        {
            "package": {"name": "urllib3", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}],
        }
    ],
}


@pytest.fixture(autouse=True)
def _pip_audit() -> None:
    require(find_spec("pip_audit") is not None, "pip-audit")


@contextmanager
def service(known: dict[str, Any], status: int = 200) -> Iterator[str]:
    """An OSV service that knows these vulnerabilities by package; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found = known.get(asked["package"]["name"])
            body = json.dumps({"vulns": [found]} if found else {}).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}"


def audit(*options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    command = [sys.executable, str(AUDIT), *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_what_is_known_is_reported_and_does_not_fail() -> None:
    """A line for each vulnerability with what fixes it, and how many packages were looked up."""
    with service({"urllib3": KNOWN}) as url:
        ended = audit("--osv-url", url)
    assert (ended.returncode, ended.stderr) == (0, "")
    first, second, *more = ended.stdout.splitlines()
    assert re.fullmatch(r"audit: urllib3 [0-9.]+: PYSEC-2099-1, fixed in 99\.0", first)
    assert re.fullmatch(r"audit: 1 of [0-9]+ packages have known vulnerabilities", second)
    assert more == []


@pytest.mark.parametrize("status", [None, 404, 503], ids=["refused", "not found", "unavailable"])
def test_without_a_service_one_line_says_so_and_the_build_goes_on(status: int | None) -> None:
    """It is not taken for a good result."""
    if status is None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and does not listen
            ended = audit("--osv-url", f"http://127.0.0.1:{taken.getsockname()[1]}")
    else:
        with service({}, status) as url:
            ended = audit("--osv-url", url)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stdout.startswith("audit: not complete, the build goes on without it: ")


def test_packages_that_the_service_does_not_know_are_no_good_result() -> None:
    """pip-audit itself says "No known vulnerabilities found" of packages that it has left out."""
    told = runpy.run_path(str(AUDIT))["_told"]
    known = {"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": []}]}
    assert list(told([known, {"name": "b", "skip_reason": "Dependency not found"}])) == [
        "audit: a 1: X-1, not fixed yet",
        "audit: 1 of 1 packages have known vulnerabilities",
        "audit: not complete, the build goes on without it: 1 of 2 packages could not be looked up",
    ]


def test_a_wrong_option_fails() -> None:
    """A pip-audit that cannot be run as asked would else never be noticed."""
    ended = audit("--no-such-option")
    assert ended.returncode == 2
    assert "--no-such-option" in ended.stderr
