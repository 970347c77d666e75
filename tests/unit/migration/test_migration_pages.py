"""The pages of a migration, and the command that says the same."""

from __future__ import annotations

import shutil

from tests.report_page import AT, Page, dead_letter
from tests.unit.cli.conftest import CommandLine
from tests.unit.console.visitor import Visitor, visiting
from tests.unit.migration.loaded_migration import LoadedMigration, reconciliation

from crossdock.console.visitors_and_roles import Role


def shown(visitor: Visitor, path: str) -> str:
    """The page once its records are counted; until then it says so."""
    html = visitor.html(path)
    while "being counted" in html:
        html = visitor.html(path)
    return html


def test_the_board_has_the_numbers_of_the_command(ready: LoadedMigration) -> None:
    """Records, delivered and open ones of each wave; what is open leads to its records."""
    differences = [{"resource": "product", "class": "diverged", "records": 2}]
    with ready.state.begin() as tx:
        tx.dead_letters.put([dead_letter(5, stream="wms.products")], run_id=1, at=AT)
        tx.migrations.store_reconciliation(ready.migration_id, reconciliation(differences=differences))
    command = CommandLine(ready.project.path.parent)
    shutil.copy(ready.project.path, command.config)
    said = command.run("migrate", "status", "--json").json
    with visiting(ready.project.path, role=Role.VIEWER) as visitor:
        html = shown(visitor, "/t/acme/migration")
    page = Page(html)
    for wave in said["waves"]:
        assert f"{wave['delivered']} of {wave['records']} records delivered" in page.text
    assert '<a href="/t/acme/records/rejected?stream=wms.products">1</a>' in html
    assert "begun 2026-03-29 01:30:00Z by ann@host" in page.text
    assert ["diverged", "product", "2", "the platform holds something else than it accepted"] in page.tables[2], (
        page.tables
    )


def test_a_sign_off_lists_what_is_missing(ready: LoadedMigration) -> None:
    """Without obstacles all is done; each obstacle stands below its requirement, with what to do."""
    with visiting(ready.project.path) as visitor:
        page = Page(shown(visitor, "/t/acme/migration/sign-off"))
        assert "All requirements are fulfilled" in page.text
        assert "open The" not in page.text
    with ready.state.begin() as tx:
        tx.migrations.pause(ready.migration_id, at=AT, by="cy")
        tx.dead_letters.put([dead_letter(5, stream="wms.products")], run_id=1, at=AT)
    with visiting(ready.project.path) as visitor:
        page = Page(shown(visitor, "/t/acme/migration/sign-off"))
    assert "3 of 7 requirements are not fulfilled" in page.text
    assert "it is paused by cy: crossdock migrate resume" in page.text
    assert "wave 2 of 2: products: the gate is closed" in page.text
    assert "exceptions: 1 rejected" in page.text


def test_a_signed_off_migration_says_by_whom(ready: LoadedMigration) -> None:
    """Who, when, and the hash that the report must have."""
    with ready.state.begin() as tx:
        tx.migrations.sign_off(ready.migration_id, at=AT, by="Ann Lee", report_sha256="ab" * 32)
    with visiting(ready.project.path) as visitor:
        page = Page(shown(visitor, "/t/acme/migration/sign-off"))
    assert "Ann Lee" in page.text
    assert "ab" * 32 in page.text
    assert "requirements" not in page.text
