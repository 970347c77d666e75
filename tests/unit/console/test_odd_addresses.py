"""Whatever stands in an address, a page answers it, and nothing of it becomes a part of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import hostile_state
from tests.examples import examples
from tests.hostile_texts import PAYLOADS
from tests.report_page import Page
from tests.unit.console.visitor import Visitor, visiting

from crossdock.console.action_definitions import ACTIONS
from crossdock.console.web_server import PAGE_ROUTES
from crossdock.state import StateUrl
from crossdock.values.run_states_and_tally import RecordState

ADDRESSES = [page.path for page in PAGE_ROUTES if page.role is not None and not page.is_form]
PARAMETERS = (
    "action", "after", "batch", "before", "by", "connection", "date", "day", "file", "group", "in", "job", "key",
    "manual", "name", "namespace", "next", "number", "only", "page", "person", "plan", "q", "reason", "resource",
    "run", "show", "since", "state", "status", "stream", "streams", "target", "text", "until", "version", "wave",
)  # fmt: skip
KNOWN = (
    "wms.items", "platform", "product", "wms", "nightly", "rejected", "bad_value", "messages", "file", "data",
    "written", "one", "1", "2026-03", *ACTIONS, *(state.option_value for state in RecordState), "calendar",
    "20990101T000001-00000001",
)  # fmt: skip
ODD = (
    "", "0", "-1", "+1", "1.0", "1e9", "²", "٣", "99999999999999999", "9" * 400, "0x1", "NaN", "true", "None",
    "0001-01-01", "9999-12-31", "2026-02-30", "10000-01-01", "-0001-01-01", "2026-13", "0000-00", "2026-W01-1",
    "20260301", "1990-01-01", "2199-12-31", "[", "[]", "{}", "null", '["2026-01-01", "a"]',
    '["2026-01-01T00:00:00+00:00", 1, null]', "2026-01-01T00:00:00+00:00|a|b", "2026-01-01|a|b|c",
    "9999-12-31T23:59:59-23:59|a|b", "|", "||||", "a|b|c", "%", "%zz", "%00", "_", "%_%", "'", '"', "\0",
    "\ud7ff\uffff", "%25", "..", ".", "/", "\\", " ", "\n", "☃" * 300, "a" * 5_000, "*", "?", "a" * 64, "ab" * 32,
    "platform|product|wms|x", "f.csv:1", "f.csv:99999999999999999999", ":", "::1", "wms:",
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(ODD), st.sampled_from(KNOWN), st.sampled_from(PAYLOADS).map(lambda text: text[:3_000])
)


@pytest.fixture
def visitor(tmp_path: Path, state_url: StateUrl) -> Iterator[Visitor]:
    texts = cycle(PAYLOADS)
    address = state_url.render_as_string(hide_password=False)
    with visiting(hostile_state.make(tmp_path / "made", lambda: next(texts), address)) as visitor:
        yield visitor


@pytest.mark.nightly
@settings(max_examples=examples(3_000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(ADDRESSES),
    place=VALUES,
    query=st.dictionaries(st.sampled_from(PARAMETERS), VALUES, max_size=4),
)
def test_nothing_in_an_address_breaks_a_page(visitor: Visitor, path: str, place: str, query: Mapping[str, str]) -> None:
    """No internal error; elements and attributes are those of templates."""
    given_path = re.sub(r"\{[^}]*\}", quote(place, safe=""), path.replace("{tenant}", "acme"))
    address = f"{given_path}?{'&'.join(f'{name}={quote(text)}' for name, text in query.items())}"
    answer = visitor.answer("GET", address)
    assert answer.status_code in {200, 303, 400, 403, 404, 503}, answer.text
    if answer.status_code == 303:
        assert answer.headers["location"].startswith("/t/acme")
        return
    page = Page(answer.text)
    assert [name for name in page.names if name.startswith("on") or name in {"style", "srcdoc", "autofocus"}] == []
    assert page.tags.isdisjoint({"img", "iframe", "object", "embed", "base", "video", "audio", "math", "style", "b"})
    assert answer.text.count("<script") == 1
    assert answer.text.count("<meta") == 2 + answer.text.count('<noscript><meta http-equiv="refresh"')
