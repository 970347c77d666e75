"""Done markers, manifests and archives, from a server and from a folder: what is taken in, and what is moved when."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import PRODUCTS, Site

HEADER, *LINES = PRODUCTS.splitlines(keepends=True)
NEW = "P3;Washer;0.05\n"


@pytest.fixture(params=["sftp", "folder"])
def intake(request: pytest.FixtureRequest, site: Site) -> Site:
    """The site, read from its server or as a folder."""
    if request.param == "folder":
        serve_folder(site)
    site.init()
    return site


def declare(site: Site, *keys: str, stream: str = "PROD", mode: str = "append") -> None:
    """Add *keys* to a stream."""
    files = f'files: "out/{stream}_*"'
    site.edit(f"mode: append\n        {files}", "\n        ".join((f"mode: {mode}", files, *keys)))


def outside(site: Site) -> set[str]:
    """The files that are still where they were written."""
    return {path.name for path in site.out.iterdir() if path.is_file()}


def archived(site: Site) -> dict[str, str]:
    return {path.name: path.read_text() for path in (site.out / "done").iterdir()}


@pytest.mark.nightly(but=["folder"])
def test_a_file_without_its_marker_is_not_there(intake: Site) -> None:
    """It is read once the marker is there, however old that is; a marker is never data."""
    declare(intake, 'ready: "{name}.done"')
    intake.export("PROD_1.csv", PRODUCTS)
    early = intake.sync("wms.products")
    assert early.code == 0
    assert early.records("products") == {}
    note = "passed over PROD_1.csv: its marker {name}.done is not there"
    assert early.json["streams"]["wms.products"]["notes"] == [note]
    marker = intake.export("PROD_1.csv.done", "")
    os.utime(marker, (0, 0))
    assert intake.sync("wms.products").records("products") == {"read": 2, "created": 2}
    intake.export("PROD_2.csv", HEADER + NEW)
    assert intake.sync("wms.products").records("products") == {}


def test_markers_in_a_folder_of_their_own(intake: Site) -> None:
    """A template may name a folder, and the name without its extension."""
    declare(intake, 'ready: "out/flags/{stem}"')
    (intake.out / "flags").mkdir()
    intake.export("PROD_1.csv", PRODUCTS)
    intake.export("PROD_2.csv", HEADER + NEW)
    (intake.out / "flags" / "PROD_2").touch()
    assert intake.sync("wms.products").records("products") == {"read": 1, "created": 1}


@pytest.mark.nightly(but=["sftp-rows", "folder-sha256", "folder-no number"])
@pytest.mark.parametrize(
    ("column", "stated", "says"),
    [
        pytest.param("rows", "3", "has 2 rows, but out/MANIFEST_1.csv:3 states 3", id="rows"),
        pytest.param("bytes", "9000", "but out/MANIFEST_1.csv:3 states 9,000", id="bytes"),
        pytest.param("sha256", "0" * 64, "has another sha256 than out/MANIFEST_1.csv:3 states", id="sha256"),
        pytest.param("md5", "0" * 32, "has another md5 than out/MANIFEST_1.csv:3 states", id="md5"),
        pytest.param("rows", "two", "out/MANIFEST_1.csv:3: column 'FACT' is not a whole number", id="no number"),
    ],
)
def test_a_file_that_is_not_as_stated_is_refused(intake: Site, column: str, stated: str, says: str) -> None:
    """As a whole, by plan and sync, with the place in the manifest; as stated, it is taken in."""
    declare(intake, f'manifest: {{files: "out/MANIFEST_*.csv", name: FILE, {column}: FACT}}')
    content = PRODUCTS.encode()
    intake.export("PROD_1.csv", content)
    intake.export("MANIFEST_1.csv", f"FILE,FACT\nOTHER.csv,x\nout/PROD_1.csv,{stated}\n")
    for command in (("plan", "wms.products"), ("sync", "wms.products")):
        refused = intake.run(*command)
        assert refused.code == 4
        assert says in " ".join((refused.out + refused.err).split())
    assert intake.effects() == []
    assert intake.spooled() == []
    facts = {
        "rows": "2",
        "bytes": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest().upper(),
        "md5": hashlib.md5(content, usedforsecurity=False).hexdigest(),
    }
    intake.export("MANIFEST_2.csv", f"FILE,FACT\nD:\\out\\PROD_1.csv,{facts[column]}\n")
    assert intake.run("plan", "wms.products").code == 0
    assert intake.sync("wms.products").records("products") == {"read": 2, "created": 2}
    assert intake.sync("wms.products").code == 0


def test_a_file_without_an_entry_is_refused(intake: Site) -> None:
    """Nothing of any file is taken in, as with other faults of a file."""
    declare(intake, 'manifest: {files: "out/PROD_MANIFEST.csv", name: FILE, rows: COUNT}')
    intake.export("PROD_1.csv", PRODUCTS)
    intake.export("PROD_2.csv", HEADER + NEW)
    intake.export("PROD_MANIFEST.csv", "FILE,COUNT\nPROD_1.csv,2\n")
    refused = intake.run("sync", "wms.products")
    assert refused.code == 4
    assert "out/PROD_2.csv: has no entry in a manifest" in refused.out + refused.err
    assert intake.effects() == []


def test_a_file_that_a_manifest_names_and_that_never_came_is_told(intake: Site) -> None:
    """Once, when the others of its manifest are read; one that was read before or belongs to others is not missing."""
    declare(intake, 'manifest: {files: "out/MANIFEST_*", name: FILE, rows: COUNT}')
    intake.export("PROD_1.csv", PRODUCTS)
    intake.export("MANIFEST_1.csv", "FILE,COUNT\nPROD_1.csv,2\nPROD_2.csv,1\nOTHER_1.csv,1\n")
    first = intake.sync("wms.products")
    assert first.code == 0
    (told,) = first.json["messages"]
    assert (told["level"], told["code"]) == ("warning", "file_missing")
    assert told["message"].startswith(
        "1 file that a manifest names is not there, such as PROD_2.csv in out/MANIFEST_1.csv"
    )
    assert intake.sync("wms.products").json["messages"] == []
    (intake.out / "PROD_1.csv").unlink()
    intake.export("PROD_2.csv", HEADER + NEW)
    intake.export("MANIFEST_2.csv", "FILE,COUNT\nPROD_1.csv,2\nPROD_2.csv,1\n")
    second = intake.sync("wms.products")
    assert second.records("products") == {"read": 1, "created": 1}
    assert second.json["messages"] == []


def test_counted_rows_prove_a_snapshot(intake: Site) -> None:
    """A manifest with the number of rows is evidence that what is not listed is gone, as a trailer is."""
    declare(
        intake,
        'manifest: {files: "out/MANIFEST_*", name: FILE, rows: COUNT}',
        "on_gone: archive",
        "gone: {at_most_percent: 100}",
        mode="snapshot",
    )
    for night, lines in enumerate((LINES, LINES[:1]), 1):
        intake.export(f"PROD_{night}.csv", HEADER + "".join(lines))
        intake.export(f"MANIFEST_{night}.csv", f"FILE,COUNT\nPROD_{night}.csv,{len(lines)}\n")
        done = intake.sync("wms.products")
        assert done.code == 0, done.err
    assert [effect["operation"] for effect in intake.effects()] == ["create", "create", "update"]


def test_files_are_moved_once_they_are_done_with(intake: Site) -> None:
    """A plan moves nothing, a sync files with their markers; what comes back with the same content is known."""
    declare(intake, "archive: out/done/", 'ready: "{name}.ok"')
    (intake.out / "done").mkdir()
    for name in ("PROD_1.csv", "PROD_1.csv.ok", "PROD_2.csv"):
        intake.export(name, PRODUCTS if name.endswith("1.csv") else "")
    assert intake.run("plan", "wms.products").code == 0
    assert outside(intake) == {"PROD_1.csv", "PROD_1.csv.ok", "PROD_2.csv"}
    assert intake.sync("wms.products").code == 0
    assert outside(intake) == {"PROD_2.csv"}
    assert archived(intake) == {"PROD_1.csv": PRODUCTS, "PROD_1.csv.ok": ""}
    intake.export("PROD_3.csv", PRODUCTS)
    intake.export("PROD_3.csv.ok", "")
    assert intake.sync("wms.products").records("products") == {}
    assert set(archived(intake)) == {"PROD_1.csv", "PROD_1.csv.ok", "PROD_3.csv", "PROD_3.csv.ok"}
    assert len(intake.effects()) == 2


def test_a_refused_file_stays_where_it_is(intake: Site) -> None:
    """Nothing is moved before its records are settled or kept."""
    declare(intake, "archive: out/done")
    (intake.out / "done").mkdir()
    intake.export("PROD_1.csv", PRODUCTS + "half a ro")
    assert intake.sync("wms.products").code == 4
    assert archived(intake) == {}
    assert outside(intake) == {"PROD_1.csv"}


def test_a_failure_to_move_is_a_warning(intake: Site) -> None:
    """The run is as good as without it and says so; the next one moves what is left."""
    declare(intake, "archive: out/done")
    intake.export("PROD_1.csv", PRODUCTS)
    night = intake.sync("wms.products")
    assert night.code == 0
    (note,) = night.json["streams"]["wms.products"]["notes"]
    assert "files were not moved to 'out/done'" in note
    assert "does not exist" in note
    (intake.out / "done").mkdir()
    assert intake.sync("wms.products").json["streams"]["wms.products"]["notes"] == []
    assert archived(intake) == {"PROD_1.csv": PRODUCTS}


def test_a_run_that_was_killed_before_the_move(intake: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was delivered and not moved is moved by the next run, and not delivered again."""
    declare(intake, "archive: out/done")
    (intake.out / "done").mkdir()
    intake.export("PROD_1.csv", PRODUCTS)
    with monkeypatch.context() as killed:
        killed.setattr("crossdock.reading.sources.file_source.archive_finished_files", lambda *_: None)
        assert intake.sync("wms.products").code == 0
    assert outside(intake) == {"PROD_1.csv"}
    assert intake.sync("wms.products").records("products") == {}
    assert archived(intake) == {"PROD_1.csv": PRODUCTS}
    assert len(intake.effects()) == 2


@pytest.mark.nightly(but=["folder"])
def test_an_unread_file_is_never_archived(intake: Site) -> None:
    """An older snapshot is not moved: it is named once with the reason, and no later night takes it for stale."""
    declare(intake, "archive: out/done", mode="snapshot")
    (intake.out / "done").mkdir()
    intake.export("PROD_20260101.csv", HEADER + NEW)
    intake.export("PROD_20260102.csv", PRODUCTS)
    intake.export("PROD_20260103.csv.part", PRODUCTS)
    intake.export("prod_20260104.csv", PRODUCTS)
    first, _, again = (intake.sync("wms.products") for _ in range(3))
    assert first.records("products") == {"read": 2, "created": 2}
    unfinished = "passed over PROD_20260103.csv.part: its name says that it is not complete"
    older = "passed over PROD_20260101.csv: older than 'PROD_20260102.csv'"
    other_case = "passed over prod_20260104.csv: its name differs from 'files' in upper and lower case"
    *others, case = sorted(first.json["streams"]["wms.products"]["notes"])
    assert (others, case.partition(";")[0]) == ([older, unfinished], other_case)
    assert set(archived(intake)) == {"PROD_20260102.csv"}
    assert (again.code, again.json["streams"]["wms.products"]["notes"]) == (0, [unfinished, case])
    intake.export("PROD_20260101.csv", HEADER + NEW)  # sent again
    assert intake.sync("wms.products").code == 4


@pytest.mark.nightly(but=["folder"])
def test_what_follows_what_is_declared_or_refused(intake: Site) -> None:
    """A correction that nothing shows to be the newer file is refused with both names, until its form is declared."""
    declare(intake, "archive: out/done", mode="append")
    (intake.out / "done").mkdir()
    paths = [
        intake.export(f"PROD_20260101{name}.csv", HEADER + row) for name, row in (("-CORR", NEW), ("", "P3;Old;1\n"))
    ]
    for path in paths:
        os.utime(path, (1_767_225_600,) * 2)
    refused = intake.sync("wms.products")
    assert (refused.code, archived(intake)) == (4, {})
    assert all(path.name in refused.out for path in paths)
    forms = '["PROD_{date:%Y%m%d}.csv", "PROD_{date:%Y%m%d}-CORR.csv"]'
    assert forms in json.loads(refused.out)["errors"]["wms.products"]
    intake.edit("archive: out/done", f"archive: out/done\n        order: {{name: {forms}}}")
    intake.export("PROD_new.csv", HEADER)
    done = intake.sync("wms.products")
    assert done.json["streams"]["wms.products"]["notes"] == [
        "passed over PROD_new.csv: its name does not have the form that 'order' declares"
    ]
    assert [effect["body"]["name"] for effect in intake.effects()] == ["Washer"]
    assert archived(intake).keys() == {path.name for path in paths}


@pytest.mark.nightly(but=["folder"])
def test_a_late_delta_is_refused(intake: Site) -> None:
    """Its rows may be older than those that were taken in; with `order_by` the rows decide."""
    declare(intake)
    intake.export("PROD_20260101.csv", HEADER + "P3;Old;1\n")
    late = (intake.out / "PROD_20260101.csv").rename(intake.folder / "late")
    intake.export("PROD_20260102.csv", HEADER + NEW)
    assert intake.sync("wms.products").code == 0
    late.rename(intake.out / "PROD_20260101.csv")
    for command in ("plan", "sync"):
        refused = intake.run(command, "wms.products")
        assert refused.code == 4
        shown = " ".join((refused.out + refused.err).split())
        assert "PROD_20260101.csv: is older than 'PROD_20260102.csv' taken in before" in shown
    intake.edit("key: [SKU]", "key: [SKU]\n        order_by: [PRICE]")
    assert intake.sync("wms.products").code == 0


@pytest.mark.parametrize("mode", ["snapshot", "append"])
def test_a_file_of_the_future_is_refused_until_its_time_is_right(intake: Site, mode: str) -> None:
    """A clock of the sender that is wrong for one night would make each later file the older one."""
    declare(intake, "order: modified", mode=mode)
    path = intake.export("PROD_20260101.csv", HEADER + "P3;Old;1\n")
    written = path.stat().st_mtime
    os.utime(path, (written + 366 * 86_400,) * 2)
    for command in ("plan", "sync"):
        refused = intake.run(command, "wms.products")
        shown = " ".join((refused.out + refused.err).split())
        assert (refused.code, "PROD_20260101.csv: its time of change is in the future: 20" in shown) == (4, True)
        assert 'order: {name: "PROD_{date:%Y%m%d}.csv"}' in shown
    intake.export("PROD_20260102.csv", HEADER + NEW)
    assert intake.sync("wms.products").code == 4
    os.utime(path, (written,) * 2)
    assert intake.sync("wms.products").code == 0
    assert [effect["body"]["name"] for effect in intake.effects()] == ["Washer"]


@pytest.mark.nightly(but=["folder"])
def test_content_that_comes_again_later_is_read(intake: Site) -> None:
    """A price that returns makes the same file; a copy whose name says nothing is not read, and named once."""
    prices = ["1", "2", "1"]
    for day, price in enumerate(prices, 1):
        intake.export(f"PROD_2026010{day}.csv", HEADER + f"P3;Washer;{price}\n")
        assert intake.run("plan", "wms.products", "--json").json["operations"]["create" if day == 1 else "update"] == 1
        assert intake.sync("wms.products").code == 0
    intake.export("PROD_copy.csv", HEADER + "P3;Washer;2\n")
    nights = [intake.sync("wms.products") for _ in range(2)]
    assert [night.records("products") for night in nights] == [{}, {}]
    note = "passed over PROD_copy.csv: its content is that of another file, and nothing shows that it is newer"
    assert [night.json["streams"]["wms.products"]["notes"] for night in nights] == [[note], []]
    assert [str(effect["body"]["unitPrice"]) for effect in intake.effects()] == prices


@pytest.mark.nightly(but=["folder"])
def test_a_file_that_is_written_again_is_judged_like_any_other(intake: Site) -> None:
    """Also if it says what it said once: older by its name than another, it is refused, and not skipped as known."""
    declare(intake)
    for name, price in (("1", 1), ("1", 2), ("2", 3)):
        intake.export(f"PROD_2026010{name}.csv", HEADER + f"P3;Washer;{price}\n")
        assert intake.sync("wms.products").code == 0
    again = intake.export("PROD_20260101.csv", HEADER + "P3;Washer;1\n")
    refused = intake.sync("wms.products")
    assert refused.code == 4
    assert "PROD_20260101.csv: is older than 'PROD_20260102.csv' taken in before by its name" in refused.out
    intake.edit('files: "out/PROD_*"', 'files: "out/PROD_*"\n        order: modified')
    assert intake.sync("wms.products").records("products") == {"read": 1, "updated": 1}
    again.touch()
    assert intake.sync("wms.products").records("products") == {}


@pytest.mark.nightly(but=["sftp-one run", "folder-five nights"])
@pytest.mark.parametrize("nights", [[range(8, 11)], [[day] for day in range(8, 13)]], ids=["one run", "five nights"])
def test_content_that_comes_again_is_read_whatever_sorts_first(intake: Site, nights: list[list[int]]) -> None:
    """The newest of the files with one content counts, also where its name is the first as text."""
    declare(intake)
    for night in nights:
        for day in night:
            intake.export(f"PROD_{day}.csv", HEADER + f"P3;Washer;{1 + day % 2}\n")
        assert intake.sync("wms.products").code == 0
    assert str(intake.effects()[-1]["body"]["unitPrice"]) == "1"


@pytest.mark.nightly(but=["folder"])
def test_files_of_several_streams_wait_for_all_of_them(intake: Site) -> None:
    """A file that one stream has not finished stays."""
    (intake.out / "done").mkdir()
    text = (
        intake.config.read_text()
        .replace('files: "out/CUST_*"', "source: all")
        .replace('files: "out/PROD_*"', "source: all")
        .replace('        format: {kind: delimited, delimiter: ";"}\n', "", 2)
    )
    source = 'sources:\n      all: {files: "out/BOTH_*", format: {delimiter: ";"}, archive: out/done}\n    streams:'
    intake.config.write_text(text.replace("streams:", source, 1))
    both = "CUSTNO;SKU;NAME;PRICE\nC1;P1;Bolt;1.50\n"
    intake.export("BOTH_1.csv", both)
    assert intake.sync("wms.customers").code == 0
    assert archived(intake) == {}
    assert intake.sync().code == 0
    assert archived(intake) == {"BOTH_1.csv": both}


def test_a_server_that_forbids_moves(site: Site) -> None:
    """The reason is in the run's report, and the file stays."""
    declare(site, "archive: out/done")
    (site.out / "done").mkdir()
    site.init()
    site.export("PROD_1.csv", PRODUCTS)
    site.sftp.faults.read_only = True
    night = site.sync("wms.products")
    assert night.code == 0
    (note,) = night.json["streams"]["wms.products"]["notes"]
    assert note == "files were not moved to 'out/done': permission denied while moving 'out/PROD_1.csv'"
    assert outside(site) == {"PROD_1.csv"}


def test_a_young_file_is_moved_by_a_later_run(intake: Site) -> None:
    """While its time is that of the move, it may have been replaced unnoticed."""
    declare(intake, "archive: out/done")
    (intake.out / "done").mkdir()
    path: Path = intake.export("PROD_1.csv", PRODUCTS)
    os.utime(path, (time.time() + 600,) * 2)  # still young when a slow command ends
    assert intake.sync("wms.products").code == 0
    os.utime(path, (path.stat().st_mtime - 700,) * 2)
    assert intake.sync("wms.products").records("products") == {}
    assert archived(intake) == {"PROD_1.csv": PRODUCTS}


@pytest.mark.nightly(but=["folder"])
def test_check_looks_for_the_archive(intake: Site) -> None:
    """A missing folder is found before the first night."""
    declare(intake, "archive: out/done")
    intake.export("PROD_1.csv", PRODUCTS)
    assert "FAIL  wms: archive out/done: " in intake.run("check").out
    (intake.out / "done").mkdir()
    assert "ok    wms: archive out/done: is there" in intake.run("check").out


DATED = 'files: "out/*/*/*/PROD.csv"'


def put(site: Site, folder: str, content: str, day: int) -> Path:
    """A file PROD.csv that was changed on a day of January 2026."""
    path = site.out / folder / "PROD.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (1_767_225_600 + day * 86_400,) * 2)
    return path


@pytest.mark.nightly(but=["sftp-append-declared"])
@pytest.mark.parametrize(
    "order", ["", '\n        order: {name: "{date:%Y/%m/%d}/PROD.csv"}'], ids=["derived", "declared"]
)
@pytest.mark.parametrize("mode", ["snapshot", "append"])
def test_dated_folders(intake: Site, mode: str, order: str) -> None:
    """Folders with wildcards are looked into; files of one name are distinguished by them, and put in their order."""
    intake.edit('mode: append\n        files: "out/PROD_*"', f"mode: {mode}\n        {DATED}{order}")
    put(intake, "2026/09/30", HEADER + "P3;Old;1\n", 1)
    put(intake, "2026/10/01", HEADER + NEW, 2)
    put(intake, "2026/10/.tmp", HEADER + "broken", 3)
    (intake.out / "latest").symlink_to("2026/10/01")
    assert "out/*/*/*/PROD.csv: 2 files" in intake.run("check").out
    first = intake.sync("wms.products")
    assert first.records("products")["created"] == 1
    assert [effect["body"]["name"] for effect in intake.effects()] == ["Washer"]
    put(intake, "2026/10/02", HEADER + "P3;Last;1\n", 4)
    assert intake.sync("wms.products").records("products") == {"read": 1, "updated": 1}
    assert intake.sync("wms.products").records("products") == {}
    put(intake, "2025/12/31", HEADER + "P3;Late;1\n", 0)
    late = intake.sync("wms.products")
    if mode == "append":
        assert (late.code, "2025/12/31/PROD.csv: is older than '2026/10/02/PROD.csv'" in late.out) == (4, True)
    else:
        assert "passed over 2025/12/31/PROD.csv: older than '2026/10/02/PROD.csv'" in late.out


@pytest.mark.nightly(but=["folder"])
def test_names_in_upper_and_lower_case(intake: Site) -> None:
    """A pattern and the form of the names match both if this is declared."""
    for name, rows in (("Prod_20260102.CSV", NEW), ("PROD_20260101.csv", "P3;Old;1\n")):
        intake.export(name, HEADER + rows)
    order = 'order: {name: "prod_{date:%Y%m%d}.csv"}'
    intake.edit('files: "out/PROD_*"', f'files: "out/prod_*.csv"\n        ignore_case: true\n        {order}')
    assert "out/prod_*.csv: 2 files" in intake.run("check").out
    assert intake.sync("wms.products").code == 0
    assert [effect["body"]["name"] for effect in intake.effects()] == ["Washer"]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        pytest.param("archive: done", "archive cannot be used with files in several folders", id="archive"),
        pytest.param('ready: "{name}.ok"', "ready cannot be used with files in several folders", id="ready"),
        pytest.param('order: {name: "P_{number}.csv"}', "must be the form of '*/*/*/PROD.csv'", id="form"),
    ],
)
def test_what_dated_folders_cannot_have(site: Site, keys: str, says: str) -> None:
    """It is an error of the config, with its place."""
    site.edit('files: "out/PROD_*"', f"{DATED}\n        {keys}")
    refused = site.run("check")
    assert (refused.code, says in " ".join(refused.err.split())) == (2, True)
