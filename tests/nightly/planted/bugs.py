"""One planted bug: what it is called in the documentation, and which test must find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

from crossdock.errors import CrossdockError
from crossdock.testing.connector_under_test import ConnectorUnderTest

SLOW = "test_keys_and_drafts_are_the_same_in_every_process"


@dataclass(frozen=True)
class Bug:
    """A case with one bug.

    Attributes:
        what: The row of the table in the documentation; bugs of several kinds of connectors may share it.
        kind: The kind of connector.
        case: The tests of the connector with the bug.
        test: The test that finds it, without ``test_``.
        says: What the message must contain: the method or the member.
        stated: Whether no other test finds it, so that only `expects` does.
    """

    what: str
    kind: str
    case: type[ConnectorUnderTest]
    test: str
    says: str
    stated: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.what} ({self.says})"


def failures(case: type[ConnectorUnderTest], tests: Sequence[str]) -> Mapping[str, str]:
    """Return what *tests* say against a case."""
    found: dict[str, Any] = {}
    for name in tests:
        try:
            getattr(case(), f"test_{name}")()
        except SkipTest:
            continue
        except (AssertionError, CrossdockError) as error:
            found[name] = str(error)
    return found


def quick_tests(case: type[ConnectorUnderTest]) -> list[str]:
    return [name.removeprefix("test_") for name in dir(case) if name.startswith("test_") and name != SLOW]


def table(bugs: Sequence[Bug]) -> list[str]:
    """Return the rows of the table in the documentation: each bug, what finds it, and what needs `expects`."""
    rows = []
    for what in dict.fromkeys(bug.what for bug in bugs):
        same = [bug for bug in bugs if bug.what == what]
        tests = ", ".join(f"`{test}`" for test in dict.fromkeys(bug.test for bug in same))
        stated = dict.fromkeys(bug.kind for bug in same if bug.stated)
        is_always = all(bug.stated for bug in same)
        rows.append(f"| {what} | {tests} | {'yes' if is_always else ', '.join(stated) or 'no'} |")
    return rows
