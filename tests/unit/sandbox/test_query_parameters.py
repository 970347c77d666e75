from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.query_parameters import raise_if_unknown_parameter, raise_unless_one_of, whole_number_parameter


@given(st.integers(0, 2**63 - 1))
def test_a_whole_number_is_read(number: int) -> None:
    """Every number in the range is accepted; without the parameter the default applies."""
    assert whole_number_parameter({"n": str(number)}, "n", 0, range(2**63)) == number
    assert whole_number_parameter({}, "n", 7, range(10)) == 7


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "1e3", " 1", "\u0661", "\u00b2", "11", "9" * 20, "9" * 5_000])
def test_anything_else_is_400(text: str) -> None:
    """Signs, blanks, other digits and numbers outside of the range are refused with the range."""
    with pytest.raises(ProblemError, match="n must be a whole number from 0 to 10") as refused:
        whole_number_parameter({"n": text}, "n", 0, range(11))
    assert refused.value.response.status_code == 400


def test_unknown_names_and_values_are_400() -> None:
    """The detail names what is allowed, and not what was sent."""
    raise_if_unknown_parameter({"a": "1"}, "a", "b")
    raise_unless_one_of({}, "a", ["x", "y"])
    raise_unless_one_of({"a": "x"}, "a", ["x", "y"])
    with pytest.raises(ProblemError, match=r"^2 unknown query parameter\(s\); known: a, b\.$"):
        raise_if_unknown_parameter({"a": "1", "secret": "1", "other": "1"}, "a", "b")
    with pytest.raises(ProblemError, match=r"^a must be one of x, y\.$"):
        raise_unless_one_of({"a": "secret"}, "a", ["x", "y"])
