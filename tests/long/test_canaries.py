"""Canaries in what is shown of all hostile platforms."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.test_canaries import MALFORMED, PARROTS, fill, find_none, not_quoted, watched
from tests.e2e.warehouse import open_site

from crossdock.sandbox import SandboxServer


def test_no_canary_is_found_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets and personal values are in no output, whatever a platform repeats of them, and how."""
    with SandboxServer(tmp_path / "platform") as platform, open_site(tmp_path, platform, monkeypatch) as site:
        fill(site, monkeypatch)
        find_none(site, watched(site), monkeypatch, PARROTS)


@pytest.mark.parametrize("name", MALFORMED)
def test_no_malformed_answer_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As in the short form, for every answer that is not HTTP."""
    with SandboxServer(tmp_path / "platform") as platform, open_site(tmp_path, platform, monkeypatch) as site:
        fill(site, monkeypatch)
        not_quoted(site, watched(site), name)
