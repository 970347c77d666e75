"""Deliveries are accepted exactly if they are signed, timely and new."""

from __future__ import annotations

import base64
import random
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from standardwebhooks.webhooks import Webhook

from crossdock.errors import ConfigError
from crossdock.testing.manual_clock import ManualClock
from crossdock.webhooks import (
    Delivery,
    RecentDeliveries,
    WebhookError,
    WebhookScheme,
    WebhookVerifier,
    signed_headers,
)

NOW = 1_614_265_330
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = b'{"test": 2432232314}'
STANDARD = WebhookScheme()
TEXT = {
    "secret_encoding": "text",
    "id_header": None,
    "timestamp_header": None,
    "signed_content": "{body}",
    "prefix": "",
}
SHOPIFY = WebhookScheme.model_validate(
    TEXT | {"signature_header": "X-Shopify-Hmac-SHA256", "id_header": "X-Shopify-Webhook-Id"}
)
WOOCOMMERCE = WebhookScheme.model_validate(
    TEXT | {"signature_header": "X-WC-Webhook-Signature", "id_header": "X-WC-Webhook-Delivery-ID"}
)
GITHUB = WebhookScheme.model_validate(
    TEXT | {"signature_header": "X-Hub-Signature-256", "encoding": "hex", "prefix": "sha256="}
)
SLACK = WebhookScheme.model_validate(
    TEXT
    | {"signature_header": "X-Slack-Signature", "timestamp_header": "X-Slack-Request-Timestamp", "encoding": "hex"}
    | {"prefix": "v0=", "signed_content": "v0:{timestamp}:{body}"}
)
SHIPMONK = WebhookScheme.model_validate(TEXT | {"signature_header": "X-Sm-Signature", "algorithm": "sha512"})
SCHEMES = [STANDARD, SHOPIFY, WOOCOMMERCE, GITHUB, SLACK, SHIPMONK]

Pairs = list[tuple[str, str | bytes]]


def verifier(*secrets: str, scheme: WebhookScheme = STANDARD, now: int = NOW) -> WebhookVerifier:
    return WebhookVerifier(scheme, secrets or (SECRET,), ManualClock(datetime.fromtimestamp(now, UTC)))


def pairs(secret: str = SECRET, body: bytes = BODY, name: str = "msg_1", at: int = NOW) -> Pairs:
    return list(signed_headers(STANDARD, secret, body, delivery_id=name, timestamp=at).items())


def refusal(body: bytes, headers: Pairs, *secrets: str, scheme: WebhookScheme = STANDARD) -> WebhookError:
    with pytest.raises(WebhookError) as refused:
        verifier(*secrets, scheme=scheme).verify(body, headers)
    return refused.value


def changed(name: str, value: str | bytes) -> Pairs:
    return [(key, value if key == name else old) for key, old in pairs()]


def test_the_published_example_of_standard_webhooks_is_accepted() -> None:
    """The vector of the reference implementations: secret, id, time, body and signature."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    delivery = verifier().verify(BODY, headers)
    assert delivery == Delivery("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, "msg_p5jXN8AQM9LWM0D4loKWxJek")
    made = signed_headers(STANDARD, SECRET, BODY, delivery_id=headers["webhook-id"], timestamp=1614265330)
    assert made == headers


def test_github_s_published_example_is_accepted() -> None:
    """From GitHub's documentation of X-Hub-Signature-256."""
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    checked = verifier("It's a Secret to Everybody", scheme=GITHUB)
    assert checked.verify(b"Hello, World!", {"x-hub-signature-256": signature}).id is None


@given(
    body=st.text().map(str.encode),
    name=st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True),
    key=st.binary(min_size=1),
)
def test_the_reference_library_signs_and_verifies_the_same(body: bytes, name: str, key: bytes) -> None:
    """What the PyPI library signs is accepted, and what is signed here it verifies."""
    secret, now = f"whsec_{base64.b64encode(key).decode()}", int(datetime.now(UTC).timestamp())
    theirs = Webhook(secret).sign(name, datetime.fromtimestamp(now, UTC), body.decode())
    headers = {"webhook-id": name, "webhook-timestamp": str(now), "webhook-signature": theirs}
    assert verifier(secret, now=now).verify(body, headers).id == name
    Webhook(secret).verify(
        body, signed_headers(STANDARD, secret, body, delivery_id=name, timestamp=now), json_parse=False
    )


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.signature_header)
@given(body=st.binary(max_size=200), flipped=st.integers(0, 10**6))
def test_each_scheme_accepts_its_own_and_no_changed_body(scheme: WebhookScheme, body: bytes, flipped: int) -> None:
    """Schemes of shops, 3PLs and others are settings."""
    secret = SECRET if scheme is STANDARD else "s3cret"
    headers = signed_headers(scheme, secret, body, delivery_id="d1", timestamp=NOW)
    assert verifier(secret, scheme=scheme).verify(body, headers).key
    other = bytearray(body or b"x")
    other[flipped % len(other)] ^= 1 if body else 0
    with pytest.raises(WebhookError):
        verifier(secret, scheme=scheme).verify(bytes(other), headers)


def test_two_secrets_are_live_while_one_is_replaced() -> None:
    """Each of two secrets is accepted, also in a list of signatures; a third is not."""
    for secret in (SECRET, OTHER):
        assert verifier(SECRET, OTHER).verify(BODY, pairs(secret)).id == "msg_1"
    (*_, (_, first)), (*_, (_, second)) = pairs("whsec_" + "QUFB" * 8), pairs()
    assert verifier().verify(BODY, changed("webhook-signature", f"v1a,x v2,y {first!s} {second!s}")).id == "msg_1"
    assert refusal(BODY, pairs("whsec_" + "QUFB" * 8), SECRET, OTHER).reason == "wrong_signature"


def test_names_of_headers_have_no_case_and_values_may_be_bytes() -> None:
    """As ASGI servers hand them over, or as others write them."""
    raw = [(name.upper().encode(), str(value).encode()) for name, value in pairs()]
    assert verifier().verify(BODY, raw).id == "msg_1"
    assert verifier().verify(BODY, {str(name).title(): str(value) for name, value in pairs()}).id == "msg_1"


@pytest.mark.parametrize(("off", "reason"), [(300, None), (-300, None), (301, "future"), (-301, "stale")])
def test_the_time_may_differ_by_the_tolerance(off: int, reason: str | None) -> None:
    """In both directions, to the second."""
    if reason is None:
        assert verifier().verify(BODY, pairs(at=NOW + off)).timestamp == NOW + off
    else:
        assert refusal(BODY, pairs(at=NOW + off)).reason == reason


@pytest.mark.parametrize(
    ("headers", "reason", "status"),
    [
        pytest.param([], "missing_header", 400, id="none"),
        pytest.param(pairs()[:2], "missing_header", 400, id="no signature"),
        pytest.param(changed("webhook-signature", ""), "missing_header", 400, id="an empty one"),
        pytest.param([*pairs(), pairs()[2]], "doubled_header", 400, id="two signatures"),
        pytest.param([*pairs(), ("Webhook-ID", "msg_1")], "doubled_header", 400, id="two ids"),
        pytest.param(changed("webhook-timestamp", "1614265330.0"), "malformed_header", 400, id="a fraction"),
        pytest.param(changed("webhook-timestamp", "\uff19"), "malformed_header", 400, id="other digits"),
        pytest.param(changed("webhook-timestamp", "9" * 400), "malformed_header", 400, id="a long time"),
        pytest.param(changed("webhook-id", "a.1"), "malformed_header", 400, id="an id that shifts what is signed"),
        pytest.param(changed("webhook-id", "a" * 257), "malformed_header", 400, id="a long id"),
        pytest.param(changed("webhook-signature", "v1,a " * 17), "malformed_header", 400, id="many signatures"),
        pytest.param(changed("webhook-signature", b"\xff"), "wrong_signature", 401, id="0xff"),
        pytest.param(changed("webhook-signature", "v1"), "wrong_signature", 401, id="no comma"),
        pytest.param(changed("webhook-signature", "v1,§§"), "wrong_signature", 401, id="no base64"),
        pytest.param(
            changed("webhook-signature", str(pairs()[2][1]).rstrip("=")), "wrong_signature", 401, id="padding"
        ),
        pytest.param(changed("webhook-signature", str(pairs()[2][1])[:-2] + "F="), "wrong_signature", 401, id="bits"),
        pytest.param(changed("webhook-signature", f"v2{str(pairs()[2][1])[2:]}"), "wrong_signature", 401, id="v2"),
    ],
)
def test_a_malformed_delivery_has_a_reason_and_a_status(headers: Pairs, reason: str, status: int) -> None:
    """The error says what to answer, and quotes nothing of the delivery or the secret."""
    error = refusal(BODY, headers)
    assert (error.reason, error.status) == (reason, status)
    assert "MfKQ9r8" not in str(error)


def test_a_large_body_is_refused_before_it_is_hashed() -> None:
    """The limit is a setting."""
    scheme = WebhookScheme(max_body_bytes=4)
    assert verifier(scheme=scheme).verify(b"1234", pairs(body=b"1234")).id == "msg_1"
    error = refusal(b"12345", pairs(body=b"12345"), scheme=scheme)
    assert (error.reason, error.status) == ("too_large", 413)


def _forgeries(rng: random.Random) -> Sequence[Callable[[bytes, Pairs], tuple[bytes, Pairs]]]:
    """Ways to spoil a valid delivery."""

    def with_header(name: str, make: Callable[[str], str | bytes]) -> Callable[[bytes, Pairs], tuple[bytes, Pairs]]:
        return lambda body, good: (body, [(key, make(str(old)) if key == name else old) for key, old in good])

    def signed_again(secret: str, off: int) -> Callable[[bytes, Pairs], tuple[bytes, Pairs]]:
        return lambda body, good: (body, pairs(secret, body, str(good[0][1]), NOW + off))

    return [
        signed_again(OTHER, 0),
        signed_again(SECRET, -rng.randint(301, 10**6)),
        signed_again(SECRET, rng.randint(301, 10**6)),
        lambda body, good: (body + b" ", good),
        lambda _, good: (b"", good),
        lambda _, good: (b"x" * (STANDARD.max_body_bytes + 1), good),
        lambda body, good: (body, [*good, rng.choice(good)]),
        lambda body, good: (body, rng.sample(good, rng.randint(0, 2))),
        with_header("webhook-signature", lambda old: old.replace(",", "")),
        with_header("webhook-signature", lambda old: old[:-4] + "=" * rng.randint(0, 9)),
        with_header("webhook-signature", lambda old: old.encode()[:9] + b"\xff" + old.encode()[10:]),
        with_header("webhook-signature", lambda _: ""),
        with_header("webhook-signature", lambda _: "v1," * 100_000),
        with_header(
            "webhook-timestamp", lambda old: rng.choice(["", "-1", "1e9", "NaN", "\x00", f" {old}", f"0{old}"])
        ),
        with_header("webhook-timestamp", lambda old: str(int(old) + rng.choice([-1, 1]))),
        with_header("webhook-id", lambda old: old + rng.choice(["x", ".", "\n", "é"])),
        with_header("webhook-id", lambda _: rng.randbytes(rng.randint(0, 300))),
    ]


def test_exactly_the_valid_ones_of_5_000_deliveries_are_accepted() -> None:
    """Stale, future, malformed, repeated and wrongly signed ones are refused, with no other error."""
    rng, checked, recent = random.Random(20), verifier(), RecentDeliveries()
    wrong, seen, accepted = 0, list[tuple[bytes, Pairs]](), 0
    for number in range(5_000):
        body = rng.randbytes(rng.randint(1, 60))
        good, kind = pairs(body=body, name=f"msg_{number}", at=NOW + rng.randint(-300, 300)), rng.random()
        sent, is_valid = (body, good), kind < 0.4
        if not is_valid:
            spoil = rng.choice(_forgeries(rng))
            sent = rng.choice(seen) if seen and kind > 0.9 else spoil(body, good)
        try:
            with recent.once(checked.verify(*sent)):
                accepted += 1
                wrong += not is_valid
                seen.append(sent)
        except WebhookError:
            wrong += is_valid
    assert (wrong, accepted > 1_500) == (0, True)


@given(
    body=st.binary(),
    headers=st.lists(st.tuples(st.sampled_from([each for each, _ in pairs()]), st.text() | st.binary())),
)
def test_no_delivery_causes_another_error(body: bytes, headers: Pairs) -> None:
    """Whatever the headers contain."""
    assert refusal(body, headers).status in {400, 401, 413}


def test_a_replay_is_known_by_its_id_if_that_is_signed_and_otherwise_by_its_content() -> None:
    """An id that is not signed could be changed by whoever sends a copy."""
    recent = RecentDeliveries()
    for name in ("d1", "d2"):
        headers = signed_headers(SHOPIFY, "s", BODY, delivery_id=name)
        delivery = verifier("s", scheme=SHOPIFY).verify(BODY, headers)
        assert delivery.id == name
        if name == "d1":
            with recent.once(delivery):
                pass
        else:
            with pytest.raises(WebhookError) as refused, recent.once(delivery):
                pass
            assert (refused.value.reason, refused.value.status) == ("replayed", 200)


def test_a_delivery_whose_processing_failed_is_processed_again() -> None:
    """The sender repeats it with the same id and must not be told that it is done."""
    recent, delivery = RecentDeliveries(), Delivery("a", None, "a")
    with pytest.raises(ZeroDivisionError), recent.once(delivery):
        _ = 1 / 0
    with recent.once(delivery):
        with pytest.raises(WebhookError) as refused, recent.once(delivery):
            pass
        assert (refused.value.reason, refused.value.status) == ("in_progress", 503)
    with pytest.raises(WebhookError, match="before"), recent.once(delivery):
        pass


def test_one_of_many_threads_processes_a_delivery() -> None:
    """The others are told that it is done or in progress."""
    recent, delivery, begin, done = RecentDeliveries(), Delivery("a", None, "a"), threading.Barrier(20), list[int]()

    def receive(number: int) -> None:
        begin.wait(timeout=10)
        try:
            with recent.once(delivery):
                done.append(number)
        except WebhookError:
            pass

    threads = [threading.Thread(target=receive, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1


def test_the_memory_is_bounded() -> None:
    """The oldest deliveries are forgotten first."""
    recent = RecentDeliveries(most=2)
    for name in ("a", "b", "c", "a"):
        with recent.once(Delivery(name, None, name)):
            pass
    with pytest.raises(WebhookError), recent.once(Delivery("c", None, "c")):
        pass


@pytest.mark.parametrize(
    ("scheme", "secrets"),
    [
        ({}, []),
        ({}, [SECRET, OTHER, SECRET]),
        ({}, [""]),
        ({}, ["whsec_"]),
        ({}, ["whsec_s3cret!"]),
        ({"secret_encoding": "hex"}, ["s3cret"]),
        ({"secret_encoding": "base64"}, ["s3crét"]),
    ],
)
def test_an_invalid_secret_is_an_error_that_does_not_show_it(scheme: dict[str, str], secrets: list[str]) -> None:
    """It is found when the verifier is made, not with the first delivery."""
    with pytest.raises(ConfigError) as failed:
        WebhookVerifier(WebhookScheme.model_validate(scheme), secrets)
    assert "s3cr" not in str(failed.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"signed_content": "{id}"},
        {"signed_content": "{body}{body}"},
        {"signed_content": "{id}.{body}"},
        {"id_header": None},
        {"timestamp_header": None},
        {"id_header": "Webhook-Signature"},
        {"signature_header": "a b"},
        {"prefix": "v1 "},
        {"tolerance_s": 0},
        {"algorithm": "md5"},
        {"header": "x"},
    ],
)
def test_a_scheme_that_proves_nothing_is_refused(settings: dict[str, object]) -> None:
    """Among others a timestamp that is not signed, and content without the body."""
    with pytest.raises(ValidationError):
        WebhookScheme.model_validate(settings)
