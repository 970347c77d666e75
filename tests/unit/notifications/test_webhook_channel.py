"""Signatures of webhooks."""

from __future__ import annotations

import base64

import pytest

from crossdock.config.notify_config import Webhook
from crossdock.services.notifications import mail_and_webhook_notifier


@pytest.mark.parametrize("key", ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_the_signature_follows_the_standard(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """It equals the published example of Standard Webhooks, with and without the key's prefix."""
    monkeypatch.setenv("KEY", key)
    channel = mail_and_webhook_notifier.WebhookChannel(
        Webhook.model_validate({"url": "https://a.b", "secret": "env:KEY"})
    )
    read = channel._signing_key()
    assert read == base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = mail_and_webhook_notifier.webhook_signature_header(
        read, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
