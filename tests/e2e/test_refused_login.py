"""A wrong password is sent once in a run, whatever number of streams and targets would send it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.folder_project import FolderProject
from tests.e2e.test_api_nights import NAMED, Shop
from tests.partners.partner_server import PartnerAnswer, PartnerRequest, PartnerServer, serving

from crossdock.sandbox import SandboxServer
from crossdock.testing.sandbox_syncs import write_private_file

NOTES = {
    "members": {"text": {"type": "text"}},
    "name": "ref",
    "id": "/id",
    "record": "",
    "create": "POST /notes",
    "look_up": {"path": "/notes", "params": {"ref": "{name}"}, "records": "items"},
}


@pytest.mark.parametrize(
    ("status", "body"), [(401, {"message": "wrong password"}), (200, {"message": "wrong password", "token": None})]
)
def test_a_wrong_password_is_sent_once(tmp_path: Path, status: int, body: dict[str, Any]) -> None:
    """By a run of five streams, and by a check, which also tests the target: five may lock a user out."""
    shop, logins = Shop(), list[str]()

    def answer(request: PartnerRequest) -> PartnerAnswer:
        if request.path != "/login":
            return shop.page(request)
        logins.append(request.path)
        return PartnerAnswer(status, body)

    shop.answering = answer
    with SandboxServer(tmp_path / "sandbox") as platform, serving(PartnerServer(shop)) as server:
        shop.url = server.url
        password = write_private_file(tmp_path / "password", "wrong")
        connection = {
            "kind": "http_json",
            "base_url": server.url,
            "auth": {
                "kind": "login",
                "login_url": f"{server.url}/login",
                "credentials": {"user": "sync", "password": password},
            },
            "pagination": {"kind": "link_header"},
            "streams": {f"s{number}": {**NAMED, "mode": "snapshot", "namespace": f"n{number}"} for number in range(5)},
            "target": {"resources": {"notes": NOTES}},
        }
        project = FolderProject(tmp_path, platform, {"shop": connection})
        assert project.run("init").exit_code == 0, project.run("init").stderr
        done = project.run("sync")
        assert (done.exit_code, len(logins)) == (3, 1), done.stderr
        assert "wrong password" in done.stderr
        assert (project.run("check").exit_code, len(logins)) == (3, 2)
