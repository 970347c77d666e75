"""The least that a first load could be: three small writes a row in SQLite, in transactions of 32, flushed each time.

It only tells how fast the machine is at such work, and uses the standard library alone.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from contextlib import closing

AT_ONCE = 32
TABLES = """
    PRAGMA journal_mode=WAL;
    PRAGMA synchronous=FULL;
    CREATE TABLE intents (id INTEGER PRIMARY KEY, status TEXT, body TEXT);
    CREATE TABLE bindings (key TEXT PRIMARY KEY, target TEXT) WITHOUT ROWID;
"""


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/load.db")) as database:
        database.executescript(TABLES)
        for start in range(0, rows, AT_ONCE):
            with database:
                for number in range(start, min(start + AT_ONCE, rows)):
                    body = json.dumps({"sku": f"S{number}", "name": f"Product {number}", "price": "9.50"})
                    database.execute("INSERT INTO intents VALUES (?, 'open', ?)", (number, body))
                    database.execute("INSERT INTO bindings VALUES (?, ?)", (f"S{number}", f"prd_{number}"))
                    database.execute("UPDATE intents SET status = 'delivered' WHERE id = ?", (number,))
        print(*database.execute("SELECT count(*) FROM bindings").fetchone())


if __name__ == "__main__":
    main(int(sys.argv[1]))
