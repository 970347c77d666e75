"""`crossdock.check`: whether a config can be used, for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crossdock.connector import Finding
from crossdock.errors import with_code
from crossdock.runs.init_plan_and_run import Config, load
from crossdock.services.system_check.findings import findings_of
from crossdock.values.display_texts import counted


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult:
    """What `check` found. Printed, it is what ``crossdock check`` prints.

    Attributes:
        findings: In the order of the tests, each with its subject: ``state``, ``platform`` or the name of a connection.
    """

    findings: Sequence[tuple[str, Finding]]

    @property
    def ok(self) -> bool:
        return all(finding.ok for _, finding in self.findings)

    def __str__(self) -> str:
        failed, tests = sum(not finding.ok for _, finding in self.findings), counted(len(self.findings), "test")
        summary = f"{failed:,} of {tests} failed" if failed else f"{tests} passed"
        return "\n".join((*(finding_line(subject, finding) for subject, finding in self.findings), summary))

    __repr__ = __str__


def finding_line(subject: str, finding: Finding) -> str:
    return f"{'ok  ' if finding.ok else 'FAIL'}  {subject}: {with_code(finding.text, finding.code)}"


def check(config: Config) -> CheckResult:
    """Test the state, the platform, the credentials and the sources, as ``crossdock check`` does. Nothing is changed.

    Args:
        config: As for `crossdock.run`.

    Raises:
        ConfigError: If the config is invalid.
    """
    return CheckResult(list(findings_of(load(config))))
