"""What answers tell of a rate limit is read from every dialect, and no text does harm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.pacing import rate_headers
from crossdock.pacing.rate_headers import RateHeaders, read, read_cost
from crossdock.sandbox import rate_limit_headers
from crossdock.sandbox.rate_limit_headers import Dialect, Quota

NOW = 1_800_000_000.0
DATE = "Fri, 15 Jan 2027 08:00:00 GMT"  # the same instant
LISTED = '"default";r=50;t=30'
NAMED = '"burst";q=100;w=60, "daily";q=1000;w=86400'


@pytest.mark.parametrize(
    ("policy", "limit", "told"),
    [
        pytest.param('"default";q=100;w=10', LISTED, RateHeaders("draft10", 50, 100, 10.0, 30), id="one policy"),
        pytest.param("default;q=100;w=10", "default;r=50;t=30", RateHeaders("draft10", 50, 100, 10.0, 30), id="tokens"),
        pytest.param("default; q=100; w=10", LISTED, RateHeaders("draft10", 50, 100, 10.0, 30), id="token and string"),
        pytest.param('"a=b";q=4;w=2', '"a=b";r=1', RateHeaders("draft10", 1, 4, 2.0), id="a name like a dictionary"),
        pytest.param(None, LISTED, RateHeaders("draft10", 50, more_in_s=30), id="no policy"),
        pytest.param('"other";q=9;w=1', LISTED, RateHeaders("draft10", 50, more_in_s=30), id="another policy"),
        pytest.param('"default";q=100', LISTED, RateHeaders("draft10", 50, 100, None, 30), id="no window"),
        pytest.param(
            '"default";q=100;w=0', LISTED, RateHeaders("draft10", 50, 100, None, 30), id="a window of nothing"
        ),
        pytest.param('"default";q=0;w=10', '"default";r=0;t=5', RateHeaders("draft10", 0, more_in_s=5), id="no quota"),
        pytest.param(
            '"p";q=100;w=60;pk=:cHsdsRa894==:', '"p";r=7;pk=:cHsdsRa894==:', RateHeaders("draft10", 7, 100, 100 / 60)
        ),
        pytest.param(
            NAMED, '"burst";r=60;t=5, "daily";r=500', RateHeaders("draft10", 500, 1000, 1000 / 86400), id="tighter"
        ),
        pytest.param(
            NAMED, '"daily";r=500, "burst";r=40;t=5', RateHeaders("draft10", 40, 100, 100 / 60, 5), id="any order"
        ),
        pytest.param(
            NAMED, '"daily";r=500, "burst";r=50', RateHeaders("draft10", 50, 100, 100 / 60), id="as tight, but fewer"
        ),
        pytest.param(
            NAMED, '"daily";r=500, "other";r=3', RateHeaders("draft10", 500, 1000, 1000 / 86400), id="one unknown"
        ),
        pytest.param(
            NAMED, '"daily";r=500, "other";r=0;t=9', RateHeaders("draft10", 0, more_in_s=9), id="unknown, spent"
        ),
        pytest.param(None, '"a";r=9;t=1, "b";r=4;t=2', RateHeaders("draft10", 4, more_in_s=2), id="unknown both"),
        pytest.param('"a";q=9;w=3', '"a";r=7;t=1, "a";r=4;t=2', RateHeaders("draft10", 4, 9, 3.0, 2), id="named twice"),
        pytest.param(
            '"a";q=9;w=3', '"a";r=10;t=1, "a";r=4', RateHeaders("draft10", 4, 9, 3.0), id="named twice, one too much"
        ),
        pytest.param('"a";q=9;w=3, "a";q=5;w=5', '"a";r=7', RateHeaders("draft10", 7, 9, 3.0), id="policy named twice"),
        pytest.param(
            '"b";q=65535;qu="content-bytes";w=10, "r";q=10;qu="requests";w=5',
            '"b";r=1;t=3, "r";r=9;t=2',
            RateHeaders("draft10", 9, 10, 2.0, 2),
            id="bytes are no requests",
        ),
        pytest.param('"b";q=99;qu=content-bytes', '"b";r=1', None, id="bytes alone"),
        pytest.param(None, '"daily";r=1;t=86400', RateHeaders("draft10", 1, more_in_s=900), id="a day is cut"),
        pytest.param(None, '"a";r=0.5;t=0', RateHeaders("draft10", 0.5, more_in_s=0), id="half a token"),
        pytest.param(
            '"a";q=10;w=1', '"a";r=11;t=1', RateHeaders("draft10", None, 10, 10.0, 1), id="more than there can be"
        ),
        pytest.param(None, '"a";r=-1;t=1, "b";r=5', RateHeaders("draft10", 5), id="less than nothing"),
        pytest.param(None, '"a";t=5', None, id="nothing remaining told"),
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
def test_draft_10(policy: str | None, limit: str | None, told: RateHeaders | None) -> None:
    """A list of limits, each under the policy of its name; the one that is nearest to its end is told."""
    assert read(fields({"ratelimit-policy": policy, "ratelimit": limit}), NOW) == told


@pytest.mark.parametrize(
    ("policy", "limit", "told"),
    [
        pytest.param("100;w=10", "limit=100, remaining=50, reset=5", RateHeaders("draft07", 50, 100, 10.0, None, 5)),
        pytest.param("100;w=10", "limit=100,remaining=50,reset=5", RateHeaders("draft07", 50, 100, 10.0, None, 5)),
        pytest.param(None, "limit=100, remaining=50, reset=5", RateHeaders("draft07", 50, 100, None, None, 5)),
        pytest.param(
            "10;w=1;burst=9, 50;w=60", "limit=50, remaining=3, reset=9", RateHeaders("draft07", 3, 50, 50 / 60, None, 9)
        ),
        pytest.param("10;w=1, 50;w=60", "limit=7, remaining=3, reset=9", RateHeaders("draft07", 3, 7, 10.0, None, 9)),
        pytest.param(None, "remaining=3;note=1, reset=0", RateHeaders("draft07", 3, full_in_s=0), id="with parameters"),
        pytest.param(None, "limit=10, reset=7200", RateHeaders("draft07", None, 10, full_in_s=900), id="two hours"),
        pytest.param(
            None, "limit=10, remaining=11, reset=1", RateHeaders("draft07", None, 10, full_in_s=1), id="too much"
        ),
        pytest.param(None, "limit=x, remaining=-1, reset=()", None, id="nothing of use"),
        pytest.param(None, "limit, remaining=4", RateHeaders("draft07", 4), id="a limit of true"),
        pytest.param("100;w=10", "limit=100, remaining=", RateHeaders("draft07", None, 100, 10.0), id="malformed"),
        pytest.param("100;w=10", None, RateHeaders("draft07", None, 100, 10.0), id="a policy alone"),
    ],
)
def test_draft_07(policy: str | None, limit: str | None, told: RateHeaders | None) -> None:
    """One dictionary, under the policy that has its limit as quota, or else the first."""
    assert read(fields({"ratelimit-policy": policy, "ratelimit": limit}), NOW) == told


@pytest.mark.parametrize(
    ("limit", "remaining", "reset", "told"),
    [
        pytest.param("100", "50", "5", (50, 100, None, None, 5), id="plain"),
        pytest.param("100, 100;w=10", "50", "5", (50, 100, 10.0, None, 5), id="with its policy"),
        pytest.param(
            "100, 100;window=60, 10000;window=86400", "98", "3", (98, 100, 100 / 60, None, 3), id="two policies"
        ),
        pytest.param("10000, 100;w=60, 10000;w=86400", "98", "3", (98, 10000, 10000 / 86400, None, 3), id="the second"),
        pytest.param("100;w=10", None, None, (None, 100, 10.0, None, None), id="a limit that is a policy"),
        pytest.param(" 100 ", "\t50", "5 ", (50, 100, None, None, 5), id="white space"),
        pytest.param(None, "0", None, (0, None, None, None, None), id="only what remains"),
        pytest.param("0", "0", "60", (0, None, None, None, 60), id="a limit of nothing"),
        pytest.param("10", "11", "60", (None, 10, None, None, 60), id="more than there can be"),
        pytest.param("10 a minute", "-1", "-5", None, id="negative"),
        pytest.param("1_0", "1e3", "nan", None, id="what Python takes for numbers"),
        pytest.param("٣", "٣", "٣", None, id="digits of another script"),
        pytest.param("5000000000", "5000000000", None, None, id="absurdly much"),
        pytest.param(None, "99, 42", "1, 2", None, id="two lines of one name"),
        pytest.param(None, None, "1000000000", (None, None, None, None, 900), id="the longest delay"),
        pytest.param(None, None, "1800000030", (None, None, None, None, 30), id="seconds since the epoch"),
        pytest.param(None, None, "1800000030.25", (None, None, None, None, 30.25), id="and a quarter"),
        pytest.param(None, None, "1800000030500", (None, None, None, None, 30.5), id="milliseconds since the epoch"),
        pytest.param(None, None, "Fri, 15 Jan 2027 08:00:30 GMT", (None, None, None, None, 30), id="a date"),
        pytest.param(None, None, "Friday, 15-Jan-27 08:00:30 GMT", (None, None, None, None, 30), id="an old date"),
        pytest.param(None, None, "Fri Jan 15 08:00:30 2027", (None, None, None, None, 30), id="an older date"),
        pytest.param(None, None, "2027-01-15T08:00:30Z", (None, None, None, None, 30), id="a date of ISO 8601"),
        pytest.param(None, None, "2027-01-15T10:00:30+02:00", (None, None, None, None, 30), id="with an offset"),
        pytest.param(None, None, "1799999999", (None, None, None, None, 0), id="it was a second ago"),
        pytest.param(None, None, "Thu, 01 Jan 1970 00:10:00 GMT", (None, None, None, None, 0), id="long ago"),
        pytest.param(None, None, "1900000000", (None, None, None, None, 900), id="in years"),
        pytest.param(None, None, "0001-01-01T00:00:00+23:59", (None, None, None, None, 0), id="the first day"),
        pytest.param(None, None, "Nov 99999999999 18:00 99999999999 - 15 94", None, id="no day"),
    ],
)
@pytest.mark.parametrize("prefix", ["ratelimit", "x-ratelimit", "x-rate-limit"])
def test_three_fields(
    prefix: str, limit: str | None, remaining: str | None, reset: str | None, told: tuple[float | None, ...] | None
) -> None:
    """The three fields, standard or not, are read alike."""
    given = fields({f"{prefix}-limit": limit, f"{prefix}-remaining": remaining, f"{prefix}-reset": reset})
    expected = told and RateHeaders("triple" if prefix == "ratelimit" else "x-ratelimit", *told)
    assert read(given, NOW) == expected


def test_three_fields_beside_a_policy() -> None:
    """The policy field of the standard gives three fields their rate."""
    given = {"ratelimit-policy": "600;w=300", "ratelimit-limit": "600", "ratelimit-remaining": "580"}
    assert read(given, NOW) == RateHeaders("triple", 580, 600, 2.0)


@pytest.mark.parametrize("reset", ["1800000030", "1800000030000", "Fri, 15 Jan 2027 08:00:30 GMT"])
def test_a_reset_is_held_against_the_date_of_the_answer(reset: str) -> None:
    """Our own clock may be an hour off; it counts only where the answer has no date that can be read."""
    given = {"x-ratelimit-reset": reset}
    assert read({**given, "date": DATE}, NOW + 3600) == RateHeaders("x-ratelimit", full_in_s=30)
    assert read({**given, "date": "yesterday"}, NOW - 30) == RateHeaders("x-ratelimit", full_in_s=60)


@pytest.mark.parametrize(
    ("given", "told"),
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
            RateHeaders("bigcommerce", 35, 150, 5.0, None, 15),
            id="another shop",
        ),
        pytest.param(
            {"x-rate-limit-time-reset-ms": "15000000"}, RateHeaders("bigcommerce", full_in_s=900), id="four hours"
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
def test_source_systems(given: Mapping[str, str], told: RateHeaders | None) -> None:
    """Shops and 3PLs have their own ways to tell."""
    assert read(given, NOW) == told


def test_the_newest_standard_wins() -> None:
    """Of all the dialects of one answer the newest counts that says anything."""
    given = {
        "ratelimit": LISTED,
        "ratelimit-limit": "10",
        "x-ratelimit-remaining": "20",
        "x-rate-limit-remaining": "30",
        "ratelimit-policy": "40;w=1",
        "x-shopify-shop-api-call-limit": "1/40",
    }
    read_in_turn = []
    for name in tuple(given):
        told = read(given, NOW)
        assert told is not None
        read_in_turn.append((told.dialect, told.remaining, told.burst))
        del given[name]
    assert read_in_turn == [
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
def test_what_is_broken_does_not_hide_an_older_dialect(broken: dict[str, str]) -> None:
    """A newer standard that tells nothing of use leaves the word to the older, even where it has a policy."""
    given = {**broken, "ratelimit-policy": "100;w=10", "x-ratelimit-remaining": "20"}
    assert read(given, NOW) == RateHeaders("x-ratelimit", 20)


@pytest.mark.parametrize(("age", "counts"), [("0", True), ("", True), ("x", True), ("1", False), ("3600", False)])
def test_an_answer_from_a_cache_tells_nothing(age: str, counts: bool) -> None:
    """What was true when the cache was filled is not true of us now."""
    assert (read({"ratelimit": LISTED, "age": age}, NOW) is not None) == counts


@pytest.mark.parametrize(
    ("status", "told"),
    [
        pytest.param((1000.0, 954, 50.0), RateHeaders("graphql-cost", 954, 1000, 50.0), id="floats and integers"),
        pytest.param(
            (2000, Decimal("1999.5"), Decimal(100)), RateHeaders("graphql-cost", 1999.5, 2000, 100.0), id="decimals"
        ),
        pytest.param((1000, None, 50), RateHeaders("graphql-cost", None, 1000, 50.0), id="one is missing"),
        pytest.param((1000, 1001, -50), RateHeaders("graphql-cost", None, 1000), id="more than there can be"),
        pytest.param(("1000", True, [50]), None, id="no numbers"),
        pytest.param((math.inf, math.nan, 10**400), None, id="no finite numbers"),
        pytest.param((Decimal("Infinity"), Decimal("NaN"), Decimal("sNaN")), None, id="no finite decimals"),
    ],
)
def test_cost(status: tuple[object, object, object], told: RateHeaders | None) -> None:
    """A shop's GraphQL answers tell what is left of its points in their bodies."""
    names = ("maximumAvailable", "currentlyAvailable", "restoreRate")
    throttle = dict(zip(names, status, strict=True))
    body = {"data": {}, "extensions": {"cost": {"actualQueryCost": 46, "throttleStatus": throttle}}}
    assert read_cost(body) == told


@pytest.mark.parametrize("broken", [None, [], "x", 5, {}], ids=repr)
def test_a_body_without_cost(broken: object) -> None:
    """A body of any other shape tells nothing."""
    for body in (broken, {"extensions": broken}, {"extensions": {"cost": broken}}):
        assert read_cost(body) is None
    assert read_cost({"extensions": {"cost": {"throttleStatus": broken}}}) is None


counts = st.integers(0, 10**6)


@given(st.sampled_from(["draft10", "draft07", "triple", "x-ratelimit"]), st.data())
def test_what_the_sandbox_tells_is_read_back(dialect: Dialect, data: st.DataObject) -> None:
    """Every number that a dialect of the sandbox carries comes out as it went in; waits are cut at 15 minutes."""
    burst, window_s = data.draw(st.integers(1, 10**6)), data.draw(st.integers(1, 10**5))
    left, more_in_s, full_in_s = data.draw(st.integers(0, burst)), data.draw(counts), data.draw(counts)
    now = data.draw(st.integers(1_700_000_000, 2_000_000_000))
    sent = rate_limit_headers.policy(dialect, burst, window_s)
    sent |= rate_limit_headers.remaining(dialect, Quota(burst, left, more_in_s, full_in_s, now))
    rate, full = burst / window_s, min(full_in_s, 900)
    assert read(sent, now) == {
        "draft10": RateHeaders("draft10", left, burst, rate, more_in_s=min(more_in_s, 900)),
        "draft07": RateHeaders("draft07", left, burst, rate, full_in_s=full),
        "triple": RateHeaders("triple", left, burst, full_in_s=full),
        "x-ratelimit": RateHeaders("x-ratelimit", left, burst, full_in_s=full),
    }.get(dialect)


def test_no_dialect_of_the_sandbox_tells_nothing() -> None:
    """A sandbox that keeps its limit to itself is silent."""
    sent = rate_limit_headers.policy("none", 10, 10) | rate_limit_headers.remaining("none", Quota(10, 5, 1, 5, NOW))
    assert read(sent, NOW) is None


NAMES = [
    *("ratelimit", "ratelimit-policy", "date", "age"),
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


@given(st.dictionaries(st.sampled_from(NAMES), texts), st.floats(0, 1e11))
@example({"x-ratelimit-reset": "9" * 15, "date": "0001-01-01T00:00:00"}, 0.0)
@example({"ratelimit-policy": '"a";q=1;w=999999999', "ratelimit": '"a";r=999999999999999'}, NOW)
def test_no_text_does_harm(given: dict[str, str], now_s: float) -> None:
    """Whatever stands in these fields, nothing is raised and every number is within its bounds."""
    told = read(given, now_s)
    assert told is None or within_bounds(told)


numbers = st.one_of(st.floats(), st.integers(), st.decimals(allow_nan=True), st.text(max_size=5), st.none())


@given(st.dictionaries(st.sampled_from(["maximumAvailable", "currentlyAvailable", "restoreRate"]), numbers))
def test_no_body_does_harm(status: dict[str, object]) -> None:
    """Whatever stands in a body, nothing is raised and every number is within its bounds."""
    told = read_cost({"extensions": {"cost": {"throttleStatus": status}}})
    assert told is None or within_bounds(told)


@pytest.mark.parametrize("name", NAMES)
def test_a_long_field_is_not_looked_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that a field takes is bounded by its length: a longer one reaches no parser at all."""
    seen: list[str] = []
    monkeypatch.setattr(rate_headers, "_is_decimal", seen.append)
    monkeypatch.setattr(rate_headers, "_instant", seen.append)
    monkeypatch.setattr(rate_headers, "_parsed", lambda text, _kind: seen.append(text))
    assert read({name: " " * 250 + "1234567"}, NOW) is None
    assert not any(seen)


def test_a_field_of_the_greatest_length_is_read() -> None:
    """256 characters are enough for several policies."""
    assert read({"x-ratelimit-remaining": "5".rjust(256)}, NOW) == RateHeaders("x-ratelimit", 5)
    assert read({"x-ratelimit-remaining": "5".rjust(257)}, NOW) is None


def fields(given: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in given.items() if text is not None}


def within_bounds(told: RateHeaders) -> bool:
    """All that `RateHeaders` promises, and that it tells anything."""
    bounds = [
        (told.remaining, 0, 1e9 if told.burst is None else told.burst),
        (told.burst, 1, 1e9),
        (told.rate_per_s, 1e-9, 1e9),
        (told.more_in_s, 0, 900),
        (told.full_in_s, 0, 900),
    ]
    assert all(value is None or low <= value <= high for value, low, high in bounds), told
    return any(value is not None for value in astuple(told)[1:])
