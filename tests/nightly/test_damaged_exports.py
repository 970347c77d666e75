"""Many damaged or partial exports: not one of them removes a record, and each says why."""

from __future__ import annotations

import gzip
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from tests.chaos.chance import chaos_seed
from tests.e2e.warehouse import Result, Site

HEADER = "SKU;NAME;PRICE\n"
COMPARED_SNAPSHOTS = ("PROD_20260101.csv", "PROD_20260102.csv", "PROD_20260103.csv")
TONIGHT = "PROD_20260104.csv"
PRODUCTS = 60  # three of them may go in one night
GONE = 2

REFUSED = (
    r"the last line is not the trailer|of the trailer is not a count|the trailer counts|\d fields? instead of 3"
    r"|missing column"
)
TOO_MANY = r"of 60 records are gone, more than gone\.at_most_percent \(5\); none of them is removed"
SAME_BYTES = "gone and not removed: the snapshot is identical to one that an earlier run processed"
KEYLESS = r"gone and not removed: \d+ rows? ha(s|ve) no key"
STALE = "is older than the snapshot"


@dataclass(frozen=True)
class Damage:
    """What a warehouse brings in the place of tonight's good export.

    Attributes:
        says: A pattern that the reason must match; nothing is said where it is empty.
    """

    kind: str
    content: bytes
    code: int
    says: str
    name: str = TONIGHT


class Exports:
    """The nights of a warehouse whose last list lacks two of its sixty products.

    Args:
        share: Of a hundred damages, of which each kind is there at least once.
    """

    def __init__(self, random: Random, *, trailer: bool, share: float) -> None:
        self._random, self._trailer, self._share = random, trailer, share
        rows = [f"P{number};Thing {number};{random.randint(1, 99)}.{random.randint(10, 99)}\n" for number in range(60)]
        self.scheduled_runs = [self.file(rows[: PRODUCTS - 2 + night]) for night in range(3)]
        self.rows = rows[GONE:]
        random.shuffle(self.rows)
        self.gone = rows[:GONE]
        self.good = self.file(self.rows)

    def file(self, rows: Sequence[str], told: int | None = None) -> bytes:
        trailer = f"TRL;{len(rows) if told is None else told}\n" if self._trailer else ""
        return f"{HEADER}{''.join(rows)}{trailer}".encode()

    def damages(self) -> Iterator[Damage]:
        yield from self._of_both()
        yield from self._with_trailer() if self._trailer else self._without_trailer()

    def _of_both(self) -> Iterator[Damage]:
        yield Damage("nothing in it", b"", 4, "the file is empty")
        yield Damage("header only", HEADER.encode(), 4, "trailer" if self._trailer else "is a snapshot without rows")
        yield Damage("last night's again", self.scheduled_runs[2], 0, "")
        for _ in self._times(2):
            yield Damage("of an earlier night", self.scheduled_runs[self._random.randint(0, 1)], 4, SAME_BYTES)
            yield Damage("stale", self.file(self._some(58)), 4, STALE, COMPARED_SNAPSHOTS[self._random.randint(0, 1)])
            yield Damage("joined with itself", self.good + self.good, 4, "Were files joined")
            yield Damage("not text", self._garbled(), 4, "is not UTF-8")
        for _ in self._times(3):
            yield Damage("keys lost", self.file(self._without_keys()), 4, KEYLESS)

    def _with_trailer(self) -> Iterator[Damage]:
        for _ in self._times(20):
            cut = self._random.randrange(1, len(self.good) - 2)
            yield Damage("cut", self.good[:cut], 4, REFUSED)
        for _ in self._times(6):
            whole = gzip.compress(self.good)
            yield Damage("cut gzip", whole[: self._random.randrange(20, len(whole))], 4, "gzip data ends before")
        for _ in self._times(7):
            yield Damage("half with a right trailer", self.file(self._some(self._random.randint(5, 56))), 4, TOO_MANY)
            rows = self._some(self._random.randint(1, 57))
            yield Damage(
                "half with a wrong trailer", self.file(rows, told=58), 4, "the trailer counts 58, the file has"
            )
        for wrong in (0, 57, 59, 580):
            yield Damage("wrong trailer", self.file(self.rows, told=wrong), 4, f"the trailer counts {wrong}, the file")
        yield Damage("trailer only", self.file([]), 4, "is a snapshot without rows")
        yield Damage("goes on after its end", self.good + self.rows[0].encode(), 4, "trailer")
        for _ in self._times(3):
            skipped = [row.replace("Thing", "TEST") for row in self.gone]
            yield Damage("filtered", self.file(self._mixed([*self.rows, *skipped])), 0, "")

    def _without_trailer(self) -> Iterator[Damage]:
        for _ in self._times(5):
            rows = self.rows[: self._random.randint(48, 56)]
            yield Damage("cut at a line", self.file(rows), 4, TOO_MANY)
            rows = self.rows[: self._random.randint(1, 46)]
            yield Damage(
                "cut short at a line",
                self.file(rows),
                4,
                rf"not removed: the snapshot has {len(rows)} rows; the previous ones had",
            )
        for _ in self._times(13):
            cut = self._random.choice(
                [place for place in range(1, len(self.good)) if self.good[place - 1] != ord("\n")]
            )
            yield Damage(
                "cut in a line", self.good[:cut], 4, f"{REFUSED}|snapshot without rows|the last line has no line break"
            )

    def _times(self, number: int) -> range:
        return range(max(1, round(number * self._share)))

    def _some(self, number: int) -> list[str]:
        return self._random.sample(self.rows, number)

    def _mixed(self, rows: list[str]) -> list[str]:
        return self._random.sample(rows, len(rows))

    def _without_keys(self) -> list[str]:
        hidden = [*self.gone, *self._some(self._random.randint(0, 3))]
        return self._mixed([re.sub("^P[0-9]+", "", row) if row in hidden else row for row in [*self.rows, *self.gone]])

    def _garbled(self) -> bytes:
        place = self._random.randrange(len(HEADER), len(self.good))
        return self.good[:place] + b"\xff\xfe" + self.good[place:]


class ScheduledRun:
    """A site that has worked through three nights, as often as it takes."""

    def __init__(self, site: Site, exports: Exports) -> None:
        self._site, self._kept = site, site.folder / "kept"
        site.setenv("XDG_STATE_HOME", str(site.folder / "state.db.home"))  # the state is put back without a word
        for name, content in zip(COMPARED_SNAPSHOTS, exports.scheduled_runs, strict=True):
            site.export(name, content)
            assert site.sync("wms.products").code == 0
        self._last, self._written = exports.scheduled_runs[2], (site.out / COMPARED_SNAPSHOTS[2]).stat().st_mtime
        self._kept.mkdir()
        shutil.copy(site.folder / "state.db", self._kept)
        self._already = len(site.effects("product"))

    def falls(self, name: str, content: bytes) -> Result:
        """What a sync says of a file, in the state that the third night left."""
        site = self._site
        for old in (*site.folder.glob("state.db*"), *site.out.iterdir()):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        shutil.copy(self._kept / "state.db", site.folder)
        if name == TONIGHT:
            os.utime(site.export(COMPARED_SNAPSHOTS[2], self._last), (self._written, self._written))
        site.export(name, content)
        return site.sync("wms.products")

    def removals(self) -> list[str]:
        """The names of what was deleted or made inactive since."""
        told = self._site.effects("product")[self._already :]
        return sorted(
            effect["body"]["externalId"]
            for effect in told
            if effect["operation"] == "delete" or not effect["body"]["active"]
        )


def nights(site: Site, exports: Exports, on_gone: str) -> ScheduledRun:
    """Three nights that went well."""
    site.edit("mode: append", f"mode: snapshot\n        on_gone: {on_gone}", within="products:")
    site.edit("key: [SKU]", "skip: {test: {field: NAME, starts_with: TEST}}\n        key: [SKU]", within="products:")
    if exports.good.count(b"TRL"):
        trailer = 'delimiter: ";", trailer: {prefix: "TRL;", count: 1}'
        site.edit('delimiter: ";"', trailer, within="products:")
    site.init()
    return ScheduledRun(site, exports)


BOTH = pytest.mark.parametrize(
    ("trailer", "on_gone"), [pytest.param(True, "delete", id="counted"), pytest.param(False, "archive", id="uncounted")]
)


def removes_nothing(exports: Exports, night: ScheduledRun, number: int) -> None:
    """Fails unless each of so many damages removes nothing and says why."""
    told = Counter[str]()
    for damage in exports.damages():
        told[damage.kind] += 1
        result = night.falls(damage.name, damage.content)
        which = f"seed {chaos_seed()}, {damage.kind} {told[damage.kind]}: exit {result.code}\n{result.err}"
        assert result.code == damage.code, which
        assert re.search(damage.says, result.err) if damage.says else not result.err, which
        assert result.json["balanced"], which
        assert night.removals() == [], which
    assert told.total() == number, told
    assert night.falls(TONIGHT, exports.good).code == 0, "the good one removes what is gone"
    assert night.removals() == ["wms:P0", "wms:P1"]


@BOTH
def test_no_damaged_export_removes_a_record(site: Site, trailer: bool, on_gone: str) -> None:
    """Whatever is cut off, repeated, stale, joined, filtered or without keys: 0 removed, and the reason is reported."""
    exports = Exports(Random(chaos_seed()), trailer=trailer, share=0.25)
    removes_nothing(exports, nights(site, exports, on_gone), {True: 26, False: 13}[trailer])
