"""Files that come wrapped: taken in as a whole or not at all, from what was delivered to what the platform has."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Iterator, Mapping

import pytest
from tests.e2e.test_folder_warehouse import serve_folder
from tests.e2e.warehouse import PRODUCTS, Site
from tests.pgp_senders import PASSPHRASE, Senders, senders

HEADER, *LINES = PRODUCTS.splitlines(keepends=True)
TRAILER = 'trailer: {prefix: "TRL;", count: 1}'


@pytest.fixture(scope="module")
def people() -> Iterator[Senders]:
    with senders() as made:
        yield made


@pytest.fixture
def depot(site: Site) -> Site:
    """The site, read as a folder."""
    serve_folder(site)
    site.init()
    return site


def declare(site: Site, *keys: str) -> None:
    files = 'files: "out/PROD_*"'
    site.edit(files, "\n        ".join((files, *keys)))


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def counted(*lines: str) -> str:
    return f"{HEADER}{''.join(lines)}TRL;{len(lines)}\n"


def test_encrypted_files_are_read_archived_and_known(depot: Site, people: Senders) -> None:
    """A plan agrees with the sync, the original is moved as it came, and the same bytes are known when they return."""
    depot.setenv("PGP_PASSPHRASE", PASSPHRASE)
    key = f"{{key: file:{people.secret('bob')}, passphrase: env:PGP_PASSPHRASE}}"
    pgp = f"{{kind: pgp, decrypt: {key}, signed_by: [{people.public('alice')}]}}"
    declare(depot, f"wrapped: [{pgp}, gzip]", "archive: out/done")
    (depot.out / "done").mkdir()
    content = gzip.compress(PRODUCTS.encode())
    delivered = people.message(content, to="bob", by="alice")
    depot.export("PROD_1.csv.gz.pgp", delivered)
    assert json.loads(depot.run("plan", "wms.products", "--json").out)["operations"] == {"create": 2}
    tried = json.loads(depot.run("try", "wms.products", "--json").out)
    assert [record["source"] for record in tried["records"]] == ["PROD_1.csv.gz.pgp"] * 2
    assert depot.sync("wms.products").records("products") == {"read": 2, "created": 2}
    assert (depot.out / "done" / "PROD_1.csv.gz.pgp").read_bytes() == delivered
    depot.export("PROD_2.csv.gz.pgp", delivered)
    again = depot.sync("wms.products")
    assert (again.code, again.records("products")) == (0, {}), "the same bytes are known"
    for name, data in (
        ("other signer", people.message(content, to="bob", by="mallory")),
        ("not signed", people.message(content, to="bob")),
        ("cut", delivered[:-9]),
        ("in it no gzip", people.message(PRODUCTS.encode(), to="bob", by="alice")),
    ):
        depot.export("PROD_3.csv.gz.pgp", data)
        refused = depot.run("sync", "wms.products")
        assert refused.code == 4, name
        assert "PROD_3.csv.gz.pgp: the" in refused.out + refused.err, name
    assert len(depot.effects()) == 2
    assert depot.spooled() == []


def test_members_are_one_delivery(depot: Site) -> None:
    """Rows of all members are read, each with the member as its origin; one that is damaged refuses the archive."""
    declare(depot, "wrapped: [{kind: zip, members: '*.csv'}]")
    bad = "SKU;NAME;PRICE\nP3;;0.05\n"
    members = {"A.csv": PRODUCTS, "B.csv": bad, "README.txt": "not read"}
    whole = bytearray(zipped(members))
    whole[whole.index(b"B.csv") + 10] ^= 0xFF
    depot.export("PROD_1.zip", bytes(whole))
    refused = depot.run("sync", "wms.products")
    assert refused.code == 4
    assert "PROD_1.zip/B.csv: the" in refused.out + refused.err
    assert depot.effects() == []
    depot.export("PROD_1.zip", zipped(members))
    done = depot.sync("wms.products")
    assert done.records("products") == {"read": 3, "created": 2, "rejected": 1}
    (record,) = json.loads(depot.run("records", "list", "--json").out)
    assert record["at"].startswith("PROD_1.zip/B.csv:2")
    (file,) = done.json["streams"]["wms.products"]["files"]
    assert file == {"name": "PROD_1.zip", "rows": 3}


def test_an_archive_proves_a_snapshot_only_as_a_whole(depot: Site) -> None:
    """With a trailer in each member what is missing is gone; with one member damaged, or without one, nothing is."""
    depot.edit('delimiter: ";"', f'delimiter: ";", {TRAILER}', within="products:")
    depot.edit("mode: append", "mode: snapshot\n        on_gone: delete", within="products:")
    declare(depot, "gone: {at_most_percent: 100}", "wrapped: [zip]")
    more = "P3;Washer;0.05\n"
    depot.export("PROD_1.zip", zipped({"A": counted(*LINES), "B": counted(more)}))
    assert depot.sync("wms.products").records("products") == {"read": 3, "created": 3}
    damaged = bytearray(zipped({"A": counted(LINES[0]), "B": counted(more)}))
    damaged[damaged.index(b"PK\3\4", 1) + 35] ^= 0xFF
    short = zipped({"A": counted(LINES[0]), "B": HEADER + more})
    for number, data in enumerate((bytes(damaged), short), 2):
        depot.export(f"PROD_{number}.zip", data)
        assert depot.run("sync", "wms.products").code == 4
    assert [effect["operation"] for effect in depot.effects()] == ["create"] * 3
    depot.export("PROD_4.zip", zipped({"A": counted(LINES[0]), "B": counted(more)}))
    assert depot.sync("wms.products").records("products") == {"read": 2, "unchanged": 2, "gone": 1, "deleted": 1}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("P_9", "P_10"),
        ("P_30112026", "P_01122026"),
        ("P 2 Nov 2026", "P 10 Nov 2026"),
        ("P.csv", "P-CORR.csv"),
        ("P_20261125_2.csv", "P_20261126.csv"),
        ("HAM_20261125.csv", "BRE_20261126.csv"),
    ],
)
def test_the_newest_member_of_an_archive_counts(depot: Site, older: str, newer: str) -> None:
    """Names are read as those of files are: as text, the older one would come last."""
    declare(depot, "wrapped: [zip]")
    rows = {name: HEADER + f"P1;{name};1\n" for name in (newer, older)}
    depot.export("PROD_1.zip", zipped(rows))
    assert depot.sync("wms.products").code == 0
    assert [effect["body"]["name"] for effect in depot.effects()] == [newer]


@pytest.mark.parametrize("wrapped", ["[zip]", "[zip, gzip]"])
@pytest.mark.parametrize(("older", "newer"), [("old.csv", "new.csv"), ("new.csv", "old.csv")])
def test_times_of_members_count_where_their_names_tell_no_order(
    depot: Site, older: str, newer: str, wrapped: str
) -> None:
    """The last one by its name would overwrite a newer one."""
    declare(depot, f"wrapped: {wrapped}")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, hour in ((newer, 9), (older, 8)):
            data = f"{HEADER}P1;{name};1\n".encode()
            info = zipfile.ZipInfo(name, (2026, 11, 25, hour, 0, 0))
            archive.writestr(info, gzip.compress(data) if "gzip" in wrapped else data)
    depot.export("PROD_1.zip", file.getvalue())
    assert depot.sync("wms.products").code == 0
    assert [effect["body"]["name"] for effect in depot.effects()] == [newer]


@pytest.mark.parametrize(
    ("wrapped", "nothing"),
    [
        ("", gzip.compress(b"")),
        ("wrapped: [gzip]", gzip.compress(b"")),
        ("wrapped: [zip]", zipped({"A": ""})),
    ],
    ids=["undeclared gzip", "gzip", "zip"],
)
def test_a_packed_file_without_a_byte_is_no_change_as_any_other(depot: Site, wrapped: str, nothing: bytes) -> None:
    """Programs that pack what an export writes make bytes of nothing; undeclared, such a file is refused."""
    declare(depot, wrapped)
    depot.export("PROD_1", nothing)
    refused = depot.sync("wms.products")
    assert (refused.code, "the file is empty" in refused.err) == (4, True)
    declare(depot, "empty: no_change")
    done = depot.sync("wms.products")
    assert (done.code, done.records("products")) == (0, {})
    assert "PROD_1: has no byte, which means no change" in str(done.json)


def test_a_member_that_is_passed_over_proves_no_removal(depot: Site) -> None:
    """The report names it; if its name is like those of the others, what it lacks is not gone, whatever they count."""
    depot.edit('delimiter: ";"', f'delimiter: ";", {TRAILER}', within="products:")
    depot.edit("mode: append", "mode: snapshot\n        on_gone: delete", within="products:")
    declare(depot, "gone: {at_most_percent: 100}", "wrapped: [{kind: zip, members: '*.csv'}]")
    more = counted("P3;Washer;0.05\n")
    depot.export("PROD_1.zip", zipped({"HAM.csv": counted(*LINES), "BRE.csv": more}))
    assert depot.sync("wms.products").records("products") == {"read": 3, "created": 3}
    for number in (2, 3, 4, 5):
        price = str(number)  # so that no content comes twice
        rows = [line.rpartition(";")[0] + f";{price}\n" for line in LINES]
        depot.export(f"PROD_{number}.zip", zipped({"HAM.csv": counted(*rows), "BRE.CSV": more}))
        held = depot.sync("wms.products")
        assert (held.code, held.records("products")["ignored"]) == (4, 1)
        notes = held.json["streams"]["wms.products"]["notes"]
        assert f"passed over PROD_{number}.zip/BRE.CSV: its name does not match 'members'" in notes
        assert (
            f"1 record is gone and not removed: the snapshot may have more than was read: PROD_{number}.zip/BRE.CSV"
            in held.json["errors"]["wms.products"]
        )
    assert "delete" not in {effect["operation"] for effect in depot.effects()}
    others = {"README.txt": "not read", "docs/": "", "__MACOSX/._HAM.csv": "not read"}
    depot.export("PROD_6.zip", zipped({"HAM.csv": counted(*LINES)} | others))
    done = depot.sync("wms.products")
    assert (done.code, done.records("products")["deleted"]) == (0, 1)
    note = "passed over PROD_6.zip/README.txt, PROD_6.zip/__MACOSX/._HAM.csv: its name does not match 'members'"
    assert note in done.json["streams"]["wms.products"]["notes"]


def test_a_wrapped_layout_is_shown(depot: Site) -> None:
    """Each member with its records, and a refused wrapper with its reason and exit code."""
    declare(depot, "wrapped: [zip, gzip]")
    packed = {name: gzip.compress(PRODUCTS.encode()) for name in ("A.gz", "B.gz")}
    file = str(depot.export("PROD_1.zip", zipped(packed)))
    arguments = ("layout", "show", file, "--stream", "wms.products")
    shown = depot.run(*arguments, "--raw")
    assert "PROD_1.zip/A.gz: 2 records, as declared" in shown.out
    assert "PROD_1.zip/B.gz: 2 records, as declared" in shown.out
    members = json.loads(depot.run(*arguments, "--json").out)["members"]
    assert [(member["file"], member["rows"]) for member in members] == [("PROD_1.zip/A.gz", 2), ("PROD_1.zip/B.gz", 2)]
    depot.export("PROD_1.zip", PRODUCTS)
    refused = depot.run(*arguments)
    assert refused.code == 4
    assert "must be a zip archive, and does not begin so" in refused.err
