"""Notifications over several channels on loopback."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.notifications.receivers import (
    FAILED,
    KEY,
    QUICK_S,
    Receiver,
    email,
    notifier,
)
from tests.servers import served

from crossdock.services.notifications import mail_and_webhook_notifier
from crossdock.values import exact_json


def test_unselected_events_are_not_sent() -> None:
    """Successful runs and kinds that are not in ``when`` send nothing."""
    with served(Receiver()) as receiver:
        sender = notifier({"when": ["recovered"], "webhook": {"url": receiver.url}})
        assert sender.notify(FAILED) == []
        assert sender.notify(replace(FAILED, status="done")) == []
        assert receiver.posts == []
        assert sender.notify(replace(FAILED, status="degraded", previous="failed")) == []
    (post,) = receiver.posts
    assert exact_json.loads(post.body)["data"]["kinds"] == ["recovered"]


def test_channels_fail_independently() -> None:
    """A channel that cannot be reached is reported, and the other one is used."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with served(Receiver()) as receiver:
        config = {"webhook": {"url": receiver.url}, **email(port)}
        assert notifier(config).notify(FAILED) == [
            f"the mail server 127.0.0.1:{port} cannot be reached: connection refused [notification_failed]"
        ]
        assert len(receiver.posts) == 1
    both = {"webhook": {"url": f"http://127.0.0.1:{port}"}, **email(port)}
    assert [reported.split(" cannot")[0] for reported in notifier(both).notify(FAILED)] == [
        f"the webhook 127.0.0.1:{port}", f"the mail server 127.0.0.1:{port}",
    ]  # fmt: skip


def test_a_stuck_dns_lookup_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A DNS lookup has no timeout; the run is not held up by it."""
    over = threading.Event()

    def stuck(*_: Any, **__: Any) -> None:
        assert over.wait(60)
        raise OSError(5, "Too late")

    monkeypatch.setattr(socket, "create_connection", stuck)
    reported = notifier(email(25), attempt_s=QUICK_S).notify(FAILED)
    over.set()
    assert reported == ["the mail server 127.0.0.1:25 did not answer in time"]


def test_a_defect_is_reported_by_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of an unexpected exception is not shown."""

    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("hunter2")

    monkeypatch.setattr(mail_and_webhook_notifier.MailChannel, "send", broken)
    assert notifier(email(25)).notify(FAILED) == ["the mail server 127.0.0.1:25 failed: KeyError"]


def test_a_rotated_secret_is_used(tmp_path: Path) -> None:
    """No restart is needed."""
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    with served(Receiver()) as receiver:
        sender = notifier({"webhook": {"url": receiver.url, "secret": f"file:{file}"}})
        assert sender.notify(FAILED) == []
        file.write_text("no key")
        (reported,) = sender.notify(FAILED)
    assert reported.endswith(f"cannot be used: file:{file} is not a signing key [secret_invalid]")
    assert len(receiver.posts) == 1
