"""Parsing of the Link header field."""

from __future__ import annotations

import pytest

from crossdock.reading.sources.pagination import link_target


@pytest.mark.parametrize(
    ("field", "target"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param(" , ,", None, id="empty members"),
        pytest.param('</a>; rel="next"', "/a", id="quoted"),
        pytest.param("</a>;rel=next", "/a", id="token"),
        pytest.param("</a> ; REL = Next , </b>; rel=prev", "/a", id="case and blanks"),
        pytest.param('</a>; rel="first", </b>; rel="next"', "/b", id="second link"),
        pytest.param("</a>; rel='next'; x=y, </b>; rel='last'", "/a", id="single quotes"),
        pytest.param('</a>; rel="prev  next"', "/a", id="two relations"),
        pytest.param('</a>; rel="n\\ext"', "/a", id="escape"),
        pytest.param("</a>;;; rel=next;", "/a", id="empty parameters"),
        pytest.param('</a>; title="x, <y>; rel=next"; rel=prev, </b>; rel=next', "/b", id="a text like a link"),
        pytest.param('</a>; title="\\""; rel=next', "/a", id="quote in a text"),
        pytest.param('<?page=2,3;x=<>; rel="next"', "?page=2,3;x=<", id="separators in a target"),
        pytest.param("</a>; rel=prev; rel=next", None, id="only the first relation counts"),
        pytest.param("</a>; rel=next-page, </b>; rel=nextish", None, id="other relations"),
        pytest.param("</a>; rel, </b>; rel=", None, id="relation without a value"),
        pytest.param('</a>; rel="next', "/a", id="open quote"),
        pytest.param("</a>; rel=next, rubbish", "/a", id="rubbish after the link"),
        pytest.param("<>; rel=next", "", id="empty target"),
    ],
)
def test_the_next_link(field: str, target: str | None) -> None:
    """The first link with the relation next is used, in any notation of its parameters."""
    assert link_target(field) == target


@pytest.mark.parametrize("field", ["rubbish", "</a", "</a> rel=next", '</a>; x="y" rel=next', "</a>; rel=prev, b", '"'])
def test_a_malformed_field_is_an_error(field: str) -> None:
    """A malformed part could contain the next page, so it does not end the pages silently."""
    with pytest.raises(ValueError, match="is malformed"):
        link_target(field)


@pytest.mark.nightly(but=["-<>;", '-";', '-<a>;rel="?', "-;"])
@pytest.mark.parametrize(
    "unit",
    ["<>;", '<>;rel="', "<", "a ", " ", ",", ";", '\\"', "x ", '<a>;rel="?', "; =", '";', "<>;rel=x,", "<a>; rel", "="],
)
@pytest.mark.parametrize("start", ["", "<a>", '<a>;rel="', "<a>;x"])
def test_the_time_is_linear(start: str, unit: str) -> None:
    """Half a million characters of any pattern are parsed; a quadratic search would take hours."""
    field = start + unit * (500_000 // len(unit))
    try:
        assert link_target(field) is None
    except ValueError:
        assert field.strip(" ,")
