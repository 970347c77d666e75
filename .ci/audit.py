"""Report what is known to be wrong with the locked packages.

It reports and does not fail: an advisory of today is no fault of the change that is built today, and a machine may have
no way to the service that knows. It exits with another code than 0 only where pip-audit cannot be run as asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_LOCK = Path(__file__).parent / "requirements.lock"
_WITHIN_S = 300


def main(options: Sequence[str]) -> int:
    """Audit the lock file and print the result; *options* are more of pip-audit's."""
    # The OSV service by choice: of a package mirror without advisories the default one says that no package is known,
    # and pip-audit calls that "No known vulnerabilities found".
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(_LOCK), "--require-hashes", "--disable-pip"]
    command += ["--vulnerability-service", "osv", "--progress-spinner", "off", "--format", "json", *options]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        print(_not_done(f"no answer within {_WITHIN_S} s"))
        return 0
    if ended.returncode not in {0, 1}:
        print(ended.stderr, end="", file=sys.stderr)
        return ended.returncode
    try:
        packages = json.loads(ended.stdout)["dependencies"]
    except ValueError:
        lines = ended.stderr.split("\n")
        print(_not_done(next((line for line in reversed(lines) if line), "pip-audit says nothing")))
        return 0
    print("\n".join(_told(packages)))
    return 0


def _told(packages: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line for each advisory, and one that says how many packages were looked up."""
    audited = [each for each in packages if "vulns" in each]
    for each in audited:
        for found in each["vulns"]:
            fixed = f"fixed in {', '.join(found['fix_versions'])}" if found["fix_versions"] else "not fixed yet"
            yield f"audit: {each['name']} {each['version']}: {found['id']}, {fixed}"
    affected = sum(bool(each["vulns"]) for each in audited)
    yield f"audit: {affected} of {len(audited)} packages have known vulnerabilities"
    if missed := len(packages) - len(audited):
        yield _not_done(f"{missed} of {len(packages)} packages could not be looked up")


def _not_done(why: str) -> str:
    return f"audit: not complete, the build goes on without it: {why[:200]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
