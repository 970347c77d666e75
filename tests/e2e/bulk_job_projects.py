"""Records in a folder that APIs take in files, for jobs: Salesforce, Shopify and Amazon, run by commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from tests.e2e.declared_writes import WrittenFolder
from tests.partners.bulk_jobs import AmazonFeeds, BulkJobs, SalesforceBulk, ShopifyBulk

VENDORS: dict[str, type[BulkJobs]] = {"salesforce": SalesforceBulk, "shopify": ShopifyBulk, "amazon": AmazonFeeds}
_CONFIGS = Path(__file__).parents[2] / "configs"


def _salesforce() -> dict[str, Any]:
    return _resource("salesforce.yaml", "salesforce", "contacts")


def _shopify() -> dict[str, Any]:
    product = {"handle": "{external_id}", "title": "{LastName}", "note": "{Email?}"}
    row = {"identifier": {"object": {"handle": "{external_id}"}}, "input": {"object": product}}
    content = {"kind": "json_lines", "rows": [{"object": row}], "update": [{"object": row}]}
    return _resource("shopify_catalog.yaml", "catalog", "products") | {"content": content}


def _resource(file: str, connection: str, resource: str) -> dict[str, Any]:
    """The one of an example config, with the version of Shopify's API that the fake has."""
    text = (_CONFIGS / file).read_text(encoding="utf-8").replace("2026-10", "2025-10")
    return dict(yaml.safe_load(text)["connections"][connection]["target"]["resources"][resource])


def _amazon() -> dict[str, Any]:
    about = {"rows": [{"object": {"value": "{LastName}", "note": "{Email?}"}}]}
    message = {
        "messageId": {"from": "record_number", "as": "integer"},
        "sku": "{external_id}",
        "operationType": "UPDATE",
        "productType": "PRODUCT",
        "attributes": {"object": {"item_name": about}},
    }
    feeds, documents = "/feeds/2021-06-30/feeds", "/feeds/2021-06-30/documents"
    return {
        "name": "sku",
        "content": {
            "kind": "json",
            "records": "messages",
            "header": {"header.sellerId": "A1EXAMPLE", "header.version": "2.0"},
            "rows": [{"object": message}],
            "update": [{"object": message}],
        },
        "job": {
            "prepare": [
                {
                    "path": documents,
                    "body": {"contentType": "application/json; charset=UTF-8"},
                    "keep": {"document": "feedDocumentId", "url": "url"},
                }
            ],
            "upload": {"url": "{url}", "content_type": "application/json; charset=UTF-8"},
            "start": {
                "path": feeds,
                "body": {
                    "feedType": "JSON_LISTINGS_FEED",
                    "marketplaceIds": ["A1PA6795UKMFR9"],
                    "inputFeedDocumentId": "{document}",
                },
                "keep": {"feed": "feedId"},
            },
            "state": {
                "path": f"{feeds}/{{feed}}",
                "state": "processingStatus",
                "done": ["DONE"],
                "failed": ["FATAL", "CANCELLED"],
                "keep": {"report": "resultFeedDocumentId"},
            },
            "results": [
                {
                    "prepare": [{"path": f"{documents}/{{report}}", "keep": {"report_url": "url"}}],
                    "url": "{report_url}",
                    "format": "json",
                    "records": "issues",
                    "when": {"field": "severity", "equals": "ERROR"},
                    "number": "messageId",
                    "refused": True,
                    "reason": ["message"],
                }
            ],
            "others": "accepted",
        },
    }


RESOURCES = {"salesforce": _salesforce, "shopify": _shopify, "amazon": _amazon}
HEADERS = {"salesforce": "", "shopify": "X-Shopify-Access-Token", "amazon": "x-amz-access-token"}


class BulkJobProject(WrittenFolder):
    """Records, each ``ID,NAME,MAIL``, and the API that takes them.

    Args:
        job: Keys of the job in place of the usual ones.
    """

    records_per_file = 4

    def __init__(self, folder: Path, vendor: str, api: BulkJobs, **job: Any) -> None:
        super().__init__(folder, "ID,NAME,MAIL")
        self._token, self._vendor, self._api, self._job = folder / "token", vendor, api, job
        self._token.write_text(api.token)
        self._token.chmod(0o600)
        self.configure()
        assert self.run("init").exit_code == 0

    def configure(self, **job: Any) -> None:
        resource = RESOURCES[self._vendor]()
        resource["members"] = {"LastName": {"type": "text", "required": True}, "Email": "text"}
        resource["records_per_file"] = self.records_per_file
        storage = getattr(self._api, "storage_url", "").removeprefix("http://")
        resource["job"] = resource["job"] | {"poll_s": 0, "hosts": [storage] if storage else []} | self._job | job
        base = f"{self._api.url}/services/data/v62.0" if self._vendor == "salesforce" else self._api.url
        api = {
            "kind": "http_json",
            "base_url": base,
            "headers": {HEADERS[self._vendor]: f"file:{self._token}"},
            "rate": {"per_minute": 600_000, "burst": 1_000},
            "target": {
                "resources": {"records": resource},
                "retry": {"attempts": 3, "base_s": 0.01, "cap_s": 0.02, "give_up_after_s": 0.5},
            },
        }
        if self._vendor == "salesforce":
            api |= {"headers": {}, "auth": {"kind": "bearer", "token": f"file:{self._token}"}}
        self.write_config(api, {"map": {"LastName": "NAME", "Email": {"from": "MAIL", "empty": "null"}}})

    def command(self, *arguments: str) -> list[str]:
        return ["-m", "crossdock", "-C", str(self.config), *arguments]
