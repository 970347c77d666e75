"""What a good engineer writes by hand: csv, a digest a row, and one table of what was seen last.

It compares the columns that count, writes down what is new or changed, and remembers it. It reads a local file, checks
its trailer and nothing else, and knows nothing of the platform.
"""

import csv
import hashlib
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

USED = 8  # the first columns are those that count


def main(export: Path, state: Path, delta: Path) -> None:
    with closing(sqlite3.connect(state)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS seen (sku TEXT PRIMARY KEY, digest BLOB) WITHOUT ROWID")
        known = dict(database.execute("SELECT sku, digest FROM seen"))
        found = []
        with export.open(encoding="utf-8", newline="") as file, delta.open("w", encoding="utf-8") as told:
            rows = csv.reader(file, delimiter="|")
            header, number = next(rows), 0
            for row in rows:
                if row[0] == "TRL":
                    break
                number += 1
                digest = hashlib.sha256("|".join(row[:USED]).encode()).digest()
                if known.get(row[0]) != digest:
                    found.append((row[0], digest))
                    told.write(json.dumps(dict(zip(header, row, strict=True))) + "\n")
        if row[0] != "TRL" or int(row[1]) != number:
            sys.exit("the file is not whole")
        database.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?)", found)
        database.commit()
    print(len(found))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
