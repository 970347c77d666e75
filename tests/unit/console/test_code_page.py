"""The pages that explain codes of errors."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.console.visitor import visiting
from tests.unit.migration.loaded_migration import loaded_project

from crossdock.values import explanations


def test_each_code_has_a_page_with_all_words(tmp_path: Path) -> None:
    """It has what 'crossdock explain' prints, without the marks of Markdown; an unknown code has none."""
    project = loaded_project(tmp_path)
    project.create_or_upgrade_state()
    with visiting(project.path) as visitor:
        for code in explanations.codes():
            _, _, text = explanations.page(code).partition("\n")
            words = " ".join(re.sub("`|^## |^- ", "", text, flags=re.MULTILINE).split())
            shown = " ".join(visitor.page(f"/t/acme/codes/{code}").text.split())
            assert words in shown
            assert "`" not in shown
        visitor.page("/t/acme/codes/nothing", status=404)
