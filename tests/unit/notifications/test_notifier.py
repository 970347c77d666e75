"""Configs of notifications."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from crossdock.config.notify_config import NotifyConfig
from crossdock.errors import ConfigError
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.testing.manual_clock import ManualClock
from crossdock.values import config_file
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.schema_descriptions_from_docstrings import SchemaGeneratorWithDescriptions

MAIL = "host: mail.example.com, port: 587, tls: starttls, sender: sync@example.com"


class Job(ConfigModel):
    notify: NotifyConfig


def load(tmp_path: Path, text: str) -> NotifyConfig:
    path = tmp_path / "c.yaml"
    path.write_text("notify:\n  " + text.replace("\n", "\n  "), encoding="utf-8")
    document = config_file.read_config_with_overrides(path)
    return document.validated_as_model(Job, document.data).notify


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        pytest.param("when: [failed]", ":1:1: notify", "needs a webhook or an email", id="nobody"),
        pytest.param("when: []\nwebhook: {url: https://a.b}", "notify.when", "name at least one", id="never"),
        pytest.param("when: failed\nwebhook: {url: https://a.b}", "notify.when", "must be a list", id="no list"),
        pytest.param("when: [broken]\nwebhook: {url: https://a.b}", "notify.when.0", "'failed'", id="no kind"),
        pytest.param(
            '"on": [failed]\nwebhook: {url: https://a.b}', "notify.on", "known: email, webhook, when", id="on"
        ),
        pytest.param("webhook: {}", "notify.webhook.url", "is missing", id="no url"),
        pytest.param("webhook: {url: 7}", "notify.webhook.url", "must be text", id="a number"),
        pytest.param("webhook: {url: http://a.b/c}", "notify.webhook.url", "must be https", id="http elsewhere"),
        pytest.param("webhook: {url: http://127.0.0.1.a.b}", "notify.webhook.url", "must be https", id="near loopback"),
        pytest.param("webhook: {url: ftp://127.0.0.1}", "notify.webhook.url", "such as https://", id="ftp"),
        pytest.param("webhook: {url: a.b/c}", "notify.webhook.url", "such as https://", id="no scheme"),
        pytest.param('webhook: {url: "https://"}', "notify.webhook.url", "such as https://", id="no host"),
        pytest.param('webhook: {url: "https://a.b:x/"}', "notify.webhook.url", "such as https://", id="no port"),
        pytest.param('webhook: {url: "https://a.b/#c"}', "notify.webhook.url", "such as https://", id="fragment"),
        pytest.param('webhook: {url: "https://a.b/c\\nd"}', "notify.webhook.url", "such as https://", id="two lines"),
        pytest.param('webhook: {url: "https://a b/c"}', "notify.webhook.url", "such as https://", id="a blank"),
        pytest.param('webhook: {url: "https://a..b/c"}', "notify.webhook.url", "such as https://", id="no label"),
        pytest.param('webhook: {url: "env:"}', "notify.webhook.url", "such as https://", id="no name"),
        pytest.param("webhook: {url: https://u:hunter2@a.b}", "notify.webhook.url", "must not hold a user", id="user"),
        pytest.param("webhook: {url: https://a.b, secret: hunter2}", "webhook.secret", "never written", id="literal"),
        pytest.param(f"email: {{{MAIL}, to: []}}", "notify.email.to", "name at least one", id="to nobody"),
        pytest.param(f"email: {{{MAIL}}}", "notify.email.to", "is missing", id="no to"),
        pytest.param(f"email: {{{MAIL}, to: ops@example.com}}", "notify.email.to", "must be a list", id="one to"),
        pytest.param(
            f"email: {{{MAIL}, to: [hunter2]}}", "notify.email.to.0", "a plain email address", id="no mailbox"
        ),
        pytest.param(
            f'email: {{{MAIL}, to: ["a@b.c\\r\\nBcc: x@y.z"]}}', "notify.email.to.0", "a plain email", id="injected"
        ),
        pytest.param(
            f'email: {{{MAIL}, to: ["A <a@b.c>"]}}', "notify.email.to.0", "a plain email address", id="with a name"
        ),
        pytest.param(
            "email: {host: mail.example.com, port: 25, tls: none, sender: a@b.c, to: [a@b.c]}",
            "notify.email",
            "tls: none is for a mail server on this machine only",
            id="in the clear",
        ),
        pytest.param(
            "email: {host: localhost, port: 25, sender: a@b.c, to: [a@b.c]}", "email.tls", "is missing", id="no tls"
        ),
        pytest.param(
            "email: {host: localhost, port: 0, tls: none, sender: a@b.c, to: [a@b.c]}", "email.port", "1", id="port 0"
        ),
        pytest.param(
            'email: {host: "local host", port: 25, tls: none, sender: a@b.c, to: [a@b.c]}',
            "notify.email.host",
            "must be a host name",
            id="no host name",
        ),
        pytest.param(f"email: {{{MAIL}, to: [a@b.c], user: u}}", "notify.email", "go together", id="no password"),
        pytest.param(f"email: {{{MAIL}, to: [a@b.c], password: env:P}}", "notify.email", "go together", id="no user"),
        pytest.param(f'email: {{{MAIL}, to: [a@b.c], user: "", password: env:P}}', "email.user", "", id="empty user"),
    ],
)
def test_invalid_configs_are_refused(tmp_path: Path, text: str, place: str, message: str) -> None:
    """The finding names the place and the rule, and repeats no address and no secret."""
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert place in str(refused.value)
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_default_kinds(tmp_path: Path) -> None:
    config = load(tmp_path, "webhook: {url: 'https://hooks.example.com/x?channel=y'}")
    assert set(config.when) == {"failed", "degraded", "recovered"}


def test_the_json_schema_agrees_with_the_model() -> None:
    """It accepts valid configs, refuses invalid ones, and describes every key."""
    schema = NotifyConfig.model_json_schema(schema_generator=SchemaGeneratorWithDescriptions)
    email = {**yaml.safe_load(f"{{{MAIL}}}"), "to": ["ops@example.com"], "user": "u", "password": "env:P"}
    for said in ({"webhook": {"url": "https://a.b"}}, {"webhook": {"url": "env:HOOK"}, "when": ["late"]}):
        jsonschema_rs.validate(schema, said)
    jsonschema_rs.validate(schema, {"email": email})
    bad: list[dict[str, Any]] = [{"when": ["x"]}, {"webhook": {"url": "ftp://a"}}, {"email": {**email, "to": []}}]
    for said in bad:
        assert not jsonschema_rs.is_valid(schema, said)
    for model in (schema, *schema["$defs"].values()):
        assert all(shown.get("description") for name, shown in model["properties"].items()), model["title"]


@pytest.mark.parametrize(
    ("text", "variables", "message"),
    [
        ("webhook: {url: https://a.b, secret: env:KEY}", {}, "the environment variable KEY is not set"),
        ("webhook: {url: https://a.b, secret: env:KEY}", {"KEY": "hunter2"}, "env:KEY is not a signing key"),
        ("webhook: {url: https://a.b, secret: env:KEY}", {"KEY": "whsec_" + "A" * 28}, "is not a signing key"),
        ("webhook: {url: https://a.b, secret: env:KEY}", {"KEY": "whsec_" + "A" * 92}, "is not a signing key"),
        ("webhook: {url: env:HOOK}", {}, "the environment variable HOOK is not set"),
        ("webhook: {url: env:HOOK}", {"HOOK": "http://hunter2.example.com"}, "the URL in env:HOOK must be https"),
        (
            f"email: {{{MAIL}, to: [a@b.c], user: u, password: env:P}}",
            {"P": "hünter2"},
            "characters that SMTP authentication does not support",
        ),
    ],
)
def test_unusable_secrets_are_found_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, variables: dict[str, str], message: str
) -> None:
    """They are reported before the first notification, without their value."""
    for name in ("KEY", "HOOK", "P"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=re.escape(message)) as refused:
        Notifier(load(tmp_path, text), ManualClock())
    assert "nter2" not in str(refused.value)
