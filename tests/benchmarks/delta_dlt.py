"""The same export through dlt into duckdb, keeping history (scd2): run with the Python of an environment that has dlt.

``usual`` is how its documentation reads files: filesystem, read_csv, rows as dictionaries; loaded as Parquet, since its
default format takes minutes and gigabytes here. ``arrow`` is what experts do: one Arrow table with a hash of each row.
Both are given the columns that count, and so compare as much as the others do.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

USED = 8  # the first columns are those that count


def arrow(export: Path) -> Any:
    dlt, csv = import_module("dlt"), import_module("pyarrow.csv")
    add_row_hash = import_module("dlt.sources.helpers.transform").add_row_hash_to_table
    names = header(export)
    table = csv.read_csv(
        export,
        parse_options=csv.ParseOptions(
            delimiter="|", newlines_in_values=True, invalid_row_handler=lambda _: "skip"  # the trailer
        ),
        convert_options=csv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, "string")),
    )  # fmt: skip
    versioned = {"disposition": "merge", "strategy": "scd2", "row_version_column_name": "row_hash"}
    return dlt.resource(table, name="items", write_disposition=versioned).add_map(add_row_hash("row_hash"))


def usual(export: Path) -> Any:
    files = import_module("dlt.sources.filesystem")
    found = files.filesystem(bucket_url=export.parent.as_uri(), file_glob=export.name)
    rows = found | files.read_csv(sep="|", dtype=str, keep_default_na=False, usecols=header(export))
    rows.add_filter(lambda row: row["SKU"] != "TRL")
    rows.apply_hints(write_disposition={"disposition": "merge", "strategy": "scd2"})
    return rows.with_name("items")


def header(export: Path) -> list[str]:
    with export.open(encoding="utf-8") as file:
        return file.readline().strip().split("|")[:USED]


def main(way: str, export: str, folder: str) -> None:
    os.environ |= {"DLT_DATA_DIR": folder, "RUNTIME__DLTHUB_TELEMETRY": "false"}  # nothing leaves this machine
    os.chdir(folder)  # no settings from elsewhere
    dlt = import_module("dlt")
    pipeline = dlt.pipeline(
        "items",
        pipelines_dir=folder,
        destination=dlt.destinations.duckdb(f"{folder}/items.duckdb"),
        dataset_name="warehouse",
    )
    resource = {"arrow": arrow, "usual": usual}[way](Path(export))
    pipeline.run(resource, loader_file_format="parquet").raise_on_failed_jobs()
    with pipeline.sql_client() as client:
        ((retired,),) = client.execute_sql("SELECT count(*) FROM items WHERE _dlt_valid_to IS NOT NULL")
    print(retired)


if __name__ == "__main__":
    main(*sys.argv[1:])
