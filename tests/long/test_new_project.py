"""New projects with all of their tests: ``pytest tests/long/test_new_project.py -n 2``, a minute."""

from __future__ import annotations

import pytest
from tests.nightly.test_new_project import DOCUMENTS, line, passes_its_tests, works_as_it_is
from tests.unit.cli.conftest import CommandLine

__all__ = ["line"]  # a fixture


@pytest.mark.parametrize("kind", ["http", "files", "declarative", "declarative-files"])
def test_a_new_project_is_accepted(line: CommandLine, kind: str) -> None:
    """Each kind, with an acceptance whose commands start as authors' do."""
    works_as_it_is(line, kind)


def test_a_new_project_with_everything_is_accepted(line: CommandLine) -> None:
    """A target, webhooks and GraphQL, with both acceptances."""
    passes_its_tests(line, "--target", "--webhooks", "--graphql", chosen="test")


def test_a_project_of_a_document_is_accepted(line: CommandLine) -> None:
    """Both acceptances of what is proposed, with fakes of the vendor."""
    passes_its_tests(line, "--openapi", str(DOCUMENTS / "shipping.yaml"), "--target", chosen="Acceptance")
