"""Certificates and secrets for the tests of notifications."""

from __future__ import annotations

import ssl

import pytest
import trustme
from tests.integration.notifications.receivers import KEY


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certified(authority: trustme.CA) -> ssl.SSLContext:
    """The TLS settings of a server on loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """TLS settings that trust `certified`."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", f"whsec_{KEY}")
    monkeypatch.setenv("PASSWORD", "hunter2 and more")
