"""A project with one connection, ``books``, to a `TokenVendor`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.ended_commands import Done
from tests.partners.token_vendor import CLIENT
from tests.waiting import eventually

from crossdock.reading.transport.authorization_code_tokens import AuthorizationCodeAuth, StoredTokens, TokenFile
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values import exact_json

READ = ("try", "books.items", "-n", "10")


class TokenProject:
    """Args:
    url: Of the vendor.
    auth: Further keys of the credentials.
    """

    def __init__(self, folder: Path, url: str, *, platform: str = "http://127.0.0.1:9", **auth: Any) -> None:
        self.folder = folder
        self.tokens = TokenFile(folder / "state.db.tokens" / "books.json")
        given = {"authorize_url": f"{url}/authorize"} if "device_url" not in auth else {}
        credentials = {
            "kind": "authorization_code", **given, "token_url": f"{url}/token", "client_id": CLIENT[0],
            "client_secret": write_private_file(folder / "client-secret", CLIENT[1]), "scopes": ["offline_access"],
            **auth,
        }  # fmt: skip
        items = {
            "path": "/items", "records": "items", "mode": "snapshot", "key": ["id"], "resource": "product",
            "pagination": {"kind": "cursor_in_body", "path": "next", "param": "page"},
            "map": {"sku": "id", "name": "id"},
        }  # fmt: skip
        books = {"kind": "http_json", "base_url": url, "auth": credentials, "streams": {"items": items}}
        target = {"base_url": platform, "tenant": "t", "auth": {"kind": "api_key", "token": "env:KEY"}}
        document = {"platform": target, "state": "sqlite:///state.db", "connections": {"books": books}}
        self.config = folder / "crossdock.yaml"
        self.config.write_bytes(exact_json.dumps(document))

    def command(self, *arguments: str) -> list[str]:
        return [*CROSSDOCK, "-C", str(self.config), *arguments]

    def run(self, *arguments: str) -> Done:
        return processes.finish(self.command(*arguments), {**os.environ, "KEY": "k"})

    def auth(self, url: str) -> AuthorizationCodeAuth:
        """The credentials in this process."""
        made = AuthorizationCodeAuth(f"{url}/token", *CLIENT, authorize_url=f"{url}/authorize")
        made.keep(self.tokens.path, "books")
        return made

    def stored(self) -> StoredTokens:
        found = self.tokens.read()
        assert found is not None
        return found


def address_in(output: Path) -> str:
    """The address that a command shows, once it does."""
    found: list[str] = []

    def is_shown() -> bool:
        found[:] = re.findall(r"^  (https?://\S+)$", output.read_text() if output.exists() else "", re.MULTILINE)
        return bool(found)

    eventually(is_shown)
    return found[0]
