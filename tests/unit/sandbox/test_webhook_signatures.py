from __future__ import annotations

import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from crossdock.sandbox.webhook_subscriptions import new_signing_secret, signed_headers


@given(st.dictionaries(st.text(), st.text() | st.integers()))
def test_the_reference_library_verifies_every_body(data: dict[str, object]) -> None:
    """With either of two secrets, and with no other."""
    body, secrets = json.dumps(data).encode(), [new_signing_secret(), new_signing_secret()]
    headers = signed_headers("evt_1", int(time.time()), body, secrets)
    assert all(Webhook(each).verify(body, headers) == data for each in secrets)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_signing_secret()).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(secrets[0]).verify(body + b" ", headers)


def test_a_secret_has_the_form_of_the_standard() -> None:
    """32 random bytes in base64 after the prefix, another one each time."""
    secrets = {new_signing_secret() for _ in range(10)}
    assert len(secrets) == 10
    assert all(len(base64.b64decode(each.removeprefix("whsec_"), validate=True)) == 32 for each in secrets)
