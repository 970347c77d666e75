"""The same pages with dlt's ``rest_api``, into duckdb: run with the Python of an environment that has dlt."""

import os
import sys
from importlib import import_module
from typing import Any

QUERY = "query($after: String) { orders(after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }"


def endpoint(kind: str) -> dict[str, Any]:
    if kind != "graphql":
        return {"path": "orders", "paginator": "header_link", "data_selector": "orders"}
    cursor = {"type": "cursor", "cursor_path": "data.orders.pageInfo.endCursor", "cursor_body_path": "variables.after"}
    return {
        "path": "graphql",
        "method": "POST",
        "json": {"query": QUERY.replace("{", "{{").replace("}", "}}"), "variables": {"after": None}},
        "paginator": cursor,
        "data_selector": "data.orders.nodes",
    }


def main(kind: str, port: str, folder: str) -> None:
    os.environ |= {"DLT_DATA_DIR": folder, "RUNTIME__DLTHUB_TELEMETRY": "false"}  # nothing leaves this machine
    os.chdir(folder)  # no settings from elsewhere
    dlt = import_module("dlt")
    source = import_module("dlt.sources.rest_api").rest_api_source(
        {
            "client": {"base_url": f"http://127.0.0.1:{port}/"},
            "resources": [{"name": "orders", "endpoint": endpoint(kind), "write_disposition": "replace"}],
        }
    )
    destination = dlt.destinations.duckdb(f"{folder}/orders.duckdb")
    pipeline = dlt.pipeline("orders", pipelines_dir=folder, destination=destination, dataset_name="shop")
    pipeline.run(source).raise_on_failed_jobs()
    with pipeline.sql_client() as client:
        ((number,),) = client.execute_sql("SELECT count(*) FROM orders")
    print(number)


if __name__ == "__main__":
    main(*sys.argv[1:])
