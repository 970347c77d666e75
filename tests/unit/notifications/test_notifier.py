"""What is worth a message, what it says, and which configs are refused before anybody has to be told."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from email.headerregistry import Address
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crossdock import addresses, config_file, exact_json
from crossdock.config_file import ConfigModel
from crossdock.errors import ConfigError
from crossdock.json_schema import DocumentedModel
from crossdock.notifications import events, webhook
from crossdock.notifications.events import RunOverdue, ScheduledRunEnded, kinds
from crossdock.notifications.notifier import Notifier, NotifyConfig
from crossdock.printable import printable
from crossdock.testing.manual_clock import ManualClock

AT = datetime(2026, 3, 15, 2, tzinfo=UTC)
GOOD = ScheduledRunEnded(
    job="nightly",
    business_date=date(2026, 3, 14),
    due=datetime(2026, 3, 15, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
    run_id=17,
    status="done",
    degraded=False,
    seconds=312.4,
    requests=12_345,
    error=None,
    previous="done",
)
LATE = RunOverdue("nightly", date(2026, 3, 14), AT.replace(hour=7), AT.replace(hour=6))


class Job(ConfigModel):
    notify: NotifyConfig


def load(tmp_path: Path, text: str) -> NotifyConfig:
    path = tmp_path / "c.yaml"
    path.write_text("notify:\n  " + text.replace("\n", "\n  "), encoding="utf-8")
    document = config_file.read(path)
    return document.check(Job, document.data).notify


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"previous": None}, set()),
        ({"previous": "skipped"}, set()),
        ({"status": "failed"}, {"failed"}),
        ({"status": "failed", "degraded": True, "previous": "failed"}, {"failed"}),
        ({"status": "incomplete"}, {"failed"}),
        ({"status": "incomplete", "previous": None}, {"failed"}),
        ({"degraded": True}, {"degraded"}),
        ({"previous": "failed"}, {"recovered"}),
        ({"previous": "incomplete"}, {"recovered"}),
        ({"previous": "failed", "degraded": True}, {"recovered", "degraded"}),
        ({"status": "skipped", "previous": "failed"}, set()),
        ({"status": "skipped", "degraded": True}, set()),
    ],
)
def test_what_is_worth_a_message(changes: dict[str, Any], expected: set[str]) -> None:
    """A good night after a good one is nothing; what did not finish failed; done after that is a recovery."""
    assert kinds(replace(GOOD, **changes)) == expected


def test_a_late_night_is_late() -> None:
    """That a night will miss its time is a kind of its own."""
    assert kinds(LATE) == {"late"}


MAIL = "host: mail.example.com, port: 587, tls: starttls, sender: sync@example.com"


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
        pytest.param(f"email: {{{MAIL}, to: [hunter2]}}", "notify.email.to.0", "a plain mail address", id="no mailbox"),
        pytest.param(
            f'email: {{{MAIL}, to: ["a@b.c\\r\\nBcc: x@y.z"]}}', "notify.email.to.0", "a plain mail", id="injected"
        ),
        pytest.param(
            f'email: {{{MAIL}, to: ["A <a@b.c>"]}}', "notify.email.to.0", "a plain mail address", id="with a name"
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
def test_what_cannot_be_told_is_refused_at_load(tmp_path: Path, text: str, place: str, message: str) -> None:
    """The finding names the place and what would be right, and repeats no address and no secret."""
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert place in str(refused.value)
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_three_kinds_are_told_without_asking(tmp_path: Path) -> None:
    """Who names no kinds hears of failed, degraded and recovered nights."""
    told = load(tmp_path, "webhook: {url: 'https://hooks.example.com/x?channel=y'}")
    assert set(told.when) == {"failed", "degraded", "recovered"}


@given(st.text(alphabet="ab1.@_-+'\"<>(), \\\n", max_size=12))
def test_a_mailbox_that_is_taken_can_be_written_to(text: str) -> None:
    """Whatever passes as an address stands in a header as it is."""
    for said in ("o'neil+ops@mail_relay.example.com", text, f"{text}@b.c", f"a@{text}"):
        try:
            taken = addresses.mailbox(said)
        except ValueError:
            assert said != "o'neil+ops@mail_relay.example.com"
        else:
            assert str(Address("crossdock", addr_spec=taken)) == f"crossdock <{said}>"


def test_the_json_schema_takes_what_the_model_takes() -> None:
    """An editor that checks with the schema marks no good config, marks bad ones, and describes every key."""
    schema = NotifyConfig.model_json_schema(schema_generator=DocumentedModel)
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
        ("webhook: {url: env:HOOK}", {"HOOK": "http://hunter2.example.com"}, "the address in env:HOOK must be https"),
        (
            f"email: {{{MAIL}, to: [a@b.c], user: u, password: env:P}}",
            {"P": "hünter2"},
            "characters that SMTP authentication does not support",
        ),
    ],
)
def test_a_secret_that_cannot_be_used_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, variables: dict[str, str], message: str
) -> None:
    """Not in the night when it is needed; and what it is stays untold."""
    for name in ("KEY", "HOOK", "P"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=re.escape(message)) as refused:
        Notifier(load(tmp_path, text), ManualClock())
    assert "nter2" not in str(refused.value)


@pytest.mark.parametrize("key", ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_the_signature_is_that_of_the_standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """The published example of Standard Webhooks comes out, whether its key has the prefix or not."""
    monkeypatch.setenv("KEY", key)
    told = load(tmp_path, "webhook: {url: https://a.b, secret: env:KEY}").webhook
    assert told
    read = webhook.WebhookChannel(told)._key()
    assert read == base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = webhook.signature(read, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_failed_night_in_words() -> None:
    """Job, verdict and date first; then the error's own sentence, the counts, and where to look."""
    bad = replace(GOOD, status="failed", error="wms: cannot be reached\n  look at the tunnel", previous="incomplete")
    told = events.compose(bad, {"failed"}, AT)
    assert told.subject == "nightly failed (2026-03-14)"
    assert told.lines == (
        "Job nightly failed for 2026-03-14.",
        "wms: cannot be reached",
        "look at the tunnel",
        "Due: 2026-03-15 02:30 CET",
        "Duration: 5 min 12 s",
        "Requests: 12,345",
        "Previous run: incomplete",
        "Details: crossdock show 17",
    )


@pytest.mark.parametrize(
    ("event", "subject"),
    [
        (replace(GOOD, status="incomplete"), "nightly did not finish (2026-03-14)"),
        (replace(GOOD, degraded=True), "nightly completed with open records (2026-03-14)"),
        (replace(GOOD, previous="failed"), "nightly recovered (2026-03-14)"),
        (replace(GOOD, previous="failed", degraded=True), "nightly recovered with open records (2026-03-14)"),
        (LATE, "nightly is running late (2026-03-14)"),
    ],
)
def test_the_subject_says_it_all(event: ScheduledRunEnded | RunOverdue, subject: str) -> None:
    """One glance at a phone is enough."""
    assert events.compose(event, kinds(event), AT).subject == subject


def test_a_late_night_in_words() -> None:
    """Both times, each in its own zone."""
    late = replace(LATE, done_by=datetime(2026, 7, 1, 6, tzinfo=ZoneInfo("Europe/Berlin")))
    lines = events.compose(late, {"late"}, AT).lines
    assert lines[1:] == ("Expected end: 2026-03-15 07:00 UTC", "Deadline: 2026-07-01 06:00 CEST")


def test_a_night_as_data() -> None:
    """Programs get the kinds that were asked for, the gravest as type, and each fact as JSON has it."""
    night = replace(GOOD, previous="failed", degraded=True)
    told = events.compose(night, {"recovered", "degraded"}, AT)
    payload = exact_json.loads(exact_json.dumps(told.payload))
    assert payload == {
        "type": "night.degraded",
        "timestamp": "2026-03-15T02:00:00Z",
        "text": "\n".join(told.lines),
        "data": {
            "kinds": ["degraded", "recovered"],
            "job": "nightly",
            "business_date": "2026-03-14",
            "due": "2026-03-15T01:30:00Z",
            "run": 17,
            "status": "done",
            "degraded": True,
            "seconds": payload["data"]["seconds"],
            "requests": 12_345,
            "error": None,
            "previous": "failed",
        },
    }
    assert str(payload["data"]["seconds"]) == "312.4"
    assert events.compose(night, {"recovered"}, AT).payload["type"] == "night.recovered"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3599.4, "59 min 59 s"), (90_061.0, "25 h 1 min")],
)
def test_a_span_in_words(seconds: float, text: str) -> None:
    """Two units are enough."""
    assert f"Duration: {text}" in events.compose(replace(GOOD, seconds=seconds), {"failed"}, AT).lines


@given(job=st.text(), error=st.text() | st.none(), run_id=st.none() | st.integers(min_value=1))
def test_any_words_fit_a_phone_and_a_wire(job: str, error: str | None, run_id: int | None) -> None:
    """Whatever a job or an error is called: few short lines, nothing unseen in them, and JSON below 20 kB."""
    told = events.compose(replace(GOOD, status="failed", job=job, error=error, run_id=run_id, due=None), {"failed"}, AT)
    assert len(told.lines) <= 11
    for line in (told.subject, *told.lines):
        assert line == printable(line)
        assert len(line) <= 200
    assert len(told.subject) <= 70
    assert len(exact_json.dumps(told.payload)) < 20_000 + 12 * len(job)


def test_a_long_error_is_cut() -> None:
    """The rest is read where the run is shown."""
    error = "\n".join(["x" * 1000, "a\x1b[2Jb\u202ec\ud800", *"cdefg"])
    lines = events.compose(replace(GOOD, status="failed", error=error), {"failed"}, AT).lines
    assert lines[1:6] == ("x" * 197 + "...", r"a\x1b[2Jb\u202ec\ud800", "c", "d", "...")


def test_no_two_notices_share_an_id() -> None:
    """A receiver that forgets repeated ids forgets no night."""
    assert events.compose(GOOD, {"failed"}, AT).id != events.compose(GOOD, {"failed"}, AT).id
