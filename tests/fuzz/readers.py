"""Texts of other systems, made at random: whatever they are, only errors of ours come out, and no memory is lost.

Each promise is a function of a number of examples, small in the suite and large in ``tests/long``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from crossdock.pacing import answer_headers
from crossdock.reading.sources.pagination import link_target
from crossdock.reading.transport import http_answers_and_errors
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.values import exact_json
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome

LONGEST_SENTENCE = 200

_tokens = [
    "[", "]", "{", "}", ",", ":", '"', "\\", "null", "true", "NaN", "-Infinity", "-", ".5", "0", "-0", "00", "1e5",
    "1E-7", "1e1000", "1e1001", "1e400000000", "1e-400000000", "0e400000000", "1e99999999999999999999", "9" * 1001,
    "9" * 1002, "9" * 5000, '"a"', '"a":', '"a":1,"a":2', '"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\x"',
    "[" * 64, "]" * 64, '{"a":' * 65, "[" * 20_000, " ", "\ufeff", "\u2028", '"errors":', '"pointer":', '"detail":',
    '"id":', '"data":',
]  # fmt: skip
_exact = st.decimals(allow_nan=False, allow_infinity=False)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | _exact | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


def _is_within(value: Any) -> bool:
    try:
        exact_json.dumps(value)
    except ValueError:
        return False
    return True


@st.composite
def _damaged(draw: st.DrawFn, texts: st.SearchStrategy[bytes]) -> bytes:
    """One of *texts* with a piece taken out, repeated or replaced."""
    text = draw(texts)
    start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    piece = draw(st.sampled_from([b"", text[start:end] * 2]) | st.binary(max_size=6))
    return text[:start] + piece + text[end:]


_soup = st.lists(st.sampled_from(_tokens), max_size=12).map(lambda tokens: "".join(tokens).encode())
_members = {
    "type": st.sampled_from(["about:blank", "urn:idempotency-key-in-use", "x" * 20_000]) | _values,
    "detail": st.text() | _values,
    "id": st.text(max_size=5) | _values,
    "errors": st.lists(
        st.fixed_dictionaries({"pointer": st.text() | _values, "detail": st.text() | _values}) | _values, max_size=4
    )
    | _values,
    "data": _values,
}
_documents = st.fixed_dictionaries({}, optional=_members).filter(_is_within).map(exact_json.dumps)
_bodies = _soup | st.binary(max_size=60) | _documents | _damaged(_documents)

_words = st.sampled_from([
    "0", "1", "-1", "1e9", "9" * 300, "999999999999999", "0.000001", "nan", "inf", "\xb2", '"a"', "a;q=1;w=1",
    "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "+99999999999999", "2026-01-01T00:00:00Z",
    "<a>", "<", ">", "; rel=next", ';rel="next', "rel", "=", ",", ";", '"', "\\", " ", "\t", "\x01", "\xff", "x" * 5000,
])  # fmt: skip
_fields = st.lists(_words | st.text(st.characters(max_codepoint=255), max_size=8), max_size=8).map("".join)
_names = [
    "retry-after", "date", "age", "link", "etag", "location", "ratelimit", "ratelimit-policy", "ratelimit-limit",
    "ratelimit-remaining", "ratelimit-reset", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset",
    "x-rate-limit-reset", "x-rate-limit-requests-left", "x-rate-limit-requests-quota", "x-rate-limit-time-reset-ms",
    "x-rate-limit-time-window-ms", "x-shopify-shop-api-call-limit", "x-amzn-ratelimit-limit",
]  # fmt: skip
_statuses = st.sampled_from([100, 101, 200, 201, 204, 302, 400, 401, 404, 408, 409, 412, 422, 429, 500, 503, 999])


def json_bytes(examples: int) -> None:
    """Bytes are a value that can be written and read again, or a ValueError whose text quotes nothing of them."""

    def check(body: bytes) -> None:
        finding = None
        try:
            value = exact_json.loads(body)
        except ValueError as error:
            finding = str(error)
        if finding is not None:
            assert len(finding) <= LONGEST_SENTENCE
            return
        canonical = exact_json.dumps(value)
        assert exact_json.dumps(exact_json.loads(canonical)) == canonical
        assert exact_json.dumps(exact_json.loads_trusted_canonical(canonical.decode())) == canonical

    _try(check, _bodies, examples)


def header_fields(examples: int) -> None:
    """Whatever fields an answer has, they are read or passed over, and what is read keeps its bounds."""

    def check(given: dict[str, str]) -> None:
        found = answer_headers.read_rate_limit_headers(given)
        assert found is None or all(value is None or math.isfinite(value) for value in (found.remaining, found.burst))
        wait = answer_headers.retry_after_s(given)
        assert wait is None or 0 <= wait <= answer_headers.MAX_WAIT_S

    _try(check, st.dictionaries(st.sampled_from(_names), _fields, max_size=6), examples)


def link_fields(examples: int) -> None:
    """A ``Link`` field has a next target, none, or cannot be read; a link of ours in front of it is always found."""

    def check(field: str) -> None:
        with suppress(ValueError):
            target = link_target(field)
            assert target is None or f"<{target}>" in field
        assert link_target(f'</ours>; rel="next", {field}') == "/ours"

    _try(check, _fields, examples)


def meanings(answer: Answer) -> Iterator[Outcome]:
    """What *answer* means to a creation, an update, both kinds of look-up and a ping."""
    for subject in (
        ExpectedRecord("/v1/things", name="wms:1"),
        ExpectedRecord("/v1/things/x", "x"),
        ExpectedRecord(),
    ):
        yield answer_outcomes.outcome_of_write(answer, subject)
        yield answer_outcomes.outcome_of_look_up(answer, subject)
    yield answer_outcomes.outcome_of_ping(answer)


def answers(examples: int) -> None:
    """Any answer has one meaning, with bounded texts, whatever was asked."""

    def check(answer: Answer) -> None:
        for outcome in meanings(answer):
            assert len(outcome.message) <= http_answers_and_errors.MAX_TEXT
            assert len(outcome.pointer or "") <= http_answers_and_errors.MAX_POINTER
            assert len(outcome.etag or "") <= answer_outcomes.MAX_ETAG

    given = st.dictionaries(st.sampled_from(_names), _fields, max_size=3)
    _try(check, st.builds(Answer, _statuses, given, _bodies), examples)


def _try(check: Callable[[Any], None], strategy: st.SearchStrategy[Any], examples: int) -> None:
    phases = [Phase.generate, Phase.shrink]
    limits = settings(max_examples=examples, phases=phases, suppress_health_check=list(HealthCheck), deadline=None)
    limits(given(strategy)(check))()
