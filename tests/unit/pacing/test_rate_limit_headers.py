"""Rate limits are read from headers of every dialect, and no text does harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.pacing import answer_headers
from crossdock.pacing import answer_headers as read_headers
from crossdock.pacing.answer_headers import RateHeaders, read_rate_limit_headers
from crossdock.sandbox import rate_limiter
from crossdock.sandbox.rate_limiter import RateLimitHeaderDialect, ReportedQuota

NOW = 1_800_000_000.0
DATE = "Fri, 15 Jan 2027 08:00:00 GMT"  # the same instant
LISTED = '"default";r=50;t=30'
NAMED = '"burst";q=100;w=60, "daily";q=1000;w=86400'


@pytest.mark.parametrize(
    ("policy", "limit", "expected"),
    [
        pytest.param('"default";q=100;w=10', LISTED, RateHeaders("draft10", 50, 100, 10.0), id="one policy"),
        pytest.param("default;q=100;w=10", "default;r=50;t=30", RateHeaders("draft10", 50, 100, 10.0), id="tokens"),
        pytest.param("default; q=100; w=10", LISTED, RateHeaders("draft10", 50, 100, 10.0), id="token and string"),
        pytest.param('"a=b";q=4;w=2', '"a=b";r=1', RateHeaders("draft10", 1, 4, 2.0), id="a name like a dictionary"),
        pytest.param(None, LISTED, RateHeaders("draft10", 50), id="no policy"),
        pytest.param('"other";q=9;w=1', LISTED, RateHeaders("draft10", 50), id="another policy"),
        pytest.param('"default";q=100', LISTED, RateHeaders("draft10", 50, 100), id="no window"),
        pytest.param('"default";q=100;w=0', LISTED, RateHeaders("draft10", 50, 100), id="a window of nothing"),
        pytest.param('"default";q=0;w=10', '"default";r=0;t=5', RateHeaders("draft10", 0), id="no quota"),
        pytest.param(
            '"p";q=100;w=60;pk=:cHsdsRa894==:', '"p";r=7;pk=:cHsdsRa894==:', RateHeaders("draft10", 7, 100, 100 / 60)
        ),
        pytest.param(
            NAMED, '"burst";r=60;t=5, "daily";r=500', RateHeaders("draft10", 500, 1000, 1000 / 86400), id="tighter"
        ),
        pytest.param(
            NAMED, '"daily";r=500, "burst";r=40;t=5', RateHeaders("draft10", 40, 100, 100 / 60), id="any order"
        ),
        pytest.param(
            NAMED, '"daily";r=500, "burst";r=50', RateHeaders("draft10", 50, 100, 100 / 60), id="as tight, but fewer"
        ),
        pytest.param(
            NAMED, '"daily";r=500, "other";r=3', RateHeaders("draft10", 500, 1000, 1000 / 86400), id="one unknown"
        ),
        pytest.param(NAMED, '"daily";r=500, "other";r=0;t=9', RateHeaders("draft10", 0), id="unknown, spent"),
        pytest.param(None, '"a";r=9;t=1, "b";r=4;t=2', RateHeaders("draft10", 4), id="unknown both"),
        pytest.param('"a";q=9;w=3', '"a";r=7;t=1, "a";r=4;t=2', RateHeaders("draft10", 4, 9, 3.0), id="named twice"),
        pytest.param(
            '"a";q=9;w=3', '"a";r=10;t=1, "a";r=4', RateHeaders("draft10", 4, 9, 3.0), id="named twice, one too much"
        ),
        pytest.param('"a";q=9;w=3, "a";q=5;w=5', '"a";r=7', RateHeaders("draft10", 7, 9, 3.0), id="policy named twice"),
        pytest.param(
            '"b";q=65535;qu="content-bytes";w=10, "r";q=10;qu="requests";w=5',
            '"b";r=1;t=3, "r";r=9;t=2',
            RateHeaders("draft10", 9, 10, 2.0),
            id="bytes are no requests",
        ),
        pytest.param('"b";q=99;qu=content-bytes', '"b";r=1', None, id="bytes alone"),
        pytest.param(None, '"daily";r=1;t=86400', RateHeaders("draft10", 1), id="a day is cut"),
        pytest.param(None, '"a";r=0.5;t=0', RateHeaders("draft10", 0.5), id="half a token"),
        pytest.param(
            '"a";q=10;w=1', '"a";r=11;t=1', RateHeaders("draft10", None, 10, 10.0), id="more than there can be"
        ),
        pytest.param(None, '"a";r=-1;t=1, "b";r=5', RateHeaders("draft10", 5), id="less than nothing"),
        pytest.param(None, '"a";t=5', None, id="nothing about what remains"),
        pytest.param(None, '"a";r=2000000000;t=5', None, id="absurdly much"),
        pytest.param(None, '"a";r="5"', None, id="a text for a number"),
        pytest.param(None, '"a";r', None, id="true for a number"),
        pytest.param(None, "5;r=3", None, id="a number for a name"),
        pytest.param(None, '("a" "b");r=3', None, id="an inner list"),
        pytest.param(
            '"a";q=10;w=1', '"a";r=5;;', RateHeaders("draft10", None, 10, 10.0), id="malformed, its policy is not"
        ),
        pytest.param('"a";q=10;w', '"a";r=5', RateHeaders("draft10", 5, 10), id="a malformed window"),
        pytest.param('"a";q=10;w=1;;', '"a";r=5', RateHeaders("draft10", 5), id="a malformed policy"),
        pytest.param(NAMED, None, RateHeaders("draft10", None, 100, 100 / 60), id="policies alone"),
        pytest.param(
            '"b";q=9;qu="content-bytes", "r";q=8', None, RateHeaders("draft10", None, 8), id="of requests, alone"
        ),
    ],
)
def test_draft_10(policy: str | None, limit: str | None, expected: RateHeaders | None) -> None:
    """A list of limits, each with the policy of its name; the one with the smallest share left is returned."""
    assert read_rate_limit_headers(fields({"ratelimit-policy": policy, "ratelimit": limit})) == expected


@pytest.mark.parametrize(
    ("policy", "limit", "expected"),
    [
        pytest.param("100;w=10", "limit=100, remaining=50, reset=5", RateHeaders("draft07", 50, 100, 10.0)),
        pytest.param("100;w=10", "limit=100,remaining=50,reset=5", RateHeaders("draft07", 50, 100, 10.0)),
        pytest.param(None, "limit=100, remaining=50, reset=5", RateHeaders("draft07", 50, 100)),
        pytest.param(
            "10;w=1;burst=9, 50;w=60", "limit=50, remaining=3, reset=9", RateHeaders("draft07", 3, 50, 50 / 60)
        ),
        pytest.param("10;w=1, 50;w=60", "limit=7, remaining=3, reset=9", RateHeaders("draft07", 3, 7, 10.0)),
        pytest.param(None, "remaining=3;note=1, reset=0", RateHeaders("draft07", 3), id="with parameters"),
        pytest.param(None, "limit=10, reset=7200", RateHeaders("draft07", None, 10), id="two hours"),
        pytest.param(None, "limit=10, remaining=11, reset=1", RateHeaders("draft07", None, 10), id="too much"),
        pytest.param(None, "limit=x, remaining=-1, reset=()", None, id="nothing of use"),
        pytest.param(None, "limit, remaining=4", RateHeaders("draft07", 4), id="a limit of true"),
        pytest.param("100;w=10", "limit=100, remaining=", RateHeaders("draft07", None, 100, 10.0), id="malformed"),
        pytest.param("100;w=10", None, RateHeaders("draft07", None, 100, 10.0), id="a policy alone"),
    ],
)
def test_draft_07(policy: str | None, limit: str | None, expected: RateHeaders | None) -> None:
    """One dictionary, with the policy whose quota is its limit, or else the first."""
    assert read_rate_limit_headers(fields({"ratelimit-policy": policy, "ratelimit": limit})) == expected


@pytest.mark.parametrize(
    ("limit", "remaining", "expected"),
    [
        pytest.param("100", "50", (50, 100), id="plain"),
        pytest.param("100, 100;w=10", "50", (50, 100, 10.0), id="with its policy"),
        pytest.param("100, 100;window=60, 10000;window=86400", "98", (98, 100, 100 / 60), id="two policies"),
        pytest.param("10000, 100;w=60, 10000;w=86400", "98", (98, 10000, 10000 / 86400), id="the second"),
        pytest.param("100;w=10", None, (None, 100, 10.0), id="a limit that is a policy"),
        pytest.param(" 100 ", "\t50", (50, 100), id="white space"),
        pytest.param(None, "0", (0,), id="only what remains"),
        pytest.param("0", "0", (0,), id="a limit of zero"),
        pytest.param("10", "11", (None, 10), id="more than the limit"),
        pytest.param("10 a minute", "-1", None, id="negative"),
        pytest.param("1_0", "1e3", None, id="what Python accepts as numbers"),
        pytest.param("٣", "٣", None, id="digits of another script"),
        pytest.param("5000000000", "5000000000", None, id="absurdly many"),
        pytest.param(None, "99, 42", None, id="two lines of one name"),
    ],
)
@pytest.mark.parametrize("prefix", ["ratelimit", "x-ratelimit", "x-rate-limit"])
def test_separate_fields(
    prefix: str, limit: str | None, remaining: str | None, expected: tuple[float | None, ...] | None
) -> None:
    """Separate fields are read alike, standard or not."""
    headers = fields({f"{prefix}-limit": limit, f"{prefix}-remaining": remaining, f"{prefix}-reset": "5"})
    dialect = "triple" if prefix == "ratelimit" else "x-ratelimit"
    assert read_rate_limit_headers(headers) == (expected and RateHeaders(dialect, *expected))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("Fri, 15 Jan 2027 08:00:30 GMT", 1_800_000_030, id="a date"),
        pytest.param("Friday, 15-Jan-27 08:00:30 GMT", 1_800_000_030, id="an obsolete format"),
        pytest.param("Fri Jan 15 08:00:30 2027", 1_800_000_030, id="an older format"),
        pytest.param("Thu, 01 Jan 1970 00:10:00 GMT", 600, id="long ago"),
        pytest.param("Nov 99999999999 18:00 99999999999 - 15 94", None, id="no day"),
        pytest.param("1800000030", None, id="a number"),
        pytest.param("Fri, 15 Jan 2027 08:00:30 GMT".rjust(257), None, id="too long"),
    ],
)
def test_http_date(text: str, seconds: int | None) -> None:
    """The three formats of HTTP are read; other texts are not dates."""
    assert answer_headers.parse_http_date(text) == seconds


def test_separate_fields_with_a_policy_field() -> None:
    """The standard's policy field supplies the rate of separate fields."""
    given = {"ratelimit-policy": "600;w=300", "ratelimit-limit": "600", "ratelimit-remaining": "580"}
    assert read_rate_limit_headers(given) == RateHeaders("triple", 580, 600, 2.0)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({"x-shopify-shop-api-call-limit": "32/40"}, RateHeaders("shopify", 8, 40), id="a shop"),
        pytest.param({"x-shopify-shop-api-call-limit": "41/40"}, RateHeaders("shopify", 0, 40), id="one over"),
        pytest.param({"x-shopify-shop-api-call-limit": "-1/40"}, RateHeaders("shopify", None, 40), id="no number used"),
        pytest.param({"x-shopify-shop-api-call-limit": "32/"}, None, id="no capacity"),
        pytest.param({"x-shopify-shop-api-call-limit": "0/0"}, RateHeaders("shopify", 0), id="no calls at all"),
        pytest.param(
            {
                "x-rate-limit-requests-left": "35",
                "x-rate-limit-requests-quota": "150",
                "x-rate-limit-time-window-ms": "30000",
                "x-rate-limit-time-reset-ms": "15000",
            },
            RateHeaders("bigcommerce", 35, 150, 5.0),
            id="another shop",
        ),
        pytest.param(
            {"x-rate-limit-requests-quota": "150", "x-rate-limit-time-window-ms": "0"},
            RateHeaders("bigcommerce", None, 150),
            id="a window of nothing",
        ),
        pytest.param({"x-rate-limit-requests-left": "35"}, RateHeaders("bigcommerce", 35), id="only what remains"),
        pytest.param({"x-amzn-ratelimit-limit": "2.0"}, RateHeaders("amazon", rate_per_s=2.0), id="a rate"),
        pytest.param({"x-amzn-ratelimit-limit": "0.0167"}, RateHeaders("amazon", rate_per_s=0.0167), id="one a minute"),
        pytest.param({"x-amzn-ratelimit-limit": "0.00000000000000000001"}, None, id="never"),
        pytest.param({"x-amzn-ratelimit-limit": "0"}, None, id="not at all"),
        pytest.param({"content-type": "application/json", "retry-after": "5"}, None, id="silent"),
        pytest.param({}, None, id="bare"),
    ],
)
def test_source_systems(headers: Mapping[str, str], expected: RateHeaders | None) -> None:
    """Shops and 3PLs have headers of their own."""
    assert read_rate_limit_headers(headers) == expected


def test_the_newest_standard_wins() -> None:
    """Of several dialects in one answer the newest that reports anything counts."""
    given = {
        "ratelimit": LISTED,
        "ratelimit-limit": "10",
        "x-ratelimit-remaining": "20",
        "x-rate-limit-remaining": "30",
        "ratelimit-policy": "40;w=1",
        "x-shopify-shop-api-call-limit": "1/40",
    }
    found = []
    for name in tuple(given):
        limit = read_rate_limit_headers(given)
        assert limit is not None
        found.append((limit.dialect, limit.remaining, limit.burst))
        del given[name]
    assert found == [
        ("draft10", 50, None),
        ("triple", None, 10),
        ("x-ratelimit", 20, None),
        ("x-ratelimit", 30, None),
        ("draft07", None, 40),
        ("shopify", 39, 40),
    ]


@pytest.mark.parametrize(
    "broken",
    [{"ratelimit": LISTED + ";"}, {"ratelimit": "limit=100,"}, {"ratelimit-limit": "x", "ratelimit-reset": "-"}],
)
def test_a_malformed_field_does_not_hide_an_older_dialect(broken: dict[str, str]) -> None:
    """A newer dialect without a usable value gives way to an older one, even with a policy."""
    given = {**broken, "ratelimit-policy": "100;w=10", "x-ratelimit-remaining": "20"}
    assert read_rate_limit_headers(given) == RateHeaders("x-ratelimit", 20)


@pytest.mark.parametrize(("age", "counts"), [("0", True), ("", True), ("x", True), ("1", False), ("3600", False)])
def test_an_answer_from_a_cache_is_ignored(age: str, counts: bool) -> None:
    """It describes the moment at which the cache was filled."""
    assert (read_rate_limit_headers({"ratelimit": LISTED, "age": age}) is not None) == counts


@pytest.mark.parametrize(
    ("name", "value", "hit"),
    [
        ("x-cache", "HIT", "HIT"),
        ("x-cache", "HIT, MISS", "HIT"),  # the cache before the last one
        ("x-cache", "MISS, HIT", "HIT"),
        ("x-cache", "Hit from cloudfront", "Hit"),
        ("x-cache", "HIT from proxy.example", "HIT"),
        ("x-cache", "TCP_MEM_HIT from a1.akamai.example (AkamaiGHost)", "TCP_MEM_HIT"),
        ("x-cache-status", "STALE", "STALE"),
        ("cf-cache-status", "UPDATING", "UPDATING"),
        ("cache-status", '"Origin"; hit; ttl=1100, "CDN"; fwd=uri-miss', "hit"),
        *(("x-cache", each, None) for each in ("MISS", "Miss from cloudfront", "TCP_MISS", "Error from cloudfront")),
        *(
            ("x-cache", each, None)
            for each in ("RefreshHit from cloudfront", "TCP_REFRESH_HIT", "CONFIG_NOCACHE", "hits")
        ),
        *(("cf-cache-status", each, None) for each in ("DYNAMIC", "MISS", "BYPASS", "EXPIRED", "REVALIDATED", "")),
        *(("cache-status", each, None) for each in ("CDN; fwd=stale; fwd-status=304", "CDN; hit=?0", "hit(", "CDN")),
        ("x-cache-lookup", "HIT from proxy.example:3128", None),  # it may have asked the API nevertheless
    ],
)
def test_a_cache_shows_itself_by_its_own_headers(name: str, value: str, hit: str | None) -> None:
    """An answer that it gave without asking the API tells neither the rate limit nor the time of now."""
    headers = {name: value, "ratelimit": LISTED, "date": DATE}
    assert answer_headers.header_showing_cache_hit(headers) == (None if hit is None else f"{name}: {hit}")
    assert (read_rate_limit_headers(headers) is None) == (hit is not None)
    assert (answer_headers.server_clock_lag_s(headers, NOW + 60) is None) == (hit is not None)


counts = st.integers(0, 10**6)


@given(st.sampled_from(["draft10", "draft07", "triple", "x-ratelimit"]), st.data())
def test_the_headers_of_the_sandbox_are_read_back(dialect: RateLimitHeaderDialect, data: st.DataObject) -> None:
    """Every number in a dialect of the sandbox is read as it was written."""
    burst, window_s = data.draw(st.integers(1, 10**6)), data.draw(st.integers(1, 10**5))
    left, reset_s = data.draw(st.integers(0, burst)), data.draw(counts)
    now = data.draw(st.integers(1_700_000_000, 2_000_000_000))
    sent = rate_limiter.policy_headers(dialect, burst, window_s)
    sent |= rate_limiter.remaining_headers(dialect, ReportedQuota(burst, left, reset_s, reset_s, now))
    rate = burst / window_s
    assert read_rate_limit_headers(sent) == {
        "draft10": RateHeaders("draft10", left, burst, rate),
        "draft07": RateHeaders("draft07", left, burst, rate),
        "triple": RateHeaders("triple", left, burst),
        "x-ratelimit": RateHeaders("x-ratelimit", left, burst),
    }.get(dialect)


def test_a_sandbox_without_headers_reports_nothing() -> None:
    """The dialect ``none`` yields no headers."""
    sent = rate_limiter.policy_headers("none", 10, 10) | rate_limiter.remaining_headers(
        "none", ReportedQuota(10, 5, 1, 5, NOW)
    )
    assert read_rate_limit_headers(sent) is None


NAMES = [
    *("ratelimit", "ratelimit-policy", "date", "age", "x-cache", "cache-status"),
    *(f"{prefix}-{name}" for prefix in ("ratelimit", "x-ratelimit", "x-rate-limit") for name in ("limit", "remaining")),
    *("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset", "x-ratelimit-policy"),
    *(f"x-rate-limit-{name}" for name in ("requests-left", "requests-quota", "time-window-ms", "time-reset-ms")),
    *("x-shopify-shop-api-call-limit", "x-amzn-ratelimit-limit"),
]
PIECES = [
    *('"a"', "a", "b", ";q=", ";r=", ";t=", ";w=", ";qu=", "limit=", "remaining=", "reset=", ", ", ";", "=", "/", "("),
    *("0", "1", "7", "100", "1e9", "1000000001", "1800000030", "999999999999999", "-1", ".5", "0.001", "nan", "inf"),
    *('"', "\\", ":AA==:", "?1", "@1", "%", "requests", DATE, "2027-01-15", "08:00", "+99:99", "GMT", "\x00", "é", "٣"),
]
texts = st.one_of(st.text(max_size=300), st.lists(st.sampled_from(PIECES), max_size=24).map("".join))


@given(st.dictionaries(st.sampled_from(NAMES), texts))
@example({"ratelimit-policy": '"a";q=1;w=999999999', "ratelimit": '"a";r=999999999999999'})
def test_no_text_does_harm(given: dict[str, str]) -> None:
    """Whatever the fields contain, nothing is raised and every number is within its bounds."""
    found = read_rate_limit_headers(given)
    assert found is None or within_bounds(found)


@pytest.mark.parametrize("name", NAMES)
def test_a_long_field_is_not_parsed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field's parsing time is bounded by its length: a longer one reaches no parser."""
    seen: list[str] = []
    monkeypatch.setattr(read_headers, "_is_decimal", seen.append)
    monkeypatch.setattr(read_headers, "parsed_structured_field", lambda text, _kind: seen.append(text))
    assert read_rate_limit_headers({name: " " * 250 + "1234567"}) is None
    assert not any(seen)


def test_a_field_of_the_greatest_length_is_read() -> None:
    """256 characters are enough for several policies."""
    assert read_rate_limit_headers({"x-ratelimit-remaining": "5".rjust(256)}) == RateHeaders("x-ratelimit", 5)
    assert read_rate_limit_headers({"x-ratelimit-remaining": "5".rjust(257)}) is None


def fields(given: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in given.items() if text is not None}


def within_bounds(found: RateHeaders) -> bool:
    """The bounds of `RateHeaders`, and at least one value."""
    bounds = [
        (found.remaining, 0, 1e9 if found.burst is None else found.burst),
        (found.burst, 1, 1e9),
        (found.rate_per_s, 1e-9, 1e9),
    ]
    assert all(value is None or low <= value <= high for value, low, high in bounds), found
    return any(value is not None for value in astuple(found)[1:])


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        pytest.param("7", "", 7.0, id="seconds"),
        pytest.param("0.5", "", 0.5, id="a fraction"),
        pytest.param("2.0", "", 2.0, id="as Shopify sends it"),
        pytest.param("\u0667", "", None, id="another digit"),
        pytest.param("1e3", "", None, id="an exponent"),
        pytest.param("99999", "", 900.0, id="absurd"),
        pytest.param("Sun, 06 Nov 1994 08:49:47 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 10.0, id="date"),
        pytest.param("Sunday, 06-Nov-94 08:49:47 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 10.0, id="RFC 850 date"),
        pytest.param("Sun Nov  6 08:49:47 1994", "Sun, 06 Nov 1994 08:49:37 GMT", 10.0, id="asctime date"),
        pytest.param("Sun, 06 Nov 1994 08:49:30 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 0.0, id="already over"),
        pytest.param("Sun, 06 Nov 1994 08:49:47 GMT", "", None, id="date without a Date"),
        pytest.param("soon", "", None, id="no sense"),
        pytest.param("-5", "", None, id="negative"),
        pytest.param("Sun, 06 Nov 1994 08:49:47 +99999999999999", "", None, id="a zone beyond all numbers"),
        pytest.param("9" * 257, "", None, id="longer than any number"),
        pytest.param(
            "Sun, 06 Nov 1994 08:49:47 GMT" + " " * 250,
            "Sun, 06 Nov 1994 08:49:37 GMT",
            None,
            id="longer than any date",
        ),
    ],
)
def test_retry_after_in_its_forms(value: str, date: str, seconds: float | None) -> None:
    """A date counts from the answer's own Date; what makes no sense is as if it were not there."""
    headers = {"retry-after": value} | ({"date": date} if date else {})
    assert read_headers.retry_after_s(headers) == seconds


def test_retry_after_of_shipbob() -> None:
    """ShipBob writes ``x-retry-after``; the standard field counts before it."""
    assert read_headers.retry_after_s({"x-retry-after": "7"}) == 7
    assert read_headers.retry_after_s({"x-retry-after": "7", "retry-after": "2"}) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
        ({"date": "Sun, 06 Nov 1994 08:49:35 GMT"}, 0.0),
        ({"date": "Sun, 06 Nov 1994 08:51:37 GMT"}, 0.0),
        ({"date": "Sun, 06 Nov 1994 08:47:37 GMT"}, 118.0),
        ({"date": "Sun, 06 Nov 1994 08:47:37 GMT", "age": "100"}, 18.0),
        ({"date": "Fri, 04 Nov 1994 08:49:37 GMT"}, None),
        ({"date": "Tue, 08 Nov 1994 08:49:37 GMT"}, None),
        ({"date": "Sun, 06 Nov 1994 08:47:37 GMT", "age": "soon"}, None),
        ({}, None),
    ],
)
def test_how_far_a_clock_is_behind(headers: dict[str, str], seconds: float | None) -> None:
    """Date and Age of an answer show it; one that is days old was stored somewhere, and shows nothing, as one that is
    days in the future does.
    """
    at_0849_37 = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC).timestamp()
    assert answer_headers.server_clock_lag_s(headers, at_0849_37) == seconds
